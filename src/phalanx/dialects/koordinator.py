"""Koordinator's gangs: a PodGroup ``scheduling.sigs.k8s.io/v1alpha1``, or annotations and labels of the pods alone.

Coscheduling used the same PodGroup and labels in its first versions, and nothing on an object says who is meant to read it. So
it means what both of them mean by it: the fields of the spec as in Coscheduling, minResources too, which Koordinator does not
read; and what Koordinator's annotations add. Only pods with the label of a group wait for a PodGroup; other pods describe their
gang themselves, and the oldest one counts.
"""

from collections.abc import Mapping

import msgspec

from phalanx.dialects import coscheduling as api
from phalanx.dialects.field_values import integer, key_of, seconds, staleness_grace
from phalanx.dialects.group_references import KOORDINATOR_GANG, SIGS_GROUP, SIGS_GROUP_NAME
from phalanx.dialects.kinds.coscheduling import CoschedulingPodGroupSpec, OlderPodGroup, OlderPodGroupStatus
from phalanx.dialects.kinds.reader import blank
from phalanx.errors import SnapshotError
from phalanx.model.duration import seconds_of
from phalanx.model.gang import Gang, Quorum
from phalanx.model.task import GangKey, Task

DIALECT = "koordinator"
PREFIX = "gang.scheduling.koordinator.sh/"
MIN_AVAILABLE, WAITING_TIME, MODE, GROUPS = (PREFIX + word for word in ("min-available", "waiting-time", "mode", "groups"))
MATCH_POLICIES = (f"{PREFIX}match-policy", "pod-group.scheduling.sigs.k8s.io/match-policy")
SIGS_MIN_AVAILABLE = "pod-group.scheduling.sigs.k8s.io/min-available"
KEEPS_PLACES = "NonStrict"
LONGEST_HOLD_SECONDS = 600.0
"""Of places that a gang keeps which says nothing of its waiting time."""


def gang(read: OlderPodGroup) -> Gang:
    """Read a PodGroup."""
    meta, spec = read.metadata, read.spec or blank(CoschedulingPodGroupSpec)
    annotations, status = meta.annotations or {}, read.status or blank(OlderPodGroupStatus)
    minimum, minimum_quota = api.min_resources(spec)
    return Gang(
        key=GangKey(key_of(meta)), uid=meta.uid or key_of(meta), min_member=api.min_member(spec),
        min_resources=minimum, min_quota=minimum_quota, checks_min_resources=True,
        created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"), phase=api.phase(status),
        conditions=api.conditions(status, annotations), staleness_grace_seconds=staleness_grace(annotations),
        annotations=annotations, dialect=DIALECT, follows_pods=True, quorum=_quorum(annotations),
        schedule_timeout_seconds=_timeout(annotations, api.timeout(spec)), has_timed_out=status.phase == api.SCHEDULE_FAILED,
        keeps_places=_keeps_places(annotations),
        gang_group=_gang_group(annotations, key_of(meta)), reported={"": api.counts(status)},
    )  # fmt: skip


def _describes_its_gang(task: Task) -> bool:
    """Tell whether a pod says itself what its gang is, and does not wait for a PodGroup."""
    labels = task.labels
    if labels.get(SIGS_GROUP):
        return False
    return SIGS_MIN_AVAILABLE in labels if labels.get(SIGS_GROUP_NAME) else bool(task.annotations.get(KOORDINATOR_GANG))


def gang_of_pod(task: Task) -> Gang | None:
    """Read the gang that a pod describes; None if it does not."""
    if not _describes_its_gang(task):
        return None
    annotations = task.annotations
    return Gang(
        key=GangKey(task.group), uid=task.group, min_member=_min_available(task), follows_pods=True, has_object=False,
        dialect=DIALECT, created=task.created, annotations=annotations,
        staleness_grace_seconds=staleness_grace(annotations), quorum=_quorum(annotations),
        schedule_timeout_seconds=_timeout(annotations, None), keeps_places=_keeps_places(annotations),
        gang_group=_gang_group(annotations, task.group),
    )  # fmt: skip


def _min_available(task: Task) -> int:
    labels, annotations = task.labels, task.annotations
    is_label = bool(labels.get(SIGS_GROUP_NAME))
    key, table, place = (SIGS_MIN_AVAILABLE, labels, "labels") if is_label else (MIN_AVAILABLE, annotations, "annotations")
    where = f"metadata.{place}[{key!r}]"
    if key not in table:
        raise SnapshotError(f"{where}: missing; write how many pods of the gang start together, or make a PodGroup of that name")
    found = integer(table[key], where=where)
    if found < 1:
        raise SnapshotError(f"{where}: {table[key]!r} is too small; write 1 or more")
    return found


def _timeout(annotations: Mapping[str, str], otherwise: float | None) -> float | None:
    text = annotations.get(WAITING_TIME)
    if text is None:
        return otherwise or (LONGEST_HOLD_SECONDS if _keeps_places(annotations) else None)
    found = seconds_of(text)
    if not found:
        where = f"metadata.annotations[{WAITING_TIME!r}]"
        raise SnapshotError(f"{where}: {text!r} is not a duration above 0; write for example '90s' or '1h30m'")
    return found


def _keeps_places(annotations: Mapping[str, str]) -> bool:
    return annotations.get(MODE) == KEEPS_PLACES


def _quorum(annotations: Mapping[str, str]) -> Quorum:
    """Return which members count towards the minimum; an unknown policy means once-satisfied, as in Koordinator."""
    text = next((annotations[key] for key in MATCH_POLICIES if key in annotations), "")
    return next((policy for policy in Quorum if policy.value == text), Quorum.ONCE)


def _gang_group(annotations: Mapping[str, str], own: str) -> tuple[str, ...]:
    """Return the gangs that start together with this one, in the order of their keys; empty without any."""
    text = annotations.get(GROUPS)
    if not text:
        return ()
    where, example = f"metadata.annotations[{GROUPS!r}]", f'write for example \'["{own}","team/other"]\''
    try:
        names = msgspec.json.decode(text, type=list[str])
    except msgspec.DecodeError:
        raise SnapshotError(f"{where}: {text!r} is not a JSON list of texts; {example}") from None
    for name in names:
        if len(name.split("/")) != 2 or not all(name.split("/")):
            raise SnapshotError(f"{where}: {name!r} is not a namespace and a name; {example}")
    if names and own not in names:
        raise SnapshotError(f"{where}: the gang itself is not in the list; add '{own}'")
    return tuple(sorted(set(names))) if len(set(names)) > 1 else ()
