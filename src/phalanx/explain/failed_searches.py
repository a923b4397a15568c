"""The searches for a node that failed for tasks of a gang: one for each class of tasks, with what is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from phalanx.dialects.kai_status import reasons_of
from phalanx.explain.cause import Cause, Search, alike, remembered
from phalanx.explain.free_room import too_large
from phalanx.explain.gang_status import is_blocked
from phalanx.explain.missing_places import full_cluster, wanted
from phalanx.explain.node_causes import node_causes, search_of
from phalanx.explain.node_reasons import TOO_LARGE
from phalanx.explain.reason_text import general_obstacle
from phalanx.explain.why_kai import is_told_as_kai, wanted_of
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError


@dataclass(frozen=True, slots=True)
class FailedSearch:
    """A class of tasks that found no node."""

    search: Search
    causes: list[Cause]
    """What is wrong with the nodes, what has to change first in front; empty where something is wrong with the task itself."""
    general: Cause | None = None
    """What is wrong whatever the node: the task is too large for all of them, or a claim of it does not exist."""

    @property
    def decisive(self) -> Cause | None:
        """What has to change first."""
        return self.general or next(iter(self.causes), None)


def failed_searches(outcome: Outcome, snapshot: Snapshot) -> list[FailedSearch]:
    """Return the searches that failed, in the order of the tasks; `snapshot` is the one of the session."""
    return remembered(outcome.aftermath, ("searches", outcome.state.key), lambda: _searches(outcome, outcome.seen or snapshot))


def _searches(outcome: Outcome, snapshot: Snapshot) -> list[FailedSearch]:
    full = full_cluster(outcome, snapshot, wanted_of if is_told_as_kai(outcome) else wanted)
    return [_failed(outcome, search) for search in (*_tried(outcome, snapshot), *full)]


def _tried(outcome: Outcome, snapshot: Snapshot) -> Iterator[Search]:
    is_kai = is_told_as_kai(outcome)
    waiting = filter(_is_waiting if is_kai else is_blocked, outcome.state.tasks)
    for task, error in alike((task, task.error) for task in waiting if isinstance(task.error, FitError)):
        known = replace(error, counts=reasons_of(task, error)) if is_kai else error
        tasks = (wanted_of if is_kai else wanted)(outcome.state, task)
        yield search_of(outcome, task, known, snapshot, tasks)


def _is_waiting(task: TaskState) -> bool:
    return task.status is Status.PENDING and not task.task.is_gated


def _failed(outcome: Outcome, search: Search) -> FailedSearch:
    verdict, nodes = search.error.verdict, search.error.nodes
    text = general_obstacle(search.error, search.shape.volume_claims)
    if text and verdict is not None:
        return FailedSearch(search, [], Cause(verdict.reason, nodes, text, thing=text))
    large = too_large(outcome, search.task, search.snapshot)
    general = Cause(TOO_LARGE, nodes, large, thing=large) if large else None
    return FailedSearch(search, node_causes(search, outcome.aftermath), general)
