"""YuniKorn's applications: pods alone make the gang, and its originator says which task groups it has.

An application with task groups is a gang with a minimum for each of them; one without is no gang, and its pods start one by
one. The originator is the oldest pod that describes task groups. YuniKorn holds room for a gang by placeholder pods; none are
made here: the whole gang is placed at once, and until then it holds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from phalanx.dialects.links import YUNIKORN
from phalanx.dialects.parts import staleness_grace
from phalanx.dialects.schema import Quantities, Read
from phalanx.errors import SnapshotError
from phalanx.model.gang import Condition, Gang
from phalanx.model.moment import moment_of
from phalanx.model.resources import read_resources
from phalanx.model.task import GangKey, Task

TASK_GROUPS = "yunikorn.apache.org/task-groups"
POLICY = "yunikorn.apache.org/schedulingPolicyParameters"
QUEUE, OLD_QUEUE = "yunikorn.apache.org/queue", "queue"
DEGRADED = "phalanx.dev/gang-degraded"
"""Annotation of an originator: since when its application is no gang any more."""
GANG_DEGRADED, TIMED_OUT = "GangDegraded", "ResourceReservationTimeout"
ROOT = "root."
HARD = "Hard"
DEFAULT_TIMEOUT_SECONDS = 900.0
WHERE = f"metadata.annotations[{TASK_GROUPS!r}]"


class TaskGroupRead(Read):
    """A task group, as far as it concerns the gang; the rest of it describes placeholders."""

    name: str = ""
    min_member: int = 0
    min_resource: Quantities = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """How long an application may wait to be whole, and what becomes of it then."""

    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    is_hard: bool = False


def gang(task: Task) -> Gang | None:
    """Return the application as a pod describes it; None if it leaves that to the originator."""
    groups = task_groups(task.annotations)
    if not groups and task.role:
        return None
    is_whole = bool(groups) and DEGRADED not in task.annotations
    return Gang(
        key=GangKey(task.group), uid=task.uid, queue=_queue(task), dialect=YUNIKORN, has_object=False,
        min_member=sum(groups.values()) if is_whole else 1, role_minima=groups if is_whole else {},
        priority_class=task.priority_class, created=task.created, phase="Inqueue",
        conditions=_degraded(task.annotations) if groups else (), annotations=task.annotations,
        staleness_grace_seconds=staleness_grace(task.annotations),
    )  # fmt: skip


def comes_first(task: Task) -> bool:
    """Tell whether a pod is an originator: what it says counts more than what others say."""
    return TASK_GROUPS in task.annotations


def task_groups(annotations: Mapping[str, str]) -> dict[str, int]:
    """Return the minimum of each task group that an originator describes; empty for other pods."""
    text = annotations.get(TASK_GROUPS)
    if not text:
        return {}
    minima: dict[str, int] = {}
    for number, read in enumerate(_decoded(text)):
        where = f"{WHERE}[{number}]"
        if not read.name:
            raise SnapshotError(f"{where}.name: missing; pods name it in their annotation task-group-name")
        if read.name in minima:
            raise SnapshotError(f"{where}.name: {read.name!r} stands twice; give each task group its own name")
        if read.min_member < 1:
            raise SnapshotError(f"{where}.minMember: {read.min_member} is too small; write 1 or more")
        read_resources(read.min_resource, where=f"{where}.minResource")
        minima[read.name] = read.min_member
    return minima


def _decoded(text: str) -> list[TaskGroupRead]:
    try:
        return msgspec.json.decode(text, type=list[TaskGroupRead])
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{WHERE}: {str(problem).replace('`$', '`')}") from problem
    except msgspec.DecodeError as problem:
        example = '[{"name": "worker", "minMember": 4, "minResource": {"cpu": 1}}]'
        raise SnapshotError(f"{WHERE}: not JSON ({problem}); write a list such as {example}") from problem


def reservation(annotations: Mapping[str, str]) -> Reservation:
    """Return the policy of an application; what cannot be read is what YuniKorn takes where nothing is said."""
    pairs = [part.partition("=") for part in annotations.get(POLICY, "").split()]
    settings = {key: value for key, _, value in pairs}
    text = settings.get("placeholderTimeoutInSeconds", "")
    seconds = float(text) if text.isdecimal() else 0.0
    return Reservation(seconds or DEFAULT_TIMEOUT_SECONDS, settings.get("gangSchedulingStyle") == HARD)


def _queue(task: Task) -> str:
    """Return the queue; the root of YuniKorn's queues is no part of a name here."""
    labels = task.shape.labels
    name = labels.get(QUEUE) or task.annotations.get(QUEUE) or labels.get(OLD_QUEUE) or ""
    return name.removeprefix(ROOT) or "default"


def _degraded(annotations: Mapping[str, str]) -> tuple[Condition, ...]:
    since = annotations.get(DEGRADED)
    if since is None:
        return ()
    message = degraded_text(reservation(annotations))
    return (Condition(GANG_DEGRADED, "True", TIMED_OUT, message, moment_of(since) or 0.0),)


def degraded_text(policy: Reservation) -> str:
    """Say what became of an application that gave up being a gang."""
    return (
        f"there was no room for the whole application within {policy.timeout_seconds:g} s; its style is Soft, so its pods now "
        f"start one by one, whether or not the others find room; write gangSchedulingStyle={HARD} to let it fail instead"
    )
