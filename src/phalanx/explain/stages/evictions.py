"""The stage *evictions*: which actions looked for victims, who could be one, and why each other gang is none.

An action that found nobody has left its cause on the gang (`NoVictims`), and in the trace who may go, who stays and why, and the
node that comes nearest to having room. Actions that did not even look say why.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from phalanx.explain.eviction_clause import could_hope
from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.reading import Reading
from phalanx.explain.reason_text import amount_text, counted
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.explain.why_kai import refusal_text
from phalanx.model.listing import listed
from phalanx.session.trace_events import GangSkipped, GangStarving
from phalanx.session.trace_searches import JobAlike, JobNotTried, NearestNode, NoVictimsFound, SparedGang
from phalanx.state.verdict import Number, Verdict

SCOPES = {
    "preempt": "inside queue {queue}",
    "gangpreempt": "inside queue {queue}",
    "reclaim": "from queues other than {queue}",
    "gangreclaim": "from queues other than {queue}",
    "consolidation": "moves running jobs together",
}
"""The actions that make room for a gang, and among whom."""
SETTLED = (GangStatus.STARTS, GangStatus.RUNS, GangStatus.BOUND, GangStatus.COMPLETED, GangStatus.EVICTED, GangStatus.EMPTY)
NOBODY_THERE = "nobody else runs there"
MOST_LINES = 5


def evictions(reading: Reading) -> StageResult:
    """Say who leaves for the gang, or why nobody does."""
    made = list(_decided(reading))
    if made:
        return StageResult(Stage.EVICTIONS, True, tuple(made))
    if gang_status(reading.gang) in SETTLED or reading.gang.tally.pipelined:
        return StageResult(Stage.EVICTIONS, None)
    actions = [name for name in reading.policy.actions if name in SCOPES]
    if not actions:
        return StageResult(Stage.EVICTIONS, None, (_no_action(reading),))
    answers = [answer for name in actions if (answer := _answer(reading, name)) is not None]
    hoped = [line for line, has_hope in answers if has_hope]
    lines = (*hoped, *(line for line, has_hope in answers if not has_hope))
    return StageResult(Stage.EVICTIONS, False if hoped else None, lines)


def _decided(reading: Reading) -> Iterator[Line]:
    """Say whose pods are evicted for the gang."""
    found = [eviction for eviction in reading.decisions.evictions.values() if eviction.preemptor == reading.gang.key]
    for (action, victim), count in Counter((each.action, str(each.task.gang)) for each in found).items():
        things: dict[str, Number] = {"action": action, "victim": victim, "pods": count}
        yield Line(f"{action} evicts {counted(count, 'pod')} of {victim} for it", things=things)


def _no_action(reading: Reading) -> Line:
    actions = ", ".join(reading.policy.actions)
    return Line(
        f"nobody is evicted: the configuration has no action that evicts for a gang (actions: {actions})", "NoEvictingAction"
    )


def _answer(reading: Reading, action: str) -> tuple[Line, bool] | None:
    """Return the line about an action, and whether the gang could hope for it; None where it has nothing to say."""
    gang = reading.gang
    verdict = next((each for each in (*gang.no_victims, *gang.verdicts) if _is_of(each, action)), None)
    if verdict is not None:
        return _in_vain(reading, action, verdict), could_hope(gang, verdict)
    reason = _why_not_tried(reading, action)
    return (Line(f"{_title(reading, action)}: not tried, {reason}", things={"action": action}), False) if reason else None


def _is_of(verdict: Verdict, action: str) -> bool:
    return verdict.plugin == action and verdict.reason == "NoVictims"


def _title(reading: Reading, action: str) -> str:
    return f"{action} ({SCOPES[action].format(queue=reading.gang.gang.queue)})"


def _why_not_tried(reading: Reading, action: str) -> str:
    """Say why an action did not look for victims; empty when the trace does not say."""
    for skipped in reading.events(GangSkipped):
        if skipped.action == action:
            return skipped.reason
    for job in reading.events(JobNotTried):
        if job.action == action:
            return _with_share(reading, job.reason)
    starving = list(reading.events(GangStarving))
    if starving and not starving[-1].starves:
        return f"it does not starve ({starving[-1].plugin or 'no plugin says so'})"
    return ""


def _with_share(reading: Reading, reason: str) -> str:
    """Add the numbers of the verdict that refused a reclaimer, if that is what the reason says."""
    verdict = next((each for each in reading.gang.verdicts if each.message == reason and "fair_share" in each.numbers), None)
    return reason if verdict is None else refusal_text(verdict)


def _in_vain(reading: Reading, action: str, verdict: Verdict) -> Line:
    """Say why an action found nobody, with the gangs that stay below."""
    events = list(reading.events(NoVictimsFound))
    found = next((event for event in reversed(events) if event.action == action), None)
    twin = next((event.twin for event in reading.events(JobAlike)), "")
    lines = tuple(_details(found)) if found is not None else _alike(twin)
    cause = verdict.message if verdict.numbers["in_reach"] else NOBODY_THERE
    if len(lines) == 1 and lines[0].text == cause:
        lines = ()
    return Line(f"{_title(reading, action)}: {cause}", str(verdict.numbers["cause"]), {**verdict.numbers, "action": action}, lines)


def _alike(twin: str) -> tuple[Line, ...]:
    return (Line(f"it is like {twin}, which was tried in vain", things={"gang": twin}),) if twin else ()


def _details(found: NoVictimsFound) -> Iterator[Line]:
    is_room = found.code == "StillNoRoom"
    if found.may_go:
        how = "may go, and that is not enough" if is_room else "could go otherwise"
        yield Line(f"{listed(found.may_go)} {how}", things={"gangs": len(found.may_go)})
        yield from _nearest(found.nearest if is_room else None)
    yield from _stays(found.spared)


def _nearest(nearest: NearestNode | None) -> Iterator[Line]:
    """Say what the nearest node lacks when all have left who may, or how many tasks would have room."""
    if nearest is None:
        return
    things: dict[str, Number] = {"node": nearest.node, "places": nearest.places, "needed": nearest.needed, **nearest.lacks}
    leave = counted(len(nearest.leave), "candidate")
    if nearest.lacks:
        lacks = ", ".join(f"{amount_text(name, amount)} {name}" for name, amount in nearest.lacks.items())
        yield Line(f"even without its {leave} node {nearest.node} lacks {lacks}", "StillNoRoom", things)
    else:
        text = f"{nearest.places} of {counted(nearest.needed, 'task')} would have room if all of them left"
        yield Line(text, "StillNoRoom", things)


def _stays(spared: Iterable[SparedGang]) -> Iterator[Line]:
    """Say who stays, the gangs of which the same is said together, the nearest to being a victim first."""
    groups: dict[tuple[str, str], list[SparedGang]] = {}
    for each in spared:
        groups.setdefault((each.code, each.reason), []).append(each)
    for (code, reason), gangs in list(groups.items())[:MOST_LINES]:
        names = [each.gang for each in gangs]
        text = f"{names[0]} {reason}" if len(names) == 1 else f"{listed(names)}: each {reason}"
        yield Line(text, code, {**gangs[0].numbers, "gang": names[0], "gangs": len(names)})
    rest = sum(len(gangs) for gangs in list(groups.values())[MOST_LINES:])
    if rest:
        yield Line(f"{counted(rest, 'more gang')} {'stays' if rest == 1 else 'stay'} for other reasons", things={"gangs": rest})
