"""Every metric that the process has: its name, its labels and what it says. `metrics.py` fills them.

Base units, histograms for time, and no names of pods or gangs as labels: there is no end of those.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from phalanx.live.metric_gauges import ReadCounter, ReplacedGauge

if TYPE_CHECKING:  # few processes are recorded, and the library for it takes a while to import
    from phalanx.recording.log_writer import LogWriter

DECIDING = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets for what the process does by itself, in seconds."""
ASKING = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0)
"""Buckets for what one plugin does: few, for there are many plugins and hooks."""
WRITING = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0)
WAITING = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 10800.0, 43200.0, 86400.0, 604800.0)
"""Buckets for how long a gang waits: a tenth of a second to a week."""
VICTIMS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

WAITING_TEXT = "Seconds from the creation of a gang to the last bind that gave it its minimum."


def _seconds(registry: CollectorRegistry, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
    return Histogram(name, text, labels, buckets=buckets, registry=registry)


class SessionFamilies:
    """How long deciding takes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Enter them."""
        self.cycle = _seconds(registry, "phalanx_cycle_duration_seconds", "Seconds of a session, snapshot included.", DECIDING)
        self.snapshot = _seconds(registry, "phalanx_snapshot_duration_seconds", "Seconds it took to make the snapshot.", DECIDING)
        self.action = _seconds(
            registry, "phalanx_action_duration_seconds", "Seconds that an action took in a session.", DECIDING, ["action"]
        )
        self.too_long = Counter(
            "phalanx_long_sessions_total", "Sessions that took longer than PHALANX_MAX_SESSION_SECONDS.", registry=registry
        )
        text = "Seconds that a hook of a plugin took in all of a session; measured in one session of ten."
        self.plugin = _seconds(registry, "phalanx_plugin_duration_seconds", text, ASKING, ["plugin", "hook"])


class GangFamilies:
    """What becomes of gangs and their pods."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Enter them."""
        self.attempts = Counter(
            "phalanx_gang_schedule_attempts_total", "Gangs that a session tried to place, by result.", ["result", "queue"],
            registry=registry,
        )  # fmt: skip
        self.started = [
            _seconds(registry, "phalanx_gang_scheduling_duration_seconds", WAITING_TEXT, WAITING),
            _seconds(registry, "podgroup_scheduling_duration_seconds", f"{WAITING_TEXT} The name that others use.", WAITING),
        ]
        self.timeouts = Counter(
            "podgroup_scheduling_timeout_total", "Gangs that did not get their minimum before their timeout.", registry=registry
        )
        self.pending = ReplacedGauge(
            registry, "phalanx_pending_gangs", "Gangs without their minimum, by queue and reason code.", ["queue", "reason"]
        )
        self.waiting_pods = Gauge("podgroup_waiting_pods", "Pods of gangs that have no place.", registry=registry)


class WriteFamilies:
    """What is written to the cluster, and what watches report."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Enter them."""
        self.binds = Counter("phalanx_binds_total", "Pods for which a bind was tried, by result.", ["result"], registry=registry)
        self.bind_seconds = _seconds(registry, "phalanx_bind_duration_seconds", "Seconds until a bind was answered.", WRITING)
        self.scheduled = Counter("phalanx_pods_scheduled_total", "Pods that were bound to a node.", registry=registry)
        self.rate = Gauge(
            "phalanx_pods_scheduled_per_second", "Pods bound each second, on average over the last minute.", registry=registry
        )
        self.evictions = Counter(
            "phalanx_evictions_total", "Pods that were evicted, by the action that chose them.", ["reason"], registry=registry
        )
        self.victims = Histogram(
            "phalanx_preemption_victims", "Pods that go for one gang in one session.", buckets=VICTIMS, registry=registry
        )
        self.watch_events = Counter(
            "phalanx_watch_events_total", "Watch events received from the API server, by kind and type.", ["kind", "type"],
            registry=registry,
        )  # fmt: skip


class ProcessFamilies:
    """The process itself, and the queues as it sees them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Enter them."""
        self.queues = ReplacedGauge(
            registry, "phalanx_queue_resources",
            "What a queue has, requests, deserves and may have, in cores, bytes and devices.", ["queue", "resource", "kind"],
        )  # fmt: skip
        self.quarantined = ReplacedGauge(
            registry, "phalanx_quarantined_objects", "Objects that cannot be understood and are left out, by kind.", ["kind"]
        )
        self.leader = Gauge("phalanx_leader", "1 for the replica that decides, 0 for one that stands by.", registry=registry)
        self.reloads = Counter(
            "phalanx_config_reloads_total", "Changes of the configuration file, by result.", ["result"], registry=registry
        )
        self.config_is_current = Gauge(
            "phalanx_config_last_reload_successful", "1 if the configuration file is in force, 0 if an older one is.",
            registry=registry,
        )  # fmt: skip
        self.build = Info("phalanx_build", "Which build this is.", registry=registry)
        text = "Tasks of the event loop; more of them from hour to hour are a leak."
        self.tasks = Gauge("phalanx_event_loop_tasks", text, registry=registry)
        self.tasks.set_function(_tasks)


def _tasks() -> int:
    """Return how many tasks the event loop has; none where nothing runs."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return 0


class RecordingFamilies:
    """The recording of the process; all are 0 where there is none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Enter them."""
        self.written = ReadCounter(registry, "phalanx_recording_written_bytes_total", "Bytes written to the recording.")
        self.cpu = ReadCounter(
            registry, "phalanx_recording_cpu_seconds_total", "Processor time of the thread that writes the recording."
        )
        self.segments = ReadCounter(registry, "phalanx_recording_segments_total", "Segments of the recording that were begun.")
        self.dropped = ReadCounter(
            registry,
            "phalanx_recording_dropped_changes_total",
            "Changes that are not in the recording: the disk could not keep up.",
        )
        self.interrupted = Gauge(
            "phalanx_recording_interrupted", "1 while nothing can be recorded, as on a full disk.", registry=registry
        )

    def show(self, writer: "LogWriter") -> None:
        """Everything is recorded, by this writer."""
        self.written.read = lambda: writer.written_bytes
        self.cpu.read = lambda: writer.cpu_seconds
        self.segments.read = lambda: writer.segments
        self.dropped.read = lambda: writer.dropped
        self.interrupted.set_function(lambda: writer.is_interrupted)
