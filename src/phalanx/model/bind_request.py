"""Binding a task to its node: the request for it, and what is remembered of binds that failed."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from phalanx.model.task import FailedBind, Task, TaskKey

PENDING, SUCCEEDED, FAILED = "Pending", "Succeeded", "Failed"
PHASES = (PENDING, SUCCEEDED, FAILED)


@dataclass(frozen=True, slots=True)
class BindRequest:
    """A request to bind a pod to a node, and how far it got; the binder carries it out."""

    key: str
    task: TaskKey
    node: str
    gpu_groups: tuple[str, ...] = ()
    """Shared devices that the pod gets."""
    devices: tuple[tuple[str, str, str], ...] = ()
    """Devices that its claims get: driver, pool, device."""
    phase: str = PENDING
    failed_attempts: int = 0
    most_attempts: int | None = None
    """After so many failures nobody tries again; without a number after the first."""
    latest: float = 0.0
    """When it last changed, as far as anybody says."""
    owner_uid: str = ""
    """The pod it was made for; empty when unknown."""
    reason: str = ""
    """Why it failed, as the binder says."""
    is_rolled_back: bool = False
    """It failed because another request of its gang did; its own node refused nothing."""

    @property
    def has_failed(self) -> bool:
        """Tell whether it failed for good."""
        return self.phase == FAILED and (self.is_rolled_back or self.failed_attempts >= (self.most_attempts or 0))

    def is_for(self, task: Task) -> bool:
        """Tell whether it was made for this very pod, and not for one of the same name before it."""
        is_other = bool(self.owner_uid) and task.knows_uid and self.owner_uid != task.uid
        return task.key == self.task and not is_other

    @property
    def failure(self) -> FailedBind:
        """What to remember of a request that failed."""
        return FailedBind(self.node, max(self.failed_attempts, 1), self.latest, self.reason)


def remember(known: Iterable[FailedBind], failure: FailedBind) -> tuple[FailedBind, ...]:
    """Add a failure to those that are known; one that is not newer than what is known of its node is counted already."""
    by_node = {each.node: each for each in known}
    before = by_node.get(failure.node)
    if before is None:
        by_node[failure.node] = failure
    elif failure.latest > before.latest:
        by_node[failure.node] = replace(failure, attempts=before.attempts + failure.attempts)
    return tuple(by_node[node] for node in sorted(by_node))
