"""Queues and quotas: another queue, an open one, a new one, or larger bounds."""

from collections.abc import Iterator

from phalanx.model.kinds import QUEUE
from phalanx.model.queue import ROOT
from phalanx.state.verdict import Verdict
from phalanx.whatif.changes.budgets import QuotaChange
from phalanx.whatif.changes.queues import QueueChange
from phalanx.whatif.families.own_pods import own
from phalanx.whatif.families.own_size import amount_text, unit_of
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate, Changes

MOST_QUEUES = 4
FULL = ("QueueQuotaExceeded", "QueueOverused", "OverLimit", "NonPreemptibleOverQuota", "OverFairShare", "BetterOffThanVictim")
CLOSED = ("QueueNotOpen", "QueueNotFound", "QueueNotLeaf", "QueueTreeInvalid")
MOST_WEIGHT = 1000


def another_queue(question: Question) -> Iterator[Candidate]:
    """Another queue that takes it."""
    if not any(question.refused(*FULL, *CLOSED)):
        return
    snapshot, mine = question.snapshot, question.gang.gang.queue
    parents = {queue.parent for queue in snapshot.queues.values()}
    names = [name for name, queue in sorted(snapshot.queues.items()) if queue.is_open and name not in (mine, ROOT, *parents)]
    for name in sorted(names, key=lambda name: (snapshot.totals[name].gangs if name in snapshot.totals else 0, name))[:MOST_QUEUES]:
        yield Candidate.fixed(f"in queue {name}", own(question, "queue", name))


def queue_state(question: Question) -> Iterator[Candidate]:
    """A queue that exists and is open."""
    mine = question.gang.gang.queue
    if any(question.refused("QueueNotFound")):
        yield Candidate.fixed(f"if queue {mine} were created", QueueChange(mine, value="new"))
    for verdict in question.refused("QueueNotOpen"):
        name = str(verdict.numbers["queue"])
        yield Candidate.fixed(f"if queue {name} were open", QueueChange(name, "state", value="Open"))


def larger_bounds(question: Question) -> Iterator[Candidate]:
    """The least by which the bound of a queue, or of one above it, has to grow."""
    for verdict in question.refused("QueueQuotaExceeded", "OverLimit", "NonPreemptibleOverQuota"):
        if "resource" in verdict.numbers:
            yield from _larger(question, verdict)
    for verdict in question.refused("QueueOverused"):
        yield from _heavier(question, str(verdict.numbers["queue"]))
    if any("resource" not in verdict.numbers for verdict in question.refused("QueueQuotaExceeded")):
        yield from _deserving(question)


def _larger(question: Question, verdict: Verdict) -> Iterator[Candidate]:
    numbers, resource = verdict.numbers, str(verdict.numbers["resource"])
    queue = str(numbers["queue"])
    fields = {"OverLimit": ("limit",), "NonPreemptibleOverQuota": ("quota",)}.get(verdict.reason, _volcano_fields(question, queue))
    bound = float(numbers.get("limit", numbers.get("quota", 0)))
    taken, wanted = (
        float(numbers.get("taken", numbers.get("allocated", 0))),
        float(numbers.get("wanted", numbers.get("requested", 0))),
    )
    need = max(taken + wanted * question.missing - bound, 1)
    if verdict.reason not in ("QueueQuotaExceeded",):
        need = _in_engine_units(resource, max(taken + wanted - bound, 1))
    for field in fields:
        yield _grown(queue, field, resource, -(-int(need) // unit_of(resource)), question)


def _in_engine_units(resource: str, amount: float) -> float:
    """Return an amount of KAI's in the engine's unit: devices are counted there, and thousandths here."""
    return amount * 1000 if resource.endswith("gpu") else amount


def _volcano_fields(question: Question, queue: str) -> tuple[str, ...]:
    """Return what bounds a queue of Volcano's: its capability if it says one, else what others are guaranteed."""
    found = question.snapshot.queues.get(queue)
    return ("capability",) if found is not None and found.capability else ("deserved", "guarantee")


def _grown(queue: str, field: str, resource: str, guess: int, question: Question) -> Candidate:
    unit, name = unit_of(resource), "nvidia.com/gpu" if resource == "gpu" else resource
    total = sum(task.task.shape.request.get(name, 0) for task in question.gang.tasks)
    most = max(guess, -(-(total or unit) // unit)) * 2

    def changes(steps: int) -> Changes:
        return (QueueChange(queue, field, name, f"+{amount_text(name, steps * unit)}"),)

    def sentence(steps: int) -> str:
        return f"if the {field} of queue {queue} were {amount_text(name, steps * unit)} {name} larger"

    return Candidate(sentence, changes, most=most, guess=guess)


def _heavier(question: Question, queue: str) -> Iterator[Candidate]:
    """A larger weight, where shares go by weight."""
    found = question.snapshot.queues.get(queue)
    if found is None or question.cluster.find(QUEUE, queue) is None:
        return
    weight = int(found.weight)

    def changes(steps: int) -> Changes:
        return (QueueChange(queue, "weight", value=str(weight + steps)),)

    yield Candidate(lambda n: f"if the weight of queue {queue} were {weight + n}", changes, most=MOST_WEIGHT)


def _deserving(question: Question) -> Iterator[Candidate]:
    """A larger share of its queue, of what each member asks for."""
    queue = question.gang.gang.queue
    shape = next(iter(question.shapes), None)
    for resource, amount in shape.request.items() if shape is not None else ():
        if amount and resource != "pods":
            guess = -(-amount * max(question.missing, 1) // unit_of(resource))
            yield _grown(queue, "deserved", resource, guess, question)


def larger_quotas(question: Question) -> Iterator[Candidate]:
    """The least by which a ResourceQuota has to grow."""
    for verdict in question.refused("NamespaceQuotaExceeded"):
        numbers = verdict.numbers
        quota, resource = str(numbers["quota"]), str(numbers["resource"])
        plain = resource.removeprefix("requests.").removeprefix("limits.")
        unit = 1 if plain == "cpu" else unit_of(plain)
        need = int(float(numbers["used"]) + float(numbers["reserved"]) + float(numbers["wanted"]) - float(numbers["hard"]))
        yield _larger_quota(quota, resource, plain, unit, need)


def _larger_quota(quota: str, resource: str, plain: str, unit: int, need: int) -> Candidate:
    guess = max(-(-need // unit), 1)

    def changes(steps: int) -> Changes:
        return (QuotaChange(quota, "hard", resource, f"+{amount_text(plain, steps * unit)}"),)

    def sentence(steps: int) -> str:
        return f"if ResourceQuota {quota} had {amount_text(plain, steps * unit)} {resource} more"

    return Candidate(sentence, changes, most=2 * guess, guess=guess)
