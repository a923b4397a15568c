"""Gangs independent of any dialect, as they are converted: what the model says of each, and its pods.

What dialects write in different ways has one form here. Sub-groups with a minimum and nothing else are roles. A role that every pod
has is left out, because the minimum of the gang is at least as large. The groups of a gang group in one namespace are the roles of
one gang. Where pods have the priority class or the quota, the gang has them if all of its pods agree.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import takewhile
from typing import TypeVar

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.dialects.koordinator import GROUPS, LONGEST_HOLD_SECONDS
from phalanx.dialects.yunikorn import comes_first
from phalanx.model.gang import Gang, SubGroup, TopologyConstraint
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, object_key
from phalanx.model.resources import Resources
from phalanx.model.task import GangKey, Task
from phalanx.state.snapshot import Snapshot

Found = TypeVar("Found")
GANG_GROUP_NAME = "phalanx.dev/bundle"
"""Annotation of the PodGroups of a gang group that was one gang in another dialect: the name of that gang."""
QUOTA = "quota.scheduling.koordinator.sh/name"
CARRIED = {
    "volcano": {"minMember", "minTaskMember", "queue", "priorityClassName", "minResources", "networkTopology", "subGroupPolicy"},
    "kai": {"minMember", "minSubGroup", "queue", "priorityClassName", "preemptibility", "topologyConstraint", "subGroups"},
    "coscheduling": {"minMember", "minResources", "scheduleTimeoutSeconds"},
    "koordinator": {"minMember", "minResources", "scheduleTimeoutSeconds"},
    "native": {"schedulingPolicy", "schedulingConstraints", "priorityClassName", "disruptionMode"},
}
"""Fields of group objects that the model holds, by dialect."""
_DIALECT_BY_API_GROUP = {kind.group: dialect for dialect, kind in GROUP_BY_DIALECT.items()}


@dataclass(frozen=True, slots=True, order=True)
class Lost:
    """Something that the other dialect has no field for."""

    object: str
    field: str
    why: str


@dataclass(frozen=True, slots=True)
class GangPod:
    """A pod of a gang and its role."""

    document: Document
    role: str = ""


@dataclass(frozen=True, slots=True)
class NeutralGang:
    """A gang and its pods, independent of any dialect."""

    namespace: str
    name: str
    dialect: str
    queue: str = "default"
    min_member: int = 1
    roles: Mapping[str, int] = field(default_factory=dict)
    subgroups: tuple[SubGroup, ...] = ()
    min_children: int | None = None
    """How many of the sub-groups on top are needed; None for all."""
    topology: TopologyConstraint | None = None
    priority_class: str = ""
    min_resources: Resources | None = None
    timeout_seconds: float | None = None
    """How long it may wait for its minimum; None leaves it to the configuration."""
    is_preemptable: bool | None = None
    goes_whole: bool = False
    """Nobody may take a part of it."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    members: tuple[GangPod, ...] = ()
    has_object: bool = True
    """A group object said this; otherwise its pods did."""
    follows_pods: bool = False
    """Its pods say how important it is."""
    several_quotas: bool = False
    """Its pods use more than one, and no queue can stand for that."""
    source: Document = field(default_factory=dict)
    """The group object as it was; empty where pods, or several objects, made the gang."""

    @property
    def classes(self) -> frozenset[str]:
        """The priority classes of its pods, where those that name none take that of the gang."""
        return frozenset(member.document["spec"].get("priorityClassName") or self.priority_class for member in self.members)

    @property
    def title(self) -> str:
        """As a message names it."""
        return f"gang {self.namespace}/{self.name}"

    def lost(self, place: str, why: str) -> Lost:
        """Return that a field of the gang is lost."""
        return Lost(self.title, place, why)


def once_per_gang(find: Callable[[NeutralGang], Found]) -> Callable[[NeutralGang], Found]:
    """Remember the answer for the last gang: it is asked for every pod, and looking through all pods for each takes for ever."""
    last: list[tuple[NeutralGang, Found]] = []

    @wraps(find)
    def answer(gang: NeutralGang) -> Found:
        if not last or last[0][0] is not gang:
            last[:] = [(gang, find(gang))]
        return last[0][1]

    return answer


@dataclass(frozen=True, slots=True)
class SortedObjects:
    """Objects by what becomes of them."""

    groups: tuple[NeutralGang, ...]
    others: tuple[Document, ...]
    """Neither groups nor members: they stay as they are."""
    objects: tuple[Document, ...]
    """Group objects that were read."""


def sort_out(documents: Iterable[Document]) -> SortedObjects:
    """Read objects and tell gangs from the rest; an object that cannot be read raises."""
    found, cluster, known = list(documents), ObjectCluster(), []
    for document in found:
        if cluster.put(document) and document["kind"] == "PodGroup":
            known.append(document)
    snapshot = cluster.snapshot(0.0)
    pods = {object_key(document): (place, document) for place, document in enumerate(found) if document["kind"] == "Pod"}
    sources = {(_dialect(document), object_key(document)): document for document in known}
    groups = tuple(
        replace(group, source=sources.get((gang.dialect, gang.key.partition("@")[0]), {}) if not gang.pieces else {})
        for gang in snapshot.gangs.values() for group in _groups(gang, list(_members(snapshot, gang, pods)))
    )  # fmt: skip
    inside = {id(member.document) for group in groups for member in group.members} | {id(item) for item in known}
    return SortedObjects(groups, tuple(item for item in found if id(item) not in inside), tuple(known))


def _dialect(group: Document) -> str:
    return _DIALECT_BY_API_GROUP[str(group["apiVersion"]).rpartition("/")[0]]


def fields_besides(group: Document) -> dict[str, object]:
    """Return the fields of a group object that the model does not hold."""
    return {key: value for key, value in sorted((group.get("spec") or {}).items()) if key not in CARRIED[_dialect(group)]}


def _members(snapshot: Snapshot, gang: Gang, pods: Mapping[str, tuple[int, Document]]) -> Iterator[tuple[Task, Document]]:
    """Yield the members in the order of the input; where one of them describes the gang for all, it comes first."""
    found = [(not comes_first(task), *pods[key], task) for key, task in snapshot.members_of(gang.key).items()]
    yield from ((task, pod) for _, _, pod, task in sorted(found, key=lambda member: member[:2]))


def _groups(gang: Gang, members: list[tuple[Task, Document]]) -> Iterator[NeutralGang]:
    """Yield a gang as one; a gang group over several namespaces as the gangs that it consists of."""
    if not gang.pieces:
        yield _group(gang, members)
    elif len({name.partition("/")[0] for name in gang.gang_group}) == 1:
        yield _group(*_as_roles(gang, members))
    else:
        for piece in gang.pieces:
            yield _group(piece, [(replace(task, role=""), pod) for task, pod in members if task.role == piece.key])


def _as_roles(gang: Gang, members: list[tuple[Task, Document]]) -> tuple[Gang, list[tuple[Task, Document]]]:
    """Return a gang group as a gang with roles, named as its groups are but without the name of the gang."""
    names = {key: key.partition("/")[2] for key in gang.gang_group}
    whole = gang.annotations.get(GANG_GROUP_NAME) or _beginning(names.values())
    if whole and all(name.startswith(f"{whole}-") and name != f"{whole}-" for name in names.values()):
        names = {key: name.removeprefix(f"{whole}-") for key, name in names.items()}
    else:
        whole = gang.name
    minima = {names[key]: minimum for key, minimum in gang.role_minima.items()}
    annotations = {key: text for key, text in gang.annotations.items() if key not in (GANG_GROUP_NAME, GROUPS)}
    found = replace(gang, key=GangKey(f"{gang.namespace}/{whole}"), role_minima=minima, annotations=annotations)
    return found, [(replace(task, role=names[task.role]), pod) for task, pod in members]


def _beginning(names: Iterable[str]) -> str:
    """Return the words with which all names begin."""
    words = takewhile(lambda column: len(set(column)) == 1, zip(*(name.split("-") for name in names), strict=False))
    return "-".join(column[0] for column in words)


def _group(gang: Gang, members: list[tuple[Task, Document]]) -> NeutralGang:
    roles, subgroups = _parts(gang)
    names = [task.labels.get(SUBGROUP, "") if gang.subgroups and roles else task.role for task, _ in members]
    minimum = sum(roles.values()) if roles and gang.subgroups else gang.min_member
    if len(roles) == 1 and set(names) <= set(roles):
        roles, names = {}, [""] * len(names)
    # Names are kept for good where two dialects use the same one; outside, each needs its own.
    name = gang.name if "@" not in gang.key else f"{gang.name}-{gang.dialect}"
    quotas = {task.labels.get(QUOTA) or "default" for task, _ in members} if gang.dialect == "koordinator" else set()
    classes = {task.priority_class for task, _ in members} if gang.follows_pods else set()
    queue = quotas.pop() if len(quotas) == 1 else gang.preferred_queue or gang.queue
    return NeutralGang(
        namespace=gang.namespace, name=name, dialect=gang.dialect, queue=queue,
        min_member=minimum, roles=roles, subgroups=subgroups, min_children=gang.min_children,
        topology=gang.topology,
        priority_class=classes.pop() if len(classes) == 1 else gang.priority_class, min_resources=gang.written_minimum,
        timeout_seconds=_timeout(gang), is_preemptable=gang.is_preemptable, goes_whole=gang.goes_whole,
        annotations=gang.annotations, has_object=gang.has_object,
        follows_pods=gang.follows_pods, several_quotas=len(quotas) > 1,
        members=tuple(GangPod(document, role) for (_, document), role in zip(members, names, strict=True)),
    )  # fmt: skip


def _timeout(gang: Gang) -> float | None:
    """Return the time limit of a gang; that of one which keeps its places is left out where it is the default of such gangs."""
    is_default = gang.keeps_places and gang.schedule_timeout_seconds == LONGEST_HOLD_SECONDS
    return None if is_default else gang.schedule_timeout_seconds


def _parts(gang: Gang) -> tuple[dict[str, int], tuple[SubGroup, ...]]:
    """Return the roles of a gang, and the sub-groups that are more than that."""
    if gang.subgroups and gang.min_children is None and all(map(_is_role, gang.subgroups)):
        return {part.name: part.min_member for part in gang.subgroups}, ()
    return dict(gang.role_minima) if gang.roles_count else {}, gang.subgroups


def _is_role(part: SubGroup) -> bool:
    return part.match_keys is None and not part.parent and part.topology is None
