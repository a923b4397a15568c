"""Keep gangs close together in the network: which HyperNodes to try, which suit best, and which node of one.

Only gangs with a constraint are bound by it. Other tasks are steered towards HyperNodes that are full already, so that whole
ones stay free for gangs that need them.

A hard constraint that cannot be resolved, because it says no tier or one that no HyperNode has, restricts nothing in Volcano: the
gang starts anywhere, and nobody hears of it. `unresolvedTier: refuse` leaves such gangs waiting and says what to write.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phalanx.model.shape import Shape
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Counts, Mask, Scores, Vector
from phalanx.session.amounts import EPSILON
from phalanx.session.arguments import Arguments
from phalanx.session.node_hooks import Scope
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.unresolved_tiers import unresolved_tier
from phalanx.state.verdict import YES, Verdict

FULL = 100.0


class NetworkTopologyAwarePlugin:
    """Searches narrow HyperNodes before wide ones and prefers full ones."""

    name = "network-topology-aware"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the weights."""
        settings = Arguments(self.name, policy.arguments, prefixes=("hypernode.binpack.resources.",))
        self.weight = settings.integer("weight", 1)
        self.weights = {
            "cpu": settings.integer("hypernode.binpack.cpu", 1), "memory": settings.integer("hypernode.binpack.memory", 1),
        }  # fmt: skip
        for name in filter(None, (part.strip() for part in settings.text("hypernode.binpack.resources", "").split(","))):
            self.weights[name] = settings.integer(f"hypernode.binpack.resources.{name}", 1)
        self.steers_others = settings.switch("hypernode.binpack.normal-pod.enable", True)
        self.fading = settings.number("hypernode.binpack.normal-pod.fading", 0.8)
        self.refuses_unresolved = settings.choice("unresolvedTier", "unrestricted", ("unrestricted", "refuse")) == "refuse"
        self.most_evicted_domains = settings.integer("hypernode.gradient.evict.max-hypernodes", 8)
        settings.done()
        self._sums_version = -1
        self._used: NDArray[np.float64] = np.zeros((0, 0))
        self._places_of: dict[str, Counts] = {}
        self._near_by_occupied: dict[int, Scores] = {}

    def open(self, session: Session) -> None:
        """Take the tree of HyperNodes."""
        self._tree, self._snapshot = session.snapshot.hypernodes, session.snapshot

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow where the members of sub-groups are."""
        for task, node in zip(operation.tasks, operation.nodes, strict=True) if self._places_of else ():
            if operation.kind is not OperationKind.ALLOCATE:
                self._places_of.pop(task.subgroup.id, None)
            elif task.subgroup.id in self._places_of:
                self._places_of[task.subgroup.id][node] += -1 if undone else 1

    def gang_valid(self, session: Session, gang: GangState) -> Verdict:
        """Refuse a gang with a hard constraint that cannot be resolved, if it is to be refused."""
        return (unresolved_tier(gang.gang, self._tree) if self.refuses_unresolved else None) or YES

    @cached_property
    def _allocatable(self) -> NDArray[np.float64]:
        """Sum up what each HyperNode offers."""
        return self._tree.domains.sums(self._snapshot.nodes.allocatable)

    @cached_property
    def _rooms(self) -> list[NDArray[np.float64]]:
        """Sum up the room of each HyperNode when the session began: now, and once those have left who are leaving."""
        idle = self._snapshot.nodes.allocatable - self._snapshot.used
        return [self._tree.domains.sums(room) for room in (idle, idle + self._snapshot.releasing)]

    def _sum_up(self, session: Session) -> None:
        if self._sums_version != session.version:
            self._sums_version = session.version
            self._used = self._tree.domains.sums(session.ledger.allocatable - session.ledger.future)

    def hypernode_gradients(self, session: Session, scope: Scope, root: int, purpose: str) -> list[list[int]] | None:
        """Return the HyperNodes that are narrow enough and could have room, narrow tiers first."""
        if scope.allowed_tier is None:
            return None
        tree = self._tree
        start = self._search_root(scope, root)
        if start is None:
            return []
        allowed = [number for number in tree.descendants(start) if tree.tiers[number] <= scope.allowed_tier]
        if not scope.allocated_hypernode:
            allowed = self._with_room(session, scope, allowed, [self._allocatable] if purpose == "evict" else self._rooms)
        if purpose == "evict":
            allowed = sorted(allowed, key=lambda number: -tree.tiers[number])[: self.most_evicted_domains]
        by_tier: dict[int, list[int]] = {}
        for number in allowed:
            by_tier.setdefault(tree.tiers[number], []).append(number)
        return [by_tier[tier] for tier in sorted(by_tier)]

    def _search_root(self, scope: Scope, root: int) -> int | None:
        """Return where to search: the widest allowed ancestor of what is occupied already, inside the given domain."""
        occupied = self._tree.number_by_name.get(scope.allocated_hypernode)
        if occupied is None:
            return root
        assert scope.allowed_tier is not None
        within = [number for number in self._tree.ancestors(occupied) if self._tree.tiers[number] <= scope.allowed_tier]
        if not within:
            return None
        widest = within[-1]
        if root in self._tree.ancestors(widest):
            return widest
        return root if widest in self._tree.ancestors(root) else None

    def _with_room(self, session: Session, scope: Scope, hypernodes: list[int], rooms: Sequence[NDArray[np.float64]]) -> list[int]:
        wanted = self._wanted(session, scope)
        if wanted is None or not hypernodes:
            return hypernodes
        numbers = np.array(hypernodes, dtype=np.int64)
        rows = wanted > 0
        fits = np.zeros(len(numbers), dtype=np.bool_)
        for room in rooms:
            fits |= (wanted[rows, None] - room[rows][:, numbers] < EPSILON).all(axis=0)
        return [int(number) for number in numbers[fits]]

    def _wanted(self, session: Session, scope: Scope) -> Vector | None:
        if isinstance(scope, GangState):
            return None if scope.gang.min_resources is None else session.vector(scope.gang.min_resources)
        return self._sum_of(session, [task for task in scope.tasks if task.status is Status.PENDING])

    def _sum_of(self, session: Session, tasks: Sequence[TaskState]) -> Vector:
        total = np.zeros(len(session.snapshot.space))
        for shape, count in Counter(task.task.shape for task in tasks).items():
            total += session.request_of(shape).amounts * count
        return total

    def hypernode_scores(self, session: Session, subgroup: SubGroupState, hypernodes: Sequence[int]) -> tuple[Scores, Scores]:
        """Score how full each HyperNode would be with all tasks of the sub-group; among equals the one with most of them."""
        self._sum_up(session)
        numbers = np.array(hypernodes, dtype=np.int64)
        scores = self._fullness(session, self._sum_of(session, subgroup.tasks), numbers)
        return scores * FULL * self.weight, self._members_there(subgroup, numbers) * FULL * self.weight

    def _fullness(self, session: Session, request: Vector, numbers: NDArray[np.int64]) -> Scores:
        total, overflow, weights = np.zeros(len(numbers)), np.zeros(len(numbers), dtype=np.bool_), 0
        for name, weight in self.weights.items():
            row = session.snapshot.space.row_by_name.get(name)
            if row is None or request[row] <= 0:
                continue
            capacity, wanted = self._allocatable[row, numbers], self._used[row, numbers] + request[row]
            overflow |= wanted > capacity
            total += np.where(capacity > 0, wanted * weight / np.where(capacity > 0, capacity, 1.0), 0.0)
            weights += weight
        return np.where(overflow, 0.0, total / weights if weights else total)

    def _members_there(self, subgroup: SubGroupState, numbers: NDArray[np.int64]) -> Scores:
        places = self._places(subgroup)
        if not places.any():
            return np.zeros(len(numbers))
        return np.asarray(self._tree.domains.sums(places[None, :])[0, numbers] / len(subgroup.tasks))

    def _places(self, subgroup: SubGroupState) -> Counts:
        """Count the placed members per node; counted once, and then kept up to date."""
        if subgroup.id not in self._places_of:
            places = [task.node for task in subgroup.tasks if task.node >= 0 and task.status in HOLDING]
            counts = np.bincount(np.array(places, dtype=np.int64), minlength=len(self._tree.leaves))
            self._places_of[subgroup.id] = counts.astype(np.int64)
        return self._places_of[subgroup.id]

    def task_scores(self, session: Session, task: TaskState, candidates: Mask | None) -> Scores | None:
        """Score nodes by how close they are to the members that are placed; other tasks by how full their HyperNodes are."""
        if self._tree.is_empty:
            return None
        if task.subgroup.topology is None or not task.subgroup.topology.is_of_tiers:
            return self._steered(session, task.task.shape) if self.steers_others else None
        leaves = self._tree.leaves if candidates is None else self._tree.leaves[candidates]
        if len(leaves) == 0 or (leaves == leaves[0]).all():
            return None  # as close, one as the other: identical tasks may be placed together
        return self._closeness(task.subgroup, np.ones_like(self._tree.leaves, dtype=np.bool_) if candidates is None else candidates)

    def scores_by_leaf(self, session: Session, task: TaskState) -> bool:
        """Say so of tasks that are drawn to members of their sub-group; others are steered by how full all HyperNodes are."""
        return task.subgroup.topology is not None and task.subgroup.topology.is_of_tiers

    def _closeness(self, subgroup: SubGroupState, candidates: Mask) -> Scores:
        """Score by the tier of the narrowest HyperNode shared with what is occupied; among the closest more members nearby."""
        occupied = self._tree.number_by_name.get(subgroup.occupied_hypernode or subgroup.allocated_hypernode)
        if occupied is None:
            return np.zeros(len(candidates))
        scores = self._near_to(occupied)
        closest = candidates & (scores == scores[candidates].max())
        if np.count_nonzero(closest) > 1:
            scores = scores + closest * self._nearby(subgroup)
        return np.asarray(scores * (FULL * self.weight))

    def _near_to(self, occupied: int) -> Scores:
        """Score every node by the tier of the narrowest HyperNode that it shares with one that is occupied, from 0 to 1."""
        if occupied not in self._near_by_occupied:
            tree, scores = self._tree, np.zeros(len(self._tree.leaves))
            low, high = min(tree.tiers), tree.tiers[tree.top]
            for number in reversed(tree.ancestors(occupied)):
                scores[tree.members[number]] = (high - tree.tiers[number]) / (high - low)
            scores[tree.leaves == occupied] = 1.0
            scores[tree.leaves == tree.top] = 0.0
            self._near_by_occupied[occupied] = scores
        return self._near_by_occupied[occupied]

    def _nearby(self, subgroup: SubGroupState) -> Scores:
        """Return the share of the members that is in the narrowest HyperNode of each node."""
        tree = self._tree
        counts = np.bincount(tree.leaves, weights=self._places(subgroup), minlength=tree.top + 1)
        counts[tree.top] = 0
        return np.asarray(counts[tree.leaves] / len(subgroup.tasks))

    def _steered(self, session: Session, shape: Shape) -> Scores:
        """Average how full the HyperNodes of a node would be, the whole cluster included; wider ones count less."""
        self._sum_up(session)
        tree, nodes = self._tree, len(self._tree.leaves)
        fullness = self._fullness(session, session.vector(shape.request), np.arange(tree.top + 1, dtype=np.int64))
        factors = self.fading ** (np.array(tree.tiers, dtype=np.float64) - 1)
        mean = tree.domains.spread(factors * fullness, nodes) / np.maximum(tree.domains.spread(factors, nodes), 1e-9)
        return np.asarray(np.where(self._tree.leaves == tree.top, 1.0, mean) * FULL * self.weight)
