"""What the user of a gang can change about its size: how many pods it has and needs, what they ask for, how close they must be, and
how important it is.
"""

from collections.abc import Iterator

import numpy as np

from phalanx.model.kinds import PRIORITY
from phalanx.model.resources import CPU, MEMORY, PODS, quantity_text, scale_of
from phalanx.model.shape import Shape
from phalanx.whatif.families.own_pods import own
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate, Changes

MEBIBYTE = 1 << 20
MOST_PRIORITY = 1_000_000_000


def unit_of(resource: str) -> int:
    """Return the step in which amounts are tried, in the engine's unit: a thousandth of a cpu, a mebibyte, one device."""
    return 1 if resource == CPU else MEBIBYTE if resource == MEMORY else scale_of(resource)


def amount_text(resource: str, amount: int) -> str:
    """Write an amount of whole steps as a quantity: memory in mebibytes."""
    return f"{amount // MEBIBYTE}Mi" if resource == MEMORY else quantity_text(resource, amount)


# --- members -------------------------------------------------------------------------------------------------------------


def more_pods(question: Question) -> Iterator[Candidate]:
    """As many more pods as are missing, of each role that has too few."""
    gang = question.gang
    if not gang.tasks:
        return
    short = _short_roles(question)
    if short:
        changes = [own(question, "pods", f"+{count}", role) for role, count in short.items()]
        texts = [f"{count} more pod{'s' if count > 1 else ''} of role {role}" for role, count in short.items()]
        yield Candidate.fixed(f"with {' and '.join(texts)}", *changes)
        return
    missing = question.minimum - gang.valid
    if missing > 0:
        yield Candidate(_pods_text, lambda n: (own(question, "pods", f"+{n}"),), most=2 * missing, guess=missing)


def _pods_text(count: int) -> str:
    return f"with {count} more pod{'s' if count > 1 else ''}"


def _short_roles(question: Question) -> dict[str, int]:
    gang = question.gang.gang
    if not gang.roles_count or gang.pieces:
        return {}
    have = {role: sum(task.task.role == role for task in question.gang.tasks) for role in gang.role_minima}
    return {role: needed - have[role] for role, needed in gang.role_minima.items() if role and needed > have[role]}


def smaller_minimum(question: Question) -> Iterator[Candidate]:
    """The largest minMember with which it starts."""
    minimum, least = question.minimum, 1
    if minimum <= least or not question.gang.tasks:
        return
    enough = max(min(question.fitting or question.gang.valid, minimum - 1), least)

    def changes(steps: int) -> Changes:
        return (own(question, "minMember", str(minimum - steps)),)

    yield Candidate(lambda n: f"with minMember {minimum - n}", changes, most=minimum - least, guess=minimum - enough)


def without_min_resources(question: Question) -> Iterator[Candidate]:
    """What the group says it needs in total left out."""
    if question.gang.gang.min_resources and any(question.refused("ClusterOverused", "QueueQuotaExceeded", "MinResources")):
        yield Candidate.fixed("without minResources", own(question, "minResources", "none"))


# --- requests ------------------------------------------------------------------------------------------------------------


def smaller_requests(question: Question) -> Iterator[Candidate]:
    """The largest request with which every member finds a place, of a resource that nodes lack."""
    if len(question.shapes) != 1:
        return
    for resource in question.lacking or _devices(question.shapes[0]):
        asked, unit = question.shapes[0].request.get(resource, 0), unit_of(resource)
        if resource == PODS or asked <= unit:
            continue
        steps = -(-asked // unit) - 1
        guess = _reduction(question, resource, asked, unit) or _reduction(question, resource, asked, unit, is_empty=True)

        def changes(count: int, resource: str = resource, asked: int = asked, unit: int = unit) -> Changes:
            return (own(question, "requests", amount_text(resource, _less(asked, unit, count)), resource),)

        def sentence(count: int, resource: str = resource, asked: int = asked, unit: int = unit) -> str:
            return f"if each pod asked for {amount_text(resource, _less(asked, unit, count))} {resource}"

        if guess is not None:
            yield Candidate(sentence, changes, most=steps, guess=guess)


def _devices(shape: Shape) -> list[str]:
    """Return the devices that pods ask for: a filter of shares of devices names no resource that is short."""
    return [name for name in shape.request if "/" in name]


def _less(asked: int, unit: int, steps: int) -> int:
    """Return an amount so many steps below what is asked for, on a multiple of the unit."""
    return (-(-asked // unit) - steps) * unit


def _reduction(question: Question, resource: str, asked: int, unit: int, *, is_empty: bool = False) -> int | None:
    """Return by how many steps a request is too large for the places that are needed, as far as amounts alone say.

    With `is_empty` these are places on empty nodes: others may have to go for it.
    """
    shape = question.shapes[0]
    idle = question.snapshot.nodes.allocatable if is_empty else question.idle
    row = question.snapshot.space.row_by_name[resource]
    others = {name: amount for name, amount in shape.request.items() if name != resource}
    usable = question.taken_by(shape)
    rows = question.snapshot.space.row_by_name
    bound = [idle[rows[name]] // amount for name, amount in others.items() if amount and name in rows]
    room = np.where(usable, np.minimum.reduce(bound) if bound else len(question.waiting), 0)
    low, high = 0, -(-asked // unit) - 1
    needed = question.missing + min(question.fitting, len(question.waiting))

    def fits(steps: int) -> bool:
        amount = _less(asked, unit, steps)
        return int(np.minimum(room, np.maximum(idle[row], 0) // amount).clip(min=0).sum()) >= needed

    if not fits(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


# --- topology ------------------------------------------------------------------------------------------------------------


def wider_topology(question: Question) -> Iterator[Candidate]:
    """Members farther apart: in the next wider tier or level, or anywhere."""
    gang, tree = question.gang.gang, question.snapshot.hypernodes
    found = gang.topology
    if found is None or not (found.is_hard or found.required_level):
        return
    if found.is_of_tiers and found.highest_tier is not None and not tree.is_empty:
        for tier in sorted({int(tier) for tier in tree.tiers[: tree.top] if tier > found.highest_tier}):
            yield Candidate.fixed(f"with highestTierAllowed {tier}", own(question, "highestTierAllowed", str(tier)))
    levels = question.snapshot.surroundings.label_trees.get(found.topology)
    if levels is not None and found.required_level in levels.levels:
        for level in reversed(levels.levels[: levels.levels.index(found.required_level)]):
            yield Candidate.fixed(f"with the topology level {level}", own(question, "requiredTopologyLevel", level))
    yield Candidate.fixed("without its topology constraint", own(question, "topology", "none"))


# --- priority ------------------------------------------------------------------------------------------------------------


def higher_priority(question: Question) -> Iterator[Candidate]:
    """The lowest priority with which it starts: just above others, in the queue or as their preemptor."""
    mine = max([question.gang.gang.priority, *(task.task.priority for task in question.waiting)])
    gangs = question.snapshot.gangs
    others = {gang.priority for key, gang in gangs.items() if key != question.key} | _priorities_of_pods(question)
    steps = sorted({value for other in others for value in (other, other + 1) if mine < value <= MOST_PRIORITY})
    if not steps:
        return
    classes = sorted((int(item["value"]), str(item["metadata"]["name"])) for item in question.cluster.all_of(PRIORITY))

    def sentence(count: int) -> str:
        value = steps[count - 1]
        name = next((f" (PriorityClass {name} has {own})" for own, name in classes if own >= value), "")
        return f"with priority {value}{name}"

    def changes(count: int) -> Changes:
        return (own(question, "priority", str(steps[count - 1])),)

    yield Candidate(sentence, changes, most=len(steps), guess=len(steps))


def _priorities_of_pods(question: Question) -> set[int]:
    return {task.rank for members in question.snapshot.on_node.values() for task in members.values()}
