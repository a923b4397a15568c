"""Do its nodes take its pods? Binds that failed: which node refused which pod, how often and why, and when it is tried again."""

from collections import Counter
from collections.abc import Iterator

from phalanx.explain.gang_status import has_minimum
from phalanx.explain.reading import Reading
from phalanx.explain.reason_text import as_counted, counted
from phalanx.explain.times import at_text, due_text
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.model.task import FailedBind
from phalanx.model.task_status import HOLDING, Status
from phalanx.state.gang_state import TaskState

PAUSES = ("BindBackoff", "BindRollback", "GroupBackoff", "ScheduleTimeout")
"""Verdicts of gangs that are not tried before some time has passed."""
MOST_NODES = 5


def bind(reading: Reading) -> StageResult:
    """Say which binds failed, and when the gang is tried again."""
    pauses = [verdict for verdict in reading.gang.verdicts if verdict.reason in PAUSES]
    now = reading.outcome.now
    lines = []
    for verdict in pauses:
        seconds = float(verdict.numbers.get("seconds", 0.0))
        when = "" if verdict.reason == "ScheduleTimeout" or not seconds else f" ({at_text(now + seconds)})"
        lines.append(Line(f"{verdict.message}{when}", verdict.reason, verdict.numbers))
    lines += [*_failures(reading), *_requests(reading), *_places(reading)]
    is_bound = has_minimum(reading.gang) and not pauses
    return StageResult(Stage.BIND, False if pauses else True if is_bound else None, tuple(lines))


def _places(reading: Reading) -> Iterator[Line]:
    """Yield the nodes of members that have one: those of before, those of this session, and those that others have to leave."""
    names, kinds = reading.snapshot.nodes.names, dict[str, Counter[str]]()
    for task in reading.gang.tasks:
        word = _word(task)
        if word and task.node >= 0:
            kinds.setdefault(word, Counter())[names[task.node]] += 1
    for word, nodes in kinds.items():
        shown = [f"{node} ({nodes[node]})" for node in sorted(nodes, key=as_counted)]
        more = f" and {counted(len(shown) - MOST_NODES, 'more node')}" if len(shown) > MOST_NODES else ""
        text = f"{counted(nodes.total(), 'pod')} {word.format(verb='is' if nodes.total() == 1 else 'are')}"
        yield Line(f"{text} {', '.join(shown[:MOST_NODES])}{more}", "", dict(nodes))


def _word(task: TaskState) -> str:
    if task.status is Status.PIPELINED:
        return "{verb} pipelined onto"
    if task.status not in HOLDING:
        return ""
    return "{verb} on" if task.task.status is task.status or task.task.status in HOLDING else "{verb} placed on"


def _failures(reading: Reading) -> Iterator[Line]:
    """Yield the nodes that refused binds of members that wait, the latest first."""
    now, by_node = reading.outcome.now, dict[str, list[tuple[FailedBind, TaskState]]]()
    for task in reading.gang.tasks:
        for failure in task.task.failed_binds if task.task.status is Status.PENDING else ():
            by_node.setdefault(failure.node, []).append((failure, task))
    latest_first = sorted(by_node.items(), key=lambda item: (-max(failure.latest for failure, _ in item[1]), as_counted(item[0])))
    for node, failures in latest_first[:MOST_NODES]:
        last = max((failure for failure, _ in failures), key=lambda failure: failure.latest)
        pods = sorted((task.task.name for _, task in failures), key=as_counted)
        attempts = sum(failure.attempts for failure, _ in failures)
        who = f"pod {pods[0]}" if len(pods) == 1 else f"{len(pods)} pods ({pods[0]} and others)"
        times = "once" if attempts == 1 else f"{attempts} times"
        said = last.message.removeprefix(f"binding to node {node} was refused: ")  # as the binder begins
        why = f": {said}" if said else ""
        text = f"node {node} refused {who} {times}, last {due_text(last.latest, now)}{why}"
        yield Line(text, "", {"node": node, "pods": len(pods), "attempts": attempts, "message": last.message})
    if len(by_node) > MOST_NODES:
        yield Line(f"and {counted(len(by_node) - MOST_NODES, 'more node')}")


def _requests(reading: Reading) -> Iterator[Line]:
    """Yield the requests of members that nobody will carry out."""
    members, snapshot = {task.task.key for task in reading.gang.tasks}, reading.snapshot
    for key, loss in snapshot.lost_requests.items():
        request = snapshot.bind_requests[key]
        if request.task in members:
            yield Line(
                f"BindRequest {key} to node {request.node} comes to nothing: {loss}", "", {"request": key, "node": request.node}
            )
