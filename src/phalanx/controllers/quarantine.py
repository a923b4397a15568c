"""Quarantine: a group or pod that cannot be read is left out of sessions, the others are not; its status says what is wrong.

The problem is what the readers of sessions report. An object is read by itself, whatever else there is, with two exceptions: a
pod that names several groups is read together with those groups, and pods of the dialects in `BESIDE_OTHERS` with the other pods
of their gang. What only a session can see, such as a queue that does not exist, sessions report. The controller remembers
nothing: the problem is in a condition or annotation of the object, and is removed from there when it is solved.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from phalanx.controllers.conditions import condition, listed_conditions, message_of, status_patch
from phalanx.controllers.controller import NOTHING, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.gang_pods import gang_keys, members, waits
from phalanx.controllers.objects import PROBLEM, annotations_of, controller_of, inside, is_leaving, key_of, meta_of
from phalanx.dialects.cluster import ObjectCluster, describe
from phalanx.dialects.group_references import SIGS_GROUP, may_name_several, named_groups
from phalanx.errors import SnapshotError
from phalanx.model.conditions import POD_SCHEDULED, cleared
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, REPLICA_SET, STATEFUL_SET, Document, Kind, object_key
from phalanx.model.moment import moment_of
from phalanx.model.shape import Shape
from phalanx.model.task import TaskKey

REFUSED, INVALID, MISCONFIGURED = "Refused", "Invalid", "Misconfigured"
DIALECT_BY_KIND = MappingProxyType({kind: dialect for dialect, kind in GROUP_BY_DIALECT.items()})
CONDITIONS = MappingProxyType({"volcano": "conditions", "native": "conditions", "kai": "schedulingConditions"})
"""The field of conditions in the status of groups, by dialect; groups of other dialects get an annotation instead."""
BESIDE_OTHERS = ("koordinator", "kueue", "gates")
"""Dialects in which it depends on the other pods of a gang whether a pod can be read."""
SIZED = (REPLICA_SET, STATEFUL_SET)
"""Owners that say how many pods there will be."""
MINIMA = MappingProxyType({"native": ("spec", "schedulingPolicy", "gang", "minCount")})
MIN_MEMBER = ("spec", "minMember")
"""Where groups say how many pods start together; that is the field of all that `MINIMA` does not name."""
GROUP_PATIENCE_SECONDS = 10.0
"""Whoever creates pods may create their group after them."""
YOUNG_SECONDS = 1.0
"""A group that was created so recently may be the reason why pods can be read now, or no longer."""
MOST_READ = 1000
"""After so many objects what they had in common is forgotten: templates come and go."""
POD_ALONE, MEMBERS, CONTESTED = "pod", "members", "contested"


@dataclass(frozen=True, slots=True)
class QuarantineKey(Key):
    """What to reconcile: a group object of a dialect, a pod, the pods of a gang, or all pods that name several groups."""

    about: str


class QuarantineController:
    """Writes on groups and pods why they are quarantined."""

    name = "refusals"
    watches: Sequence[Kind] = (POD, *GROUP_BY_DIALECT.values(), *SIZED)
    brings_back: Sequence[Kind] = ()

    def __init__(self, schedulers: frozenset[str] = frozenset()) -> None:
        """Report missing groups for pods of these schedulers; for those of all if there are none."""
        self._schedulers, self._reader = schedulers, _Reader()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the object alone, unless others decide whether it can be read, or it decides that for others."""
        if kind is POD:
            return _keys_of_pod(view, document)
        return _keys_of_set(view, document) if kind in SIZED else _keys_of_group(view, kind, document)

    def reconcile(self, view: View, key: Key) -> Result:
        """Write each problem on its object, once, and remove problems that are solved."""
        assert isinstance(key, QuarantineKey), "only keys of our own come back"
        if key.about in GROUP_BY_DIALECT:
            return _group(view, key, key.about, self._reader)
        found = list(_pods(view, key))
        problems = dict(_problems(view, found, self._reader)) if found else {}
        absent = {key_of(pod): text for pod in found if self._is_ours(pod) and (text := _missing_group(view, pod))}
        due = {key_of(pod): _created(pod) + GROUP_PATIENCE_SECONDS for pod in found if key_of(pod) in absent}
        told = {place: text for place, text in absent.items() if due[place] <= view.now} | {
            at: text for at, text in problems.items() if text
        }
        again = min((moment for moment in due.values() if moment > view.now), default=None)
        return Result([write for pod in found for write in _pod_writes(pod, told.get(key_of(pod), ""), view.now)], again)

    def _is_ours(self, pod: Document) -> bool:
        return not self._schedulers or inside(pod, "spec", "schedulerName") in self._schedulers


# --- keys to reconcile ---------------------------------------------------------------------------------------------------


def _keys_of_pod(view: View, pod: Document) -> Iterator[QuarantineKey]:
    gangs = {gang_keys(pod)[dialect] for dialect in _beside_others(pod)}
    place = key_of(pod)
    if gangs and (waits(pod) or is_leaving(pod) or view.find(POD, place.namespace, place.name) is None):
        yield from (QuarantineKey(key.namespace, key.name, MEMBERS) for key in gangs)
    elif not gangs and waits(pod):
        yield QuarantineKey(place.namespace, place.name, POD_ALONE)


def _keys_of_group(view: View, kind: Kind, group: Document) -> Iterator[QuarantineKey]:
    key, dialect = key_of(group), DIALECT_BY_KIND[kind]
    is_there = view.find(kind, key.namespace, key.name) is not None
    if is_there:
        yield QuarantineKey(key.namespace, key.name, dialect)
    if not is_there or view.now - _created(group) <= YOUNG_SECONDS:
        if any(view.within(other, key.namespace) for other in DIALECT_BY_KIND if other is not kind):
            yield QuarantineKey(key.namespace, "", CONTESTED)
        if dialect in BESIDE_OTHERS:
            yield QuarantineKey(key.namespace, key.name, MEMBERS)
        # Pods that name the group alone are told when it does not exist, and no longer when it does.
        alone = (pod for pod in members(view, key, (dialect,)) if waits(pod) and not _beside_others(pod))
        yield from (QuarantineKey(*_place(pod), POD_ALONE) for pod in alone)


def _keys_of_set(view: View, owner: Document) -> Iterator[QuarantineKey]:
    uid = str(meta_of(owner).get("uid", ""))
    for dialect, kind in GROUP_BY_DIALECT.items():
        yield from (QuarantineKey(*_place(group), dialect) for group in view.owned(uid, kind))


def _place(document: Document) -> tuple[str, str]:
    key = key_of(document)
    return key.namespace, key.name


# --- groups --------------------------------------------------------------------------------------------------------------


def _group(view: View, key: Key, dialect: str, reader: "_Reader") -> Result:
    group = view.find(GROUP_BY_DIALECT[dialect], key.namespace, key.name)
    if group is None:
        return NOTHING
    text = reader.problem_of(group) or _more_than_there_will_be(view, group, dialect)
    write = _conditions if dialect in CONDITIONS else _annotation
    return Result([*write(group, dialect, text, view.now)])


class _Reader:
    """Reads objects one at a time, each as if there were no others; what the pods of a template have in common is read once."""

    def __init__(self) -> None:
        self._cluster, self._count = ObjectCluster(), 0
        self._shapes: list[Shape] = []
        """What was read so far: a class of tasks is forgotten when nobody uses it any more."""

    def problem_of(self, document: Document) -> str:
        """Return why an object cannot be read by itself; empty if it can."""
        self._count += 1
        if self._count > MOST_READ:
            self._cluster, self._count, self._shapes = ObjectCluster(), 0, []
        try:
            self._cluster.put(document)
        except SnapshotError as problem:
            return str(problem)
        if (task := self._cluster.state.task(TaskKey(object_key(document)))) is not None:
            self._shapes.append(task.shape)
        self._cluster.remove(document)
        return ""


def _more_than_there_will_be(view: View, group: Document, dialect: str) -> str:
    """Return that a group needs more pods than its owner creates, or creates at once; empty where that number is unknown."""
    path, reference = MINIMA.get(dialect, MIN_MEMBER), controller_of(group)
    kind = next((kind for kind in SIZED if reference is not None and reference.get("kind") == kind.kind), None)
    if kind is None or reference is None:
        return ""
    owner = view.find(kind, key_of(group).namespace, str(reference.get("name", "")))
    size, minimum = inside(owner or {}, "spec", "replicas"), inside(group, *path)
    if not isinstance(size, int) or not isinstance(minimum, int) or not size:
        return ""
    need = f"{describe(group)}: {'.'.join(path)}: {minimum} pods are to start together, but {kind.kind} {reference['name']}"
    if size < minimum:
        return f"{need} makes {size}; write {size} or less, or let it make more"
    if minimum > 1 and _is_in_order(owner or {}) and inside(group, "status", "phase") != "Running":
        return f"{need} makes each when the one before is ready; make it anew with podManagementPolicy: Parallel, or write 1"
    return ""


def _is_in_order(owner: Document) -> bool:
    """Tell whether an owner creates each pod only when the one before is ready."""
    return owner.get("kind") == STATEFUL_SET.kind and inside(owner, "spec", "podManagementPolicy") != "Parallel"


def _conditions(group: Document, dialect: str, text: str, now: float) -> Iterator[Write]:
    """Yield the condition of a group that has a place for it, if it changes."""
    field = CONDITIONS[dialect]
    there = listed_conditions(group, field)
    if message_of(there, REFUSED) == text:
        return
    others = [item for item in there if item.get("type") != REFUSED]
    fresh = condition(REFUSED, "True", INVALID, text, now)
    if dialect == "kai":
        fresh |= {"nodePool": "", "transitionID": str(1 + max((_transition(item) for item in others), default=0))}
    yield status_patch(GROUP_BY_DIALECT[dialect], group, {field: [*others, *([fresh] if text else [])]})
    if text:
        yield RecordEvent(group, MISCONFIGURED, text, is_warning=True)


def _annotation(group: Document, dialect: str, text: str, now: float) -> Iterator[Write]:
    """Yield the annotation of a group that has no conditions, if it changes."""
    if annotations_of(group).get(PROBLEM, "") == text:
        return
    yield Patch(GROUP_BY_DIALECT[dialect], *_place(group), {"metadata": {"annotations": {PROBLEM: text or None}}})
    if text:
        yield RecordEvent(group, MISCONFIGURED, text, is_warning=True)


def _transition(item: Document) -> int:
    text = str(item.get("transitionID") or "")
    return int(text) if text.isdecimal() else 0


# --- pods ----------------------------------------------------------------------------------------------------------------


def _pods(view: View, key: QuarantineKey) -> Iterable[Document]:
    """Return the pods of a key, the oldest of a gang first."""
    if key.about == MEMBERS:
        return filter(_beside_others, members(view, Key(key.namespace, key.name), BESIDE_OTHERS))
    if key.about == CONTESTED:
        return _contested(view, key.namespace)
    pod = view.find(POD, key.namespace, key.name)
    return [] if pod is None else [pod]


def _contested(view: View, namespace: str) -> Iterable[Document]:
    """Return the pods that name several groups, and those with which they must be read."""
    likely = [pod for pod in view.within(POD, namespace) if may_name_several(pod)]
    found = [pod for pod in likely if waits(pod) and len(named_groups(pod)) > 1]
    gangs = {gang_keys(pod)[dialect] for pod in found for dialect in _beside_others(pod)}
    others = (pod for key in sorted(gangs, key=repr) for pod in members(view, key, BESIDE_OTHERS) if _beside_others(pod))
    return {key_of(pod): pod for pod in (*found, *others)}.values()


def _problems(view: View, pods: Sequence[Document], reader: "_Reader") -> Iterator[tuple[Key, str]]:
    """Yield the pods that cannot be read together with each other and the groups that they name, each with the reason."""
    if len(pods) == 1 and _is_read_alone(pods[0]):
        yield key_of(pods[0]), reader.problem_of(pods[0])
        return
    cluster = ObjectCluster()
    for document in (*_named(view, pods), *pods):
        with suppress(SnapshotError):
            cluster.put(document)
    for pod in pods:
        try:
            cluster.put(pod)
        except SnapshotError as problem:
            yield key_of(pod), str(problem)


def _missing_group(view: View, pod: Document) -> str:
    """Return that the group object that a waiting pod names does not exist; empty if it does, or if nobody lets us look."""
    named = [(GROUP_BY_DIALECT[dialect], key) for dialect, key in gang_keys(pod).items() if dialect in GROUP_BY_DIALECT]
    if not waits(pod) or len(named) != 1 or _beside_others(pod):
        return ""
    kind, key = named[0]
    if view.is_hidden(kind) or view.find(kind, key.namespace, key.name) is not None:
        return ""
    return f"{describe(pod)}: PodGroup {key.namespace}/{key.name} of {kind.group} does not exist; create it, or name another one"


def _created(document: Document) -> float:
    return moment_of(str(meta_of(document).get("creationTimestamp") or "")) or 0.0


def _is_read_alone(pod: Document) -> bool:
    return len(named_groups(pod)) < 2 and not _beside_others(pod)


def _beside_others(pod: Document) -> list[str]:
    """Return the dialects in which other pods matter; of Koordinator's pods only those whose gang has no PodGroup object."""
    named = named_groups(pod)
    found = [dialect for dialect in BESIDE_OTHERS if dialect in named]
    waits_for_object = "koordinator" in found and bool(inside(pod, "metadata", "labels", SIGS_GROUP))
    return [dialect for dialect in found if not (dialect == "koordinator" and waits_for_object)]


def _named(view: View, pods: Sequence[Document]) -> list[Document]:
    """Return the group objects that some pods name."""
    places = {(dialect, key) for pod in pods for dialect, key in gang_keys(pod).items() if dialect in GROUP_BY_DIALECT}
    found = (view.find(GROUP_BY_DIALECT[dialect], key.namespace, key.name) for dialect, key in sorted(places, key=repr))
    return [group for group in found if group is not None]


def _pod_writes(pod: Document, text: str, now: float) -> Iterator[Write]:
    """Yield the condition of a waiting pod, and an event, if the problem has changed."""
    there = listed_conditions(pod, "conditions")
    own = next((item for item in there if (item.get("type"), item.get("reason")) == (POD_SCHEDULED, MISCONFIGURED)), None)
    if not waits(pod) or (own or {}).get("message", "") == text:
        return
    instead = cleared(is_gated=bool(inside(pod, "spec", "schedulingGates")))
    written = condition(POD_SCHEDULED, "False", MISCONFIGURED, text, now) if text else instead
    yield Patch(POD, *_place(pod), {"status": {"conditions": [written]}}, is_status=True)
    if text:
        yield RecordEvent(pod, MISCONFIGURED, text, is_warning=True)
