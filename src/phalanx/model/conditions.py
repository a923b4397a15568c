"""Conditions of pods that several write or read."""

from collections.abc import Mapping
from types import MappingProxyType

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE, UNDETERMINED = "Unschedulable", "Undetermined"
"""Reasons of it while a pod has no node: autoscalers bring nodes because of the first. The second, Volcano's, moves nobody."""
NODES_REQUESTED = "NodesRequested"
"""In the place of Unschedulable for a pod whose nodes a ProvisioningRequest brings: else its room would be counted twice."""
CONSUMES = "autoscaling.x-k8s.io/consume-provisioning-request"
"""Annotation of such a pod: the name of the request."""
DISRUPTION_TARGET = "DisruptionTarget"
BY_EVICTION = "EvictionByEvictionAPI"
PREEMPTED = frozenset({"PreemptionByScheduler", BY_EVICTION})
"""Why a pod with this condition goes: Volcano and kube-scheduler preempt by deletion, Phalanx through the eviction API."""
IS_GATED: Mapping[str, str] = MappingProxyType({
    "type": POD_SCHEDULED, "status": "False", "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
})  # fmt: skip
"""What the API server says of a pod behind a gate."""
NOT_TOLD: Mapping[str, str] = MappingProxyType({"type": POD_SCHEDULED, "$patch": "delete"})
"""In a strategic merge patch: removes the condition."""


def cleared(*, is_gated: bool) -> dict[str, str]:
    """Return what to patch over a condition that says why a pod waits, once it does not wait for that any more."""
    return dict(IS_GATED if is_gated else NOT_TOLD)
