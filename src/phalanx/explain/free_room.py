"""Resources that nodes lack: whether they are too small for the task, have them free but scattered, or have too little free now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from phalanx.explain.cause import Search, remembered
from phalanx.explain.node_reasons import INSUFFICIENT, SCATTERED, TOO_LARGE
from phalanx.explain.reason_text import amount_text, counted
from phalanx.model.resources import PODS, VOLUME_SLOTS, Resources
from phalanx.placement import Amounts, Counts, Index
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import TaskState
from phalanx.state.node_table import request_of
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Number

MOST_NEAREST = 3


def too_large(outcome: Outcome, task: TaskState, snapshot: Snapshot) -> str:
    """Say of which resource no node has as much as the task asks for; empty when some node has."""
    shape = task.task.shape
    return remembered(outcome.aftermath, ("too large", shape), lambda: _oversize(shape.request, snapshot))


def _oversize(request: Resources, snapshot: Snapshot) -> str:
    """Say of which resource no node has as much as is asked for, empty or not; empty when some node has enough of each."""
    if not len(snapshot.nodes):
        return ""
    for name, amount in sorted(request.items()):
        row = snapshot.space.row_by_name.get(name)
        if row is None or name == PODS or name.startswith(VOLUME_SLOTS):
            continue
        most = int(snapshot.nodes.allocatable[row].max())
        if most < amount:
            return f"no node is that large: the largest has {amount_text(name, most)} {name}" if most else f"no node offers {name}"
    return _never_together(request, snapshot)


def _never_together(request: Resources, snapshot: Snapshot) -> str:
    """Say which empty nodes come nearest where none has all resources together; empty when one does, or one is offered nowhere."""
    known = {name: amount for name, amount in request.items() if name in snapshot.space.row_by_name and name != PODS}
    rows, offered = request_of(known, snapshot.space).rows, snapshot.nodes.allocatable
    if len(rows) < 2 or any(int(offered[row].max()) < amount for row, amount in rows):
        return ""
    if np.logical_and.reduce([offered[row] >= amount for row, amount in rows]).any():
        return ""
    nearest = _nearest(offered, rows, np.arange(len(snapshot.nodes)))
    return f"no node has all of that, even when empty: {', '.join(_lacks(snapshot, offered, rows, node) for node in nearest[:1])}"


@dataclass(frozen=True, slots=True)
class Lack:
    """The lack of a resource on nodes that suit a task otherwise: its code, and how much of it they have free."""

    code: str
    share: str = ""
    """Such as ``4 of 32``; empty when how much is free does not matter."""
    rest: str = ""
    numbers: Mapping[str, Number] = field(default_factory=dict)

    def text(self, resource: str = "") -> str:
        """Say how much is free, of which resource if it is given."""
        return f"{self.share}{resource and ' '}{resource} are free{self.rest}" if self.share else self.rest


def lack(search: Search, resource: str) -> Lack:
    """Return why nodes that suit the task otherwise lack a resource."""
    nodes, row = search.short_of_room, search.snapshot.space.row_by_name.get(resource)
    amount = dict(search.rows).get(-1 if row is None else row, 0)
    if row is None or amount <= 0 or search.shape.gpu_share is not None or not nodes.any():
        return Lack(INSUFFICIENT)
    offered = search.table.allocatable[row][nodes]
    most = int(offered.max())
    if most < amount:
        return Lack(TOO_LARGE, rest=f"the largest has {amount_text(resource, most)}" if most else "not offered")
    found = _short_now(np.maximum(search.free[row][nodes], 0), int(offered.sum()), Demand(resource, amount, search.tasks))
    is_own = search.error.scope.hypernode and not found.rest  # sub-groups that were placed before have given it back
    return replace(found, rest=" but for tasks of its own gang") if is_own else found


@dataclass(frozen=True, slots=True)
class Demand:
    """So much of a resource for each of so many tasks."""

    resource: str
    amount: int
    tasks: int

    def text(self, amount: int) -> str:
        """Write an amount of the resource."""
        return amount_text(self.resource, amount)


def _short_now(free: Counts, offered: int, demand: Demand) -> Lack:
    total, most, places = int(free.sum()), int(free.max()), int((free // demand.amount).sum())
    share = f"{demand.text(total)} of {demand.text(offered)}"
    amounts = {"free": total, "offered": offered, "most": most, "needed": demand.amount * demand.tasks}
    numbers = {name: demand.text(amount) for name, amount in amounts.items()}
    if most < demand.amount <= total:
        return Lack(SCATTERED, share, f", at most {demand.text(most)} per node", numbers)
    if total < demand.amount * demand.tasks:
        return Lack(INSUFFICIENT, share, f", {demand.text(demand.amount * demand.tasks)} needed", numbers)
    if places < demand.tasks:
        return Lack(SCATTERED, share, f", in parts for {counted(places, 'task')}", numbers)
    return Lack(INSUFFICIENT, share, numbers=numbers)


def free_text(search: Search, resource: str) -> str:
    """Say how much of a resource is free where too little is; empty when there is enough."""
    found = lack(search, resource)
    return found.text(resource) if found.share and found.rest else ""


def nearest_nodes(search: Search) -> list[tuple[str, str]]:
    """Return the nodes that come nearest to having room for the task, with what each lacks: ``n3 lacks 1 nvidia.com/gpu``."""
    candidates = np.flatnonzero(search.short_of_room & ~search.fits)
    if search.shape.gpu_share is not None or not candidates.size:
        return []
    nearest = _nearest(search.free, search.rows, candidates)
    names = search.table.names
    return [(names[node], _lacks(search.snapshot, search.free, search.rows, node)) for node in nearest[:MOST_NEAREST]]


def _nearest(free: Amounts, rows: list[tuple[int, int]], candidates: Index) -> list[int]:
    """Order nodes by how much they lack, each resource as a part of what is asked for."""
    missing = np.zeros(len(candidates))
    for row, amount in rows:
        missing += np.clip(amount - np.maximum(free[row][candidates], 0), 0, None) / amount
    return [int(node) for node in candidates[np.argsort(missing, kind="stable")[:MOST_NEAREST]]]


def _lacks(snapshot: Snapshot, free: Amounts, rows: list[tuple[int, int]], node: int) -> str:
    return f"{snapshot.nodes.names[node]} lacks {' and '.join(_missing(snapshot, free, rows, node))}"


def _missing(snapshot: Snapshot, free: Amounts, rows: list[tuple[int, int]], node: int) -> Iterator[str]:
    for row, amount in rows:
        name, left = snapshot.space.names[row], max(int(free[row, node]), 0)
        if left < amount:
            yield f"{amount_text(name, amount - left)} {name}"
