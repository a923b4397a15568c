"""Reads pods into tasks: requests, constraints on nodes, status."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import msgspec

from phalanx.dialects import schema
from phalanx.dialects.bind_requests import failed_binds
from phalanx.dialects.field_values import integer, key_of, label_selector, node_term, node_terms, seconds
from phalanx.dialects.group_references import references_of
from phalanx.dialects.reading import read_as
from phalanx.dialects.task_classes import TaskClasses
from phalanx.errors import SnapshotError
from phalanx.model.conditions import DISRUPTION_TARGET, POD_SCHEDULED, PREEMPTED
from phalanx.model.quantity import LARGEST
from phalanx.model.resources import CPU, MEMORY, PODS, Resources, add, read_resources
from phalanx.model.shape import (
    AffinityTerm,
    ClaimUse,
    ContainerLimits,
    GpuShare,
    HostPort,
    NodePreference,
    PodAffinity,
    Shape,
    SpreadConstraint,
    Toleration,
)
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.quorum import are_same_but_for_minima, minima_of

GPU_FRACTION, GPU_MEMORY, GPU_DEVICES = "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"
GPU_CONTAINER = "gpu-fraction-container-name"
"""Annotation that names the container which uses a shared GPU; the first one does otherwise."""
GPU_GROUP = "runai-gpu-group"
RESERVATION = ("app", "kai-resource-reservation")
"""The label of pods that keep a shared GPU."""
ROLE = "volcano.sh/task-spec"
TASK_GROUP = "yunikorn.apache.org/task-group-name"
PLACEHOLDER = "yunikorn.apache.org/placeholder"
REPLACES = "phalanx.dev/replaces"
"""Annotation of a pod: the placeholder whose place it takes."""
TASK_PRIORITY = "volcano.sh/task-priority"
PREEMPTABLE = "volcano.sh/preemptable"
STRATEGY = "volcano.sh/resource-strategy"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
PLACEMENT = (
    STRATEGY,
    "volcano.sh/numa-topology-policy",
    "volcano.sh/vgpu-mode",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
)
"""How annotations that placement reads begin."""
LASTING = ("uid", "creationTimestamp", "labels", "ownerReferences")
"""Metadata of a pod that is read, besides its name, its annotations and its deletion."""
DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES = 100, 200 * 1024 * 1024

VolumeSlots = Callable[[str, tuple[str, ...]], Resources]
"""Given a namespace and volume claims: the volume slots a pod takes on its node."""


class GangMembership(NamedTuple):
    """The gang of a pod, the dialect and the group by which it is in it, and its role in a gang group, if it has one."""

    gang: GangKey | None = None
    dialect: str = ""
    group: str = ""
    role: str = ""


def first_membership(pod: schema.Pod) -> GangMembership:
    """Return the first group that a pod names, whatever groups there are."""
    group = next(iter(references_of(pod.metadata, pod.spec)), None)
    return GangMembership() if group is None else GangMembership(GangKey(group.group), group.dialect, group.group)


def own_role(annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Return the role that a pod says itself, as Volcano or YuniKorn write it."""
    return annotations.get(ROLE) or labels.get(ROLE) or annotations.get(TASK_GROUP) or ""


class PodReader:
    """Reads pods; tasks that placement cannot tell apart share one Shape object."""

    def __init__(self, volume_slots: VolumeSlots, membership: Callable[[schema.Pod], GangMembership] = first_membership) -> None:
        """Start with no classes of tasks; `membership` finds the gang of a pod."""
        self._volume_slots, self._membership = volume_slots, membership
        self.classes = TaskClasses()

    def read(self, document: Mapping[str, Any]) -> Task:
        """Return the task of a pod."""
        pod = read_as(document, schema.Pod)
        meta, spec, status = pod.metadata, pod.spec, pod.status or schema.PodStatus()
        annotations, labels = _texts(document, "annotations"), _texts(document, "labels")
        member = self._membership(pod)
        shape = self._shape(document, meta, status)
        self.classes.note_pod(key_of(meta), shape)
        devices, is_reservation = _gpu_groups(labels), labels.get(RESERVATION[0]) == RESERVATION[1]
        return Task(
            key=TaskKey(key_of(meta)), uid=meta.uid or key_of(meta), shape=shape,
            gang=member.gang, dialect=member.dialect, group=member.group, role=member.role or own_role(annotations, labels),
            priority=_priority(spec, annotations), rank=spec.priority or 0,
            status=_status(status.phase, is_leaving=bool(meta.deletion_timestamp), has_node=bool(spec.node_name)),
            node=spec.node_name or "",
            created=seconds(meta.creation_timestamp, where="metadata.creationTimestamp"),
            is_preemptable=(annotations.get(PREEMPTABLE) or labels.get(PREEMPTABLE) or "true").lower() != "false",
            is_gated=bool(spec.scheduling_gates), gates=tuple(gate.name for gate in spec.scheduling_gates or ()),
            nominated_node=status.nominated_node_name or "",
            may_preempt=spec.preemption_policy != "Never", priority_class=spec.priority_class_name or "",
            scheduler=spec.scheduler_name or "",
            started=seconds(status.start_time, where="status.startTime"), scheduled=_scheduled(status),
            finished=_finished(status), leaving_since=_leaving_since(meta),
            is_disrupted=_is_disrupted(status), qos=status.qos_class or _likely_qos(shape), labels=labels, annotations=annotations,
            gpu_groups=() if is_reservation else devices, reserved_gpu=devices[0] if is_reservation and devices else "",
            failed_binds=failed_binds(annotations), is_placeholder=annotations.get(PLACEHOLDER) == "true",
            replaces=annotations.get(REPLACES, ""), owners=_owners(meta), minima=minima_of(annotations),
            has_controller=any(owner.controller for owner in meta.owner_references or ()), deadline=_deadline(document["spec"]),
        )  # fmt: skip

    def read_on(self, task: Task, document: Mapping[str, Any]) -> Task:
        """Return the task of a pod that `differs_only_in_progress` from the one that was read before."""
        meta = read_as(document["metadata"], schema.Leaving)
        status = read_as(document.get("status") or {}, schema.PodStatus)
        node = document["spec"].get("nodeName") or ""
        return replace(
            task, status=_status(status.phase, is_leaving=bool(meta.deletion_timestamp), has_node=bool(node)), node=node,
            nominated_node=status.nominated_node_name or "", started=seconds(status.start_time, where="status.startTime"),
            scheduled=_scheduled(status), finished=_finished(status), leaving_since=_leaving_since(meta),
            is_disrupted=_is_disrupted(status), qos=status.qos_class or _likely_qos(task.shape),
            minima=minima_of(document["metadata"].get("annotations") or {}),
        )  # fmt: skip

    def _shape(self, document: Mapping[str, object], meta: schema.Meta, status: schema.PodStatus) -> Shape:
        """Return the class of a pod; one that is written like another is not read again."""
        spec, namespace = _spec_of(document), meta.namespace or "default"
        claims, devices = _volume_claims(spec, meta.name), _resource_claims(spec, status)
        slots = self._volume_slots(namespace, claims) if claims else {}
        spec.volumes = None  # claims are read, and names of other volumes do not count
        text = (
            namespace, sorted(self.classes.labels_that_count(namespace, meta.labels or {}).items()), _own_labels(spec, meta), spec,
            slots, devices, claims, sorted(_placement_annotations(meta).items()), _is_revocable(meta), _gpu_share(meta),
        )  # fmt: skip
        return self.classes.of_text(msgspec.json.encode(text), lambda: _read_shape(meta, spec, claims, slots, devices))


def _texts(document: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """Return labels or annotations as the document has them: they were checked, and a copy for every pod would fill the memory."""
    found: Mapping[str, str] | None = document["metadata"].get(name)
    return found or {}


def _deadline(spec: Mapping[str, Any]) -> float:
    """Return for how many seconds a pod may run; not part of its shape, as no node cares."""
    seconds = spec.get("activeDeadlineSeconds")
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else inf


def _owners(meta: schema.Meta) -> str:
    return ",".join(sorted(f"{meta.namespace or 'default'}/{owner.name}" for owner in meta.owner_references or ()))


def _priority(spec: schema.PodSpec, annotations: Mapping[str, str]) -> int:
    if TASK_PRIORITY in annotations:
        return integer(annotations[TASK_PRIORITY], where=f"metadata.annotations[{TASK_PRIORITY!r}]")
    return 1 if spec.priority is None else spec.priority


def differs_only_in_progress(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether only node, status and deletion of a pod have changed, and the minima that it was bound with."""
    old, new = before["metadata"], after["metadata"]
    if before is after or any(old.get(name) != new.get(name) for name in LASTING):
        return False
    if not are_same_but_for_minima(old.get("annotations"), new.get("annotations")):
        return False
    former, latter = before["spec"], after.get("spec")
    if former is latter or not isinstance(latter, Mapping):
        return former is latter
    return all(former.get(name) == latter.get(name) for name in {*former, *latter} if name != "nodeName")


def _status(phase: str | None, *, is_leaving: bool, has_node: bool) -> Status:
    phase = phase or "Pending"
    if phase in ("Running", "Pending") and is_leaving:
        return Status.RELEASING
    if phase == "Pending":
        return Status.BOUND if has_node else Status.PENDING
    return {"Running": Status.RUNNING, "Succeeded": Status.SUCCEEDED, "Failed": Status.FAILED}.get(phase, Status.UNKNOWN)


def scheduled_at(pod: Mapping[str, Any]) -> float:
    """Return when a pod was given its node; 0 when it does not say."""
    return _scheduled(read_as(pod.get("status") or {}, schema.PodStatus))


def _scheduled(status: schema.PodStatus) -> float:
    stamps = (part.last_transition_time for part in status.conditions or () if (part.type, part.status) == (POD_SCHEDULED, "True"))
    return seconds(next(stamps, None), where="status.conditions[PodScheduled].lastTransitionTime")


def _is_disrupted(status: schema.PodStatus) -> bool:
    found = next((part for part in status.conditions or () if part.type == DISRUPTION_TARGET), None)
    return found is not None and found.status == "True" and found.reason in PREEMPTED


def _finished(status: schema.PodStatus) -> float:
    """Return when the last container ended; containers that still run do not count."""
    states = [part.state.terminated for part in status.container_statuses or () if part.state is not None]
    where = "status.containerStatuses.state.terminated.finishedAt"
    return max((seconds(ended.finished_at, where=where) for ended in states if ended is not None), default=0.0)


def _leaving_since(meta: schema.Leaving) -> float:
    """Return when the deletion was requested: the timestamp says when its grace period ends."""
    end = seconds(meta.deletion_timestamp, where="metadata.deletionTimestamp")
    return max(end - (meta.deletion_grace_period_seconds or 0), 0.0)


def _likely_qos(shape: Shape) -> str:
    if shape.is_guaranteed:
        return "Guaranteed"
    return "BestEffort" if shape.is_best_effort else "Burstable"


def _is_revocable(meta: schema.Meta) -> bool:
    """Tell whether the pod may use any revocable zone; it says so itself, or by being explicitly preemptable."""
    annotations = meta.annotations or {}
    if REVOCABLE_ZONE in annotations:
        return annotations[REVOCABLE_ZONE] == "*"
    return annotations.get(PREEMPTABLE, "").lower() == "true"


def _volume_claims(spec: schema.ShapeSpec, pod: str) -> tuple[str, ...]:
    claims = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            claims.append(f"{pod}-{volume.name}")
    return tuple(claims)


def _resource_claims(spec: schema.ShapeSpec, status: schema.PodStatus) -> tuple[ClaimUse, ...]:
    made = {entry.name: entry.resource_claim_name for entry in status.resource_claim_statuses or ()}
    uses = ((claim.name, claim.resource_claim_name or made.get(claim.name) or "") for claim in spec.resource_claims or ())
    return tuple(ClaimUse(name, claim) for name, claim in uses)


def _read_shape(
    meta: schema.Meta, spec: schema.ShapeSpec, claims: tuple[str, ...], slots: Resources, devices: tuple[ClaimUse, ...]
) -> Shape:
    request = pod_request(spec)
    scoring = pod_request(spec, fills_in=True, pod_level=False)
    filled = pod_request(spec, fills_in=True)
    level = _pod_level(spec)
    booked = {name: request.get(name, 0) if level and name in request else filled.get(name, 0) for name in (CPU, MEMORY)}
    affinity = spec.affinity or schema.Affinity()
    nodes = affinity.node_affinity or schema.NodeAffinity()
    containers = [*(spec.containers or ()), *(spec.init_containers or ())]
    return Shape(
        namespace=meta.namespace or "default", labels=meta.labels or {}, request={**request, **slots, PODS: 1},
        scoring_request=(scoring.get(CPU, 0), scoring.get(MEMORY, 0)), booked_request=(booked[CPU], booked[MEMORY]),
        node_selector=spec.node_selector or {},
        node_terms=node_terms(nodes.required_during_scheduling_ignored_during_execution),
        node_preferences=tuple(
            NodePreference(item.weight, node_term(item.preference or schema.NodeTerm()))
            for item in nodes.preferred_during_scheduling_ignored_during_execution or ()
        ),
        tolerations=tuple(map(_toleration, spec.tolerations or ())), affinity=_pod_affinity(affinity.pod_affinity),
        anti_affinity=_pod_affinity(affinity.pod_anti_affinity),
        spread=tuple(_spread(item, meta.labels or {}) for item in spec.topology_spread_constraints or ()),
        host_ports=tuple(_host_ports(spec)), images=tuple(container.image for container in containers if container.image),
        containers=len(containers), volume_claims=claims, resource_claims=devices,
        annotations=_placement_annotations(meta), is_revocable=_is_revocable(meta), gpu_share=_gpu_share(meta),
        container_limits=_container_limits(spec),
        is_guaranteed=bool(containers) and all(map(_is_guaranteed, containers)),
    )  # fmt: skip


def _gpu_share(meta: schema.Meta) -> GpuShare | None:
    """Read a request for a part of a GPU; more than a whole device, or nothing of it, is refused."""
    annotations = meta.annotations or {}
    devices = _at_least_one(annotations.get(GPU_DEVICES, "1"), GPU_DEVICES)
    if GPU_FRACTION in annotations:
        portion = _portion(annotations[GPU_FRACTION])
        return GpuShare(portion=portion, devices=devices)
    if GPU_MEMORY in annotations:
        return GpuShare(memory_mib=_at_least_one(annotations[GPU_MEMORY], GPU_MEMORY), devices=devices)
    return None


def _gpu_groups(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the shared devices that a pod is on: one label names one, or there is a label for each."""
    if GPU_GROUP in labels:
        return (labels[GPU_GROUP],)
    return tuple(sorted(value for key, value in labels.items() if key.startswith(f"{GPU_GROUP}/")))


def _at_least_one(text: str, key: str) -> int:
    number = integer(text, where=f"metadata.annotations[{key!r}]")
    if number < 1:
        raise SnapshotError(f"metadata.annotations[{key!r}]: {text!r} is too small; write 1 or more")
    return number


def _portion(text: str) -> float:
    where = f"metadata.annotations[{GPU_FRACTION!r}]"
    try:
        portion = float(text)
    except ValueError:
        raise SnapshotError(f"{where}: {text!r} is not a number; write for example '0.5'") from None
    if not 0 < portion <= 1:
        raise SnapshotError(f"{where}: {text!r} is not a part of one GPU; write a number above 0 and up to 1")
    return portion


def _placement_annotations(meta: schema.Meta) -> dict[str, str]:
    return {key: text for key, text in (meta.annotations or {}).items() if key.startswith(PLACEMENT)}


def _container_limits(spec: schema.ShapeSpec) -> tuple[ContainerLimits, ...]:
    found = []
    for number, container in enumerate(spec.containers or ()):
        limits = (container.resources or schema.ResourceRequirements()).limits
        found.append(tuple(sorted(read_resources(limits, where=f"spec.containers[{number}].resources.limits").items())))
    return tuple(found) if any(found) else ()


def _is_guaranteed(container: schema.Container) -> bool:
    """Tell whether cpu and memory are limited to what is asked for; a limit without a request is a request too."""
    resources = container.resources or schema.ResourceRequirements()
    limits = read_resources(resources.limits, where="resources.limits")
    requests = {**limits, **read_resources(resources.requests, where="resources.requests")}
    return all(limits.get(name, 0) > 0 and limits[name] == requests[name] for name in (CPU, MEMORY))


def _spec_of(document: Mapping[str, object]) -> schema.ShapeSpec:
    try:
        return read_as(document["spec"], schema.ShapeSpec)
    except msgspec.ValidationError as problem:
        raise msgspec.ValidationError(str(problem).replace("`$", "`$.spec", 1)) from problem


def pod_request(spec: schema.ShapeSpec, *, fills_in: bool = False, pod_level: bool = True) -> Resources:
    """Return what a pod asks for: containers and sidecars together, or the peak while it starts, whichever is more.

    `fills_in` gives containers without a request of cpu or memory a small default.
    """
    running: Resources = {}
    total: Resources = {}
    for number, container in enumerate(spec.containers or ()):
        total = add(total, _container_request(container, f"spec.containers[{number}]", fills_in))
    peak: dict[str, int] = {}
    for number, container in enumerate(spec.init_containers or ()):
        own = _container_request(container, f"spec.initContainers[{number}]", fills_in)
        stage = add(running, own)
        if container.restart_policy == "Always":
            running, total = stage, add(total, own)
        peak = _larger(peak, stage)
    request = _larger(total, peak)
    if pod_level:
        request.update(_pod_level(spec))
    return _bounded(add(request, read_resources(spec.overhead, where="spec.overhead")))


def _bounded(request: dict[str, int]) -> Resources:
    for name, amount in request.items():
        if amount > LARGEST:
            raise SnapshotError(f"spec.containers: together they ask for more {name} than any machine has; the limit is {LARGEST}")
    return request


def _container_request(container: schema.Container, where: str, fills_in: bool) -> Resources:
    resources = container.resources or schema.ResourceRequirements()
    request = read_resources(resources.requests, where=f"{where}.resources.requests")
    if fills_in:
        request.setdefault(CPU, DEFAULT_CPU_MILLI)
        request.setdefault(MEMORY, DEFAULT_MEMORY_BYTES)
    return request


def _pod_level(spec: schema.ShapeSpec) -> dict[str, int]:
    level = read_resources((spec.resources or schema.ResourceRequirements()).requests, where="spec.resources.requests")
    return {name: amount for name, amount in level.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}


def _larger(left: Resources, right: Resources) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}


def _toleration(read: schema.TolerationRead) -> Toleration:
    return Toleration(read.key or "", read.operator or "Equal", read.value or "", read.effect or "")


def _pod_affinity(read: schema.PodAffinityRead | None) -> PodAffinity:
    if read is None:
        return PodAffinity()
    weighted = read.preferred_during_scheduling_ignored_during_execution or ()
    return PodAffinity(
        tuple(_affinity_term(term) for term in read.required_during_scheduling_ignored_during_execution or ()),
        tuple(_affinity_term(item.pod_affinity_term or schema.PodTerm(), item.weight) for item in weighted),
    )


def _affinity_term(read: schema.PodTerm, weight: int = 0) -> AffinityTerm:
    return AffinityTerm(
        read.topology_key, label_selector(read.label_selector), frozenset(read.namespaces or ()),
        label_selector(read.namespace_selector), weight,
    )  # fmt: skip


def _own_labels(spec: schema.ShapeSpec, meta: schema.Meta) -> list[str | None]:
    """Return the labels that become part of the pod's own spread constraints."""
    labels, constraints = meta.labels or {}, spec.topology_spread_constraints or ()
    return [labels.get(key) for constraint in constraints for key in constraint.match_label_keys or ()]


def _spread(read: schema.Spread, labels: Mapping[str, str]) -> SpreadConstraint:
    selector = label_selector(read.label_selector)
    if selector is not None:
        selector = selector.plus({key: labels[key] for key in read.match_label_keys or () if key in labels})
    return SpreadConstraint(
        read.topology_key, read.max_skew, read.when_unsatisfiable != "ScheduleAnyway", selector, read.min_domains or 1,
        read.node_affinity_policy != "Ignore", read.node_taints_policy == "Honor",
    )  # fmt: skip


def _host_ports(spec: schema.ShapeSpec) -> Iterable[HostPort]:
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    for container in [*(spec.containers or ()), *sidecars]:
        for port in container.ports or ():
            if port.host_port:
                yield HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")
