"""Topology-aware preemption: try several nodes for a task, each as a dry run, and take the one whose victims matter least.

On a node victims are removed, least important first, until the task fits and passes all filters, affinity to the removed ones
included; then each is put back, most important first, if the task still fits.

Victims are evicted on trial and not only added up: affinity depends on which pods are left, and only the filters know.
"""

from dataclasses import dataclass

from phalanx.actions.dry_run import DryRun, SpareRule, candidates_on
from phalanx.model.queue import Queue
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import TaskState

TAKES_PART = frozenset({"enablePreemptable", "enabledAllocatable"})
"""With either switch a plugin is told who is evicted on trial. With neither, predicates counts affinity as before."""


@dataclass(frozen=True, slots=True)
class CandidateLimits:
    """How many nodes with victims are enough to choose from."""

    percentage: int = 10
    fewest: int = 1
    most: int = 100

    def enough(self, nodes: int) -> int:
        """Return the number for a cluster of this size."""
        return min(max(nodes * self.percentage // 100, self.fewest), self.most, nodes)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and who has to leave it."""

    node: int
    victims: tuple[TaskState, ...]

    def cost(self) -> tuple[int, int, int, float, int]:
        """Order candidates: lowest highest priority, lowest sum of priorities, fewest victims, youngest top victims, first node."""
        priorities = [victim.task.priority for victim in self.victims]
        top = max(priorities)
        earliest = min(victim.task.started for victim in self.victims if victim.task.priority == top)
        return top, sum(priority + (1 << 31) for priority in priorities), len(priorities), -earliest, self.node


class CandidateSearch:
    """Finds the node for one task by evicting on trial, node by node."""

    def __init__(self, session: Session, task: TaskState, queue: Queue, dry_run: DryRun, spared: SpareRule) -> None:
        """Look for nodes where victims that the rules of the action do not spare make room."""
        self._session, self._task, self._queue = session, task, queue
        self._dry_run, self._spared = dry_run, spared
        predicates = session.plugin("predicates")
        self._sees_evictions = predicates is not None and bool(predicates.enabled & TAKES_PART)

    def best(self, limits: CandidateLimits) -> Candidate | None:
        """Return the candidate whose victims matter least; None when no node can be cleared.

        It stops at enough candidates: a large cluster has many that are as good, and each costs a dry run.
        """
        nodes = self._dry_run.nodes()
        found: list[Candidate] = []
        for node in nodes.tolist():
            victims = self._victims_on(node)
            if victims:
                found.append(Candidate(node, tuple(victims)))
                if len(found) >= limits.enough(len(nodes)):
                    break
        return min(found, key=Candidate.cost, default=None)

    def _victims_on(self, node: int) -> list[TaskState]:
        """Return who has to leave the node; empty when nobody may, or when that is not enough. Nothing stays evicted."""
        session = self._session
        candidates = candidates_on(session, node, self._task, self._spared)
        victims = session.preemptable(self._task, candidates) if candidates else []
        if not victims or not self._dry_run.could_fit(node, victims):
            return []
        held: dict[int, tuple[TaskState, Statement]] = {}
        for victim in victims_in_order(session, victims, self._task):
            held[id(victim)] = (victim, self._remove(victim))
            if self._has_room(node):
                break
        needed = self._reprieve(held, node) if self._has_room(node) else []
        for _, statement in reversed(held.values()):
            statement.discard()
        return needed

    def _remove(self, victim: TaskState) -> Statement:
        statement = self._session.dry_run()
        statement.evict(victim, action="preempt", preemptor=self._task.gang.key, reason="")
        return statement

    def _reprieve(self, held: dict[int, tuple[TaskState, Statement]], node: int) -> list[TaskState]:
        """Put back, most important first, everybody without whom the task still fits; at least one victim stays."""
        for key in sorted(held, key=lambda key: _importance(held[key][0])):
            victim, statement = held[key]
            statement.discard()
            if len(held) > 1 and self._has_room(node):
                del held[key]
            else:
                held[key] = (victim, self._remove(victim))
        return [victim for victim, _ in held.values()]

    def _has_room(self, node: int) -> bool:
        has_quota = self._session.queue_room(self._queue, self._task.task.shape).tasks > 0
        return has_quota and self._dry_run.fits(node) and self._dry_run.passes(node, sees_evictions=self._sees_evictions)


def _importance(victim: TaskState) -> tuple[int, float, str]:
    """Order victims from the most to the least important: higher priority, then longer running."""
    return -victim.task.priority, victim.task.started, victim.task.key
