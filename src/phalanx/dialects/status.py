"""The status that a session leaves: of a group object, of the pods that wait, and the writes that carry it to the API server.

Inside, every group is described in one vocabulary, which is Volcano's: the phases Pending, Inqueue, Running, Unknown and Completed,
and the conditions Scheduled, Unschedulable and Stale. The `*_status` module of a dialect translates between these and the fields
that its own objects have; which module serves which dialect is in `traits.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from phalanx.model.gang import STALE, Condition, Gang
from phalanx.model.kinds import Document, Kind
from phalanx.model.moment import moment_text
from phalanx.model.task_status import COMPLETED
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.staleness import stale_verdict
from phalanx.state.verdict import FitError


@dataclass(frozen=True, slots=True)
class PodScheduledCondition:
    """The condition PodScheduled of a pod that is not bound, and the node that it is nominated to."""

    reason: str
    message: str
    nominated_node: str = ""


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """The status of a gang's group object after a session."""

    phase: str
    conditions: tuple[Condition, ...]
    documents: Mapping[str, Document] = field(default_factory=dict)
    """Further status fields by the key of the group; a dialect without conditions writes these alone."""


@dataclass(frozen=True, slots=True)
class GroupWrite:
    """A status for one object, and annotations, of which None removes one."""

    kind: Kind
    namespace: str
    name: str
    status: Document
    annotations: Mapping[str, str | None] = field(default_factory=dict)


class DialectStatus(Protocol):
    """Translates the result of a session into the status fields of one dialect."""

    def group_status(self, outcome: Outcome, names: list[str]) -> GroupStatus:
        """Return phase and conditions after a session; `names` are the node names by number."""
        ...

    def current_phase(self, gang: GangState) -> str:
        """Return the phase of a group that no session touches."""
        ...

    def pod_condition(self, task: TaskState, names: list[str]) -> PodScheduledCondition:
        """Return the condition of a pod that is not bound."""
        ...

    def writes(self, gang: Gang, status: GroupStatus, outcome: Outcome) -> tuple[GroupWrite, ...]:
        """Return what to write on which objects; nothing where pods alone make the gang."""
        ...


def condition_document(item: Condition) -> dict[str, str]:
    """Return a condition; the time of its last change, if it is known, in whole seconds and never too early."""
    entry = {"type": item.type, "status": item.status, "reason": item.reason, "message": item.message}
    if item.node_pool:
        entry["nodePool"] = item.node_pool
    if item.since:
        entry["lastTransitionTime"] = moment_text(ceil(item.since))
    return entry


def stale_condition(gang: GangState) -> tuple[Condition, ...]:
    """Return the condition of a gang that runs below a minimum, with the time since when it does; an eviction ends it."""
    verdict = stale_verdict(gang)
    if verdict is None or verdict.numbers["is_evicted"]:
        return ()
    return (Condition(STALE, "True", "BelowMinimum", verdict.message, float(verdict.numbers["since"])),)


def is_finished(gang: GangState) -> bool:
    """Tell whether every member has ended; a gang without members has not."""
    return bool(gang.tasks) and gang.tally.total(COMPLETED) == len(gang.tasks)


def placeable(gang: GangState) -> int:
    """Count the members that have a place or nearly had one: a place that was given back because the gang was not whole."""
    return gang.tally.ready + sum(task.had_place for task in gang.tasks)


def first_blocked(tasks: Iterable[TaskState]) -> TaskState | None:
    """Return the task to name as the cause: one that nodes refused before one that was skipped, then the first name."""
    blocked = (task for task in tasks if error_text(task))
    return min(blocked, key=lambda task: (not isinstance(task.error, FitError), task.task.key), default=None)


def error_text(task: TaskState) -> str:
    """Say why a task has no node; its queue's reason too, which Volcano leaves out and users miss most."""
    if task.error is None:
        return task.refusal.message if task.refusal is not None else ""
    return task.error.text if isinstance(task.error, FitError) else task.error
