"""The reasons of filters as phrases of our sentences.

The reasons are those of kube-scheduler ("node(s) had untolerated taint(s)"): tools match on them and conditions repeat them. Here
each known reason becomes a phrase that follows a number of nodes. An unknown reason stays as it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from phalanx.model.resources import CPU, MEMORY, PODS, Resources, readable
from phalanx.model.task_status import Status
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError, SearchScope, Verdict, lacked_resource

NO_GANGS = "no plugin of the configuration holds gangs together"
_VOLUME_SLOTS = "attachable-volumes-"

_PHRASES = {
    "node(s) had untolerated taint(s)": ("has a taint that is not tolerated", "have a taint that is not tolerated"),
    "node(s) didn't match Pod's node affinity/selector": (
        "does not match the node selector or affinity",
        "do not match the node selector or affinity",
    ),
    "node(s) were unschedulable": ("is cordoned", "are cordoned"),
    "node(s) were not ready": ("is not ready", "are not ready"),
    "node(s) pod number exceeded": ("runs as many pods as it may", "run as many pods as they may"),
    "node(s) didn't match pod affinity rules": ("is not near the pods it wants", "are not near the pods it wants"),
    "node(s) didn't match pod anti-affinity rules": (
        "has a pod that its anti-affinity excludes",
        "have pods that its anti-affinity excludes",
    ),
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
    "node(s) give only MIG devices": ("gives only MIG devices", "give only MIG devices"),
    "node(s) give only whole MIG devices": ("gives only whole MIG devices", "give only whole MIG devices"),
    "node(s) cannot give MIG devices to the pod": ("cannot give MIG devices to it", "cannot give MIG devices to it"),
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

_VOLUME_BINDING = (
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
"""A node may give several of these at once: the filter of volumes lists them all, in this order."""


def _combinations() -> Iterator[tuple[str, tuple[str, str]]]:
    for count in range(2, len(_VOLUME_BINDING) + 1):
        for reasons in combinations(_VOLUME_BINDING, count):
            one, many = zip(*(_PHRASES[reason] for reason in reasons), strict=True)
            yield ", ".join(reasons), (" and ".join(one), " and ".join(many))


_PHRASES.update(_combinations())

_PREFILTERS = {
    "VolumeClaimNotFound": "volume claim {claim!r} does not exist",
    "VolumeClaimDeleted": "volume claim {claim!r} is being deleted",
    "StorageClassNotFound": "storage class {storage_class!r} of a volume claim does not exist",
    "ClaimDeleted": "device claim {claim!r} is being deleted",
    "ClaimInUse": "a device claim is used by as many pods as it may be",
    "DeviceClassNotFound": "device class {device_class!r} does not exist",
    "NodeAffinityConflict": "its node affinity names nodes that exclude each other",
}
"""By reason code, with the names that the verdict carries."""


def general_obstacle(error: FitError, claims: Sequence[str] = ()) -> str:
    """Return the reason that has nothing to do with any node, such as a missing claim; empty when the nodes are the reason.

    `claims` are the volume claims of the task, for reasons that do not say which one they mean.
    """
    verdict = error.verdict
    if verdict is None or "cause" not in verdict.numbers:
        return ""
    phrase = _PREFILTERS.get(verdict.reason)
    return phrase.format(**verdict.numbers) if phrase is not None else _claim_obstacle(verdict, claims)


def _claim_obstacle(verdict: Verdict, claims: Sequence[str]) -> str:
    """Say what is wrong with a claim where one reason code has several sentences; an unknown code keeps its message."""
    numbers = verdict.numbers
    match verdict.reason:
        case "VolumeNotFound" if "claim" in numbers:
            return f"volume claim {numbers['claim']!r} has lost its volume {numbers['volume']!r}"
        case "VolumeNotFound":
            return f"volume {numbers['volume']!r} of a claim does not exist"
        case "UnboundVolumeClaim":
            claim = f"volume claim {claims[0]!r}" if len(claims) == 1 else "a volume claim"
            has_class = "storage_class" not in numbers
            return f"{claim} is not bound to a volume yet" if has_class else f"{claim} has neither volume nor storage class"
        case "ClaimNotFound" if "claim" in numbers:
            return f"device claim {numbers['claim']!r} does not exist"
        case "ClaimNotFound":
            return f"device claim {numbers['template']!r} is not made yet"
    return str(numbers["cause"])


def node_obstacles(error: FitError) -> str:
    """Say what is wrong with how many nodes: ``6 nodes: 4 lack nvidia.com/gpu, 2 have a taint that is not tolerated``."""
    if not error.nodes:
        return f"{error.scope.prefix}there are no nodes"
    counts = sorted(_merged(error.counts).items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{count} {_phrase(reason, count)}" for reason, count in counts)
    return f"{_place(error.scope)}{counted(error.nodes, 'node')}: {parts}"


def _merged(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the reasons that read alike: pods and slots for volumes are resources too, and slots are counted per driver."""
    found: dict[str, int] = {}
    for reason, count in counts.items():
        resource = lacked_resource(reason)
        if resource.startswith(_VOLUME_SLOTS):
            reason = "node(s) exceed max volume count"
        elif resource == PODS:
            reason = "node(s) pod number exceeded"
        found[reason] = found.get(reason, 0) + count
    return found


def _place(scope: SearchScope) -> str:
    return f"in HyperNode {scope.hypernode}: " if scope.hypernode else scope.prefix


def _phrase(reason: str, count: int) -> str:
    resource = lacked_resource(reason)
    if resource:
        return f"{'lacks' if count == 1 else 'lack'} {resource}"
    one, many = _PHRASES.get(reason, (reason, reason))
    return one if count == 1 else many


def no_pods(minimum: int) -> str:
    """Say that a gang has no pods, and how many it needs."""
    return f"no pods yet; {minimum} are needed" if minimum else "no pods yet"


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


def part_text(number: int, gang: GangState) -> str:
    """Begin a sentence about so many tasks of a gang: ``2 of 3 tasks are``."""
    return f"{number} of {counted(len(gang.tasks), 'task')} {'is' if number == 1 else 'are'}"


def gates_text(tasks: Iterable[TaskState]) -> str:
    """Name the scheduling gates of tasks that wait; a pod of another scheduler waits without one."""
    names = sorted({name for task in tasks if task.status is Status.PENDING for name in task.task.gates})
    return gate_names(names) if names else "a scheduling gate"


def gate_names(names: Sequence[str]) -> str:
    """Name scheduling gates."""
    return f"the scheduling gate{'s' if len(names) > 1 else ''} {' and '.join(map(repr, names))}"
