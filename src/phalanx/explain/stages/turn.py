"""The stage *its turn*: who is served before the gang, by which rule of which plugin, and what they took of what it needs.

Gangs and queues ahead matter only where they took something in this session: then the gang waits behind them, and not for a
larger cluster.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from phalanx.explain.gang_order import gang_rule
from phalanx.explain.gang_status import GangStatus, gang_status, has_minimum
from phalanx.explain.reading import Reading
from phalanx.explain.reason_text import counted, request_text
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.model.listing import listed
from phalanx.model.queue import ROOT
from phalanx.model.resources import PODS, Resources, add
from phalanx.model.task_status import Status
from phalanx.placement import Amounts
from phalanx.placement.fit import fits
from phalanx.session.amounts import figure_text
from phalanx.session.trace_events import GangAhead, GangsAhead, GangTried
from phalanx.session.trace_searches import JobTried
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.node_table import request_of
from phalanx.state.verdict import FitError, Verdict

PASSED_OVER = ("QueueOverused", "QueueDepth")
"""Verdicts on a gang that has no turn because others of its queue had one."""
MOST_LINES = 5
PLACED = (Status.ALLOCATED, Status.BINDING, Status.PIPELINED)
"""What a task becomes that gets a place in a session, or keeps one from others."""
DIVIDERS = ("capacity", "proportion")
"""The plugins that order queues by their shares."""


def turn(reading: Reading) -> StageResult:
    """Say who was served before the gang, and whether it waits because of them."""
    if gang_status(reading.gang) is not GangStatus.WAITS:
        return StageResult(Stage.TURN, True if has_minimum(reading.gang) else None)
    passed_over = [verdict for verdict in reading.gang.verdicts if verdict.reason in PASSED_OVER]
    if passed_over:
        lines = [_passed_over(reading, passed_over[0]), *_gangs_ahead(reading, _line(reading))]
        return StageResult(Stage.TURN, False, tuple(lines))
    bound = [event.bound for event in reading.events(GangTried)] + [event.bound for event in reading.events(JobTried)]
    if not bound:
        return StageResult(Stage.TURN, None)
    served = _served(reading, bound[0])
    if not served:
        return StageResult(Stage.TURN, True)
    is_cause = _would_have_quota(reading, served) and _would_fit(reading)
    return StageResult(Stage.TURN, not is_cause, tuple(_behind(reading, served)), is_cause=is_cause)


def _passed_over(reading: Reading, verdict: Verdict) -> Line:
    """Say why its queue, or the rest of its queue, had no turn."""
    queue = reading.gang.gang.queue
    if verdict.reason == "QueueDepth":
        return Line(verdict.message, verdict.reason, dict(verdict.numbers))
    figures = _share_text(reading, queue)
    text = f"queue {queue} is passed over: it has all it deserves{f' ({figures})' if figures else ''} ({verdict.plugin})"
    return Line(text, verdict.reason, dict(verdict.numbers))


# --- who was served ------------------------------------------------------------------------------------------------------


def _served(reading: Reading, count: int) -> list[GangState]:
    """Return the gangs of which pods were placed before the gang had its turn, and those ahead that keep places from others."""
    before, ahead = set(list(reading.decisions.binds)[:count]), {each.gang for each in _line(reading)}
    states = [outcome.state for outcome in reading.decisions.outcomes if outcome.state is not reading.gang]
    return [
        state
        for state in states
        if any(task.task.key in before for task in state.tasks) or (state.key in ahead and state.tally.pipelined)
    ]


def _took(gang: GangState) -> Resources:
    """Add up what a gang got in this session."""
    total: Resources = {}
    for task in gang.tasks:
        if task.status in PLACED and task.task.status is Status.PENDING:
            total = add(total, task.task.shape.request)
    return total


def _behind(reading: Reading, served: Sequence[GangState]) -> Iterator[Line]:
    mine, places = reading.gang.gang.queue, {each.gang: each for each in _line(reading)}
    for gang in served[:MOST_LINES]:
        rule = _rule(reading, gang, places.get(gang.key))
        things = {"gang": gang.key, "queue": gang.gang.queue}
        yield Line(
            f"behind {gang.key} in queue {gang.gang.queue}: {rule}; it took {request_text(_took(gang))} in this session",
            things=things,
        )
    if len(served) > MOST_LINES:
        rest = len(served) - MOST_LINES
        yield Line(f"{counted(rest, 'more gang')} got places before it, in queue {mine} or others", things={"gangs": rest})


def _line(reading: Reading) -> Sequence[GangAhead]:
    """Return the gangs that come before the gang in its queue."""
    return next((event.ahead for event in reading.events(GangsAhead)), ())


def _gangs_ahead(reading: Reading, ahead: Sequence[GangAhead]) -> Iterator[Line]:
    """Name the gangs before it in its queue, with the rule for the first of them."""
    if ahead:
        others = f" and {listed([each.gang for each in ahead[1:]])}" if ahead[1:] else ""
        yield Line(f"behind {ahead[0].gang}{others} in queue {reading.gang.gang.queue}: {gang_rule(ahead[0])}")


# --- rules ---------------------------------------------------------------------------------------------------------------


def _rule(reading: Reading, gang: GangState, ahead: GangAhead | None) -> str:
    if gang.gang.queue != reading.gang.gang.queue:
        return _queue_rule(reading, gang.gang.queue)
    return "it had its turn before" if ahead is None else gang_rule(ahead)


def _queue_rule(reading: Reading, other: str) -> str:
    """Say what puts a queue before that of the gang: its priority, or its share at the start of the session."""
    queues, mine = reading.snapshot.queues, reading.gang.gang.queue
    loaded = [plugin.name for plugin in reading.policy.plugins()]
    plugin = next((name for name in DIVIDERS if name in loaded), "")
    by = f" ({plugin})" if plugin else ""
    if mine not in queues or other not in queues:
        return f"queue {mine} is served after {other}{by}"
    if queues[mine].priority != queues[other].priority:
        return f"queue {mine} is served after {other}: priority {queues[mine].priority} < {queues[other].priority}{by}"
    here, there = _share(reading, mine), _share(reading, other)
    if here is None or there is None or here <= there:  # shares move while the session goes on
        return f"queue {mine} is served after {other}{by}"
    return f"queue {mine} is served after {other}: share {here:.2g} > {there:.2g}{by}"


def _share(reading: Reading, queue: str) -> float | None:
    """Return the largest part of what it deserves that a queue had when the session began; None when nobody knows."""
    parts = [held / due for _, held, due in _figures(reading, queue) if due > 0]
    return max(parts, default=None)


def _share_text(reading: Reading, queue: str) -> str:
    fullest = max(_figures(reading, queue), key=lambda each: each[1] / each[2] if each[2] > 0 else 0.0, default=None)
    if fullest is None:
        return ""
    name, held, due = fullest
    return f"{figure_text(name, held)} of {figure_text(name, due)} {name}"


def _figures(reading: Reading, queue: str) -> list[tuple[str, float, float]]:
    """Return the resources of which a queue deserves something, with what it has and deserves; KAI's count by the fair share."""
    figures = reading.decisions.queues.get(queue, {})
    held, due = figures.get("allocated", {}), figures.get("fair_share") or figures.get("deserved") or {}
    return [(name, held.get(name, 0.0), amount) for name, amount in due.items() if name != PODS]


# --- whether they are the cause ------------------------------------------------------------------------------------------


def _would_have_quota(reading: Reading, served: Sequence[GangState]) -> bool:
    """Tell whether its queue would have room for the gang without what others of the queue took in this session."""
    verdicts = reading.gang.verdicts
    if any(verdict.reason in ("OverLimit", "NonPreemptibleOverQuota") for verdict in verdicts):
        return False
    needed = max(reading.gang.gang.min_member - reading.gang.tally.ready, 1)
    for numbers in (
        verdict.numbers for verdict in verdicts if verdict.reason == "QueueQuotaExceeded" and "resource" in verdict.numbers
    ):
        takers = [gang for gang in served if numbers["queue"] in (gang.gang.queue, ROOT)]
        taken = float(numbers["taken"]) - sum(_took(gang).get(str(numbers["resource"]), 0) for gang in takers)
        if taken + needed * float(numbers["wanted"]) > float(numbers["limit"]):
            return False
    return True


def _would_fit(reading: Reading) -> bool:
    """Tell whether the tasks that the gang needs would fit on what was free when the session began: first fit, large ones first.

    Nodes that no eviction can make fit are left out; other filters may still refuse.
    """
    gang, snapshot = reading.gang, reading.snapshot
    waiting = [task for task in gang.tasks if task.status is Status.PENDING and not task.task.is_gated]
    needed = waiting[: max(gang.gang.min_member - gang.tally.ready, 1)]
    room: Amounts = (snapshot.nodes.allocatable - snapshot.used).copy()
    room[:, snapshot.nodes.unschedulable | snapshot.nodes.unready] = -1
    return bool(needed) and all(_takes(room, task, reading) for task in sorted(needed, key=_size, reverse=True))


def _takes(room: Amounts, task: TaskState, reading: Reading) -> bool:
    """Take room for a task on the first node that has it; tell whether one has."""
    request = request_of(task.task.shape.request, reading.snapshot.space)
    suitable = fits(room, request)
    if isinstance(task.error, FitError) and task.error.final is not None and len(task.error.final) == len(suitable):
        suitable &= ~task.error.final
    nodes = np.flatnonzero(suitable)
    if not len(nodes):
        return False
    room[:, nodes[0]] -= request.amounts
    return True


def _size(task: TaskState) -> int:
    return sum(task.task.shape.request.values())
