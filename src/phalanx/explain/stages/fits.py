"""Stage *fits*: for each class of tasks how many nodes fail which filter, what exactly stands against the tasks there, and which
nodes come nearest.
"""

from collections.abc import Iterator

from phalanx.explain.cause import Cause
from phalanx.explain.failed_searches import FailedSearch, failed_searches
from phalanx.explain.free_room import nearest_nodes
from phalanx.explain.gang_status import has_minimum
from phalanx.explain.node_causes import place_text
from phalanx.explain.node_reasons import TOO_LARGE
from phalanx.explain.reading import Reading
from phalanx.explain.reason_text import counted, request_text
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.model.shape import Shape
from phalanx.model.task_status import HOLDING, Status
from phalanx.state.gang_state import TaskState

Class = tuple[str, Shape]
"""Tasks of one role that ask for the same."""


def fits(reading: Reading) -> StageResult:
    """Say which tasks find nodes, and why the others do not."""
    failed = failed_searches(reading.outcome, reading.snapshot)
    classes = _classes(reading)
    lines = [_failed_line(found, classes) for found in failed]
    stuck = {_class(found.search.task) for found in failed}
    placed = {kind: tasks for kind, tasks in classes.items() if kind not in stuck and all(map(_has_place, tasks))}
    lines += _placed_lines(placed)
    if failed:
        return StageResult(Stage.FITS, has_minimum(reading.gang), tuple(lines))
    return StageResult(Stage.FITS, True if classes and len(placed) == len(classes) else None, tuple(lines))


def _classes(reading: Reading) -> dict[Class, list[TaskState]]:
    found: dict[Class, list[TaskState]] = {}
    for task in reading.gang.tasks:
        if task.task.status is Status.PENDING or task.status is Status.PENDING:
            found.setdefault(_class(task), []).append(task)
    return found


def _class(task: TaskState) -> Class:
    return task.task.role, task.task.shape


def _has_place(task: TaskState) -> bool:
    return task.status in HOLDING or task.status is Status.PIPELINED or task.attempt in HOLDING


def _failed_line(found: FailedSearch, classes: dict[Class, list[TaskState]]) -> Line:
    search = found.search
    tasks = classes.get(_class(search.task), [search.task])
    fitting, nodes = sum(map(_has_place, tasks)), search.error.nodes
    more = f"{fitting} {'fits' if fitting == 1 else 'fit'}, " if fitting else ""
    taking = f"{more}0 of {counted(nodes, 'node')} {'takes' if nodes == 1 else 'take'} {'one more' if fitting else 'one'}"
    decisive = found.decisive
    return Line(
        f"{_who(tasks)}: {place_text(search.error.scope)}{taking}", decisive.code if decisive is not None else "",
        {"tasks": len(tasks), "fitting": fitting, "nodes": nodes}, tuple(_below(found)),
    )  # fmt: skip


def _placed_lines(placed: dict[Class, list[TaskState]]) -> Iterator[Line]:
    """Yield a line for all tasks that read alike: each may have a claim of its own, and then a class of its own."""
    alike: dict[tuple[str, str], list[TaskState]] = {}
    for (role, shape), tasks in placed.items():
        alike.setdefault((role, request_text(shape.request)), []).extend(tasks)
    for tasks in alike.values():
        verb = "fits" if len(tasks) == 1 else "fit"
        yield Line(f"{_who(tasks)}: {verb}", things={"tasks": len(tasks), "fitting": len(tasks)})


def _who(tasks: list[TaskState]) -> str:
    role = tasks[0].task.role
    return f"{f'{role}, ' if role else ''}{counted(len(tasks), 'task')} with {request_text(tasks[0].task.shape.request)}"


def _below(found: FailedSearch) -> Iterator[Line]:
    if found.general is not None:
        yield Line(found.general.text, found.general.code)
    yield from (_cause_line(cause) for cause in found.causes if found.general is None or cause.code != TOO_LARGE)
    nearest = [] if found.general is not None else nearest_nodes(found.search)
    if nearest:
        yield Line(f"nearest: {', '.join(text for _, text in nearest)}", things={"nearest": ", ".join(name for name, _ in nearest)})


def _cause_line(cause: Cause) -> Line:
    return Line(
        cause.sentence, cause.code, {"nodes": cause.nodes, **({"thing": cause.thing} if cause.thing else {}), **cause.things}
    )
