"""The work that a recording shows, followed entry by entry: gangs and their pods, nodes, and all other objects.

Nothing is decided again: what counts is what was heard. `load.py` makes a load for simulations of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from phalanx.config.schedulers import our_schedulers
from phalanx.dialects.group_references import GroupReference
from phalanx.model.kinds import GROUP_BY_DIALECT, NODE, POD, Document, Kind, kind_of, object_key, split_key
from phalanx.model.task import DEFAULT_SCHEDULER, GangKey, TaskKey
from phalanx.model.task_status import ENDED, Status
from phalanx.recording import entries
from phalanx.recording.entries import AnyEntry, Config
from phalanx.recording.gang_lives import GangLife, GangLives, Seat, Stand
from phalanx.recording.node_history import NodeHistory
from phalanx.recording.replay import RecordedCluster
from phalanx.recording.use_over_time import UseOverTime

EVICTED, REFUSED = ("evicted", "rolled-back"), "refused"
BIND_REQUEST = "BindRequest"
PREEMPTED = "PreemptionByScheduler"
"""Why kube-scheduler has evicted a pod."""
BY_OTHERS = "record"
"""The command whose recordings hold no sessions of ours."""
DIALECT_BY_GROUP = {(kind.group, kind.kind): dialect for dialect, kind in GROUP_BY_DIALECT.items()}


@dataclass(slots=True)
class SeenObject:
    """An object that is neither a node nor part of a gang, or a pod without a gang."""

    document: Document
    """As it was first."""
    arrived: float
    was_there: bool
    """From the beginning of the recording."""
    last: Document = field(default_factory=dict)
    is_gone: bool = False
    running: float | None = None
    ended: float | None = None

    @property
    def has_changed(self) -> bool:
        """Tell whether it is, or was, something else later; what controllers write into its status does not count."""
        return any(self.document.get(name) != self.last.get(name) for name in {*self.document, *self.last} - {"metadata", "status"})


@dataclass(slots=True)
class Delays:
    """How long things took, in seconds."""

    start: list[float] = field(default_factory=list)
    """From a pod's bind to its start."""
    stop: list[float] = field(default_factory=list)
    """From the moment a pod is told to leave to the moment it is gone."""
    restart: list[float] = field(default_factory=list)
    """From the end of a pod to another one in its place."""
    waiting: set[str] = field(default_factory=set)
    """Pods that wait for a node, by uid."""
    placed: dict[str, float] = field(default_factory=dict)
    leaving: dict[str, float] = field(default_factory=dict)

    def put(self, pod: Document, now: float) -> None:
        """A pod came or changed."""
        uid, phase = pod["metadata"].get("uid", ""), (pod.get("status") or {}).get("phase", "Pending")
        if not pod["spec"].get("nodeName"):
            self.waiting.add(uid)
        elif uid in self.waiting:
            self.waiting.discard(uid)
            self.placed[uid] = now
        if phase == "Running" and uid in self.placed:
            self.start.append(now - self.placed.pop(uid))
        if phase == "Running" and "deletionTimestamp" in pod["metadata"]:
            self.leaving.setdefault(uid, now)

    def remove(self, uid: str, now: float) -> None:
        """A pod is gone."""
        self.waiting.discard(uid)
        self.placed.pop(uid, None)
        if uid in self.leaving:
            self.stop.append(now - self.leaving.pop(uid))


class ObservedWork:
    """Everything that came and went in a recording."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.cluster = RecordedCluster()
        self.lives, self.nodes, self.delays, self.use = GangLives(), NodeHistory(), Delays(), UseOverTime()
        self.others: dict[tuple[Kind, str], SeenObject] = {}
        self.loose: dict[str, SeenObject] = {}
        """Pods without a gang, by uid."""
        self.header: entries.Header | None = None
        """The last one."""
        self.config: Config | None = None
        """The one that was in force first."""
        self.configs = 0
        """How many different ones there were."""
        self.begun, self.ended = 0.0, 0.0
        self.sessions = self.dropped = self.gaps = 0
        self.has_binder = False
        self._failed_requests: set[str] = set()
        self.refused = 0
        """Binds that failed."""
        self._is_beginning, self._is_checkpoint = True, False
        self._found: list[Document] = []
        """Pods of a checkpoint after a gap: they take seats once it is known whose pods have gone."""
        self._dirty: dict[GangKey, None] = {}
        self._life_by_pod: dict[str, GangLife] = {}
        self._groups: dict[GangKey, dict[tuple[str, str], Document]] = {}
        self._has_new_group = False
        self._last_config: Config | None = None
        self._scheduler_names: set[str] = set()

    # --- entries -----------------------------------------------------------------------------------------------------

    def enter(self, entry: AnyEntry) -> None:
        """Take in an entry."""
        if isinstance(entry, entries.Header | entries.Moment | entries.Decided | entries.Checkpoint | entries.Ended):
            self._advance(entry.now)
        match entry:
            case entries.Header() | entries.Config():
                self._configure(entry)
                self.cluster.enter(entry)
            case entries.Put():
                self._put(entry)
            case entries.Gone():
                self._remove(entry)
            case entries.Carried():
                self._end_checkpoint()
            case entries.CarriedOut():
                self._note_eviction(entry)
            case entries.Decided():
                self.sessions += 1
                self.cluster.enter(entry)
            case entries.Dropped():
                self.dropped += entry.count
            case _:
                self.cluster.enter(entry)

    def finish(self) -> None:
        """Look at what changed last."""
        self._look()
        if self.is_by_others:
            for life in self.lives:
                life.evicted = life.displaced + life.lost

    @property
    def schedulers(self) -> frozenset[str]:
        """Whose pods are ours in a simulation: those of the recording; where everybody's are, all names that were seen too."""
        named = self.header.schedulers if self.header is not None else ()
        return our_schedulers(named) if named else our_schedulers() | self._scheduler_names

    @property
    def is_by_others(self) -> bool:
        """Tell whether other schedulers decided: what they asked for is not in the recording, only what became of it."""
        return self.header is not None and self.header.source == BY_OTHERS

    def _advance(self, now: float) -> None:
        """Look at what changed at the last moment before another one comes."""
        if now != self.cluster.now:
            self._look()
            self.use.pass_time(max(now - self.cluster.now, 0.0))
        self.cluster.now = now
        self.ended = max(self.ended, now)

    def _configure(self, entry: entries.Header | Config) -> None:
        config = entry.config if isinstance(entry, entries.Header) else entry
        if config != self._last_config:
            self._last_config = config
            self.configs += 1
        self.config = self.config or config
        if isinstance(entry, entries.Header):
            self.gaps += self.header is not None
            self.begun = entry.now if self.header is None else self.begun
            self.header, self._is_checkpoint = entry, True
            self._groups, self._found = {}, []
            self.use.begin_anew()

    def _end_checkpoint(self) -> None:
        """Note what has gone since the last entry before a gap, if this is the end of one."""
        if self._is_checkpoint and not self._is_beginning:
            self.nodes.keep((node["metadata"]["name"] for node in self.cluster.mirror.within(NODE)), self.cluster.now)
            there = {pod["metadata"].get("uid", "") for pod in self.cluster.mirror.within(POD)}
            for life, seat in self._seats():
                if seat.uid not in there and seat.stand in (Stand.THERE, Stand.LEAVING):
                    self._vacate(life, seat)
        found, self._found = self._found, []
        for pod in found:
            self._put_pod(pod, was_releasing=False)
        self._look()
        if self._is_beginning:
            for life in self.lives:
                life.was_over = bool(life.seats) and not any(seat.stand is Stand.THERE for seat in life.seats)
        self._is_beginning = self._is_checkpoint = False

    def _seats(self) -> Iterator[tuple[GangLife, Seat]]:
        return ((life, seat) for life in self.lives for seat in life.seats)

    def _note_eviction(self, entry: entries.CarriedOut) -> None:
        life = self._life_by_pod.get(entry.pod)
        if life is not None and entry.what in EVICTED:
            life.evicted += 1
        self.refused += entry.what == REFUSED

    # --- objects -----------------------------------------------------------------------------------------------------

    def _put(self, entry: entries.Put) -> None:
        document, kind = entry.object, kind_of(entry.object)
        task = self.cluster.cache.cluster.state.task(TaskKey(object_key(document))) if kind is POD else None
        was_releasing = task is not None and task.status is Status.RELEASING
        self.cluster.enter(entry)
        if kind is POD and self._is_checkpoint and not self._is_beginning:
            self._found.append(document)
        elif kind is POD:
            self._put_pod(document, was_releasing=was_releasing)
        elif kind is NODE:
            self.nodes.put(document, self.cluster.now, is_beginning=self._is_beginning)
            self.use.put_node(document)
        elif (kind.group, kind.kind) in DIALECT_BY_GROUP:
            self._put_group(document, DIALECT_BY_GROUP[(kind.group, kind.kind)])
        elif kind.kind == BIND_REQUEST:
            self.has_binder = True
            self._put_request(document)
        else:
            place = (kind, object_key(document))
            seen = self.others.setdefault(place, SeenObject(document, self.cluster.now, self._is_beginning))
            seen.last, seen.is_gone = document, False

    def _put_request(self, request: Document) -> None:
        """Count a bind request that failed, once."""
        uid = request["metadata"].get("uid", "")
        if (request.get("status") or {}).get("phase") == "Failed" and uid not in self._failed_requests:
            self._failed_requests.add(uid)
            self.refused += 1

    def _remove(self, entry: entries.Gone) -> None:
        kind = kind_of({"apiVersion": entry.api_version, "kind": entry.kind})
        key = object_key({"metadata": {"namespace": entry.namespace, "name": entry.name}})
        if kind is POD:
            self._remove_pod(key)
        elif kind is NODE:
            self.nodes.remove(entry.name, self.cluster.now)
            self.use.remove_node(entry.name)
        elif (kind.group, kind.kind) in DIALECT_BY_GROUP:
            self._remove_group(entry.api_version, key, DIALECT_BY_GROUP[(kind.group, kind.kind)])
        elif (kind, key) in self.others:
            self.others[(kind, key)].is_gone = True
        self.cluster.enter(entry)

    # --- groups ------------------------------------------------------------------------------------------------------

    def _put_group(self, group: Document, dialect: str) -> None:
        key, place = self._gang_of_group(object_key(group), dialect), (group["apiVersion"], object_key(group))
        known = self._groups.setdefault(key, {}).get(place)
        self._groups[key][place] = group
        last = self.lives.find(key)
        is_same = known is not None and known["metadata"].get("uid") == group["metadata"].get("uid")
        life = last if last is not None and (is_same or not last.is_closed) else self._life(key)
        life.put_group(group)
        self._dirty[key] = None
        self._has_new_group = self._has_new_group or not is_same

    def _remove_group(self, api_version: str, name: str, dialect: str) -> None:
        key = self._gang_of_group(name, dialect)
        self._groups.get(key, {}).pop((api_version, name), None)
        self._dirty[key] = None

    def _gang_of_group(self, name: str, dialect: str) -> GangKey:
        return self.cluster.cache.cluster.groups.key_of(GroupReference(dialect, name))

    def _life(self, key: GangKey) -> GangLife:
        life = self.lives.of(key, self.cluster.now)
        for group in self._groups.get(key, {}).values():
            life.put_group(group)
        return life

    # --- pods --------------------------------------------------------------------------------------------------------

    def _put_pod(self, pod: Document, *, was_releasing: bool) -> None:
        self._scheduler_names.add(scheduler_of(pod))
        self.delays.put(pod, self.cluster.now)
        life, task = self._life_of_pod(pod), self.cluster.cache.cluster.state.task(TaskKey(object_key(pod)))
        if task is not None:
            self.use.put_pod(pod, task, None if life is None else life.key, is_given=life is None and self._is_given(pod))
        if life is None:
            self._put_loose(pod)
            return
        self._dirty[life.key] = None
        seat, vacant = life.seat_of(pod, self.cluster.now)
        if seat.uid != pod["metadata"].get("uid", ""):
            return  # on its way out, and another one has its seat already
        seen = self.loose.pop(seat.uid, None)
        if seen is not None:
            seat.arrived = min(seat.arrived, seen.arrived)
        if vacant is not None:
            self.delays.restart.append(vacant)
        self._set_stand(life, seat, pod, was_releasing=was_releasing)

    def _is_given(self, pod: Document) -> bool:
        """Tell whether a pod without a gang had its node when the recording began."""
        known = self.loose.get(pod["metadata"].get("uid", ""))
        was_there, first = (self._is_beginning, pod) if known is None else (known.was_there, known.document)
        return was_there and bool(first["spec"].get("nodeName"))

    def _gang_of(self, pod: str) -> GangKey | None:
        state = self.cluster.cache.cluster.state
        task = state.task(TaskKey(pod))
        return task.gang if task is not None and task.gang is not None and state.gang(task.gang) is not None else None

    def _life_of_pod(self, pod: Document) -> GangLife | None:
        """Return the life of a pod's gang; a pod whose group went before it stays in its gang."""
        key, uid = object_key(pod), pod["metadata"].get("uid", "")
        gang, known = self._gang_of(key), self._life_by_pod.get(key)
        if known is not None and gang in (None, known.key) and uid in known.seat_by_uid:
            return known
        if gang is None:
            return None
        self._life_by_pod[key] = self._life(gang)
        return self._life_by_pod[key]

    def _set_stand(self, life: GangLife, seat: Seat, pod: Document, *, was_releasing: bool) -> None:
        now, phase, node = self.cluster.now, (pod.get("status") or {}).get("phase"), pod["spec"].get("nodeName", "")
        seat.node, seat.is_preempted = node, seat.is_preempted or _is_preempted(pod)
        if phase in ENDED:
            seat.set_stand(Stand.SUCCEEDED if phase == ENDED[0] else Stand.FAILED, now)
            return
        if phase == "Running" and seat.running is None:
            seat.running = now
        if "deletionTimestamp" in pod["metadata"] and seat.stand is Stand.THERE:
            seat.set_stand(Stand.LEAVING, now)
            seat.has_lost_node = self.nodes.is_out(node)
            if node and not was_releasing:
                self.nodes.lost_pod(node, now)
        life.ran_before = life.ran_before or (self._is_beginning and bool(node))

    def _remove_pod(self, key: str) -> None:
        state, document = self.cluster.cache.cluster.state, self.cluster.mirror.find(POD, *split_key(key))
        uid = "" if document is None else document["metadata"].get("uid", "")
        self.delays.remove(uid, self.cluster.now)
        self.use.remove_pod(uid)
        if uid in self.loose:
            seen = self.loose[uid]
            seen.is_gone, seen.ended = True, seen.ended or self.cluster.now
        life, task = self._life_by_pod.get(key), state.task(TaskKey(key))
        seat = life.seat_by_uid.get(uid) if life is not None else None
        if life is None or seat is None or seat.uid != uid:
            return
        if seat.stand is Stand.THERE and task is not None and task.node and task.status is not Status.RELEASING:
            self.nodes.lost_pod(task.node, self.cluster.now)
        self._vacate(life, seat)

    def _vacate(self, life: GangLife, seat: Seat) -> None:
        if seat.stand is Stand.THERE:
            seat.has_lost_node = self.nodes.is_out(seat.node)
        if seat.stand in (Stand.THERE, Stand.LEAVING):
            seat.set_stand(Stand.GONE, self.cluster.now)
        self._dirty[life.key] = None

    def _put_loose(self, pod: Document) -> None:
        uid, phase = pod["metadata"].get("uid", ""), (pod.get("status") or {}).get("phase")
        seen = self.loose.setdefault(uid, SeenObject(pod, self.cluster.now, self._is_beginning))
        seen.last = pod
        if phase == "Running" and seen.running is None:
            seen.running = self.cluster.now
        if phase in ENDED and seen.ended is None:
            seen.ended = self.cluster.now

    # --- moments -----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Look at the gangs that changed at this moment."""
        if self._has_new_group:
            self._has_new_group = False
            self._join_gangs()
        dirty, self._dirty = self._dirty, {}
        for key in dirty:
            life = self.lives.find(key)
            if life is not None:
                life.look(self.cluster.cache.cluster.state, self.cluster.now)
                self.use.set_whole(key, is_whole=life.is_whole)

    def _join_gangs(self) -> None:
        """Take pods whose group came after them for what they are."""
        for seen in [seen for seen in self.loose.values() if not seen.is_gone]:
            if self._gang_of(object_key(seen.last)) is not None:
                self._put_pod(seen.last, was_releasing=False)


def scheduler_of(pod: Document) -> str:
    """Return the scheduler that a pod names."""
    return str(pod["spec"].get("schedulerName") or DEFAULT_SCHEDULER)


def _is_preempted(pod: Document) -> bool:
    """Tell whether a scheduler has evicted a pod, as it says on it; most pods say nothing of the kind."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "DisruptionTarget" and item.get("reason") == PREEMPTED for item in conditions)
