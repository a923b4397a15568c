"""Other gangs: some that end, or that may be evicted."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from phalanx.explain.reason_text import counted
from phalanx.explain.stages.evictions import SCOPES
from phalanx.kubernetes.once_pod_claims import once_pod_claims
from phalanx.model.task import Task
from phalanx.model.task_status import HOLDING
from phalanx.placement import Counts, Mask
from phalanx.whatif.changes.budgets import BudgetChange
from phalanx.whatif.changes.gangs import GangChange
from phalanx.whatif.changes.object_change import ObjectChange
from phalanx.whatif.changes.pods import PodChange
from phalanx.whatif.changes.queues import QueueChange
from phalanx.whatif.families.bounds import FULL
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate, Changes

MOST_TRIED = 8
"""Sets of gangs of each size that are tried."""
MOST_TOGETHER = 3
MOST_CONSIDERED = 40
MOST_BUDGETS = 4


@dataclass(frozen=True, slots=True)
class Holder:
    """A gang, or a pod without one, that holds places."""

    change: ObjectChange
    name: str
    places: int
    """How many members of the waiting gang have room where it is gone."""
    size: int
    """How much it holds, to compare with others."""


def gangs_that_end(question: Question) -> Iterator[Candidate]:
    """The smallest gang whose end is enough, else the smallest pairs and threes."""
    if not question.shapes:
        return
    holders = sorted(_holders(question), key=lambda holder: (holder.size, holder.name))
    needed = 1 if any(question.refused(*FULL)) else question.missing
    for count in range(1, MOST_TOGETHER + 1):
        yield from _ended(holders, count, needed)


def _ended(holders: Sequence[Holder], count: int, needed: int) -> Iterator[Candidate]:
    likely = sorted(holders, key=lambda holder: (-holder.places, holder.size))[:MOST_CONSIDERED] if count > 1 else holders
    enough = [each for each in combinations(likely, count) if sum(holder.places for holder in each) >= needed]
    for each in sorted(enough, key=lambda group: sum(holder.size for holder in group))[:MOST_TRIED]:
        names = " and ".join(holder.name for holder in each)
        yield Candidate.fixed(f"if {names} had ended", *(holder.change for holder in each))


def _use_claim(question: Question, tasks: Sequence[Task], claims: Collection[str]) -> bool:
    """Tell whether tasks use one of some claims that are for one pod."""
    if not claims:
        return False
    world = question.snapshot.surroundings
    return any(claim.key in claims for task in tasks for claim in once_pod_claims(task.shape, world))


def _holders(question: Question) -> Iterator[Holder]:
    """Yield who holds something that the gang asks for, with the places that this would make."""
    shape, idle = question.shapes[0], question.idle
    usable, before = question.taken_by(shape), question.places(shape, idle)
    is_bounded, mine = any(question.refused(*FULL)), question.gang.gang.queue
    claims = {claim.key for each in question.shapes for claim in once_pod_claims(each, question.snapshot.surroundings)}
    for name, tasks in _running(question):
        gang = question.snapshot.gangs.get(tasks[0].gang) if tasks[0].gang is not None else None
        gain = _gain(question, tasks, usable, before)
        if (is_bounded and gang is not None and gang.queue == mine) or _use_claim(question, tasks, claims):
            gain = max(gain, 1)
        if gain:
            word = "gang" if gang is not None else "pod"
            change = GangChange(name, value="gone") if gang is not None else PodChange(name, value="gone")
            yield Holder(change, f"{word} {name}", gain, _size(question, tasks))


def _running(question: Question) -> Iterator[tuple[str, list[Task]]]:
    holders: dict[str, list[Task]] = {}
    gangs = question.snapshot.gangs
    for members in question.snapshot.on_node.values():
        for task in members.values():
            if task.gang != question.key and task.status in HOLDING:
                known = task.gang is not None and task.gang in gangs
                holders.setdefault(str(task.gang) if known else task.key, []).append(task)
    yield from holders.items()


def _gain(question: Question, tasks: Sequence[Task], usable: Mask, before: Counts) -> int:
    """Count the further members that have room where some tasks are gone."""
    shape, space, numbers = question.shapes[0], question.snapshot.space, question.snapshot.nodes.number_by_name
    nodes = sorted({numbers[task.node] for task in tasks if task.node in numbers and usable[numbers[task.node]]})
    if not nodes or not any(task.shape.request.get(name) for task in tasks for name in shape.request):
        return 0
    freed = question.idle_of(nodes)
    place = {node: number for number, node in enumerate(nodes)}
    for task in tasks:
        number = place.get(numbers.get(task.node, -1))
        for name, amount in task.shape.request.items() if number is not None else ():
            freed[space.row_by_name[name], number] += amount
    return int((question.places(shape, freed) - before[nodes]).sum())


def _size(question: Question, tasks: Sequence[Task]) -> int:
    """Return how much some tasks hold of what the gang asks for most, as the number of its members that it is worth."""
    wanted = {name: amount for name, amount in question.shapes[0].request.items() if amount and name != "pods"}
    return sum(1000 * task.shape.request.get(name, 0) // amount for task in tasks for name, amount in wanted.items()) + len(tasks)


# --- victims -------------------------------------------------------------------------------------------------------------


def _evicts(question: Question) -> bool:
    return any(action in question.reading.policy.actions for action in SCOPES)


def victims_allowed(question: Question) -> Iterator[Candidate]:
    """Queues that let others reclaim, and gangs that let others preempt them."""
    if not _evicts(question):
        return
    snapshot = question.snapshot
    for name, queue in sorted(snapshot.queues.items()):
        if not queue.is_reclaimable and name != question.gang.gang.queue and name in snapshot.totals:
            yield Candidate.fixed(f"if queue {name} were reclaimable", QueueChange(name, "reclaimable", value="true"))
    kept = [key for key, gang in sorted(snapshot.gangs.items()) if gang.is_preemptable is False and key != question.key]
    for key in kept[:MOST_TRIED]:
        yield Candidate.fixed(f"if gang {key} were preemptable", GangChange(key, "preemptable", value="true"))


def budgets(question: Question) -> Iterator[Candidate]:
    """Disruption budgets that allow more."""
    if not _evicts(question):
        return
    for key, budget in sorted(question.snapshot.surroundings.disruption_budgets.items())[:MOST_BUDGETS]:
        yield _allowing(key, budget.allowed, len(question.gang.tasks))


def _allowing(key: str, allowed: int, most: int) -> Candidate:
    def changes(steps: int) -> Changes:
        return (BudgetChange(key, "disruptionsAllowed", value=str(allowed + steps)),)

    def sentence(steps: int) -> str:
        return f"if PodDisruptionBudget {key} allowed {counted(allowed + steps, 'disruption')}"

    return Candidate(sentence, changes, most=max(most, 1))
