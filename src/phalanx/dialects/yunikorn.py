"""YuniKorn's applications: pods alone make the gang, and its originator says which task groups it has.

An application with task groups is a gang with a minimum for each of them; one without is no gang, and its pods start one by
one. The originator is the oldest pod that describes task groups. The originator often creates the other pods itself
once it runs, so the gang could never be whole before it starts. Placeholders (`controllers/placeholders.py`) stand for those pods:
they are members like all others, and the whole gang is placed at once. An application that has started with placeholders is no gang
any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from phalanx.dialects.field_values import staleness_grace
from phalanx.dialects.group_references import YUNIKORN
from phalanx.dialects.reading import decode_as
from phalanx.dialects.schema import Quantities, Read, Strings
from phalanx.errors import SnapshotError
from phalanx.model.bounds import MADE_PODS
from phalanx.model.gang import Condition, Gang
from phalanx.model.moment import moment_of
from phalanx.model.resources import read_resources
from phalanx.model.task import GangKey, Task

TASK_GROUPS = "yunikorn.apache.org/task-groups"
POLICY = "yunikorn.apache.org/schedulingPolicyParameters"
QUEUE, OLD_QUEUE = "yunikorn.apache.org/queue", "queue"
DEGRADED = "phalanx.dev/gang-degraded"
"""Annotation of an originator: since when its application is no gang any more, having waited too long."""
STARTED = "phalanx.dev/gang-started"
"""Annotation of an originator that started with placeholders: since when it runs, and every further pod starts for itself."""
GANG_DEGRADED, TIMED_OUT, RELEASED = "GangDegraded", "ResourceReservationTimeout", "PlaceholdersReleased"
ROOT = "root."
HARD = "Hard"
DEFAULT_TIMEOUT_SECONDS = 900.0
WHERE = f"metadata.annotations[{TASK_GROUPS!r}]"


Part = dict[str, Any]  # Any: a part of a pod that is handed on as it stands


class TaskGroupRead(Read):
    """A task group: how many pods the gang needs of it, and how a placeholder for such a pod looks."""

    name: str = ""
    min_member: int = 0
    min_resource: Quantities = None
    labels: Strings = None
    annotations: Strings = None
    node_selector: Strings = None
    tolerations: list[Part] | None = None
    affinity: Part | None = None
    topology_spread_constraints: list[Part] | None = None


@dataclass(frozen=True, slots=True)
class ReservationPolicy:
    """How long an application may wait for all of its pods, and whether it fails then."""

    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    is_hard: bool = False


def gang(task: Task) -> Gang | None:
    """Return the application as a pod describes it; None if it leaves that to the originator."""
    groups = task_groups(task.annotations)
    if not groups and task.role:
        return None
    minima = {} if {DEGRADED, STARTED} & task.annotations.keys() else {name: group.min_member for name, group in groups.items()}
    return Gang(
        key=GangKey(task.group), uid=task.uid, queue=_queue(task), dialect=YUNIKORN, has_object=False,
        min_member=sum(minima.values()) + (task.role not in minima), role_minima=minima,
        priority_class=task.priority_class, created=task.created, phase="Inqueue",
        conditions=_degraded(task.annotations) if groups else (), annotations=task.annotations,
        staleness_grace_seconds=staleness_grace(task.annotations),
    )  # fmt: skip


def comes_first(task: Task) -> bool:
    """Tell whether a pod is an originator: what it says counts more than what others say."""
    return TASK_GROUPS in task.annotations


def task_groups(annotations: Mapping[str, str]) -> dict[str, TaskGroupRead]:
    """Return the task groups that an originator describes, by name; empty for other pods."""
    text = annotations.get(TASK_GROUPS)
    if not text:
        return {}
    groups: dict[str, TaskGroupRead] = {}
    for number, read in enumerate(_decoded(text)):
        where = f"{WHERE}[{number}]"
        if not read.name:
            raise SnapshotError(f"{where}.name: missing; pods name it in their annotation task-group-name")
        if read.name in groups:
            raise SnapshotError(f"{where}.name: {read.name!r} is given twice; give each task group its own name")
        if read.min_member < 1:
            raise SnapshotError(f"{where}.minMember: {read.min_member} is too small; write 1 or more")
        read_resources(read.min_resource, where=f"{where}.minResource")
        groups[read.name] = read
    if (count := sum(group.min_member for group in groups.values())) > MADE_PODS.most:
        raise SnapshotError(f"{WHERE}: placeholders of {count:,} members are too many: {MADE_PODS.text}")
    return groups


def _decoded(text: str) -> list[TaskGroupRead]:
    try:
        return decode_as(text, list[TaskGroupRead])
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{WHERE}: {str(problem).replace('`$', '`')}") from problem
    except msgspec.DecodeError as problem:
        example = '[{"name": "worker", "minMember": 4, "minResource": {"cpu": 1}}]'
        raise SnapshotError(f"{WHERE}: not JSON ({problem}); write a list such as {example}") from problem


def reservation(annotations: Mapping[str, str]) -> ReservationPolicy:
    """Return the policy of an application; parameters that cannot be read have YuniKorn's defaults."""
    pairs = [part.partition("=") for part in annotations.get(POLICY, "").split()]
    settings = {key: value for key, _, value in pairs}
    text = settings.get("placeholderTimeoutInSeconds", "")
    seconds = float(text) if text.isdecimal() else 0.0
    return ReservationPolicy(seconds or DEFAULT_TIMEOUT_SECONDS, settings.get("gangSchedulingStyle") == HARD)


def _queue(task: Task) -> str:
    """Return the queue; the root of YuniKorn's queues is no part of a name here."""
    labels = task.labels
    name = labels.get(QUEUE) or task.annotations.get(QUEUE) or labels.get(OLD_QUEUE) or ""
    return name.removeprefix(ROOT) or "default"


def _degraded(annotations: Mapping[str, str]) -> tuple[Condition, ...]:
    since = annotations.get(DEGRADED)
    if since is None:
        return ()
    message = degraded_text(reservation(annotations))
    return (Condition(GANG_DEGRADED, "True", TIMED_OUT, message, moment_of(since) or 0.0),)


def degraded_text(policy: ReservationPolicy) -> str:
    """Say what became of an application that gave up being a gang."""
    return (
        f"there was no room for the whole application within {policy.timeout_seconds:g} s; its style is Soft, so its pods now "
        f"start one by one, whether or not the others find room; write gangSchedulingStyle={HARD} to let it fail instead"
    )
