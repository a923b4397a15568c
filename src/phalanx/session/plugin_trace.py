"""What plugins say, as entries of the trace: orders, votes about victims with the plugin that protects whom, scores."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from phalanx.model.listing import MOST_NAMES
from phalanx.placement import Mask, Scores
from phalanx.session.hooks import Plugin
from phalanx.session.trace import Trace
from phalanx.session.trace_events import (
    GangAdded,
    GangAhead,
    GangPlace,
    GangsAhead,
    NodeScores,
    NodesFitting,
    NodesRefused,
    QueueLine,
)
from phalanx.session.trace_searches import VictimsRefused, VictimsVoted
from phalanx.state.gang_state import GangState, TaskState

if TYPE_CHECKING:
    from phalanx.session.session import Session


MOST_AHEAD = 20
"""So many of those that come before a gang are recorded."""


class PluginAnswer(NamedTuple):
    """What one plugin says to a question."""

    plugin: Plugin
    value: Any  # as the hook has it


def note_added(session: "Session", gang: GangState) -> None:
    """Record that a gang stands in the line of its queue, and what each plugin says about its place."""
    if session.trace.wants(4, gang.key):
        session.trace.note(GangAdded, gang.key, gang.gang.queue, session.gang_order_by_plugin(gang))


def note_line(session: "Session", action: str, gangs: Iterable[GangState]) -> None:
    """Record the lines of queues, and for each gang that is traced which come before it in its queue, and by which plugin."""
    for name, line in note_lines(session, action, gangs):
        for place, gang in enumerate(line):
            if place and session.trace.wants(GangsAhead.at_level, gang.key):
                ahead = [_ahead(session, other, gang) for other in line[: min(place, MOST_AHEAD)]]
                session.trace.note(GangsAhead, gang.key, name, place, ahead)


def note_lines(session: "Session", action: str, gangs: Iterable[GangState]) -> list[tuple[str, list[GangState]]]:
    """Record in which order an action takes the gangs of each queue, and return the lines that have a gang which is traced.

    A line of which only some gangs are traced is not recorded: their trace is silent about the others.
    """
    queues: dict[str, list[GangState]] = {}
    for gang in gangs:
        queues.setdefault(gang.gang.queue, []).append(gang)
    traced = [each for each in queues.items() if any(session.trace.wants(QueueLine.at_level, gang.key) for gang in each[1])]
    for name, line in traced:
        line.sort(key=session.gang_key)
        if all(session.trace.wants(QueueLine.at_level, gang.key) for gang in line):
            others = (GangPlace(gang.key, _ahead(session, other, gang)) for other, gang in pairwise(line))
            session.trace.note(QueueLine, action, name, [GangPlace(line[0].key), *others])
    return traced


def _ahead(session: "Session", other: GangState, gang: GangState) -> GangAhead:
    """Name the first plugin whose keys differ."""
    for its, mine in zip(session.gang_order_answers(other), session.gang_order_answers(gang), strict=True):
        pairs = zip(_parts(its.value), _parts(mine.value), strict=False)
        part = next(((part, *pair) for part, pair in enumerate(pairs) if pair[0] != pair[1]), None)
        if part is not None:
            return GangAhead(other.key, its.plugin.name, *part)
    return GangAhead(other.key, "", 0, other.gang.created, gang.gang.created)


def _parts(key: Any) -> list[float | str]:  # a sort key of any plugin
    parts = key if isinstance(key, tuple) else (key,)
    return [part if isinstance(part, int | float) else str(part) for part in parts]


def note_filters(session: "Session", task: TaskState, fitting: Mask, within: Mask | None) -> None:
    """Record how many nodes a task can go to, and which of these nodes are refused by what."""
    gang, key, refused = task.gang.key, task.task.key, session.node_view(task.task.shape).refused_nodes(within=within)
    session.trace.note(NodesFitting, gang, key, int(fitting.sum()), {reason: len(nodes) for reason, nodes in refused.items()})
    for reason, nodes in refused.items():
        session.trace.note(NodesRefused, gang, key, reason, [session.node_name(node) for node in nodes])


def note_scores(session: "Session", task: TaskState, candidates: Mask, plugins: Mapping[str, Scores]) -> None:
    """Record the best nodes of a task with what each plugin gives them."""
    total = sum(plugins.values(), np.zeros(len(candidates)))
    nodes = np.flatnonzero(candidates)
    best = nodes[np.argsort(-total[nodes], kind="stable")][:MOST_NAMES].tolist()
    names = {node: session.node_name(node) for node in best}
    parts = {names[node]: {name: float(scores[node]) for name, scores in plugins.items()} for node in best}
    scores = {names[node]: float(total[node]) for node in best}
    session.trace.note(NodeScores, task.gang.key, task.task.key, scores, parts)


def note_votes(
    trace: Trace, hook: str, question: Sequence[Any], answers: Sequence[PluginAnswer], chosen: Sequence[TaskState]
) -> None:
    """Record what each plugin says about victims, and what comes out."""
    preemptor, candidates = question[0], question[1]
    gang, gangs = preemptor.gang.key, list(dict.fromkeys(task.gang.key for task in candidates))
    votes = {answer.plugin.name: None if answer.value is None else _keys(answer.value) for answer in answers}
    trace.note(VictimsVoted, gang, preemptor.task.key, hook, len(candidates), votes, _keys(chosen), gangs)
    for plugin, allowed in ((answer.plugin, answer.value) for answer in answers if answer.value is not None):
        known = set(map(id, allowed))
        refused = [task for task in candidates if id(task) not in known]
        if refused:
            gangs = list(dict.fromkeys(task.gang.key for task in refused))
            reason = getattr(plugin, "protects", "")
            trace.note(VictimsRefused, gang, preemptor.task.key, plugin.name, reason, _keys(refused), gangs)


def _keys(tasks: Sequence[TaskState]) -> list[str]:
    return [task.task.key for task in tasks]
