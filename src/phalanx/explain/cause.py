"""A cause: why some nodes do not suit a task, with the thing that stands against it."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from phalanx.explain.reason_text import as_counted, scarce_first
from phalanx.model.shape import Shape
from phalanx.placement import Amounts, Mask
from phalanx.placement.fit import fits
from phalanx.session.decision import Aftermath
from phalanx.state.gang_state import TaskState
from phalanx.state.node_table import NodeTable, request_of
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, Number, lacked_resource

Said = TypeVar("Said")

FEW_NODES = 3
"""So many nodes are named."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why some nodes do not suit a task."""

    code: str
    nodes: int
    text: str
    """What follows the number of nodes, the thing included."""
    short: str = ""
    """The same without the thing; empty when there is no shorter way."""
    many: str = ""
    """What follows several nodes, without the thing: causes that have it in common read alike."""
    thing: str = ""
    """What stands against the task: a taint, a label, a port. It stays the same while the cause does."""
    has_room: bool = False
    """Some of these nodes have enough of every resource: but for this, the task would fit."""
    is_rest: bool = False
    """These are the nodes that nothing more is said about; others with the same reason come before them."""
    things: Mapping[str, Number] = field(default_factory=dict)
    """More of what the text names, for programs: the first of the nodes, amounts."""

    @property
    def sentence(self) -> str:
        """The number of nodes and what is wrong with them."""
        return f"{self.nodes} {self.text}"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the nodes that gave one reason, and the thing that stands against the task there; see `Cause`."""

    nodes: Mask
    text: str
    thing: str = ""
    code: str = ""
    """Where the part has another code than the reason."""
    is_rest: bool = False
    """It is what is left of the nodes; see `Cause`."""


@dataclass(frozen=True)
class Search:
    """The search for a node that failed: the task, the nodes as the session left them, and what each said."""

    task: TaskState
    error: FitError
    snapshot: Snapshot
    free: Amounts
    """What each node has left for waiting tasks, (resource, node)."""
    tasks: int = 1
    """How many such tasks the gang needs for its minimum."""

    @property
    def shape(self) -> Shape:
        """What the task asks for."""
        return self.task.task.shape

    @property
    def table(self) -> NodeTable:
        """The nodes."""
        return self.snapshot.nodes

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """The rows of the resources that the task asks for, with the amounts."""
        return request_of(self.shape.request, self.snapshot.space).rows

    @cached_property
    def fits(self) -> Mask:
        """Mark the nodes that have enough of every resource."""
        return fits(self.free, request_of(self.shape.request, self.snapshot.space))

    @cached_property
    def short_of_room(self) -> Mask:
        """Mark the nodes that suit the task but for their resources."""
        masks = [mask for reason, mask in self.error.refused.items() if lacked_resource(reason)]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(self.table), dtype=np.bool_)

    def first_names(self, nodes: Mask | None) -> dict[str, Number]:
        """Return the names of the first few nodes, for programs."""
        numbers = np.flatnonzero(nodes)[:FEW_NODES] if nodes is not None and len(nodes) == len(self.table) else ()
        return {"on": in_order(self.table.names[number] for number in numbers)} if len(numbers) else {}

    def names(self, nodes: Mask, *, most: int = FEW_NODES) -> str:
        """Name some nodes if they are few, in brackets after a blank; empty when they are many."""
        numbers = np.flatnonzero(nodes)
        return f" ({in_order(self.table.names[number] for number in numbers)})" if len(numbers) <= most else ""


def in_order(names: Iterable[str]) -> str:
    """List names as a person would, node-2 before node-10."""
    return ", ".join(sorted(names, key=as_counted))


def verb(count: int, one: str, many: str) -> str:
    """Return the word for one node or for several."""
    return one if count == 1 else many


def alike(failed: Iterable[tuple[TaskState, FitError]]) -> list[tuple[TaskState, FitError]]:
    """Return one of all tasks that ask for the same and got the same answer, those that ask for most first."""
    first: dict[Hashable, tuple[TaskState, FitError]] = {}
    for task, error in failed:  # tasks of a large gang share one error, and its text is made once
        first.setdefault((task.task.shape, task.task.role, id(error)), (task, error))
    kinds: dict[Hashable, tuple[TaskState, FitError]] = {}
    for task, error in first.values():
        kinds.setdefault((task.task.shape, task.task.role, error.text), (task, error))
    order = _largest_first(task for task, _ in kinds.values())
    return sorted(kinds.values(), key=lambda found: (order(found[0]), found[1].text, as_counted(found[0].task.name)))


def largest(tasks: Iterable[TaskState]) -> TaskState | None:
    """Return a task of those that ask for most; None without tasks. Tasks of a shape and a role differ in nothing that is said."""
    kinds: dict[Hashable, TaskState] = {}
    for task in tasks:
        kinds.setdefault((task.task.shape, task.task.role), task)
    return min(kinds.values(), key=_largest_first(kinds.values()), default=None)


def _largest_first(tasks: Iterable[TaskState]) -> Callable[[TaskState], tuple[list[float], str]]:
    """Return an order of tasks by what they ask for and their role: that of the pods changes when one is created again."""
    names = scarce_first({name for shape in {task.task.shape for task in tasks} for name in shape.request})
    return lambda task: ([-task.task.shape.request.get(name, 0) for name in names], task.task.role)


def remembered(aftermath: Aftermath | None, key: Hashable, find: Callable[[], Said]) -> Said:
    """Return what was found for a key in this session before, else find it; a key has answers of one type."""
    if aftermath is None:
        return find()
    if key not in aftermath.memo:
        aftermath.memo[key] = find()
    return cast("Said", aftermath.memo[key])  # the memo holds answers of any type
