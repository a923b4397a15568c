"""The tree of queues and what each of them may have.

A queue deserves its quota. What the quotas leave over is divided by weight among the queues that ask for more, one level
of the tree after the other and higher priorities first. `fair_share` is the result; it stands for a whole session, while
`allocated` moves with every placement and eviction. Only leaves hold jobs; what a leaf gets counts for all queues above it.

Division is in whole units: half a GPU is of no use to a job that wants one. What rounding down keeps back is handed out afterwards,
one unit each, to those it cost most.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from phalanx.errors import SnapshotError
from phalanx.kai.amounts import BOUNDLESS, DIGITS, EVERY, NAMES, UNLIMITED, ZERO, Figures, minus, plus
from phalanx.model.quantity import LARGEST

SMALLEST_WEIGHT = 1e-9
"""Weights that add up to less divide nothing."""


@dataclass(slots=True, eq=False)
class QueueShare:
    """One queue: its quota, limit and weight, what it asks for and what it has."""

    name: str
    parent_name: str = ""
    display_name: str = ""
    created: float = 0.0
    priority: int = 100
    deserved: Figures = ZERO
    limit: Figures = BOUNDLESS
    weight: Figures = ZERO
    usage: Figures = ZERO
    """What it used lately, as a part of the cluster: 0 to 1."""
    request: Figures = ZERO
    allocated: Figures = ZERO
    allocated_nonpreemptible: Figures = ZERO
    fair_share: Figures = ZERO
    parent: "QueueShare | None" = field(default=None, repr=False)
    children: list["QueueShare"] = field(default_factory=list, repr=False)

    @property
    def title(self) -> str:
        """The name that users read."""
        return self.display_name or self.name

    def lineage(self) -> "Iterator[QueueShare]":
        """Walk from this queue to the top."""
        queue: QueueShare | None = self
        while queue is not None:
            yield queue
            queue = queue.parent


@dataclass(frozen=True, slots=True)
class QueueAllocations:
    """What every queue holds at one moment: a search for victims is judged by the state it began with."""

    allocated: Mapping[str, Figures]
    nonpreemptible: Mapping[str, Figures]


@dataclass(frozen=True, slots=True)
class QueueTree:
    """The queues that take part."""

    roots: Sequence[QueueShare]
    by_name: Mapping[str, QueueShare]

    def leaf(self, name: str) -> QueueShare | None:
        """Return the queue if jobs can be in it: None when it is unknown, dropped or has queues below it."""
        queue = self.by_name.get(name)
        return None if queue is None or queue.children else queue

    def allocations(self) -> QueueAllocations:
        """Return what every queue holds now; later changes do not show in it."""
        queues = self.by_name.values()
        return QueueAllocations(
            {queue.name: queue.allocated for queue in queues}, {queue.name: queue.allocated_nonpreemptible for queue in queues}
        )


def build_tree(queues: Iterable[QueueShare]) -> QueueTree:
    """Link the queues by the names of their parents. Those whose line does not end at the top are left out, with all below."""
    known = _checked(queues)
    below: dict[str, list[QueueShare]] = {}
    for queue in sorted(known, key=lambda queue: queue.name):
        below.setdefault(queue.parent_name, []).append(queue)
    roots = below.get("", [])
    kept = list(roots)
    # From the top down: queues of a circle, or below a missing parent, are never reached and so left out.
    for queue in kept:  # grows while it is walked
        queue.children = below.get(queue.name, [])
        for child in queue.children:
            child.parent = queue
        kept += queue.children
    return QueueTree(roots, {queue.name: queue for queue in kept})


def with_parents(usage: Mapping[str, Figures], parents: Mapping[str, str]) -> dict[str, Figures]:
    """Add the usage of queues that were not measured themselves: what was measured nearest below them, together."""
    found = dict(usage)
    for name, used in usage.items():
        line = [name]
        while (above := parents.get(line[-1], "")) and above not in usage and above not in line:
            found[above] = plus(found.get(above, ZERO), used)
            line.append(above)
    return found


def _checked(queues: Iterable[QueueShare]) -> list[QueueShare]:
    seen: dict[str, QueueShare] = {}
    for queue in queues:
        if not queue.name:
            raise SnapshotError("Queue: metadata.name: missing")
        if queue.name in seen:
            raise SnapshotError(f"Queue {queue.name}: is there twice; names of queues must differ")
        _check_figures(queue)
        seen[queue.name] = queue
    return list(seen.values())


def _check_figures(queue: QueueShare) -> None:
    bounds_by_field = {"quota": queue.deserved, "limit": queue.limit, "overQuotaWeight": queue.weight}
    for kind, figures in bounds_by_field.items():
        for name, value in zip(NAMES, figures, strict=True):
            if not _is_sensible(value):
                raise SnapshotError(
                    f"Queue {queue.name}: spec.resources.{name}.{kind}: {value} is no amount; write 0 or more, or -1 for no bound"
                )
    for name, value in zip(NAMES, queue.usage, strict=True):
        if not (_is_sensible(value) and value >= 0):
            raise SnapshotError(f"Queue {queue.name}: usage of {name}: {value} is no part of the cluster; expected 0 to 1")


def _is_sensible(value: float) -> bool:
    return value == UNLIMITED or 0 <= value <= LARGEST  # false for NaN


def add_running(leaf: QueueShare, amounts: Figures, *, is_preemptible: bool) -> None:
    """Count a task that holds its resources when the session opens."""
    add_pending(leaf, amounts)
    hold(leaf, amounts, is_preemptible=is_preemptible)


def add_pending(leaf: QueueShare, amounts: Figures) -> None:
    """Count a task that waits when the session opens."""
    for queue in leaf.lineage():
        queue.request = plus(queue.request, amounts)


def hold(leaf: QueueShare, amounts: Figures, *, is_preemptible: bool) -> None:
    """Count a placement of the session; its task is part of the request already."""
    for queue in leaf.lineage():
        queue.allocated = plus(queue.allocated, amounts)
        if not is_preemptible:
            queue.allocated_nonpreemptible = plus(queue.allocated_nonpreemptible, amounts)


def release(leaf: QueueShare, amounts: Figures, *, is_preemptible: bool) -> None:
    """Take a placement back."""
    for queue in leaf.lineage():
        queue.allocated = minus(queue.allocated, amounts)
        if not is_preemptible:
            queue.allocated_nonpreemptible = minus(queue.allocated_nonpreemptible, amounts)


def allocatable(queue: QueueShare) -> Figures:
    """Return how much a queue can count on: its quota or its fair share, whichever is more, up to its limit."""
    cpu, memory, gpus = (_allocatable(queue, resource) for resource in EVERY)
    return cpu, memory, gpus


def _allocatable(queue: QueueShare, resource: int) -> float:
    deserved, limit = queue.deserved[resource], queue.limit[resource]
    if deserved == UNLIMITED:
        return limit
    due = max(deserved, queue.fair_share[resource])
    return due if limit == UNLIMITED else min(limit, due)


def divide_fairly(roots: Sequence[QueueShare], total: Figures, *, k_value: float = 1.0) -> None:
    """Set the fair share of every queue. `k_value` says how strongly usage in the past lowers the weight of a queue."""
    levels: list[tuple[Sequence[QueueShare], Figures]] = [(roots, total)]
    for siblings, amounts in levels:  # grows while it is walked
        cpu, memory, gpus = (_divide(siblings, resource, max(0.0, amounts[resource]), k_value) for resource in EVERY)
        for place, queue in enumerate(siblings):
            queue.fair_share = (cpu[place], memory[place], gpus[place])
            levels.append((queue.children, queue.fair_share))


@dataclass(slots=True, eq=False)
class _Portion:
    """A queue while one resource is divided."""

    queue: QueueShare
    weight: float
    usage: float
    wanted: float
    got: float
    fraction: float = 0.0
    """What rounding down kept from it in the last round that did not satisfy it."""

    def take(self, share: float) -> float:
        """Take what is missing, or the whole units of the share when that is less; return how much."""
        missing = _rounded(self.wanted - self.got)
        if missing <= share:
            self.got, self.fraction = self.wanted, 0.0
            return missing
        units = float(math.floor(share))
        self.got += units
        self.fraction = _rounded(share - units) or self.fraction
        return units


def _divide(siblings: Sequence[QueueShare], resource: int, total: float, k_value: float) -> list[float]:
    portions = [_quota(queue, resource, total) for queue in siblings]
    # Quotas may exceed what there is. Then nothing is left to divide, but no quota is cut.
    left = _rounded(total - sum(portion.got for portion in portions))
    groups = _by_priority(portions) if left > 0 else []
    for group in groups:
        left = _divide_by_weight(group, left, k_value)
    for group in groups:
        left = _hand_out_remainders(group, left)
    return [_rounded(portion.got) for portion in portions]


def _rounded(amount: float) -> float:
    return round(amount, DIGITS)


def _quota(queue: QueueShare, resource: int, total: float) -> _Portion:
    wanted = queue.request[resource] if queue.limit[resource] == UNLIMITED else min(queue.limit[resource], queue.request[resource])
    deserved = total if queue.deserved[resource] == UNLIMITED else queue.deserved[resource]
    return _Portion(queue, queue.weight[resource], queue.usage[resource], wanted, min(deserved, wanted))


def _by_priority(portions: Iterable[_Portion]) -> list[list[_Portion]]:
    groups: dict[int, list[_Portion]] = {}
    for portion in portions:
        groups.setdefault(portion.queue.priority, []).append(portion)
    return [groups[priority] for priority in sorted(groups, reverse=True)]


def _divide_by_weight(group: Sequence[_Portion], left: float, k_value: float) -> float:
    """Divide by weight, in rounds as long as one queue needs less than its share; return what is left.

    What a satisfied queue does not need is divided again among the others, by the weights of those alone.
    """
    needs_another_round = True
    while needs_another_round and left > 0:
        amount, needs_another_round = left, False
        for portion, part in _parts(group, k_value):
            share = _rounded(amount * part)
            given = portion.take(share)
            left = _rounded(left - given)
            needs_another_round = needs_another_round or (given < share and portion.got == portion.wanted)
    return left


def _parts(group: Sequence[_Portion], k_value: float) -> list[tuple[_Portion, float]]:
    """Return the unsatisfied queues, each with its part of the whole."""
    unsatisfied = [portion for portion in group if portion.wanted > portion.got]
    weights = sum(portion.weight for portion in unsatisfied)
    if abs(weights) < SMALLEST_WEIGHT:
        return []
    adjusted = [_adjusted_weight(portion.weight / weights, portion.usage, k_value) for portion in unsatisfied]
    whole = sum(adjusted)
    if whole <= 0:
        return []
    return [(portion, part / whole) for portion, part in zip(unsatisfied, adjusted, strict=True) if portion.weight != 0]


def _adjusted_weight(weight: float, usage: float, k_value: float) -> float:
    """Return the weight of a queue lowered or raised by how far its past usage is from it; never below 0."""
    return max(0.0, weight + k_value * (weight - usage))


def _hand_out_remainders(group: Sequence[_Portion], left: float) -> float:
    """Give one unit each to those that rounding cost most; return what is left."""
    rounded = [portion for portion in group if portion.fraction > 0]
    for portion in sorted(rounded, key=lambda portion: (-portion.fraction, portion.queue.created, portion.queue.name)):
        given = max(0.0, min(1.0, left))
        portion.got += given
        left = _rounded(left - given)
    return left
