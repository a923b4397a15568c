"""A gang as far as asking for nodes goes: who of it lacks nodes, whether it has started, and which of its pods are alike."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from phalanx.controllers.conditions import listed_conditions
from phalanx.controllers.controller import Key, View
from phalanx.controllers.gang_pods import gang_keys, members, waits
from phalanx.controllers.objects import inside, is_leaving
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.explain.gang_status import has_minimum
from phalanx.model.conditions import NODES_REQUESTED, POD_SCHEDULED, UNSCHEDULABLE
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, object_key
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.task_status import ENDED
from phalanx.state.gang_state import GangState


@dataclass(frozen=True, slots=True)
class GangPlace(Key):
    """A gang: its namespace, and the name by which pods of a dialect name it."""

    dialect: str


@dataclass(frozen=True, slots=True)
class AskingGang:
    """A gang and its pods that have not ended."""

    place: GangPlace
    gang: Gang
    group: Document | None
    """The object of its group; None where pods alone make it."""
    pods: Sequence[Document]
    """The oldest first."""
    has_started: bool
    could_start: bool
    """Enough pods say that nodes are what they lack; otherwise some of them have not said so yet."""
    shapes: dict[str, Shape]
    """By pod; pods of one shape ask for the same."""

    @property
    def uid(self) -> str:
        """The uid of its group; empty where it has none."""
        return str(inside(self.group or {}, "metadata", "uid") or "")

    @property
    def about(self) -> Document:
        """The object that events are about, and that remembers what is to be remembered: the group, or else the oldest pod."""
        return self.pods[0] if self.group is None else self.group

    @property
    def waiting(self) -> list[Document]:
        """The pods that wait for a node."""
        return [pod for pod in self.pods if waits(pod)]

    @property
    def lacking(self) -> list[Document]:
        """The pods that more nodes would help."""
        return [pod for pod in self.pods if lacks_nodes(pod)]

    def alike(self) -> list[list[Document]]:
        """Return pods that ask for the same together, each time in the order of their names."""
        found: dict[Shape, list[Document]] = {}
        for pod in sorted(self.pods, key=object_key):
            found.setdefault(self.shapes[object_key(pod)], []).append(pod)
        return list(found.values())


def lacks_nodes(pod: Document) -> bool:
    """Tell whether a pod says that it needs a node, by itself or by a request; `explain/more_nodes.py` has the rule."""
    if not waits(pod) or is_leaving(pod):
        return False
    said = (item.get("reason") for item in listed_conditions(pod) if item.get("type") == POD_SCHEDULED)
    return next(said, "") in (UNSCHEDULABLE, NODES_REQUESTED)


def is_of(pod: Document, schedulers: frozenset[str]) -> bool:
    """Tell whether a pod waits for one of these schedulers; any will do without any."""
    return not schedulers or inside(pod, "spec", "schedulerName") in schedulers


def places_of(pod: Document) -> Iterator[GangPlace]:
    """Yield the gangs that a pod may be in."""
    for dialect, key in gang_keys(pod).items():
        yield GangPlace(key.namespace, key.name, dialect)


def asking_gang(view: View, place: GangPlace, schedulers: frozenset[str] = frozenset()) -> AskingGang | None:
    """Return a gang with the pods of these schedulers, or of all without any; None if nobody is left, or nobody can be read."""
    named = members(view, Key(place.namespace, place.name), (place.dialect,))
    found = [pod for pod in named if not is_leaving(pod) and is_of(pod, schedulers)]
    cluster = _read(view, found)
    key = GangKey(f"{place.namespace}/{place.name}")
    gang = cluster.snapshot(view.now).gangs.get(key)
    tasks = {name: task for name, task in cluster.state.members(key).items() if task.dialect == place.dialect}
    pods = [pod for pod in found if object_key(pod) in tasks and inside(pod, "status", "phase") not in ENDED]
    if gang is None or gang.dialect != place.dialect or gang.gang_group or not pods:
        return None  # of groups that start together, one alone asks for nothing
    state = GangState(gang, ((task, -1) for task in tasks.values()))
    lacking = sum(map(lacks_nodes, pods))
    return AskingGang(
        place, gang, group_at(view, place), pods, has_minimum(state), state.tally.ready + lacking >= state.gang.min_member,
        {object_key(pod): tasks[TaskKey(object_key(pod))].shape for pod in pods},
    )  # fmt: skip


def _read(view: View, pods: Sequence[Document]) -> ObjectCluster:
    """Return some pods and all groups that they name: those that exist decide to which a pod belongs."""
    cluster = ObjectCluster()
    named = {place: None for pod in pods for place in places_of(pod)}
    groups = (group_at(view, place) for place in named)
    for document in (*(group for group in groups if group is not None), *pods):
        with suppress(SnapshotError):  # the quarantine controller says what is wrong with it
            cluster.put(document)
    return cluster


def described_gang(view: View, place: GangPlace) -> Gang | None:
    """Return a gang as its group object alone describes it; None where it has none, or one that cannot be read."""
    group, cluster = group_at(view, place), ObjectCluster()
    with suppress(SnapshotError):
        if group is not None and cluster.put(group):
            return cluster.snapshot(view.now).gangs.get(GangKey(f"{place.namespace}/{place.name}"))
    return None


def group_at(view: View, place: GangPlace) -> Document | None:
    """Return the object of a gang's group; None where there is none."""
    kind = GROUP_BY_DIALECT.get(place.dialect)
    return None if kind is None else view.find(kind, place.namespace, place.name)
