"""What a session knows at a step about one node, queue or gang, and in which order it serves queues and gangs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from phalanx.model.listing import listed
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.session import hooks
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError
from phalanx.stepping.watches import (
    GANG_FIGURES,
    NODE_FIGURES,
    figures_text,
    gang_of,
    node_figure,
    opening_figures,
    queue_allocated,
    value_text,
)

MOST_TASKS = 40
"""A view has a line for each of so many."""


@dataclass(frozen=True, slots=True)
class View:
    """Something to show: lines for people, and the same as data."""

    lines: Sequence[str]
    data: dict[str, Any]  # Any: as JSON has it


def node_view(session: Session, name: str) -> View:
    """Return the books of a node, and the tasks of gangs on it."""
    figures = {field: node_figure(session, name, field) for field in NODE_FIGURES}
    tasks = [task for task in _tasks(session) if _node_name(session, task) == name]
    lines = [f"node {name}", *(f"  {field:9} {value_text(value)}" for field, value in figures.items())]
    return View([*lines, *_task_lines(session, tasks)], {"node": name, **figures, "tasks": _task_data(session, tasks)})


def _tasks(session: Session) -> Iterable[TaskState]:
    """Return every task of a gang: those that the session looks at as it has them, the others as they were."""
    for key in session.snapshot.gangs:
        yield from gang_of(session, key).tasks


def _node_name(session: Session, task: TaskState) -> str:
    return session.node_name(task.node) if task.node >= 0 else task.task.node


def _task_lines(session: Session, tasks: Sequence[TaskState]) -> list[str]:
    rows = [(task.task.key, task.status.word, _node_name(session, task), _why(task)) for task in tasks[:MOST_TASKS]]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    lines = [f"  {key:{widths[0]}}  {status:{widths[1]}}  {node:{widths[2]}}  {why}".rstrip() for key, status, node, why in rows]
    return lines + ([f"  and {len(tasks) - MOST_TASKS} more"] if len(tasks) > MOST_TASKS else [])


def _why(task: TaskState) -> str:
    """Return why a task has no node, or what it nearly had."""
    if task.status is not Status.PENDING:
        return ""
    if task.had_place:
        return "had a place that was given back"
    if task.refusal is not None:
        return task.refusal.message
    return task.error.text if isinstance(task.error, FitError) else task.error or ""


def _task_data(session: Session, tasks: Sequence[TaskState]) -> list[dict[str, str]]:
    return [
        {"task": task.task.key, "status": task.status.word, "node": _node_name(session, task), "why": _why(task)} for task in tasks
    ]


def gang_view(session: Session, key: str) -> View:
    """Return the counts of a gang and where its tasks are."""
    gang = gang_of(session, GangKey(key))
    counts = {field: count(gang) for field, count in GANG_FIGURES.items()}
    verdicts = [verdict.message for verdict in gang.verdicts]
    text = ", ".join(f"{field} {count}" for field, count in counts.items())
    lines = [f"gang {key} of queue {gang.gang.queue}, {gang.phase or 'Pending'}: {text}", *_role_lines(gang)]
    data = {"gang": key, "queue": gang.gang.queue, "phase": gang.phase, **counts, "verdicts": verdicts}
    return View(
        [*lines, *(f"  {text}" for text in verdicts), *_task_lines(session, gang.tasks)],
        {**data, "roles": _roles(gang), "tasks": _task_data(session, gang.tasks)},
    )


def _roles(gang: GangState) -> dict[str, dict[str, int]]:
    """Return how many tasks of each role count, and how many it needs."""
    return {
        role: {"placed": gang.role_tallies[role].ready, "pipelined": gang.role_tallies[role].pipelined, "minimum": minimum}
        for role, minimum in gang.gang.role_minima.items()
    }


def _role_lines(gang: GangState) -> list[str]:
    return [
        f"  role {role}: placed {counts['placed']}, pipelined {counts['pipelined']}, minimum {counts['minimum']}"
        for role, counts in _roles(gang).items()
    ]


def queue_view(session: Session, name: str) -> View:
    """Return the figures of a queue, and its gangs that are not whole yet."""
    allocated = queue_allocated(session, name)
    figures = {kind: each for kind, each in opening_figures(session, name).items() if kind != "allocated"}
    waiting = [gang.key for gang in _waiting(session) if gang.gang.queue == name]
    lines = [f"queue {name}", f"  allocated  {figures_text(allocated)}"]
    lines += [f"  {kind.replace('_', ' '):9}  {figures_text(each)}" for kind, each in figures.items()]
    data = {"queue": name, "allocated": dict(allocated), **figures, "waiting": waiting}
    return View([*lines, f"  {len(waiting)} gang(s) wait{f': {listed(waiting)}' if waiting else ''}"], data)


def _waiting(session: Session) -> list[GangState]:
    """Return the gangs with a task that waits, in the order of their queues."""
    found = [gang for gang in session.gangs.values() if gang.tally.counts[Status.PENDING]]
    return sorted(found, key=lambda gang: (gang.gang.queue, session.gang_key(gang)))


def gang_order_view(session: Session) -> View:
    """Return the gangs that wait, queue by queue in their order, with what each plugin says about their place."""
    rows = [(gang.gang.queue, gang.key, session.gang_order_by_plugin(gang)) for gang in _waiting(session)]
    lines = []
    for place, (queue, key, order) in enumerate(rows):
        if not place or rows[place - 1][0] != queue:
            lines.append(f"queue {queue}")
        keys = ", ".join(f"{plugin} {value}" for plugin, value in order.items())
        lines.append(f"  {key}{f'  ({keys})' if keys else ''}")
    data = [{"queue": queue, "gang": key, "order": order} for queue, key, order in rows]
    return View(lines or ["no gang waits"], {"gangs": data})


def queue_order_view(session: Session, turns: Sequence[str]) -> View:
    """Return the queues with gangs that wait in the order in which they are served.

    Where no plugin is asked for that order it is that of the turns that follow in the trace.
    """
    names = sorted({gang.gang.queue for gang in _waiting(session) if gang.gang.queue in session.queues})
    if session.is_asked(hooks.QUEUE_ORDER):
        compare = cmp_to_key(session.queue_compare)
        names.sort(key=lambda name: compare(session.queues[name]))
    else:
        names.sort(key=lambda name: turns.index(name) if name in turns else len(turns))
    lines = [f"  {name}  allocated {figures_text(queue_allocated(session, name))}" for name in names]
    return View([f"{len(names)} queue(s) with gangs that wait", *lines], {"queues": names})
