"""Dominant resource fairness: the gang with the smallest share of the cluster comes first.

With `enableHierarchy` the same between queues, along the path that their annotations give them.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from phalanx.model.queue import Queue
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Vector
from phalanx.session.amounts import EPSILON, dominant_share, share
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict

SHARE_DELTA = 1e-6


class DrfPlugin:
    """Orders gangs by dominant share, and queues by hierarchical share when asked to."""

    name = "drf"
    protects = "its gang, or its queue, would have less than the share of the preemptor"
    follows_runs = True

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none but the hierarchy switch."""
        Arguments(self.name, policy.arguments).done()
        self._is_hierarchical = "enableHierarchy" in policy.enabled
        self._total: Vector = np.zeros(0)
        self._held: dict[str, Vector] = {}
        self._tree: _Tree | None = None

    def open(self, session: Session) -> None:
        """Take the size of the cluster."""
        self._total = session.ledger.allocatable.sum(axis=1, dtype=np.float64)
        if self._is_hierarchical:
            self._tree = _Tree(session, self._total, self._held_by)

    def _held_by(self, session: Session, gang: GangState) -> Vector:
        """Return what a gang holds, pipelined tasks included."""
        if gang.key not in self._held:
            total = np.zeros(len(self._total))
            for task in gang.tasks:
                if task.status in HOLDING or task.status is Status.PIPELINED:
                    total += session.request_of(task.task.shape).amounts
            self._held[gang.key] = total
        return self._held[gang.key]

    def gang_order(self, session: Session, gang: GangState) -> float:
        """The smaller share first."""
        tally = gang.tally
        if not tally.ready and not tally.pipelined and gang.key not in self._held:
            return 0.0  # most gangs of a session wait as a whole: nothing is held, and nothing needs to be followed
        return dominant_share(self._held_by(session, gang), self._total)

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Follow what gangs hold."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        for gang, count in Counter(task.gang.key for task in operation.tasks).items() if self._held else ():
            if gang in self._held:
                self._held[gang] = self._held[gang] + sign * count * session.request_of(operation.shape).amounts
        if self._tree is not None:
            self._tree.is_stale = True

    def preemptable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState]:
        """Name victims whose gangs keep at least the share that the preemptor's gang would then have."""
        mine = self._held_by(session, preemptor.gang) + session.request_of(preemptor.task.shape).amounts
        wanted = dominant_share(mine, self._total)
        left: dict[str, Vector] = {}
        victims = []
        for task in candidates:
            rest = left.get(task.gang.key, self._held_by(session, task.gang)) - session.request_of(task.task.shape).amounts
            left[task.gang.key] = rest
            its = dominant_share(rest, self._total)
            if wanted < its or abs(wanted - its) <= SHARE_DELTA:
                victims.append(task)
        return victims

    def why_protected(self, session: Session, preemptor: TaskState, victim: TaskState) -> Verdict:
        """Compare the share that the gang of a victim would keep with the one that the preemptor would have."""
        mine = self._held_by(session, preemptor.gang) + session.request_of(preemptor.task.shape).amounts
        rest = self._held_by(session, victim.gang) - session.request_of(victim.task.shape).amounts
        wanted, its = dominant_share(mine, self._total), dominant_share(rest, self._total)
        text = f"would keep {its:.0%} of the cluster, less than the {wanted:.0%} of the preemptor"
        return Verdict.refuse(self.name, "SmallerShare", text, keeps=round(its, 4), wanted=round(wanted, 4))

    def reclaimable(self, session: Session, preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None:
        """Name victims, each judged alone, whose queue would still come after the preemptor's; no say without a hierarchy."""
        if self._tree is None:
            return None
        mine = self._held_by(session, preemptor.gang) + session.request_of(preemptor.task.shape).amounts
        answers: dict[Hashable, bool] = {}
        victims = []
        for task in candidates:
            key = (task.gang.key, session.class_of(task.task.shape))
            if key not in answers:
                rest = self._held_by(session, task.gang) - session.request_of(task.task.shape).amounts
                queues = session.queues[preemptor.gang.gang.queue], session.queues[task.gang.gang.queue]
                answers[key] = self._tree.compare_if({preemptor.gang.key: mine, task.gang.key: rest}, *queues) < 0
            if answers[key]:
                victims.append(task)
        return victims

    def queue_order(self, session: Session, left: Queue, right: Queue) -> int:
        """Compare queues along their paths."""
        return self._tree.compare(left, right) if self._tree is not None else 0


class _Branch:
    """A node of the queue tree: a part of a path, or a gang as a leaf."""

    __slots__ = ("allocated", "children", "is_saturated", "request", "share", "weight")

    def __init__(self, size: int, weight: float) -> None:
        self.children: dict[str, _Branch] = {}
        self.weight, self.share, self.is_saturated = weight, 0.0, False
        self.allocated, self.request = np.zeros(size), np.zeros(size)


class _Tree:
    """Hierarchical shares: a parent's share counts its hungry children at the level of the hungriest."""

    def __init__(self, session: Session, total: Vector, held: Callable[[Session, GangState], Vector]) -> None:
        self._session, self._total, self._held = session, total, held
        self.is_stale = True
        for key in session.snapshot.gangs:  # settled gangs hold a share too, whether or not anybody looks at them in this session
            session.gang(key)
        self._requests = {gang.key: _requested(session, gang) for gang in session.gangs.values()}
        self._root = _Branch(len(total), 1.0)

    def compare(self, left: Queue, right: Queue) -> int:
        if self.is_stale:
            self._root = self._settled({})
            self.is_stale = False
        return _compare(self._root, left, right)

    def compare_if(self, changed: Mapping[str, Vector], left: Queue, right: Queue) -> int:
        """Compare queues as if these gangs held something else."""
        return _compare(self._settled(changed), left, right)

    def _settled(self, changed: Mapping[str, Vector]) -> _Branch:
        size = len(self._total)
        root, used = _Branch(size, 1.0), np.zeros(size)
        for queue in self._session.queues.values():
            self._descend(root, queue)
        for gang in self._session.gangs.values():
            leaf = _Branch(size, 1.0)
            leaf.allocated = changed[gang.key] if gang.key in changed else self._held(self._session, gang)
            leaf.request = self._requests[gang.key]
            self._descend(root, self._session.queues[gang.gang.queue]).children[f"gang {gang.key}"] = leaf
            used += leaf.allocated
        self._settle(root, used < self._total - EPSILON)
        return root

    def _descend(self, root: _Branch, queue: Queue) -> _Branch:
        node = root
        for name, weight in zip(_path(queue)[1:], _weights(queue)[1:], strict=False):
            node = node.children.setdefault(name, _Branch(len(self._total), weight))
        return node

    def _settle(self, node: _Branch, demanding: NDArray[np.bool_]) -> None:
        if not node.children:
            self._settle_leaf(node, demanding)
            return
        for child in node.children.values():
            self._settle(child, demanding)
        hungry = [child.share for child in node.children.values() if child.share != 0 and not child.is_saturated]
        level = min([1.0, *hungry])
        node.allocated = np.zeros(len(self._total))
        for child in node.children.values():
            factor = 1.0 if child.is_saturated or child.share == 0 else level / child.share
            node.allocated = node.allocated + child.allocated * factor
        node.share = self._share(node.allocated, demanding)
        node.is_saturated = all(child.is_saturated for child in node.children.values())

    def _settle_leaf(self, leaf: _Branch, demanding: NDArray[np.bool_]) -> None:
        met = (leaf.allocated >= leaf.request) & (leaf.allocated > 0) & (leaf.request > 0)
        blocked = (leaf.request > 0) & ~demanding
        leaf.share = self._share(leaf.allocated, demanding)
        leaf.is_saturated = bool(met.any() or blocked.any())

    def _share(self, allocated: Vector, demanding: NDArray[np.bool_]) -> float:
        return max((share(allocated[row], self._total[row]) for row in np.flatnonzero(demanding)), default=0.0)


def _requested(session: Session, gang: GangState) -> Vector:
    total: Vector = np.zeros(len(session.ledger.allocatable))
    for task in gang.tasks:
        total += session.request_of(task.task.shape).amounts
    return total


def _compare(root: _Branch, left: Queue, right: Queue) -> int:
    """Walk both paths from the top: who is not saturated first, then the smaller share for its weight."""
    node, other = root, root
    for name, twin in zip(_path(left)[1:], _path(right)[1:], strict=False):
        node, other = node.children[name], other.children[twin]
        if node.is_saturated != other.is_saturated:
            return -1 if other.is_saturated else 1
        mine, its = node.share / node.weight, other.share / other.weight
        if mine != its:
            return -1 if mine < its else 1
    return 0


def _path(queue: Queue) -> list[str]:
    return queue.annotations.get("volcano.sh/hierarchy", f"root/{queue.name}").split("/")


def _weights(queue: Queue) -> list[float]:
    text = queue.annotations.get("volcano.sh/hierarchy-weights", f"1/{queue.weight}")
    weights = [max(float(part), 1.0) if part.replace(".", "", 1).isdecimal() else 1.0 for part in text.split("/")]
    return weights + [1.0] * (len(_path(queue)) - len(weights))
