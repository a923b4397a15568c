"""What is worth knowing of a gang as it stands: counts, what it holds and asks for, when it came and started.

A cluster has thousands of gangs, and from one look to the next only few of them change: facts are kept for as long as the gang and
its members are the same objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from phalanx.explain.gang_status import GangStatus, gang_status, minimum_of
from phalanx.model.gang import Gang
from phalanx.model.held_amount import held_amount
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import HOLDING, READY, Status
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

Members = Mapping[TaskKey, Task]


@dataclass(frozen=True, slots=True)
class GangFacts:
    """Counts, amounts of one resource, and moments in seconds since 1970; 0 where a moment is unknown."""

    status: GangStatus = GangStatus.WAITS
    queue: str = ""
    minimum: int = 0
    priority: int = 0
    pods: int = 0
    placed: int = 0
    running: int = 0
    waiting: int = 0
    """Pods without a node."""
    held: float = 0.0
    asked: float = 0.0
    """By pods without a node."""
    created: float = 0.0
    started: float = 0.0
    """When the last of its pods that count got its node."""
    ended: float = 0.0
    """When the last of its pods ended, if all have."""
    evicted: int = 0
    """Pods that were evicted and are still there, or failed of it."""
    evicted_at: float = 0.0

    @property
    def waits(self) -> bool:
        """Tell whether the gang, or a part of it, has not started."""
        return not self.status.has_minimum or self.waiting > 0


def facts_of(gang: Gang | None, members: Members, resource: str) -> GangFacts:
    """Return the facts of a gang; None for one that nobody describes."""
    tasks = list(members.values())
    pending = [task for task in tasks if task.status is Status.PENDING]
    holding = [task for task in tasks if task.status in HOLDING]
    lost = [task for task in tasks if task.is_disrupted and task.status not in HOLDING]
    state = None if gang is None else GangState(gang, ((task, -1) for task in tasks))
    return GangFacts(
        status=GangStatus.WAITS if state is None else gang_status(state), queue="" if gang is None else gang.queue,
        minimum=0 if state is None else minimum_of(state), priority=0 if gang is None else gang.priority,
        pods=len(tasks), placed=len(holding), running=sum(task.status is Status.RUNNING for task in tasks), waiting=len(pending),
        held=sum(held_amount(task, resource) for task in holding), asked=sum(held_amount(task, resource) for task in pending),
        created=_created(gang, tasks),
        started=max((task.scheduled or task.started for task in tasks if task.status in READY), default=0.0),
        ended=max((task.finished for task in tasks), default=0.0) if all(task.finished for task in tasks) else 0.0,
        evicted=len(lost), evicted_at=max((task.leaving_since or task.finished for task in lost), default=0.0),
    )  # fmt: skip


def _created(gang: Gang | None, tasks: list[Task]) -> float:
    if gang is not None and gang.created:
        return gang.created
    return min((task.created for task in tasks if task.created), default=0.0)


class KnownFacts:
    """Facts of all gangs from one look to the next."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[GangKey, tuple[Gang | None, Members, str, GangFacts]] = {}

    def of(self, snapshot: Snapshot, resource: str) -> dict[GangKey, GangFacts]:
        """Return the facts of every gang, also of those that only pods name."""
        keys = [*snapshot.gangs, *(key for key in snapshot.members if key not in snapshot.gangs)]
        self._known = {key: self._entry(key, snapshot, resource) for key in keys}
        return {key: entry[-1] for key, entry in self._known.items()}

    def _entry(self, key: GangKey, snapshot: Snapshot, resource: str) -> tuple[Gang | None, Members, str, GangFacts]:
        gang, members, known = snapshot.gangs.get(key), snapshot.members_of(key), self._known.get(key)
        if known is not None and known[0] is gang and known[1] is members and known[2] == resource:
            return known
        return gang, members, resource, facts_of(gang, members, resource)
