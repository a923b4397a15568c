"""Why a node does not suit a task: the reasons of filters, each with its code, our phrase and what to change.

The reasons are those of kube-scheduler ("node(s) had untolerated taint(s)"): tools match on them and conditions repeat them. Here
each known reason gets a code, for metrics and `explain`, and a phrase that follows a number of nodes. An unknown reason, such as
that of an extender, has the code `NoNodeFits` and stays as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

NO_NODE_FITS = "NoNodeFits"
INSUFFICIENT, SCATTERED, TOO_LARGE = "InsufficientResources", "ScatteredResources", "TooLarge"
NOT_READY, CORDONED, TOO_MANY_PODS, VOLUME_LIMIT = "NodeNotReady", "NodeCordoned", "TooManyPods", "VolumeLimit"
SELECTOR, AFFINITY, TAINT = "NodeSelectorMismatch", "NodeAffinityMismatch", "UntoleratedTaint"


@dataclass(frozen=True, slots=True)
class NodeReason:
    """A reason of a filter: its code, the phrase for one node and for several, and what helps."""

    reason: str
    code: str
    one: str
    many: str
    remedy: str = ""

    def phrase(self, count: int) -> str:
        """Return the phrase that follows so many nodes."""
        return self.one if count == 1 else self.many


_MIG = "Ask for the MIG profile that the nodes offer, or for nodes that give whole GPUs."
_NODE_GROUP = "Let the queue name the node group (`affinity.nodeGroupAffinity`), or use another queue."
_NUMA = "Use nodes whose kubelet has the NUMA policy that the pod asks for."
_VOLUME = "Use a volume that these nodes reach, or nodes that reach the volume."

ALL_NODE_REASONS = (
    NodeReason("node(s) had untolerated taint(s)", TAINT,
               "has a taint that is not tolerated", "have a taint that is not tolerated",
               "Add the toleration to the pods, or remove the taint from the nodes."),
    NodeReason("node(s) didn't match Pod's node affinity/selector", SELECTOR,
               "does not match the node selector or affinity", "do not match the node selector or affinity",
               "Correct the selector or affinity, or label the nodes."),
    NodeReason("node(s) were unschedulable", CORDONED, "is cordoned", "are cordoned",
               "Uncordon the nodes: `kubectl uncordon NODE`."),
    NodeReason("node(s) were not ready", NOT_READY, "is not ready", "are not ready", "Check the kubelets of these nodes."),
    NodeReason("node(s) pod number exceeded", TOO_MANY_PODS, "runs as many pods as it may", "run as many pods as they may",
               "Wait for pods to end, raise `maxPods` of the kubelets, or add nodes."),
    NodeReason("node(s) didn't match pod affinity rules", "PodAffinityMismatch",
               "is not near the pods it wants", "are not near the pods it wants",
               "Start the pods that the affinity is about first, or correct its selector."),
    NodeReason("node(s) didn't match pod anti-affinity rules", "PodAntiAffinityMismatch",
               "has a pod that its anti-affinity excludes", "have pods that its anti-affinity excludes",
               "Use more nodes, wait for these pods to end, or make the term a preference."),
    NodeReason("node(s) didn't satisfy existing pods anti-affinity rules", "ExistingAntiAffinity",
               "is near a pod that avoids it", "are near a pod that avoids it",
               "Use more nodes, or change the anti-affinity of the pods that are there."),
    NodeReason("node(s) didn't match pod topology spread constraints", "TopologySpread",
               "would spread it too unevenly", "would spread it too unevenly",
               "Raise `maxSkew`, add nodes to the domains with few pods, or use `whenUnsatisfiable: ScheduleAnyway`."),
    NodeReason("node(s) didn't match pod topology spread constraints (missing required label)", "TopologySpread",
               "has no label that its spread needs", "have no label that its spread needs",
               "Label the nodes with the topology key of the constraint."),
    NodeReason("node(s) didn't have free ports for the requested pod ports", "HostPortTaken",
               "has its port taken", "have its port taken", "Use another host port, or none; at most one such pod runs on a node."),
    NodeReason("node(s) didn't match PersistentVolume's node affinity", "VolumeNodeAffinity",
               "cannot reach its volume", "cannot reach its volume", _VOLUME),
    NodeReason("node(s) didn't find available persistent volumes to bind", "NoVolumeToBind",
               "has no volume for its claim", "have no volume for its claim",
               "Create a volume of the storage class that these nodes reach, or use a class that provisions volumes."),
    NodeReason("node(s) did not have enough free storage", "StorageCapacity",
               "has too little storage for its claim", "have too little storage for its claim",
               "Ask for a smaller volume, or add storage."),
    NodeReason("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "VolumeNotFound",
               "cannot reach its volume, which does not exist", "cannot reach its volume, which does not exist",
               "Delete the claim and create it again, or restore the volume."),
    NodeReason("node(s) exceed max volume count", VOLUME_LIMIT, "can attach no more volumes", "can attach no more volumes",
               "Use more nodes, or wait for pods with volumes to end."),
    NodeReason("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode", "VolumeClaimInUse",
               "cannot take it while another pod uses its claim", "cannot take it while another pod uses its claim",
               "Wait for the pod that uses the claim, give each pod a claim of its own, or use the access mode ReadWriteOnce."),
    NodeReason("node(s) had no available volume zone", "VolumeZone",
               "is in another zone than its volume", "are in another zone than its volume", _VOLUME),
    NodeReason("cannot allocate all claims", "TooFewDevices",
               "has too few devices for its claims", "have too few devices for its claims",
               "Ask for fewer devices, or wait until devices of the class are free."),
    NodeReason("resourceclaim not available on the node", "DevicesElsewhere",
               "cannot reach the devices it holds", "cannot reach the devices it holds",
               "The claim is allocated: its pods can only run where its devices are."),
    NodeReason("node(s) are not in the shard of this scheduler", "OtherShard",
               "belongs to another scheduler", "belong to another scheduler", "Move nodes to this scheduler's NodeShard."),
    NodeReason("node(s) are not for pods with GPUs", "NodeKind", "is not for pods with GPUs", "are not for pods with GPUs",
               "Label nodes as GPU workers, or switch `restrictNodeScheduling` off."),
    NodeReason("node(s) are not for pods without GPUs", "NodeKind", "is not for pods without GPUs", "are not for pods without GPUs",
               "Label nodes as CPU workers, or switch `restrictNodeScheduling` off."),
    NodeReason("node(s) would keep too little cpu or memory for their free GPUs", "KeptForGpus",
               "keeps its cpu and memory for its GPUs", "keep their cpu and memory for their GPUs",
               "Use nodes without GPUs, or ask for less."),
    NodeReason("node(s) give only MIG devices", "NodeKind", "gives only MIG devices", "give only MIG devices", _MIG),
    NodeReason("node(s) give only whole MIG devices", "NodeKind", "gives only whole MIG devices", "give only whole MIG devices",
               _MIG),
    NodeReason("node(s) cannot give MIG devices to the pod", "NodeKind",
               "cannot give MIG devices to it", "cannot give MIG devices to it", _MIG),
    NodeReason("node(s) had no GPUs to share", "SharedGpus", "has no GPUs to share", "have no GPUs to share",
               "Use nodes whose device plugin shares GPUs."),
    NodeReason("node(s) share their GPUs in another mode", "SharedGpus",
               "shares its GPUs in another mode", "share their GPUs in another mode",
               "Use nodes in the mode that the pod asks for."),
    NodeReason("node(s) had too few GPUs with enough left", "SharedGpus",
               "has too few GPUs with enough left", "have too few GPUs with enough left",
               "Ask for a smaller part of a GPU, or wait."),
    NodeReason("node(s) had no NUMA information", "Numa",
               "says nothing about its NUMA nodes", "say nothing about their NUMA nodes",
               "Install Volcano's resource exporter, which writes Numatopology objects."),
    NodeReason("node(s) didn't have the static cpu manager policy", "Numa", "gives no CPUs away", "give no CPUs away",
               "Set the kubelets' `cpuManagerPolicy: static`."),
    NodeReason("node(s) had another topology manager policy", "Numa", "has another NUMA policy", "have another NUMA policy", _NUMA),
    NodeReason("node(s) had no CPUs left to give away", "Numa",
               "has no CPUs left to give away", "have no CPUs left to give away", "Ask for fewer CPUs, or wait."),
    NodeReason("node(s) couldn't align the requested CPUs with NUMA nodes", "Numa",
               "cannot align its CPUs", "cannot align its CPUs", "Ask for no more CPUs than one NUMA node has."),
    NodeReason("the CPU load of the node exceeds the upper limit.", "NodeUsage", "has a busy cpu", "have a busy cpu",
               "Wait for the load to fall, or raise the threshold of the plugin `usage`."),
    NodeReason("the memory load of the node exceeds the upper limit.", "NodeUsage",
               "has its memory in use", "have their memory in use",
               "Wait for the load to fall, or raise the threshold of the plugin `usage`."),
    NodeReason("node(s) are in no node group", "NodeGroup", "is in no node group", "are in no node group", _NODE_GROUP),
    NodeReason("node(s) are in a node group and the queue names none", "NodeGroup",
               "is kept for other queues", "are kept for other queues", _NODE_GROUP),
    NodeReason("node(s) are in a node group that the queue may not use", "NodeGroup",
               "is kept for other queues", "are kept for other queues", _NODE_GROUP),
    NodeReason("node(s) are in a node group of which the queue has all it may have", "NodeGroup",
               "is in a node group of which its queue has all it may have",
               "are in a node group of which its queue has all it may have",
               "Wait for gangs of the same queue, or raise its limit for the node group."),
    NodeReason("node(s) refused the bind before", "BindBackoff", "refused the bind before", "refused the bind before",
               "The bind is tried again later; check admission policies and the node."),
    NodeReason("node(s) were in a revocable zone that the task must not use", "RevocableZone",
               "is in a revocable zone that it must not use", "are in a revocable zone that it must not use",
               "Add the annotation `volcano.sh/revocable-zone: \"*\"` to the pods."),
)  # fmt: skip
_BY_REASON = {item.reason: item for item in ALL_NODE_REASONS}
_BEGINNINGS = (("node(s) were in revocable zone", "RevocableZone"), ("node(s) don't share the group's value", "GroupLabel"))

_VOLUME_BINDING = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
"""A node may give several of these at once: the filter of volumes lists them all, in this order."""


def _combinations() -> Iterator[NodeReason]:
    for count in range(2, len(_VOLUME_BINDING) + 1):
        for reasons in combinations(_VOLUME_BINDING, count):
            parts = [_BY_REASON[reason] for reason in reasons]
            one, many = (" and ".join(getattr(part, field) for part in parts) for field in ("one", "many"))
            yield NodeReason(", ".join(reasons), parts[0].code, one, many)


_BY_REASON |= {item.reason: item for item in _combinations()}


def node_reason(reason: str) -> NodeReason:
    """Return what is known of a reason; an unknown one stands for itself."""
    known = _BY_REASON.get(reason)
    if known is not None:
        return known
    code = next((code for beginning, code in _BEGINNINGS if reason.startswith(beginning)), NO_NODE_FITS)
    return NodeReason(reason, code, reason, reason)
