"""The metrics of a running scheduler. Whoever runs sessions, binds or watches calls the method named after what happened.

Each instance has its own registry. One thread fills and reads it: the loop's. The clock says seconds since 1970, as the
creation times of gangs do.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from phalanx import __version__
from phalanx.explain.gang_status import GangStatus, GangWithStatus, gang_status
from phalanx.explain.queue_figures import Figures, queue_rows
from phalanx.live.metric_families import GangFamilies, ProcessFamilies, RecordingFamilies, SessionFamilies, WriteFamilies
from phalanx.live.metric_gauges import LastMinute
from phalanx.live.start_latency import Starting
from phalanx.live.waiting_gangs import WaitingRoom
from phalanx.model.bounds import SESSION_SECONDS
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.scheduling.timing import Times
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

if TYPE_CHECKING:  # few processes are recorded, and the library for it takes a while to import
    from phalanx.recording.log_writer import LogWriter

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
TIMEOUT = "ScheduleTimeout"

Attempt = Literal["scheduled", "unschedulable", "error"]
BindResult = Literal["bound", "conflict", "failed"]
"""Done; refused because the pod or the node has changed; not done for another reason."""


class Metrics:
    """Counts what happens."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with nothing counted."""
        # Otherwise every counter has a line with its moment of birth beside it, which nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
        self.registry, self._clock = CollectorRegistry(), clock
        self._sessions, self._gangs = SessionFamilies(self.registry), GangFamilies(self.registry)
        self._writes, self._process = WriteFamilies(self.registry), ProcessFamilies(self.registry)
        self._recording = RecordingFamilies(self.registry)
        self._waiting, self._starting, self._last_minute = WaitingRoom(), Starting(), LastMinute(clock)
        self._figures: Figures = {}
        self._counted: set[tuple[Attempt, str]] = set()
        """The labels of attempts."""
        self._writes.rate.set_function(self._last_minute.per_second)
        self._process.build.info({"version": __version__})
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Return everything in the form that Prometheus reads, of the type CONTENT_TYPE."""
        return generate_latest(self.registry)

    # --- sessions ----------------------------------------------------------------------------------------------------

    def session_held(self, seconds: float, *, snapshot_seconds: float, times: Times) -> None:
        """A session took so long, its snapshot included."""
        self._sessions.cycle.observe(seconds)
        self._sessions.snapshot.observe(snapshot_seconds)
        if seconds > SESSION_SECONDS.most:
            self._sessions.too_long.inc()
        for action, spent in times.by_action.items():
            self._sessions.action.labels(action).observe(spent)
        for (plugin, hook), spent in times.by_hook.items():
            self._sessions.plugin.labels(plugin, hook).observe(spent)

    def note(self, snapshot: Snapshot, decisions: Decisions) -> None:
        """Count what a session decided, and show what waits and what queues have."""
        found = [(outcome.state, gang_status(outcome.state)) for outcome in decisions.outcomes]
        self._count_attempts([entry for entry in found if entry[0].key not in decisions.faults])
        for key in snapshot.gangs.keys() & decisions.faults.keys():
            self.gang_attempted("error", queue=snapshot.gangs[key].queue)
        self._forget_queues(snapshot)
        for count in Counter(item.preemptor for item in decisions.evictions.values() if item.preemptor).values():
            self.victims_chosen(count)
        self._waiting.note(snapshot, decisions.outcomes)
        self._starting.note(snapshot, found)
        self._gangs.pending.show(self._waiting.gangs.items())
        self._gangs.waiting_pods.set(self._waiting.pods)
        self._figures = decisions.queues or self._figures  # a quiet session counts none, and the last ones stand
        self._process.queues.show(queue_rows(snapshot, self._figures).items())

    def _count_attempts(self, found: list[GangWithStatus]) -> None:
        for gang, standing in found:
            result = _result(gang, standing)
            if result is not None:
                self.gang_attempted(result, queue=gang.gang.queue)
            if any(verdict.reason == TIMEOUT for verdict in gang.verdicts):
                self.gang_timed_out()

    def _forget_queues(self, snapshot: Snapshot) -> None:
        """Show nothing of queues that are gone: where they come and go there would be ever more of them."""
        gone = [labels for labels in self._counted if labels[1] not in snapshot.queues]
        named = {gang.queue for gang in snapshot.gangs.values()} if gone else set()
        for labels in gone:
            if labels[1] not in named:
                self._gangs.attempts.remove(*labels)
                self._counted.discard(labels)

    # --- gangs -------------------------------------------------------------------------------------------------------

    def gang_attempted(self, result: Attempt, *, queue: str) -> None:
        """A session tried to place a gang."""
        self._counted.add((result, queue))
        self._gangs.attempts.labels(result, queue).inc()

    def gang_started(self, seconds: float) -> None:
        """The last bind that a gang needed is through, so long after its creation."""
        for family in self._gangs.started:
            family.observe(max(seconds, 0.0))

    def gang_timed_out(self) -> None:
        """A gang was not whole in the time that it has."""
        self._gangs.timeouts.inc()

    # --- writes ------------------------------------------------------------------------------------------------------

    def bind_ended(self, task: TaskKey, result: BindResult, *, seconds: float) -> None:
        """A bind was answered after so many seconds; the last one of a gang that `note` has seen starts the gang."""
        self._writes.binds.labels(result).inc()
        self._writes.bind_seconds.observe(seconds)
        if result != "bound":
            self._starting.failed(task)
            return
        self._writes.scheduled.inc()
        self._last_minute.add()
        created = self._starting.bound(task)
        if created is not None:
            self.gang_started(self._clock() - created)

    def evicted(self, reason: str) -> None:
        """A pod was evicted; the reason is the action that chose it, or the controller."""
        self._writes.evictions.labels(reason).inc()

    def victims_chosen(self, count: int) -> None:
        """So many pods are to go for one gang."""
        self._writes.victims.observe(count)

    def watch_event(self, kind: str, type_: str) -> None:
        """A watch reported a change: its kind, and ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""
        self._writes.watch_events.labels(kind, type_).inc()

    # --- the process -------------------------------------------------------------------------------------------------

    def leads(self, is_leader: bool) -> None:
        """This replica decides, or stands by."""
        self._process.leader.set(is_leader)

    def quarantined(self, count_by_resource: Mapping[str, int]) -> None:
        """So many objects of each kind cannot be understood now."""
        self._process.quarantined.show(((resource,), count) for resource, count in count_by_resource.items())

    def recorded_by(self, writer: "LogWriter") -> None:
        """Everything is recorded, by this writer."""
        self._recording.show(writer)

    def configured(self) -> None:
        """The process began with a good configuration."""
        self._process.config_is_current.set(1)

    def config_reloaded(self, is_applied: bool) -> None:
        """The configuration file has changed, and is in force or was refused."""
        self._process.reloads.labels("applied" if is_applied else "refused").inc()
        self._process.config_is_current.set(is_applied)


def _result(gang: GangState, standing: GangStatus) -> Attempt | None:
    """Return how the attempt to place a gang ended; None if nothing of it could be placed."""
    if not any(task.task.status is Status.PENDING and not task.task.is_gated for task in gang.tasks):
        return None
    if standing in (GangStatus.STARTS, GangStatus.GROWS):
        return "scheduled"
    return None if standing is GangStatus.COMPLETED else "unschedulable"
