"""The metrics of a shadow: what it sees now, and both worlds as its last report has them."""

from collections.abc import Callable, Mapping
from math import nan
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Info, ProcessCollector, generate_latest

from phalanx import __version__
from phalanx.live.metric_families import RecordingFamilies
from phalanx.recording.cluster_watch import ClusterWatch

RECORDED, OURS = "recorded", "ours"
VERDICTS = ("earlier", "later", "same")


class ShadowMetrics:
    """Shows what a shadow knows."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin before the first look and the first report."""
        self.registry, self._clock = CollectorRegistry(), clock
        self._reported: float | None = None
        self._half_started = self._gauge("phalanx_shadow_half_started_gangs", "Gangs that hold nodes without their minimum.")
        self._deadlocked = self._gauge("phalanx_shadow_deadlocked_gangs", "Half-started gangs that hold what others need.")
        self._with_room = self._gauge("phalanx_shadow_gangs_with_room", "Gangs that wait although a dry session starts them.")
        self._gangs = self._gauge(
            "phalanx_shadow_gangs",
            "Gangs by when they start in our world, in the last report.",
            "verdict",
        )
        self._wait = self._gauge("phalanx_shadow_mean_wait_seconds", "Mean wait in each world, in the last report.", "world")
        self._evictions = self._gauge("phalanx_shadow_evictions", "Evicted pods in each world, in the last report.", "world")
        self._age = self._gauge("phalanx_shadow_report_age_seconds", "Seconds since the last report; NaN before the first one.")
        self._age.set_function(self._age_seconds)
        self._build = Info("phalanx_build", "Which build this is.", registry=self.registry)
        self._build.info({"version": __version__})
        self.recording = RecordingFamilies(self.registry)
        ProcessCollector(registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _age_seconds(self) -> float:
        return nan if self._reported is None else self._clock() - self._reported

    def text(self) -> bytes:
        """Return everything in the form that Prometheus reads."""
        return generate_latest(self.registry)

    def looked(self, watch: ClusterWatch, now: float) -> None:
        """Show what a look saw."""
        self._half_started.set(len(watch.half_starts.lasting(now)))
        self._deadlocked.set(len(watch.deadlock.gangs) if watch.deadlock is not None else 0)
        self._with_room.set(sum(span.is_lasting for span in watch.room.values()))

    def reported(self, document: Mapping[str, Any]) -> None:  # Any: as JSON has it
        """Show the figures of a report."""
        self._reported = self._clock()
        for verdict in VERDICTS:
            self._gangs.labels(verdict).set(document[verdict])
        for world in (RECORDED, OURS):
            totals = document["totals"][world]
            self._wait.labels(world).set(totals["meanWait"])
            self._evictions.labels(world).set(totals["evictions"])
