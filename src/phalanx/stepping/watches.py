"""Watch expressions: a figure of a node, a queue or a gang by its name, read from a session while it runs.

node/n3.idle                 what is free; used, releasing and future in the same way
queue/research.allocated     what its gangs hold; deserved and other figures as the plugins of the profile have them
gang/research/bert.placed    how many of its tasks have a node; pipelined, pending, evicted, missing in the same way
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import inf

from phalanx.model.resources import CPU, PODS, Resources, add, scale_of
from phalanx.model.task import GangKey
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Amounts
from phalanx.session.amounts import figure_text
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.stepping.complaint import Complaint

Figures = Mapping[str, float]
"""Amounts by resource: cpu in thousandths, memory in bytes, everything else in units."""
Value = int | str | Figures
ELSEWHERE = "not in this shard"
UNLIMITED = -1
"""In KAI's figures."""

COUNTED = (*HOLDING, Status.PIPELINED)
"""A task counts in what its queue has as soon as it has a place, also one that it can take only later."""
FORMS = ("node/NAME.idle", "queue/NAME.allocated", "gang/NAMESPACE/NAME.placed")


@dataclass(frozen=True, slots=True)
class Watch:
    """An expression, and how its value is read."""

    text: str
    read: Callable[[Session], Value]
    is_in: Callable[[Snapshot], bool]
    """Tells whether what is watched exists."""


def watch_of(text: str, snapshot: Snapshot, queue_figures: Mapping[str, Mapping[str, Figures]]) -> Watch:
    """Return what an expression means."""
    kind, _, rest = text.partition("/")
    name, _, field = rest.rpartition(".")
    if kind == "node" and name:
        _known("node", name, snapshot.nodes.names)
        _known(f"figure of node {name}", field, NODE_FIGURES)
        return Watch(text, lambda session: node_figure(session, name, field), lambda seen: name in seen.nodes.number_by_name)
    if kind == "queue" and name:
        _known("queue", name, snapshot.queues)
        _known(f"figure of queue {name}", field, ["allocated", *sorted({*queue_figures.get(name, ())} - {"allocated"})])
        return Watch(text, lambda session: queue_figure(session, name, field), lambda seen: name in seen.queues)
    if kind == "gang" and name:
        _known("gang", name, snapshot.gangs)
        _known(f"figure of gang {name}", field, GANG_FIGURES)
        return Watch(text, lambda session: gang_figure(session, GangKey(name), field), lambda seen: name in seen.gangs)
    raise Complaint(f"watch {text}".rstrip(), FORMS, hint="write")


def _known(what: str, name: str, names: Collection[str]) -> None:
    if name not in names:
        raise Complaint(f"{name!r} is no {what}", names)


def _in_units(amounts: Resources) -> Figures:
    return {name: amount if name == CPU else _divided(amount, scale_of(name)) for name, amount in amounts.items()}


def _divided(amount: int, scale: int) -> float:
    return amount / scale if amount % scale else amount // scale


# --- nodes -----------------------------------------------------------------------------------------------------------------

NODE_FIGURES = ("idle", "used", "releasing", "future")
"""As the books of a session have them; `future` is what is free once those who leave have left, less what is pipelined."""


def node_figure(session: Session, name: str, field: str) -> Value:
    """Return a figure of a node; a node of another shard has none."""
    node = session.snapshot.nodes.number_by_name.get(name)
    if node is None:
        return ELSEWHERE
    book: Amounts = getattr(session.ledger, field)
    offered = session.ledger.allocatable[:, node]
    names = session.snapshot.space.names
    return _in_units({each: int(book[row, node]) for row, each in enumerate(names) if offered[row] and each != PODS})


# --- queues ----------------------------------------------------------------------------------------------------------------


def queue_figure(session: Session, name: str, field: str) -> Value:
    """Return a figure of a queue: what it has now, or what its plugin said when the session opened."""
    if field == "allocated":
        return queue_allocated(session, name)
    return opening_figures(session, name).get(field, {})


def opening_figures(session: Session, name: str) -> Mapping[str, Figures]:
    """Return what the plugins of the profile said about a queue when the session opened."""
    figures = session.decisions.queues.get(name, {})
    return {kind: {each: inf if amount == UNLIMITED else amount for each, amount in own.items()} for kind, own in figures.items()}


def queue_allocated(session: Session, name: str) -> Figures:
    """Return what the gangs of a queue, and of those below it, hold now."""
    below = _queues_below(session, name)
    held: dict[str, int] = {}
    for each in below:
        totals = session.snapshot.totals.get(each)
        held = held if totals is None else add(held, totals.allocated)
    for gang in session.gangs.values():
        for state in gang.tasks if gang.gang.queue in below else ():
            change = (state.status in COUNTED) - (state.task.status in HOLDING)
            if change:
                held = add(held, {each: amount * change for each, amount in state.task.shape.request.items()})
    return _in_units({each: held[each] for each in session.snapshot.space.names if held.get(each)})


def _queues_below(session: Session, name: str) -> set[str]:
    found = {name}
    while more := {each for each, queue in session.queues.items() if queue.parent in found and each not in found}:
        found |= more
    return found


# --- gangs -----------------------------------------------------------------------------------------------------------------


def gang_of(session: Session, key: GangKey) -> GangState:
    """Return a gang as the session has it; one that it does not look at is as it was before."""
    known = session.gangs.get(key) or next((gang for gang in session.left_out if gang.key == key), None)
    if known is not None:
        return known
    numbers = session.snapshot.nodes.number_by_name
    members = ((task, numbers.get(task.node, -1)) for task in session.snapshot.members_of(key).values())
    return GangState(session.snapshot.gangs[key], members)


def gang_figure(session: Session, key: GangKey, field: str) -> Value:
    """Return a count of a gang; a gang of another shard has none."""
    return GANG_FIGURES[field](gang_of(session, key)) if key in session.snapshot.gangs else ELSEWHERE


GANG_FIGURES: Mapping[str, Callable[[GangState], int]] = {
    "placed": lambda gang: gang.tally.total(HOLDING),
    "pipelined": lambda gang: gang.tally.pipelined,
    "pending": lambda gang: gang.tally.counts[Status.PENDING],
    "evicted": lambda gang: sum(task.is_evicted for task in gang.tasks),
    "missing": GangState.gap,
    "minimum": lambda gang: gang.gang.min_member,
}


# --- text ------------------------------------------------------------------------------------------------------------------


def value_text(value: Value) -> str:
    """Write a value as a person would."""
    return figures_text(value) if isinstance(value, Mapping) else str(value)


def figures_text(figures: Figures) -> str:
    """Write amounts as a person would: ``cpu 4, memory 32Gi``."""
    return ", ".join(f"{name} {_amount_text(name, amount)}" for name, amount in figures.items()) or "nothing"


def _amount_text(name: str, amount: float) -> str:
    return "unlimited" if amount == inf else figure_text(name, amount)


def change_text(before: Value, after: Value) -> str:
    """Write both values where they differ, resource by resource: ``cpu 8 -> 2, memory 64Gi``."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return value_text(after) if before == after else f"{value_text(before)} -> {value_text(after)}"
    parts = (_amount_change(name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after})
    return ", ".join(parts) or "nothing"


def _amount_change(name: str, before: float, after: float) -> str:
    now = _amount_text(name, after)
    return f"{name} {now}" if before == after else f"{name} {_amount_text(name, before)} -> {now}"
