"""Kubernetes' own PodGroup: v1alpha2 of Kubernetes 1.36 and v1beta1 of 1.37, told apart by the version of the object.

The group has no queue and no phase. Its pods name it in `spec.schedulingGroup.podGroupName`. A Workload is a template from which
controllers make groups; nothing here reads it, as kube-scheduler does not.
"""

from typing import Any

from phalanx.dialects.field_values import condition, key_of, seconds, staleness_grace
from phalanx.dialects.schema import ConditionRead, Int32, Meta, Read
from phalanx.errors import SnapshotError
from phalanx.model.gang import Condition, Gang, TopologyConstraint
from phalanx.model.task import GangKey

BETA = "v1beta1"
SCHEDULED = {"v1alpha2": "PodGroupScheduled", BETA: "PodGroupInitiallyScheduled"}
"""The condition that says whether the gang has started, by version."""
QUEUE = "scheduling.volcano.sh/queue-name"
"""Annotation of a group that names its queue, where there are queues."""
HIGHEST_PRIORITY = 1_000_000_000
SINGLE, WHOLE = ("Pod", "single"), ("PodGroup", "all")


class GangPolicyRead(Read):
    """The gang policy: so many pods start together."""

    min_count: Int32 | None = None


class NativePolicyRead(Read):
    """Either of the two policies."""

    basic: dict[str, Any] | None = None  # Any: it has no fields
    gang: GangPolicyRead | None = None


class NativeTopologyRead(Read):
    """A node label of which the members share a value."""

    key: str = ""


class ConstraintsRead(Read):
    """Where the members have to be."""

    topology: list[NativeTopologyRead] | None = None


class NativePodGroupSpecRead(Read):
    """What a group asks for."""

    scheduling_policy: NativePolicyRead | None = None
    scheduling_constraints: ConstraintsRead | None = None
    disruption_mode: str | dict[str, Any] | None = None  # Any: an object of 1.37 without fields
    priority_class_name: str | None = None
    priority: Int32 | None = None


class NativePodGroupStatusRead(Read):
    """What was written on a group."""

    conditions: list[ConditionRead] | None = None


class NativePodGroupRead(Read):
    """A PodGroup."""

    metadata: Meta
    api_version: str = ""
    spec: NativePodGroupSpecRead | None = None
    status: NativePodGroupStatusRead | None = None


def gang(read: NativePodGroupRead) -> Gang:
    """Read a PodGroup."""
    meta, spec, version = read.metadata, read.spec or NativePodGroupSpecRead(), _version(read)
    annotations, conditions = meta.annotations or {}, _conditions(read, version)
    has_started = any((item.type, item.status) == ("Scheduled", "True") for item in conditions)
    priority = _own_priority(spec)
    return Gang(
        key=GangKey(key_of(meta)), uid=meta.uid or key_of(meta), queue=annotations.get(QUEUE) or "default", dialect="native",
        min_member=_minimum(spec.scheduling_policy or NativePolicyRead()), topology=_topology(spec.scheduling_constraints),
        priority_class=spec.priority_class_name or "", own_priority=priority,
        follows_pods=priority is None and not spec.priority_class_name,
        created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"), conditions=conditions,
        phase="Running" if has_started else "Pending", keeps_phase=False, goes_whole=_goes_whole(spec.disruption_mode),
        staleness_grace_seconds=staleness_grace(annotations), annotations=annotations, version=version, needs_one_scheduler=True,
    )  # fmt: skip


def _version(read: NativePodGroupRead) -> str:
    version = read.api_version.rpartition("/")[2]
    if version not in SCHEDULED:
        known = " or ".join(f"scheduling.k8s.io/{name}" for name in SCHEDULED)
        raise SnapshotError(f"apiVersion: {read.api_version!r} is not one that we read; write {known}")
    return version


def _minimum(policy: NativePolicyRead) -> int:
    """Return how many members start together; pods of a basic group start one by one."""
    if (policy.basic is None) == (policy.gang is None):
        what = "no policy" if policy.basic is None else "two policies"
        raise SnapshotError(f"spec.schedulingPolicy: {what}; write either 'basic: {{}}' or 'gang: {{minCount: 4}}'")
    if policy.gang is None:
        return 1
    count = policy.gang.min_count
    if count is None or count < 1:
        what = "missing" if count is None else f"{count} is too small"
        raise SnapshotError(f"spec.schedulingPolicy.gang.minCount: {what}; write how many pods start together, 1 or more")
    return count


def _topology(read: ConstraintsRead | None) -> TopologyConstraint | None:
    labels = (read.topology or []) if read is not None else []
    if not labels:
        return None
    if len(labels) > 1:
        raise SnapshotError(f"spec.schedulingConstraints.topology: {len(labels)} entries; keep one of them")
    if not labels[0].key:
        where = "spec.schedulingConstraints.topology[0].key"
        raise SnapshotError(f"{where}: missing; write the node label of which all members share a value")
    return TopologyConstraint(required_level=labels[0].key)


def _goes_whole(mode: str | dict[str, Any] | None) -> bool:  # Any: as above
    modes = (mode,) if isinstance(mode, str) else tuple(mode or ())
    if not modes:
        return False
    if len(modes) > 1 or modes[0] not in (*SINGLE, *WHOLE):
        found = " and ".join(map(repr, modes))
        right = "'Pod' or 'PodGroup' in v1alpha2, 'single: {}' or 'all: {}' in v1beta1"
        raise SnapshotError(f"spec.disruptionMode: {found} is unknown; write {right}")
    return modes[0] in WHOLE


def _own_priority(spec: NativePodGroupSpecRead) -> int | None:
    """Return the number that admission resolved; a 0 without a class only says that nobody named one."""
    if spec.priority is None or (not spec.priority and not spec.priority_class_name):
        return None
    if spec.priority > HIGHEST_PRIORITY:
        raise SnapshotError(f"spec.priority: {spec.priority} is too high; write {HIGHEST_PRIORITY} or less")
    return spec.priority


def _conditions(read: NativePodGroupRead, version: str) -> tuple[Condition, ...]:
    """Read conditions: Kubernetes has one that is True or False once scheduled, the model has Scheduled and Unschedulable."""
    found = map(condition, (read.status or NativePodGroupStatusRead()).conditions or ())
    return tuple(_inside(item) if item.type == SCHEDULED[version] else item for item in found)


def _inside(item: Condition) -> Condition:
    kind = "Scheduled" if item.status == "True" else "Unschedulable"
    return Condition(kind, "True", item.reason, item.message, item.since)
