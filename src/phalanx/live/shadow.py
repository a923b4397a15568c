"""A shadow beside other schedulers: it watches, records, decides without effect, and reports what it would have made of it.

Nothing is written to the cluster: the client refuses to. What the cluster is now is looked at by dry sessions; what our decisions
would have led to cannot be played on from there, because how long gangs run is known only when they have ended. So that world is
computed anew from the recording now and then, by a process of its own.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import PhalanxError
from phalanx.live.clock import LoopClock
from phalanx.live.health import Health
from phalanx.live.heartbeat import Heartbeat
from phalanx.live.metrics import CONTENT_TYPE
from phalanx.live.observing import Observer
from phalanx.live.shadow_metrics import ShadowMetrics
from phalanx.model.kinds import object_key
from phalanx.model.task import GangKey
from phalanx.model.watch_event import WatchEvent
from phalanx.recording.cluster_watch import ClusterWatch
from phalanx.recording.entries import Config
from phalanx.recording.log_writer import Bounds
from phalanx.recording.moment import time_text
from phalanx.scheduling.cache import SchedulerCache
from phalanx.session.cycle import Profile
from phalanx.store.api_client import ApiClient

BETWEEN_LOOKS_SECONDS = 5.0
REST_FACTOR = 10.0
"""After a look or a report the shadow rests for so many times as long as that took, at least."""
LAST_REPORT_SECONDS = 20.0
"""So long the end waits for a last report."""


class Reporter(Protocol):
    """Makes the report of what was recorded so far."""

    async def report(self) -> dict[str, Any]:  # Any: as JSON has it
        """Return it as plain data."""
        ...


@dataclass(frozen=True, slots=True)
class ShadowSetup:
    """How a shadow runs."""

    profile: Profile
    config: Config
    schedulers: frozenset[str]
    """Whose pods are looked at; everybody's if there are none."""
    folder: Path
    bounds: Bounds
    every_seconds: float
    """From one report to the next."""
    clock: LoopClock | None = None
    """That of the running event loop by default."""


class Shadow:
    """Watches a cluster that others schedule."""

    def __init__(
        self, client: ApiClient, setup: ShadowSetup, reporter: Reporter, *, report: Callable[[str], None],
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Write nothing; `report` is called with what goes wrong, and `say` with what is seen."""
        self._setup, self._reporter, self._report, self._say = setup, reporter, report, say
        self._observer = Observer(client, setup.schedulers, setup.config, report=report, clock=setup.clock)
        self._clock = self._observer.clock
        self._cache = SchedulerCache(ObjectCluster(schedulers=setup.schedulers), report=report)
        self._observer.mirror.listen(self._notice)
        self.watch, self.metrics = ClusterWatch(setup.profile, keeps=False), ShadowMetrics(lambda: self._clock.now)
        self._observer.begun = self.metrics.recording.show
        self._heartbeat = Heartbeat(lambda: self._clock.elapsed)
        self._rests_until = 0.0
        self._told: frozenset[GangKey] = frozenset()

    def health(self, describe: Callable[[], object]) -> Health:
        """Return what is answered over HTTP."""
        return Health(
            metrics=self.metrics.text, metrics_type=CONTENT_TYPE, config=describe, live={"loop": self._heartbeat.check},
            ready={"caches": lambda: None if self._observer.watching.has_synced.is_set() else "not listed yet"},
        )  # fmt: skip

    async def run(self, is_over: asyncio.Event) -> None:
        """Watch, and report now and then, until it is over and once more then."""
        reports = asyncio.create_task(self._report_now_and_then())
        try:
            await self._observer.run(self._setup.folder, self._setup.bounds, is_over, turned=self._turn)
        finally:
            reports.cancel()
            with suppress(asyncio.CancelledError):
                await reports
        with suppress(TimeoutError):
            await asyncio.wait_for(self._make_report(), LAST_REPORT_SECONDS)

    def _notice(self, event: WatchEvent) -> None:
        try:
            self._cache.notice(event)
        except Exception as problem:  # an object that nobody understands stops nobody else
            place = f"{event.kind.resource} {object_key(event.object)}"
            self._report(f"{place}: left out, please report it: {type(problem).__name__}: {problem}")

    # --- looks -------------------------------------------------------------------------------------------------------

    def _turn(self, dropped: int) -> None:
        self._heartbeat.beat()
        begun = self._clock.elapsed
        if begun < self._rests_until:
            return
        try:
            self._look()
        except Exception as problem:  # the next look may go well, and recording goes on
            self._report(f"a dry session failed, please report it: {type(problem).__name__}: {problem}")
        took = self._clock.elapsed - begun
        self._rests_until = begun + max(BETWEEN_LOOKS_SECONDS, REST_FACTOR * took)

    def _look(self) -> None:
        now = self._clock.now
        self.watch.look(self._cache, self._observer.mirror, now)
        self.metrics.looked(self.watch, now)
        deadlock = self.watch.deadlock
        stuck = frozenset(deadlock.gangs) if deadlock is not None else frozenset()
        if deadlock is not None and stuck != self._told:
            self._say(f"deadlock since {time_text(deadlock.since)}: {', '.join(sorted(stuck))} hold what the others need")
        self._told = stuck

    # --- reports -----------------------------------------------------------------------------------------------------

    async def _report_now_and_then(self) -> None:
        rest = self._setup.every_seconds
        while True:
            await asyncio.sleep(rest)
            begun = self._clock.elapsed
            await self._make_report()
            rest = max(self._setup.every_seconds, REST_FACTOR * (self._clock.elapsed - begun))

    async def _make_report(self) -> None:
        try:
            document = await self._reporter.report()
        except (PhalanxError, OSError, ValueError) as problem:
            self._report(str(problem))
            return
        self.metrics.reported(document)
        totals = document["totals"]
        self._say(
            f"report: {document['earlier']} gangs earlier, {document['later']} later and {document['same']} the same in our world; "
            f"mean wait {totals['ours']['meanWait']:g}s instead of {totals['recorded']['meanWait']:g}s; "
            f"'phalanx shadow report {self._setup.folder}' shows all of it"
        )
