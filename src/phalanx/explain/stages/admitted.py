"""Does its queue take it? The queue and those above it, quotas and overcommitment: which number stands against which."""

from collections.abc import Iterator

import numpy as np

from phalanx.dialects.traits import traits_of
from phalanx.explain.gang_status import GangStatus, gang_status, has_minimum
from phalanx.explain.queue_figures import queue_line, queue_rows
from phalanx.explain.queue_refusals import refusals_with_text
from phalanx.explain.reading import Reading
from phalanx.explain.reason_code import NOT_ADMITTED
from phalanx.explain.reason_text import amount_text, meant, scarce_first
from phalanx.explain.stages.valid import LEFT_OUT
from phalanx.explain.tree import Line, Stage, StageResult
from phalanx.explain.why_kai import is_told_as_kai, queue_problem, refusal_text
from phalanx.model.listing import listed
from phalanx.model.quota import unit_name
from phalanx.model.resources import CPU, scale_of
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Number, Verdict

OF_JOBS = ("OverLimit", "NonPreemptibleOverQuota")
REFUSALS = (
    "QueueNotOpen", "QueueNotLeaf", "QueueTreeInvalid", "QueueQuotaExceeded", "QueueOverused", "ClusterOverused",
    "NamespaceQuotaExceeded", "MinResources", *OF_JOBS,
)  # fmt: skip
"""Verdicts about how much the gang's queue, its namespace or the cluster takes."""
AMOUNTS = ("limit", "taken", "wanted", "have", "used", "hard", "reserved", "quota", "allocated", "requested")
"""Numbers of verdicts that are amounts of a resource."""
MOST_RESOURCES, MOST_QUEUES = 3, 8
KINDS = {"capability": "may use", "deserved": "deserves", "fair_share": "has a fair share of"}
"""What bounds a queue, in the order in which it is shown."""


def admitted(reading: Reading) -> StageResult:
    """Say whether the queue takes the gang, with the numbers."""
    gang = reading.gang
    if any(verdict.reason in LEFT_OUT for verdict in gang.verdicts):
        return StageResult(Stage.ADMITTED, None)
    problem = _queue_line(reading)
    if problem is not None:
        return StageResult(Stage.ADMITTED, has_minimum(gang), (problem,))
    refusals = list(_refusals(reading))
    if not refusals and _is_not_admitted(reading):
        refusals = [Line("not admitted: no action of this session admits it", NOT_ADMITTED)]
    figures = tuple(_figures(reading))
    return StageResult(Stage.ADMITTED, not refusals or has_minimum(gang), (*refusals, *figures))


def _is_not_admitted(reading: Reading) -> bool:
    gang = reading.gang
    return (
        not is_told_as_kai(reading.outcome)
        and bool(gang.tasks)
        and gang.phase in ("", "Pending")
        and not has_minimum(gang)
        and not gang.verdicts
    )


# --- the queue itself ----------------------------------------------------------------------------------------------------


def _queue_line(reading: Reading) -> Line | None:
    """Return what is wrong with the queue, whatever it has; None if nothing is."""
    gang, outcome = reading.gang, reading.outcome
    if any(verdict.reason == "QueueNotFound" for verdict in gang.verdicts) or gang.gang.queue not in _queues(reading):
        return _missing_queue(reading)
    text = queue_problem(outcome, outcome.seen or reading.snapshot) if is_told_as_kai(outcome) else ""
    return Line(text, "QueueTreeInvalid", {"queue": gang.gang.queue}) if text else None


def _queues(reading: Reading) -> dict[str, object]:
    return {**reading.snapshot.queues, **reading.snapshot.queue_objects}


def _missing_queue(reading: Reading) -> Line:
    name, place = reading.gang.gang.queue, traits_of(reading.gang.gang).queue_field
    if not name:
        return Line(f"it names no queue; write one in {place}", "QueueNotFound")
    known = sorted(_queues(reading))
    close = meant(name, known)
    hint = f"did you mean {close!r}?" if close else f"create it, or write another one in {place}"
    below = (Line(f"the queues are {listed(known, MOST_QUEUES)}"),) if known else ()
    return Line(f"queue {name!r} does not exist; {hint}", "QueueNotFound", {"queue": name}, below)


# --- what it refuses -----------------------------------------------------------------------------------------------------


def _refusals(reading: Reading) -> Iterator[Line]:
    gang, said = reading.gang, set()
    if gang_status(gang) is GangStatus.PIPELINED:
        return  # an action that evicts came after what refused it
    for verdict, sentence in refusals_with_text(gang, reading.snapshot):
        text = refusal_text(verdict) or sentence
        if verdict.reason in REFUSALS and text not in said:
            said.add(text)
            yield Line(text, verdict.reason, _in_units(verdict), tuple(_details(reading, verdict)))


def _in_units(verdict: Verdict) -> dict[str, Number]:
    """Return the numbers of a verdict in cores, bytes and devices."""
    resource = str(verdict.numbers.get("resource", ""))
    is_cpu_of_job = verdict.reason in OF_JOBS and resource == CPU
    scale = scale_of(CPU) if is_cpu_of_job else 1 if verdict.reason in OF_JOBS else scale_of(unit_name(resource))
    return {
        key: value if isinstance(value, str) or key not in AMOUNTS or not resource else value / scale
        for key, value in verdict.numbers.items()
    }


def _details(reading: Reading, verdict: Verdict) -> Iterator[Line]:
    if verdict.reason == "ClusterOverused" and "resource" in verdict.numbers:
        yield Line(_overcommit(reading, verdict), "", {"factor": verdict.numbers["factor"]})
    above = _bounding_queue(reading, verdict)
    if above:
        line = " below ".join(map(repr, queue_line(reading.snapshot.queue_objects, reading.gang.gang.queue)))
        yield Line(f"it is queue {above!r} that sets this limit: {line}", "", {"queue": above})


def _bounding_queue(reading: Reading, verdict: Verdict) -> str:
    """Return the queue above its own that sets the limit; empty if its own does.

    Limits are handed down, so that a queue may be at one that it does not name itself.
    """
    queues, own, resource = reading.snapshot.queue_objects, reading.gang.gang.queue, str(verdict.numbers.get("resource"))
    if str(verdict.numbers.get("queue", own)) != own:
        return str(verdict.numbers["queue"])
    if verdict.reason != "QueueQuotaExceeded" or (queues[own].capability or {}).get(resource) == verdict.numbers.get("limit"):
        return ""
    line = list(queue_line(queues, own))[1:]
    return next((name for name in line if (queues[name].capability or {}).get(resource) == verdict.numbers.get("limit")), "")


def _overcommit(reading: Reading, verdict: Verdict) -> str:
    """Say what overcommitment leaves to gangs that wait, and what they have of it."""
    numbers, snapshot = verdict.numbers, reading.snapshot
    name = str(numbers["resource"])
    row = snapshot.space.row_by_name[name]
    there, used = (amount_text(name, float(np.sum(amounts[row]))) for amounts in (snapshot.nodes.allocatable, snapshot.used))
    left, taken, wanted = (amount_text(name, float(numbers[key])) for key in ("limit", "taken", "wanted"))
    whole = f"{float(numbers['factor']):g} times the cluster's {there} {name} less {used} in use is {left}"
    return f"{whole}; admitted gangs that wait have {taken} of it, and {wanted} more are wanted"


# --- what queues have ----------------------------------------------------------------------------------------------------


def _figures(reading: Reading) -> Iterator[Line]:
    """Yield what the queue has of what the gang asks for, and those above it that are bounded."""
    rows = queue_rows(reading.snapshot, reading.decisions.queues)
    for name in queue_line(reading.snapshot.queue_objects, reading.gang.gang.queue):
        parts, things, is_bounded = [], dict[str, float](), name == reading.gang.gang.queue
        for resource in _resources(reading.gang)[:MOST_RESOURCES]:
            held = rows.get((name, resource, "allocated"), 0.0)
            bounds = {word: rows[name, resource, kind] for kind, word in KINDS.items() if (name, resource, kind) in rows}
            parts.append(_amounts(resource, held, bounds))
            things[resource] = held
            is_bounded |= bool(bounds)
        if parts and is_bounded:
            yield Line(f"queue {name!r} has {', '.join(parts)}", "", {"queue": name, **things})


def _resources(gang: GangState) -> list[str]:
    """Return what the gang asks for, the scarce things first."""
    asked = {name for task in gang.tasks for name, amount in task.task.shape.request.items() if amount}
    asked |= {name for name, amount in (gang.gang.min_resources or {}).items() if amount}
    return scarce_first(asked)


def _amounts(resource: str, held: float, bounds: dict[str, float]) -> str:
    texts = [f"{word} {amount_text(resource, amount * scale_of(resource))}" for word, amount in bounds.items()]
    return f"{amount_text(resource, held * scale_of(resource))} {resource}" + (f" ({', '.join(texts)})" if texts else "")
