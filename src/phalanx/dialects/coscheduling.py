"""Coscheduling's PodGroup, ``scheduling.x-k8s.io/v1alpha1``; Koordinator's has the same form and is read with the same parts.

Their status has no conditions, and other phases than the model. Both are translated here and back again in `coscheduling_status`
and `koordinator_status`. Groups have neither a queue nor a priority: gangs are in the queue `default` and have the priority of
their highest pod.
"""

from collections.abc import Mapping

from phalanx.dialects.field_values import key_of, seconds, staleness_grace
from phalanx.dialects.kinds.coscheduling import CoschedulingPodGroup, CoschedulingPodGroupSpec, CoschedulingPodGroupStatus
from phalanx.dialects.kinds.reader import blank
from phalanx.errors import SnapshotError
from phalanx.model.gang import STALE, Condition, Counts, Gang
from phalanx.model.quota import under_quota_names, without_quota_names
from phalanx.model.resources import Resources, read_resources
from phalanx.model.task import GangKey

DIALECT = "coscheduling"
STALE_SINCE = "phalanx.dev/stale-since"
"""Annotation that stands for the condition `Stale`, for which these groups have no place."""
SCHEDULE_FAILED = "ScheduleFailed"
"""The phase of a group that did not become whole in time."""
PHASES = {
    "Pending": "Pending", "PreScheduling": "Pending", "Scheduling": "Inqueue", "Scheduled": "Running", "Running": "Running",
    "Finished": "Completed", "Failed": "Completed", "ScheduleFailed": "Inqueue",
}  # fmt: skip
"""The phases of the model by those of these groups."""


def gang(read: CoschedulingPodGroup) -> Gang:
    """Read a PodGroup; without minMember it makes no gang, and every pod starts for itself."""
    meta, spec = read.metadata, read.spec or blank(CoschedulingPodGroupSpec)
    annotations, status = meta.annotations or {}, read.status or blank(CoschedulingPodGroupStatus)
    minimum, minimum_quota = min_resources(spec)
    return Gang(
        key=GangKey(key_of(meta)), uid=meta.uid or key_of(meta), min_member=min_member(spec),
        min_resources=minimum, min_quota=minimum_quota, checks_min_resources=True,
        created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"), phase=phase(status),
        conditions=conditions(status, annotations), staleness_grace_seconds=staleness_grace(annotations), annotations=annotations,
        dialect=DIALECT, follows_pods=True, schedule_timeout_seconds=timeout(spec), has_timed_out=status.phase == SCHEDULE_FAILED,
        reported={"": counts(status)},
    )  # fmt: skip


def min_member(spec: CoschedulingPodGroupSpec) -> int:
    """Return how many members start together; 0 when it is left out."""
    found = spec.min_member or 0
    if found < 0:
        raise SnapshotError(f"spec.minMember: {found} is negative; write 1 or more, or leave it out for pods that need not wait")
    return found


def min_resources(spec: CoschedulingPodGroupSpec) -> tuple[Resources | None, Resources]:
    """Return what the group needs in total, of nodes (None when it is left out) and under names that only quotas know."""
    found = read_resources(spec.min_resources, where="spec.minResources")
    return None if spec.min_resources is None else without_quota_names(found), under_quota_names(found)


def timeout(spec: CoschedulingPodGroupSpec) -> float | None:
    """Return the group's own time limit; 0 leaves it to the configuration, as if nothing were said."""
    found = spec.schedule_timeout_seconds or 0
    if found < 0:
        raise SnapshotError(f"spec.scheduleTimeoutSeconds: {found} is negative; write seconds, or leave it out for the default")
    return float(found) or None


def phase(status: CoschedulingPodGroupStatus) -> str:
    """Return the phase of the model."""
    return PHASES.get(status.phase or "", "Pending")


def counts(status: CoschedulingPodGroupStatus) -> Counts:
    """Return what the status says of its members."""
    return status.running or 0, status.succeeded or 0, status.failed or 0


def conditions(status: CoschedulingPodGroupStatus, annotations: Mapping[str, str]) -> tuple[Condition, ...]:
    """Return the conditions of the model, which these groups keep as phase and annotations."""
    since = seconds(annotations.get(STALE_SINCE), where=f"metadata.annotations[{STALE_SINCE!r}]")
    found = [Condition("Scheduled", "True")] if phase(status) == "Running" else []
    return (*found, *([Condition(STALE, "True", "BelowMinimum", since=since)] if since else ()))
