"""What verdicts refuse to a gang, in words: above all how much its queue may have."""

from collections.abc import Iterator

from phalanx.explain.gang_status import is_blocked
from phalanx.explain.reason_text import amount_text
from phalanx.kubernetes.attached_volumes import claims_of
from phalanx.model.gang import STALE
from phalanx.model.kinds import split_key
from phalanx.model.resources import CSI_SLOTS
from phalanx.model.storage import VolumeClaim
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot, Surroundings
from phalanx.state.verdict import Verdict

MOST_CAUSES = 2
"""A sentence names this many causes of a kind."""
TOLD_ELSEWHERE = (STALE, "GatedMembers")


def refusals(gang: GangState, snapshot: Snapshot) -> list[str]:
    """Say what the first few verdicts refuse that are not about nodes and have no sentence elsewhere."""
    texts = (text for verdict, text in refusals_with_text(gang, snapshot) if verdict.reason not in TOLD_ELSEWHERE)
    return list(dict.fromkeys(texts))[:MOST_CAUSES]


def refusals_with_text(gang: GangState, snapshot: Snapshot) -> Iterator[tuple[Verdict, str]]:
    """Yield the verdicts that are not about nodes, each with its sentence; a limit no less than the cluster is about nodes."""
    for verdict in gang.verdicts:
        if not is_cluster_full(verdict, snapshot):
            yield verdict, refusal(gang, verdict, snapshot)


def refusal(gang: GangState, verdict: Verdict, snapshot: Snapshot) -> str:
    """Say what a verdict refuses, also where volumes are the reason."""
    return _no_slots(gang, verdict, snapshot) or refusal_sentence(gang, verdict)


def is_cluster_full(verdict: Verdict, snapshot: Snapshot) -> bool:
    """Tell whether a queue has reached a limit that is no less than the whole cluster: then nodes are missing, not quota."""
    name = str(verdict.numbers.get("resource"))
    row = snapshot.space.row_by_name.get(name)
    if verdict.reason != "QueueQuotaExceeded" or row is None or name.startswith(CSI_SLOTS):
        return False
    return float(verdict.numbers["limit"]) >= int(snapshot.nodes.allocatable[row].sum())


def refusal_sentence(gang: GangState, verdict: Verdict) -> str:
    """Say what a verdict refuses, with the numbers behind it."""
    numbers = verdict.numbers
    match verdict.reason:
        case "QueueQuotaExceeded" if "resource" in numbers:
            return _quota(gang, verdict)
        case "QueueOverused":
            return f"queue {numbers['queue']!r} has all it deserves, and this gang comes after the others in it"
        case "QueueNotOpen":
            return f"queue {numbers['queue']!r} is {numbers['state']} and takes no new work"
        case "ClusterOverused":
            scarce, factor = numbers["resources"], float(numbers["factor"])
            return f"with what is admitted already it asks for more than {factor:g} times the cluster's {scarce}"
    return verdict.message or verdict.reason


def _quota(gang: GangState, verdict: Verdict) -> str:
    name, taken, limit, wanted = amounts_of(verdict)
    bound = verdict.numbers["bound"]
    return f"{queue_has(gang, verdict)} {taken} of the {limit} {name} {bound}, {wanted} more wanted"


def amounts_of(verdict: Verdict) -> tuple[str, str, str, str]:
    """Return the resource of a verdict, and how much of it is taken, allowed and wanted."""
    numbers = verdict.numbers
    name = str(numbers["resource"])
    taken, limit, wanted = (amount_text(name, float(numbers[key])) for key in ("taken", "limit", "wanted"))
    return name, taken, limit, wanted


def queue_has(gang: GangState, verdict: Verdict) -> str:
    """Say whose amount follows: "then has" where it includes places that the gang nearly had in this session."""
    return f"queue {verdict.numbers['queue']!r} {'then has' if any(task.had_place for task in gang.tasks) else 'has'}"


def _no_slots(gang: GangState, verdict: Verdict, snapshot: Snapshot) -> str:
    """Say why no node counts as able to attach the volumes of a driver; a claim that must be bound first comes first."""
    name, world = str(verdict.numbers.get("resource", "")), snapshot.surroundings
    if verdict.reason != "QueueQuotaExceeded" or not name.startswith(CSI_SLOTS) or verdict.numbers["limit"]:
        return ""
    claims = (claim for task in gang.tasks if is_blocked(task) for claim in claims_of(task.task.shape, world))
    unbound = next((claim for claim in claims if not claim.volume and not _waits_for_consumer(claim, world)), None)
    first = "" if unbound is None else f"volume claim {split_key(unbound.key)[1]!r} is not bound to a volume yet; "
    where = "no CSINode names that driver" if world.volume_limits else "there are no CSINodes"
    return f"{first}no node attaches volumes of {name.removeprefix(CSI_SLOTS)}: {where}"


def _waits_for_consumer(claim: VolumeClaim, world: Surroundings) -> bool:
    found = world.storage_classes.get(claim.storage_class or "")
    return found is not None and found.waits_for_consumer
