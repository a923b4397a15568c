"""Words that many sentences need: amounts, counts, gates, and what is wrong with a task whatever the node."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

from phalanx.model.resources import CPU, MEMORY, PODS, VOLUME_SLOTS, Resources, readable
from phalanx.model.task_status import Status
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError, Verdict

NO_GANGS = "no plugin of the configuration holds gangs together"

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


def no_pods(minimum: int) -> str:
    """Say that a gang has no pods, and how many it needs."""
    return f"no pods yet; {minimum} {'is' if minimum == 1 else 'are'} needed" if minimum else "no pods yet"


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 node``, ``6 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_counted(name: str) -> list[tuple[int, str]]:
    """Return a key that puts node-2 before node-10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def most_frequent(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return what was counted, the most frequent first; where several are equally so, by name, whatever was counted first."""
    return sorted(counts.items(), key=lambda entry: (-entry[1], as_counted(entry[0])))


def meant(word: str, known: Collection[str], *, cutoff: float = 0.6) -> str:
    """Return the known word that was perhaps meant; empty where none is near, or it is only another one of a numbered row."""
    row = {name for name in known if _without_numbers(name) == _without_numbers(word)}
    rest = sorted(set(known) - row) if len(row) > 1 else sorted(known)
    return next(iter(get_close_matches(word, rest, n=1, cutoff=cutoff)), "")


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", "", name)


def request_text(request: Resources) -> str:
    """Write a request as a person would, what is scarce first: ``1 nvidia.com/gpu, 4 cpu, 8Gi memory``."""
    names = scarce_first(name for name, amount in request.items() if amount)
    return ", ".join(f"{amount_text(name, request[name])} {name}" for name in names) or "a pod without requests"


def scarce_first(resources: Iterable[str]) -> list[str]:
    """Order resources as people name them, devices before cpu and memory; the number of pods and of volumes is left out."""
    names = {name for name in resources if name != PODS and not name.startswith(VOLUME_SLOTS)}
    return [*sorted(names.difference((CPU, MEMORY))), *(name for name in (CPU, MEMORY) if name in names)]


def asks_text(task: TaskState) -> str:
    """Write what a task asks for."""
    return request_text(task.task.shape.request)


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
