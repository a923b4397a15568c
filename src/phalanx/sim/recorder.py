"""Keeps what happens in a simulated cluster: when gangs came, started, were interrupted and ended, and who held what, when."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.gang import Gang
from phalanx.model.held_amount import held_amount
from phalanx.model.kinds import POD, Document
from phalanx.model.quantity import parse_quantity
from phalanx.model.resources import GPU
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import ENDED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.virtual_time import VirtualTime


@dataclass(slots=True)
class GangRecord:
    """The life of one gang; times in seconds from the start of the simulation."""

    name: str
    queue: str
    priority: int
    minimum: int
    tasks: int
    amount: float
    """What all tasks ask for, of the resource that is counted."""
    submitted: float
    started: float | None = None
    finished: float | None = None
    evicted: int = 0
    """How many of its pods were evicted."""
    spans: list[tuple[float, float | None]] = field(default_factory=list)
    """When it was whole, from and to."""
    kept: list[float] = field(default_factory=list)
    """For each of these times that was interrupted: how many seconds of its work were not lost."""
    held_since: float | None = None
    """Since when pods have a place while the gang is not whole."""

    @property
    def wait(self) -> float | None:
        """Seconds from its arrival to its first start."""
        return None if self.started is None else self.started - self.submitted


@dataclass(frozen=True, slots=True)
class EvictionRecord:
    """One pod that had to go."""

    moment: float
    pod: str
    gang: str
    action: str
    preemptor: str
    message: str


@dataclass(frozen=True, slots=True)
class TimeoutRecord:
    """One gang that waited too long, and what became of it."""

    moment: float
    gang: str
    message: str


@dataclass(frozen=True, slots=True)
class HoldingChange:
    """So much more, or less, is held on a node by a queue."""

    moment: float
    node: str
    queue: str
    amount: float


@dataclass(frozen=True, slots=True)
class _Hold:
    node: str
    queue: str
    gang: GangKey | None
    amount: float


class Recorder:
    """Listens to a cluster."""

    def __init__(self, cluster: ObjectCluster, time: VirtualTime, start: float) -> None:
        """Count seconds from `start`."""
        self._cluster, self._time, self._start = cluster, time, start
        self.resource = GPU
        self.gangs: dict[GangKey, GangRecord] = {}
        self.evictions: list[EvictionRecord] = []
        self.timeouts: list[TimeoutRecord] = []
        self.changes: list[HoldingChange] = []
        self.node_events: list[tuple[float, str, str]] = []
        self.capacity_changes: list[tuple[float, str, float]] = []
        """Moment, node, and what it offers from then on."""
        self.deserved: list[tuple[float, str, float]] = []
        """Moment, queue, and what it deserves from then on."""
        self._deserved: dict[str, float] = {}
        self._offers: dict[str, float] = {}
        self._holds: dict[str, _Hold] = {}
        self.held_by_gang: dict[GangKey, float] = {}
        self.useful: list[tuple[float, float]] = []
        """Moment, and what gangs hold that are whole."""
        self._whole: set[GangKey] = set()

    @property
    def moment(self) -> float:
        """Seconds since the start."""
        return self._time.now - self._start

    # --- gangs -------------------------------------------------------------------------------------------------------

    def submit(self, key: GangKey) -> None:
        """A gang has arrived, or some more of its pods; one that has started once is what it was."""
        gang, old = self._cluster.state.gang(key), self.gangs.get(key)
        if gang is None or (old is not None and old.started is not None):
            return
        members = _without_replaced(gang, self._cluster.state.members(key).values())
        amount = sum(map(self._amount, members))
        if old is not None:
            old.tasks, old.amount = max(old.tasks, len(members)), max(old.amount, amount)
            return
        record = GangRecord(key, gang.queue, gang.priority, gang.min_member, len(members), amount, self.moment)
        record.held_since = self.moment if self.held_by_gang.get(key) else None
        self.gangs[key] = record

    def set_whole(self, key: GangKey, is_whole: bool, kept: float) -> None:
        """A gang has become whole, or is no longer, and keeps so many seconds of its work."""
        record = self.gangs.get(key)
        if record is None:
            return
        if is_whole:
            self._whole.add(key)
            self._add_useful(self.held_by_gang.get(key, 0.0))
            record.started = self.moment if record.started is None else record.started
            record.spans.append((self.moment, None))
            record.kept.append(0.0)
            record.held_since = None
        else:
            self._whole.discard(key)
            self._add_useful(-self.held_by_gang.get(key, 0.0))
            self._close_span(record)
            if record.kept:
                record.kept[-1] = kept
            record.held_since = self.moment if self.held_by_gang.get(key) else None

    def finish(self, key: GangKey) -> None:
        """A gang has done its work."""
        record = self.gangs.get(key)
        if record is not None and record.finished is None:
            record.finished = self.moment
            record.held_since = None
            self._close_span(record)

    def _close_span(self, record: GangRecord) -> None:
        if record.spans and record.spans[-1][1] is None:
            record.spans[-1] = (record.spans[-1][0], self.moment)

    def evict(self, task: Task, action: str, preemptor: str, message: str) -> None:
        """A pod has to go."""
        self.evictions.append(EvictionRecord(self.moment, task.key, task.gang or "", action, preemptor, message))
        if task.gang in self.gangs:
            self.gangs[task.gang].evicted += 1

    def time_out(self, gang: str, message: str) -> None:
        """A gang has waited too long."""
        self.timeouts.append(TimeoutRecord(self.moment, gang, message))

    # --- who holds what ----------------------------------------------------------------------------------------------

    def hear(self, event: WatchEvent) -> None:
        """A pod or a node has changed; the cluster knows already."""
        if event.kind is POD:
            self._hear_pod(event)
        elif event.kind.kind == "Node":
            self._hear_node(event)

    def _hear_pod(self, event: WatchEvent) -> None:
        meta = event.object["metadata"]
        uid, held = meta["uid"], self._holds.get(meta["uid"])
        has_place = bool(event.object["spec"].get("nodeName")) and event.type != DELETED
        holds = has_place and event.object.get("status", {}).get("phase") not in ENDED
        if holds and held is None:
            self._take(uid, event.object["spec"]["nodeName"], f"{meta['namespace']}/{meta['name']}")
        elif held is not None and not holds:
            del self._holds[uid]
            self._note(held, -held.amount)

    def _take(self, uid: str, node: str, key: str) -> None:
        task = self._cluster.state.task(TaskKey(key))
        if task is None:
            return
        gang = self._cluster.state.gang(task.gang) if task.gang else None
        hold = _Hold(node, gang.queue if gang else "", task.gang, self._amount(task))
        self._holds[uid] = hold
        self._note(hold, hold.amount)

    def _note(self, hold: _Hold, amount: float) -> None:
        self.changes.append(HoldingChange(self.moment, hold.node, hold.queue, amount))
        if hold.gang is None:
            return
        left = self.held_by_gang.get(hold.gang, 0.0) + amount
        self.held_by_gang[hold.gang] = left
        record = self.gangs.get(hold.gang)
        if record is not None and hold.gang not in self._whole:
            record.held_since = (self.moment if record.held_since is None else record.held_since) if left > 0 else None
        if hold.gang in self._whole:
            self._add_useful(amount)

    def _add_useful(self, amount: float) -> None:
        total = amount + (self.useful[-1][1] if self.useful else 0.0)
        if self.useful and self.useful[-1][0] == self.moment:
            self.useful.pop()
        self.useful.append((self.moment, total))

    def _amount(self, task: Task) -> float:
        return held_amount(task, self.resource)

    # --- nodes and queues --------------------------------------------------------------------------------------------

    def _hear_node(self, event: WatchEvent) -> None:
        name = event.object["metadata"]["name"]
        offered = 0.0
        if event.type != DELETED and _is_usable(event.object):
            offers = event.object.get("status", {}).get("allocatable") or {}
            offered = float(parse_quantity(str(offers.get(self.resource, "0"))))
        if self._offers.get(name) != offered:
            self._offers[name] = offered
            self.capacity_changes.append((self.moment, name, offered))

    def note_deserved(self, queue: str, amount: float) -> None:
        """A session found that a queue deserves so much."""
        if self._deserved.get(queue) != amount:
            self._deserved[queue] = amount
            self.deserved.append((self.moment, queue, amount))


def _without_replaced(gang: Gang, tasks: Iterable[Task]) -> list[Task]:
    """Return the members without the placeholders of pods that have come, which go in a moment."""
    found = sorted(tasks, key=lambda task: task.is_placeholder)
    lacking = Counter(gang.role_minima)
    lacking.subtract(task.role for task in found if not task.is_placeholder)
    kept = []
    for task in found:
        lacking[task.role] -= task.is_placeholder
        if not task.is_placeholder or lacking[task.role] >= 0:
            kept.append(task)
    return kept


def _is_usable(node: Document) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return not any(condition.get("type") == "Ready" and condition.get("status") != "True" for condition in conditions)
