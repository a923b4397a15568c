"""The reasons that filters give, in words for people.

Filters speak Kubernetes' language ("node(s) had untolerated taint(s)"), which tools match on and conditions repeat. Here each
known reason becomes a phrase that follows a number of nodes. A reason that nobody knows stays as it is.
"""

import re
from collections.abc import Mapping, Sequence

from phalanx.model.resources import CPU, MEMORY, PODS, Resources, readable
from phalanx.state.verdict import FitError

_INSUFFICIENT = "Insufficient "
_VOLUME_SLOTS = "attachable-volumes-"
_PREFILTER = re.compile(r"plugin \S+ pre-predicates failed (.*)", re.DOTALL)

_PHRASES = {
    "node(s) had untolerated taint(s)": ("has a taint nobody tolerates", "have a taint nobody tolerates"),
    "node(s) didn't match Pod's node affinity/selector": (
        "does not match the node selector or affinity",
        "do not match the node selector or affinity",
    ),
    "node(s) were unschedulable": ("is cordoned", "are cordoned"),
    "node(s) pod number exceeded": ("runs as many pods as it may", "run as many pods as they may"),
    "node(s) didn't match pod affinity rules": ("is not near the pods it wants", "are not near the pods it wants"),
    "node(s) didn't match pod anti-affinity rules": ("is near a pod it avoids", "are near a pod it avoids"),
    "node(s) didn't satisfy existing pods anti-affinity rules": ("is near a pod that avoids it", "are near a pod that avoids it"),
    "node(s) didn't match pod topology spread constraints": ("would spread it too unevenly", "would spread it too unevenly"),
    "node(s) didn't match pod topology spread constraints (missing required label)": (
        "has no label that its spread needs",
        "have no label that its spread needs",
    ),
    "node(s) didn't have free ports for the requested pod ports": ("has its port taken", "have its port taken"),
    "node(s) didn't match PersistentVolume's node affinity": ("cannot reach its volume", "cannot reach its volume"),
    "node(s) didn't find available persistent volumes to bind": ("has no volume for its claim", "have no volume for its claim"),
    "node(s) did not have enough free storage": ("has too little storage for its claim", "have too little storage for its claim"),
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": (
        "cannot reach its volume, which does not exist",
        "cannot reach its volume, which does not exist",
    ),
    "node(s) exceed max volume count": ("can attach no more volumes", "can attach no more volumes"),
    "node(s) had no available volume zone": ("is in another zone than its volume", "are in another zone than its volume"),
    "cannot allocate all claims": ("has too few devices for its claims", "have too few devices for its claims"),
    "resourceclaim not available on the node": ("cannot reach the devices it holds", "cannot reach the devices it holds"),
    "node(s) are not in the shard of this scheduler": ("belongs to another scheduler", "belong to another scheduler"),
    "node(s) are not for pods with GPUs": ("is not for pods with GPUs", "are not for pods with GPUs"),
    "node(s) are not for pods without GPUs": ("is not for pods without GPUs", "are not for pods without GPUs"),
    "node(s) would keep too little cpu or memory for their free GPUs": (
        "keeps its cpu and memory for its GPUs",
        "keep their cpu and memory for their GPUs",
    ),
    "node(s) had no GPUs to share": ("has no GPUs to share", "have no GPUs to share"),
    "node(s) share their GPUs in another mode": ("shares its GPUs in another mode", "share their GPUs in another mode"),
    "node(s) had too few GPUs with enough left": ("has too few GPUs with enough left", "have too few GPUs with enough left"),
    "node(s) had no NUMA information": ("says nothing about its NUMA nodes", "say nothing about their NUMA nodes"),
    "node(s) didn't have the static cpu manager policy": ("gives no CPUs away", "give no CPUs away"),
    "node(s) had another topology manager policy": ("has another NUMA policy", "have another NUMA policy"),
    "node(s) had no CPUs left to give away": ("has no CPUs left to give away", "have no CPUs left to give away"),
    "node(s) couldn't align the requested CPUs with NUMA nodes": ("cannot align its CPUs", "cannot align its CPUs"),
    "the CPU load of the node exceeds the upper limit.": ("has a busy cpu", "have a busy cpu"),
    "the memory load of the node exceeds the upper limit.": ("has its memory in use", "have their memory in use"),
    "node(s) are in no node group": ("is in no node group", "are in no node group"),
    "node(s) are in a node group and the queue names none": ("is kept for other queues", "are kept for other queues"),
    "node(s) are in a node group that the queue may not use": ("is kept for other queues", "are kept for other queues"),
    "node(s) are in a node group of which the queue has all it may have": (
        "is in a node group of which its queue has all it may have",
        "are in a node group of which its queue has all it may have",
    ),
}

_PREFILTERS = (
    (re.compile(r'persistentvolumeclaim "(.+)" not found'), "volume claim {0!r} does not exist"),
    (re.compile(r'persistentvolumeclaim "(.+)" is being deleted'), "volume claim {0!r} is being deleted"),
    (re.compile(r'persistentvolumeclaim "(.+)" bound to non-existent .* "(.*)"'), "volume claim {0!r} has lost its volume {1!r}"),
    (re.compile(r'persistentvolume "(.+)" not found'), "volume {0!r} of a claim does not exist"),
    (re.compile(r'storageclass.storage.k8s.io "(.+)" not found'), "storage class {0!r} of a volume claim does not exist"),
    (re.compile("pod has unbound immediate PersistentVolumeClaims"), "{claim} is not bound to a volume yet"),
    (re.compile("PersistentVolume had no name"), "{claim} is not bound to a volume yet"),
    (
        re.compile("PersistentVolumeClaim had no pv name and storageClass name"),
        "{claim} has neither volume nor storage class",
    ),
    (re.compile(r'could not find ResourceClaim "(.+)"'), "device claim {0!r} does not exist"),
    (re.compile(r'resourceclaim for "(.+)" is not created yet'), "device claim {0!r} is not made yet"),
    (re.compile(r'resourceclaim "(.+)" is being deleted'), "device claim {0!r} is being deleted"),
    (re.compile("resourceclaim in use"), "a device claim is used by as many pods as it may be"),
    (re.compile(r"request (.+): device class (.+) does not exist"), "device class {1!r} does not exist"),
    (re.compile("pod affinity terms conflict"), "its node affinity names nodes that exclude each other"),
)


def general_obstacle(error: FitError, claims: Sequence[str] = ()) -> str:
    """Return the reason that has nothing to do with any node, such as a missing claim; empty when the nodes are the reason.

    `claims` are the volume claims of the task, for reasons that do not say which one they mean.
    """
    match = _PREFILTER.fullmatch(next(iter(error.counts), "")) if len(error.counts) == 1 else None
    if match is None:
        return ""
    claim = f"volume claim {claims[0]!r}" if len(claims) == 1 else "a volume claim"
    for pattern, phrase in _PREFILTERS:
        found = pattern.fullmatch(match[1])
        if found is not None:
            return phrase.format(*found.groups(), claim=claim)
    return match[1]


def node_obstacles(error: FitError) -> str:
    """Say what is wrong with how many nodes: ``6 nodes: 4 lack nvidia.com/gpu, 2 have a taint nobody tolerates``."""
    if not error.nodes:
        return f"{error.prefix}there are no nodes"
    counts = sorted(_merged(error.counts).items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {_phrase(reason, count)}" for reason, count in counts)
    return f"{_place(error.prefix)}{counted(error.nodes, 'node')}: {parts}"


def _merged(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the reasons that read alike: pods and slots for volumes are resources too, and slots are counted per driver."""
    found: dict[str, int] = {}
    for reason, count in counts.items():
        if reason.startswith(_INSUFFICIENT + _VOLUME_SLOTS):
            reason = "node(s) exceed max volume count"
        elif reason == _INSUFFICIENT + PODS:
            reason = "node(s) pod number exceeded"
        found[reason] = found.get(reason, 0) + count
    return found


def _place(prefix: str) -> str:
    return prefix.replace("In hyperNode ", "in HyperNode ", 1)


def _phrase(reason: str, count: int) -> str:
    if reason.startswith(_INSUFFICIENT):
        return f"{'lacks' if count == 1 else 'lack'} {reason.removeprefix(_INSUFFICIENT)}"
    parts = reason.split(", ")
    if not all(part in _PHRASES for part in parts):
        return reason
    return " and ".join(_PHRASES[part][0 if count == 1 else 1] for part in parts)


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 node``, ``6 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_counted(name: str) -> list[tuple[int, str]]:
    """Return a key that puts node-2 before node-10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def request_text(request: Resources) -> str:
    """Write a request as a person would, what is scarce first: ``1 nvidia.com/gpu, 4 cpu, 8Gi memory``."""
    names = [name for name, amount in request.items() if amount and name != PODS and not name.startswith(_VOLUME_SLOTS)]
    ordered = [*sorted(name for name in names if name not in (CPU, MEMORY)), *(name for name in (CPU, MEMORY) if name in names)]
    return ", ".join(f"{amount_text(name, request[name])} {name}" for name in ordered) or "a pod without requests"


def amount_text(name: str, amount: float) -> str:
    """Write an amount as a person would; what is counted in bytes with a binary suffix."""
    if name == "ephemeral-storage" or name.startswith("hugepages-"):
        return readable(MEMORY, amount / 1000)
    return readable(name, amount)
