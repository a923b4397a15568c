"""Every code that a verdict, a gang, a condition or an event may have, with its cause, what helps, and an example of the sentence.

    python -m phalanx.explain.reasons > docs/reference/reasons.md

writes the page. What is wrong with nodes is in `node_reasons.py`.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from phalanx.explain.eviction_reasons import EVICTIONS
from phalanx.explain.node_reasons import ALL_NODE_REASONS, INSUFFICIENT, NO_NODE_FITS, SCATTERED, TOO_LARGE, NodeReason
from phalanx.explain.recorded_reasons import CONDITIONS, EVENTS


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """A code: who gives it, what it means, what helps, and how the sentence may read."""

    code: str
    source: str
    cause: str
    remedy: str
    example: str = ""


VERDICTS = (
    ReasonEntry(
        "BackedOff",
        "session",
        "The group failed in this node pool and tries each pool once (`schedulingBackoff`).",
        "Give the PodGroup the label of another node pool, or remove it and create it again.",
        "it failed in node pool 'a100' and tries each pool once (schedulingBackoff 1); give it the label of another pool",
    ),
    ReasonEntry(
        "BetterOffThanVictim",
        "`proportion` of kai",
        "With these resources its queue would have a larger part of its fair share than the queue of the victims.",
        "Wait for free resources, or raise the quota or weight of the queue.",
        "queue 'a' would be better off than queue 'b', which loses to it",
    ),
    ReasonEntry(
        "BindBackoff",
        "`bindbackoff`",
        "A bind of this gang failed recently; it is retried later.",
        "Check the node and the admission policies that rejected the bind; it is retried by itself.",
        "bind to gpu-1 failed 3 times, tried again in 2 s (2026-01-05T09:00:02Z)",
    ),
    ReasonEntry(
        "ClaimDeleted",
        "`predicates`",
        "A device claim of the pod is being deleted.",
        "Wait until the claim is gone, then create it again.",
        "device claim 'gpus' is being deleted",
    ),
    ReasonEntry(
        "ClaimInUse",
        "`predicates`",
        "A device claim of the pod is used by the maximum number of pods.",
        "Use a claim of its own for each pod (`resourceClaimTemplateName`).",
        "a device claim is used by as many pods as it may be",
    ),
    ReasonEntry(
        "ClaimNotFound",
        "`predicates`",
        "A device claim of the pod does not exist, or has not been created from its template yet.",
        "Create the ResourceClaim, or correct its name in the pod.",
        "device claim 'ml/gpus' does not exist",
    ),
    ReasonEntry(
        "ClaimOfOtherQueue",
        "`nodetypes`",
        "A shared device claim of the pod belongs to another queue.",
        "Give the claim the label of this queue, or use a claim of its own.",
        "claim gpus is shared and not labelled kai.scheduler/queue=research",
    ),
    ReasonEntry(
        "ClusterOverused",
        "`overcommit`",
        "With this gang more would be admitted than the cluster has, including overcommitment.",
        "Wait for admitted gangs to end, or raise `overcommit-factor`.",
        "not admitted: with what is admitted already it asks for more than 1.2 times the cluster's nvidia.com/gpu",
    ),
    ReasonEntry(
        "DeviceClassNotFound",
        "`predicates`",
        "A device claim names a device class that does not exist.",
        "Install the driver of the devices, or correct the name of the class.",
        "device class 'gpu.example.com' does not exist",
    ),
    ReasonEntry(
        "ExtenderFailed",
        "`extender`",
        "The extender did not answer, and is not ignorable.",
        "Check the extender, or make it `ignorable`.",
        "the extender did not answer: connection refused",
    ),
    ReasonEntry(
        "ExtenderRefused",
        "`extender`",
        "The extender rejected it.",
        "The message of the extender says what it wants.",
        "the extender says that queue research has all it should have",
    ),
    ReasonEntry(
        "GatedMembers",
        "`coscheduling`",
        "The gang would hold resources, and members that it needs have a scheduling gate.",
        "Wait for whoever removes the gates.",
        "1 of 3 tasks is held back by the scheduling gate 'example.com/quota'",
    ),
    ReasonEntry(
        "GroupBackoff",
        "`coscheduling`",
        "The gang failed, or its timeout expired, recently; it is retried later.",
        "Wait; it is tried again by itself.",
        "it failed and pauses, tried again in 8 s",
    ),
    ReasonEntry(
        "Invalid",
        "session",
        "The group is invalid, or contradicts another one; the message says how. Other groups are not affected.",
        "Correct the group as the message says.",
        "spec.minMember: -2 is negative; write 0 or more",
    ),
    ReasonEntry(
        "LegacyMig",
        "`nodetypes`",
        "The pod requests MIG devices by an annotation that is no longer supported.",
        "Request the resource `nvidia.com/mig-...` instead of the annotation.",
        "pods that ask for MIG devices by annotation are not placed",
    ),
    ReasonEntry(
        "LevelNotFound",
        "`topology`",
        "The group names a level that its Topology does not have.",
        "Name a level of the Topology, or add the level to it.",
        "topology racks has no level 'block'; its levels are: zone, rack",
    ),
    ReasonEntry(
        "MinResources",
        "`coscheduling`",
        "The group needs more in total (`minResources`) than all nodes together have free, or have.",
        "Lower `minResources`, or add nodes.",
        "its minResources ask for 4 nvidia.com/gpu in all, there are 2",
    ),
    ReasonEntry(
        "NamespaceQuotaExceeded",
        "`resourcequota`",
        "The gang exceeds a ResourceQuota of the namespace.",
        "Raise the ResourceQuota, or wait for pods of the namespace to end.",
        "resource quota gpus has 0 of 2 requests.nvidia.com/gpu used; 4 more do not fit",
    ),
    ReasonEntry(
        "NoHyperNodes",
        "`network-topology-aware`",
        "The group has a hard network constraint, and no HyperNode exists (`unresolvedTier: refuse`).",
        "Create HyperNodes, or remove the constraint.",
        "spec.networkTopology is hard, but no HyperNode exists; create HyperNodes",
    ),
    ReasonEntry(
        "NoShard",
        "session",
        "The group is in a node pool that belongs to no SchedulingShard.",
        "Give the PodGroup the label of a node pool that has a SchedulingShard.",
        "no SchedulingShard takes node pool 'a100'; give it the label of a pool that has one",
    ),
    ReasonEntry(
        "NoVictims",
        "actions that evict",
        "No pods are evicted for the gang; the message has the cause, [one of these](#evictions).",
        "Wait for pods to end; the stage evictions of `phalanx explain` says who is protected and why.",
        "no victims (gangpreempt: ml/bert is not preemptable)",
    ),
    ReasonEntry(
        "NobodyAsked",
        "session",
        "No plugin of the configuration says that pods may be evicted for a gang, so none are.",
        "Use a profile with a plugin that allows evictions, such as `gang` or `priority`.",
        "ml/llama stays, since no plugin of the configuration lets anybody go",
    ),
    ReasonEntry(
        "NodeAffinityConflict",
        "`predicates`",
        "The node affinity of the pod names nodes that exclude each other.",
        "Correct the node affinity: its terms name different nodes that must all match.",
        "its node affinity names nodes that exclude each other",
    ),
    ReasonEntry(
        "NonPreemptibleOverQuota",
        "`proportion` of kai",
        "A job that cannot be preempted would exceed the quota of its queue.",
        "Let the job be preemptible, or raise the quota of the queue.",
        "over quota: in jobs that cannot be preempted queue 'a' has 4 of its quota of 4 GPUs, 1 more wanted; a "
        "preemptible job may go over it",
    ),
    ReasonEntry(
        "NotEnoughFresh",
        "`gang`",
        "Fewer members wait than must start together, and those that run do not count (`only-waiting`).",
        "Create the missing members.",
        "1 of the 3 members that must start together are there; those that run do not count",
    ),
    ReasonEntry(
        "NotEnoughPodsOfTask",
        "`gang`",
        "A role, or a policy of sub-groups, has fewer pods than it needs.",
        "Create the missing pods of the role, or lower its minimum.",
        "too few pods (worker: 1 of 2)",
    ),
    ReasonEntry(
        "NotEnoughTasks",
        "`gang`, `tdm`",
        "Fewer members exist, or have a node, than the gang needs.",
        "Create the missing pods, or lower `minMember`.",
        "only 2 of the 3 pods it needs are there",
    ),
    ReasonEntry(
        "NotStarving",
        "`gang`, `priority`, `tdm`",
        "The gang has its minimum, so no pods are evicted for it.",
        "Nothing: it has its minimum.",
    ),
    ReasonEntry(
        "OverFairShare",
        "`proportion` of kai",
        "With these resources its queue would exceed its fair share, so no pods are evicted for it.",
        "Wait for free resources, or raise the quota or weight of the queue.",
        "may not reclaim: queue 'a' would have more than its fair share (5 of its share of 5 GPUs, 1 more wanted)",
    ),
    ReasonEntry(
        "OverLimit",
        "`proportion` of kai",
        "The queue, or one above it, would exceed its limit.",
        "Wait for jobs of the queue to end, or raise its limit.",
        "over limit: queue 'a' has 8 of its limit of 8 GPUs, 1 more wanted",
    ),
    ReasonEntry(
        "Preemptable",
        "`tdm`",
        "No pods are evicted for a preemptable gang.",
        "Make the gang not preemptable.",
        "a preemptable gang takes no room from others",
    ),
    ReasonEntry(
        "QueueDepth",
        "actions of kai",
        "The action tried the maximum number of jobs of its queue before it (`queueDepthPerAction`).",
        "Wait for jobs ahead of it in the queue, or raise `queueDepthPerAction`.",
        "not tried by allocate: it takes 5 of the jobs of queue 'research' (queueDepthPerAction) and others come first",
    ),
    ReasonEntry(
        "QueueNotFound",
        "session",
        "The group names a queue that does not exist.",
        "Create the queue, or correct its name in the group.",
        "queue 'researchers' does not exist",
    ),
    ReasonEntry(
        "QueueNotLeaf",
        "`capacity`",
        "The queue has queues below it and accepts no gangs itself.",
        "Use one of the queues below it.",
        "queue research has queues below it; submit to one of them",
    ),
    ReasonEntry(
        "QueueNotOpen",
        "`capacity`, `proportion`",
        "The queue is closed, or being closed.",
        "Open the queue, or use another one.",
        "queue 'research' is Closed and takes no new work",
    ),
    ReasonEntry(
        "QueueOverused",
        "`proportion`",
        "The queue has all it deserves.",
        "Wait for other queues to need less, or raise the weight of the queue.",
        "queue default has all it deserves (8 of 8 cpu)",
    ),
    ReasonEntry(
        "QueueQuotaExceeded",
        "`capacity`, `proportion`",
        "The queue, or one above it, has reached what it may use or deserves.",
        "Wait for gangs of the same queue to end, or raise its `capability` or `deserved`.",
        "queue 'research' then has 8 of the 8 nvidia.com/gpu it may use, 1 more wanted",
    ),
    ReasonEntry(
        "QueueTreeInvalid",
        "`capacity`",
        "The queue has no chain of parents to the root, or has both queues below it and gangs of its own.",
        "Correct the parents of the queue.",
        "queue lab has queues below it and gangs of its own; move the gangs to a leaf queue",
    ),
    ReasonEntry(
        "ScheduleTimeout",
        "`coscheduling`",
        "The gang did not get its minimum before its timeout; nothing is kept for it.",
        "Raise its timeout, or free resources.",
        "not whole within 30 s; it is tried again in the next session",
    ),
    ReasonEntry(
        "SchedulerFault",
        "session",
        "The scheduler itself failed on this gang, and leaves it out until the gang changes or a minute has passed. "
        "Other gangs are not affected. The log at `-v 5` shows where.",
        "Please report it, with the log at `-v 5`.",
        "the scheduler failed on this gang and leaves it out (KeyError: 'x'); please report it",
    ),
    ReasonEntry(
        "SeveralSchedulers",
        "session",
        "Pods of a PodGroup of Kubernetes name different schedulers.",
        "Give all pods of the group the same `schedulerName`.",
        "its pods name several schedulers, 'a' and 'b'; write the same spec.schedulerName in all of them",
    ),
    ReasonEntry(
        "Stale",
        "`heal`",
        "The gang runs with fewer members than it needs; the rest is evicted when its grace period ends.",
        "Free resources for the lost members, or lengthen the grace period.",
        "2 of 4 tasks run, below the minimum of 3 for 35 s",
    ),
    ReasonEntry(
        "StorageClassNotFound",
        "`predicates`",
        "A volume claim of the pod names a storage class that does not exist.",
        "Create the StorageClass, or correct its name in the claim.",
        "storage class 'fast' of a volume claim does not exist",
    ),
    ReasonEntry(
        "TierMissing",
        "`network-topology-aware`",
        "The group has a hard network constraint that names no tier (`unresolvedTier: refuse`).",
        "Name a tier: `highestTierAllowed` or `highestTierName`.",
        "spec.networkTopology is hard, but names no tier; write highestTierAllowed or highestTierName, or mode: soft",
    ),
    ReasonEntry(
        "TierNotFound",
        "`network-topology-aware`",
        "The group names a tier that no HyperNode has (`unresolvedTier: refuse`); the message has the names that exist.",
        "Name a tier that HyperNodes have.",
        "spec.networkTopology.highestTierName: no HyperNode has the tier name 'rak'; none has a tierName",
    ),
    ReasonEntry(
        "TopologyNotFound",
        "`topology`",
        "The group names a Topology that does not exist.",
        "Create the Topology, or correct its name in the group.",
        "Requested topology racks does not exist",
    ),
    ReasonEntry(
        "UnboundVolumeClaim",
        "`predicates`",
        "A volume claim of the pod has no volume yet, and its class does not wait for the first consumer.",
        "Check the provisioner of the storage class, or use a class with `volumeBindingMode: WaitForFirstConsumer`.",
        "volume claim 'data' is not bound to a volume yet",
    ),
    ReasonEntry(
        "VictimWithinShare",
        "`proportion` of kai",
        "The queue of the victims has no more than its share.",
        "Wait for free resources.",
        "queue 'b' holds no more than it can count on (5 of 5 GPUs)",
    ),
    ReasonEntry(
        "VolumeClaimDeleted",
        "`predicates`",
        "A volume claim of the pod is being deleted.",
        "Wait until the claim is gone, then create it again.",
        "volume claim 'data' is being deleted",
    ),
    ReasonEntry(
        "VolumeClaimNotFound",
        "`predicates`",
        "A volume claim of the pod does not exist.",
        "Create the PersistentVolumeClaim, or correct its name in the pod.",
        "volume claim 'data' does not exist",
    ),
    ReasonEntry(
        "VolumeNotFound",
        "`predicates`",
        "The volume that a claim is bound to does not exist.",
        "Restore the volume, or delete the claim and create it again.",
        "volume 'pv-1' of a claim does not exist",
    ),
)
"""By code."""

LACKS = (
    ReasonEntry(
        INSUFFICIENT,
        "nodes",
        "Nodes that suit the pod have too little free of a resource.",
        "Wait for pods to end, add nodes, or ask for less.",
        "4 lack nvidia.com/gpu (0 of 32 are free, 2 needed)",
    ),
    ReasonEntry(
        SCATTERED,
        "nodes",
        "Enough of the resource is free, but not on one node.",
        "Ask for less per pod and use more pods, or let `consolidation` or `shuffle` make room.",
        "4 lack nvidia.com/gpu (4 of 32 are free, at most 1 per node)",
    ),
    ReasonEntry(
        TOO_LARGE,
        "nodes",
        "No node that suits the pod is that large, even when it is empty.",
        "Ask for less per pod, or add larger nodes.",
        "no node is that large: the largest has 8 nvidia.com/gpu",
    ),
    ReasonEntry(
        NO_NODE_FITS,
        "nodes",
        "Nodes refuse the pod for a reason without a code, such as that of an extender.",
        "The reason is in the sentence.",
    ),
)
"""What nodes lack."""

_HEAD = """# Reason codes

Every code that Phalanx gives for a refusal, a condition or an event. The page is made from the code: `python -m
phalanx.explain.reasons`.

## Verdicts

A verdict has the plugin, a code, numbers and a message. The sentence in `why` is made from verdicts; the codes of
gangs that `allocate` skipped are in the trace of a session (`-v 4`).
"""
_EVICTIONS = """## Evictions

Why nobody is evicted for a gang, and what protects those that run; see
[why did my urgent job not preempt](../explanation/evictions.md#why-did-my-urgent-job-not-preempt).
"""
_NODES = """## Nodes

Why nodes do not suit a pod. The code of what has to change first is the reason code of the gang; `phalanx explain`
shows the others.
"""
_FILTERS = """Filters refuse nodes with the text of kube-scheduler, which the conditions of pods repeat. The sentence in `why` names
the thing instead: the taint, the label, the port and the pod that has it, the volume. A node that fails the node
affinity, not the selector, has the code `NodeAffinityMismatch`.
"""
_OTHERS = """Two texts have the name of the thing in them: those of a revocable zone that is closed (`RevocableZone`), and of nodes
without the label value of the group (`GroupLabel`).
"""
_CONDITIONS = """## Conditions

The conditions of groups and pods, in the wording of their dialect.
"""
_KAI = """KAI's PodGroup also has the verdicts `OverLimit`, `NonPreemptibleOverQuota`, `TopologyNotFound`, `LevelNotFound`,
`NoShard` and `BindBackoff`.
"""
_WITH_REMEDY = ("cause", "what helps", "example")


def page() -> str:
    """Return the page of reason codes."""
    verdicts = ((item.code, item.source, item.cause, item.remedy, item.example) for item in VERDICTS)
    lacks = ((item.code, item.cause, item.remedy, item.example) for item in LACKS)
    filters = _table(("code", "reason", "in our words", "what helps"), map(_node_row, ALL_NODE_REASONS))
    recorded = [_table(("code", where, "meaning"), rows) for where, rows in (("on", CONDITIONS), ("about", EVENTS))]
    parts = [
        _HEAD, _table(("code", "from", *_WITH_REMEDY), verdicts), _EVICTIONS, _table(("code", "from", *_WITH_REMEDY), EVICTIONS),
        _NODES, _table(("code", *_WITH_REMEDY), lacks), _FILTERS, filters, _OTHERS,
        _CONDITIONS, recorded[0], _KAI, "## Events\n", recorded[1],
    ]  # fmt: skip
    return "\n".join(parts)


def _node_row(item: NodeReason) -> tuple[str, ...]:
    return item.code, f"`{item.reason}`", item.many, item.remedy


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"{line}\n" for line in _lines(titles, rows))


def _lines(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{' --- |' * len(titles)}"
    for code, *cells in rows:
        yield f"| `{code}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
