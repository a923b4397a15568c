"""Plans for gangs that our gate holds back: a session on the cluster as it would be without the gates.

Nothing is read twice before the first such pod comes. Whatever is planned is written on the pods; controllers lift the gates. A
plan names the version of the pod that it was made for: where the pod has changed meanwhile the write is refused, and a new plan is
made.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from phalanx.controllers.controller import Patch
from phalanx.dialects.gated_cluster import GatedCluster
from phalanx.dialects.gates import GangGates, GatePlan, written
from phalanx.errors import ClusterError, Conflict, SnapshotError
from phalanx.explain.why import why
from phalanx.model.kinds import POD, SILENT, Document, Kind, split_key
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.scheduling.port import ClusterPort, Report, Timer
from phalanx.scheduling.refusals import Refusals
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions
from phalanx.session.shard_decisions import as_one
from phalanx.state.snapshot import Snapshot

LONGEST_PAUSE_SECONDS = 60.0
"""After a refusal; others may come to fit meanwhile, and a plan is no older than that when gates are lifted."""


@dataclass(frozen=True, slots=True)
class GatedGangs:
    """Gangs that our gate holds back, and what a session behind it decides."""

    gangs: frozenset[GangKey]
    snapshot: Snapshot
    decisions: Decisions
    node_by_pod: Mapping[TaskKey, str]
    """The plans for the pods of these gangs."""
    gate: str
    """The one that holds the first of them back."""


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """A session behind our gates."""

    snapshot: Snapshot
    plans: Mapping[TaskKey, GatePlan]
    """Those that are new."""
    waits: Mapping[GangKey, str]
    """Gangs that have no room, each with why."""


def gated_gangs(profile: Profile, documents: Sequence[Document], now: float) -> GatedGangs | None:
    """Look behind our gates once, on objects that do not change; None where they hold nobody back."""
    planner, gates = GatePlanner(profile, lambda: documents), GangGates(profile.policy.flags.gates)
    first = next((document for document in documents if document.get("kind") == "Pod" and gates.of(document)), None)
    if first is None:
        return None
    planner.notice(POD, first, is_gone=False)
    return planner.look(now)


class GatePlanner:
    """Looks behind our gate."""

    def __init__(self, profile: Profile, everything: Callable[[], Iterable[Document]]) -> None:
        """`everything` returns all objects, and is called when the first pod is held back."""
        self.profile, self._everything, self._gates = profile, everything, GangGates(profile.policy.flags.gates)
        self._cluster: GatedCluster | None = None
        self.waits: dict[GangKey, str] = {}
        """Why gangs that our gate holds back had no room when a session last looked."""
        self.planned: list[Callable[[PlannedSession], None]] = []
        """Called with every session behind the gates."""

    def notice(self, kind: Kind, document: Document, *, is_gone: bool) -> bool:
        """Note a change; tell whether a session should look at it."""
        if self._cluster is not None and is_gone:
            self._cluster.remove(document)
        elif self._cluster is not None:
            _put(self._cluster, document)
        elif kind is POD and self._gates.of(document):
            self._cluster = self._begun()
        return self._cluster is not None and bool(self._cluster.held) and kind.kind not in SILENT

    def _begun(self) -> GatedCluster:
        cluster = GatedCluster(self._gates)
        for document in self._everything():
            _put(cluster, document)
        return cluster

    def plan(self, now: float) -> list[Patch]:
        """Return the plans to write on pods now."""
        self.waits = {}
        if self._cluster is None or not self._cluster.held:
            return []
        snapshot, decisions = self._look(self._cluster, now)
        self.waits = self._reasons(self._cluster, snapshot, decisions)
        found = self._cluster.new_plans(decisions, now)
        for listener in self.planned:
            listener(PlannedSession(snapshot, found, self.waits))
        versions = {key: str(self._cluster.held[key]["metadata"].get("resourceVersion", "")) for key in found}
        return [Patch(POD, *split_key(key), written(plan, versions[key])) for key, plan in found.items()]

    def reasons(self, now: float) -> dict[GangKey, str]:
        """Return why gangs that our gate holds back have no room, as a session would find it now."""
        if self._cluster is None or not self._cluster.held:
            return {}
        return self._reasons(self._cluster, *self._look(self._cluster, now))

    def waiting_pods(self) -> dict[TaskKey, str]:
        """Return the pods of gangs that had no room, each with why."""
        if self._cluster is None or not self.waits:
            return {}
        tasks = ((key, self._cluster.state.task(key)) for key in self._cluster.held)
        return {key: self.waits[task.gang] for key, task in tasks if task is not None and task.gang in self.waits}

    def look(self, now: float, *, trace_level: int = 0, traced_gangs: Collection[str] = ()) -> "GatedGangs | None":
        """Return what a session decides for the gangs that our gate holds back; None where there are none."""
        if self._cluster is None or not self._cluster.held:
            return None
        snapshot, decisions = self._look(self._cluster, now, trace_level, traced_gangs)
        binds = {key: node for key, node in decisions.binds.items() if key in self._cluster.held}
        first = next(iter(self._cluster.held.values()))
        return GatedGangs(frozenset(self._cluster.held_gangs()), snapshot, decisions, binds, self._gates.of(first)[0])

    def _look(
        self, cluster: GatedCluster, now: float, trace_level: int = 0, traced_gangs: Collection[str] = ()
    ) -> tuple[Snapshot, Decisions]:
        cluster.attach = self.profile.policy.attach_rules
        snapshot = cluster.snapshot(now)
        return as_one(snapshot, decide(snapshot, self.profile, trace_level=trace_level, traced_gangs=traced_gangs))

    def _reasons(self, cluster: GatedCluster, snapshot: Snapshot, decisions: Decisions) -> dict[GangKey, str]:
        gangs = cluster.held_gangs()
        texts = {outcome.state.gang.key: why(outcome, snapshot) for outcome in decisions.outcomes}
        return {key: text for key, text in texts.items() if text and key in gangs}


class GateLoop:
    """Makes plans after changes, with a gap between them, and writes them; from `start` to `stop`.

    A plan names the version of its pod. Once it is answered, also where that version is not the latest, there is nothing to do
    before a watch shows the next one, so it rests as long as the version stays. One that is refused for another reason rests
    whatever changes meanwhile. Pauses grow, and plans of other pods need not wait for them.
    """

    def __init__(self, port: ClusterPort, planner: GatePlanner, *, gap: float, report: Report) -> None:
        """`report` is called when a plan could not be written."""
        self._port, self._clock, self.planner, self._gap, self._report = port, port.clock, planner, gap, report
        self._timer: Timer | None = None
        self._due = self._earliest = float("-inf")
        """When plans are made next, once there is a timer, and before which moment they are not."""
        self._is_running = self._is_wanted = False
        self._rests = Refusals(LONGEST_PAUSE_SECONDS)
        self._under_way: set[str] = set()
        """The pods on which a plan is being written."""

    def start(self) -> None:
        """Write plans from now on."""
        self._is_running = True
        if self._is_wanted:
            self._wake()

    def stop(self) -> None:
        """Write none until the next start."""
        self._is_running = False
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def notice(self, event: WatchEvent) -> None:
        """Note a change of an object."""
        if self.planner.notice(event.kind, event.object, is_gone=event.type == DELETED):
            self._is_wanted = True
            self._wake()

    def _wake(self, seconds: float = 0.0) -> None:
        due = max(self._clock.elapsed + seconds, self._earliest)
        if not self._is_running or (self._timer is not None and self._due <= due):
            return
        self._stop_timer()
        self._due, self._timer = due, self._clock.after(due - self._clock.elapsed, self._plan)

    def _plan(self) -> None:
        self._timer, self._is_wanted, self._earliest = None, False, self._clock.elapsed + self._gap
        now, self._rests.due = self._clock.now, None
        asked: set[str] = set()
        for write in self.planner.plan(now):
            name = f"{write.namespace}/{write.name}"
            version = f"{name} {write.patch['metadata'].get('resourceVersion', '')}"
            asked |= {name, version}
            if name not in self._under_way and all(self._rests.is_due(each, now) for each in (name, version)):
                self._under_way.add(name)
                self._port.send(write, partial(self._answered, name, version))
        self._rests.keep(asked)
        if self._rests.due is not None:
            self._wake(self._rests.due - now)

    def _answered(self, name: str, version: str, problem: ClusterError | None) -> None:
        self._under_way.discard(name)
        if not self._is_running:
            return
        is_refused = problem is not None and not isinstance(problem, Conflict)
        if is_refused:
            self._report(f"a plan behind gates could not be written: {problem}")
        else:
            self._rests.clear(name)
        key, now = name if is_refused else version, self._clock.now
        self._rests.note(key, now, at_least=problem.retry_after if problem is not None else 0.0)
        self._wake(self._rests.until(key, now) - now)


def _put(cluster: GatedCluster, document: Document) -> None:
    """Let the cluster know of an object; who else reads it says what is wrong with a broken one."""
    with suppress(SnapshotError):
        cluster.put(document)
