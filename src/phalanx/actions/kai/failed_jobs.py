"""Jobs that are alike fail alike: once one has been tried in vain, the others need not be until something changes.

This saves work and decides nothing. Two jobs are alike when no rule can tell them apart: same queue, priority and structure, tasks
that no node can tell apart, the same nodes to avoid, and the same place in line, among the jobs that would be asked to move and
among those that wait. Jobs of which some tasks have a place are always tried. A job that is spared the attempt gets the verdicts
of the other one, word for word: `explain` must not depend on what was skipped. A property compares both ways.
"""

from bisect import bisect_left
from collections.abc import Callable, Hashable
from typing import Any

from phalanx.actions.kai.job_order import WaitingOrder
from phalanx.kai.podsets import USING, is_preemptible, next_tasks
from phalanx.session.session import Session
from phalanx.session.trace_searches import JobAlike
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict


class FailedJobs:
    """The jobs that one action has tried in vain since the last change."""

    def __init__(
        self, session: Session, holders: Callable[[], list[GangState]] | None = None, waiting: WaitingOrder | None = None
    ) -> None:
        """Start empty; `holders` gives the jobs that a search may move, `waiting` those that wait. Both are None where only free
        room is tried.
        """
        self._session, self._holders, self._waiting = session, holders, waiting
        self._is_on = bool(session.policy.options.get("schedulingSignatures", True))
        self._version = -1
        self._failures: dict[Hashable, tuple[GangState, list[Verdict]]] = {}
        self._lines: dict[str, list[tuple[Any, ...]]] | None = None

    def attempt(self, gang: GangState, attempt: Callable[[], bool]) -> bool:
        """Try a job unless one like it has failed; tell whether it succeeded."""
        if not self._is_on or gang.tally.total(USING):
            return attempt()
        self._forget_if_changed()
        without_reason, known_verdicts = self._tasks_without_reason(gang), len(gang.verdicts)
        if self._failures and (failure := self._failures.get((self._signature(gang), without_reason))) is not None:
            self._copy_verdicts(gang, *failure)
            return False
        if attempt():
            return True
        self._failures[self._signature(gang), without_reason] = (gang, gang.verdicts[known_verdicts:])
        return False

    def _forget_if_changed(self) -> None:
        if self._version != self._session.version:
            self._version = self._session.version
            self._failures.clear()
            self._lines = None

    def _tasks_without_reason(self, gang: GangState) -> tuple[bool, ...]:
        """Mark the tasks without a reason why they wait: a search gives one only to those."""
        return () if self._holders is None else tuple(task.error is None for task in next_tasks(self._session, gang))

    def _signature(self, gang: GangState) -> Hashable:
        noun, tasks = gang.gang, next_tasks(self._session, gang)
        structure = (
            noun.queue,
            noun.priority,
            is_preemptible(gang),
            noun.min_member,
            noun.subgroups,
            noun.min_children,
            noun.topology,
        )
        return structure, self._kinds(gang, tasks), self._avoided(gang), self._place_among_victims(gang), self._position(gang)

    def _kinds(self, gang: GangState, tasks: list[TaskState]) -> Hashable:
        """Return what the tasks are like; known from another action where what other pods do does not matter to any of them."""
        if all(self._session.is_local(shape) for shape in {task.task.shape for task in tasks}):
            return self._session.remembered(gang, FailedJobs, lambda: tuple(map(self._kind, tasks)))
        return tuple(map(self._kind, tasks))

    def _kind(self, task: TaskState) -> Hashable:
        part = task.subgroup.policy.name if task.subgroup.policy is not None else ""
        shape, refusal = self._session.class_of(task.task.shape), self._session.prefilter(task).reason
        return part, shape, refusal, task.task.nominated_node

    def _avoided(self, gang: GangState) -> bytes:
        mask = self._session.avoided_nodes(gang)
        return b"" if mask is None else mask.tobytes()

    def _position(self, gang: GangState) -> Hashable:
        return None if self._waiting is None else self._waiting.position(gang)

    def _place_among_victims(self, gang: GangState) -> int:
        """Return how many jobs of its queue that may be moved come before a job."""
        if self._holders is None:
            return 0
        if self._lines is None:
            self._lines = _lines(self._holders())
        return bisect_left(self._lines.get(gang.gang.queue, []), _rank(gang))

    def _copy_verdicts(self, gang: GangState, twin_gang: GangState, verdicts: list[Verdict]) -> None:
        gang.verdicts += verdicts
        self._session.trace.note(JobAlike, gang.key, twin_gang.key)
        for task, twin in zip(next_tasks(self._session, gang), next_tasks(self._session, twin_gang), strict=True):
            if self._holders is None:
                task.error, task.attempt, task.attempt_node = twin.error, twin.attempt, twin.attempt_node
            elif task.error is None:
                task.error = twin.error


def _lines(gangs: list[GangState]) -> dict[str, list[tuple[Any, ...]]]:
    lines: dict[str, list[tuple[Any, ...]]] = {}
    for gang in sorted(gangs, key=_rank):
        lines.setdefault(gang.gang.queue, []).append(_rank(gang))
    return lines


def _rank(gang: GangState) -> tuple[Any, ...]:
    return -gang.gang.priority, gang.gang.created, gang.key
