"""Simulations for people: a timeline, the gangs, figures, deadlocks, and several profiles side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.cli.output import Terminal, columns, with_sentence, write_lines
from phalanx.cli.streams import visible
from phalanx.explain.reason_text import counted
from phalanx.model.listing import listed
from phalanx.sim.comparison import ComparedMetric, Comparison
from phalanx.sim.metrics import Metric, metrics_of_one, short_time
from phalanx.sim.playback import End, Ending
from phalanx.sim.scale_text import scale_event
from phalanx.sim.size_classes import size_words

MOST_EVENTS, MOST_GANGS, MOST_NAMED = 40, 40, 3
"""A table shows so many, and a sentence names so many; more are counted."""
NODE_PHRASES = {
    "die": "dies", "return": "returns", "drain": "is drained", "cordon": "is cordoned", "uncordon": "is uncordoned",
    "leave": "leaves", "join": "joins",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShownSimulation:
    """One simulation, ready to be shown."""

    result: Mapping[str, Any]
    node_events: Sequence[tuple[float, str, str]]
    ending: Ending


def ending_text(shown: ShownSimulation) -> str:
    """Say when and why a simulation ended."""
    waiting = shown.result["metrics"]["waiting"]
    who = (
        f"{counted(waiting, 'gang')} still {'waits' if waiting == 1 else 'wait'}"
        if waiting
        else "pods beyond their gang's minimum still wait"
    )
    after = f"{shown.result['profile']}: ended after {short_time(shown.ending.seconds)}"
    texts = {
        End.REACHED: "as long as was asked for",
        End.DONE: "nothing more can happen",
        End.HOPELESS: f"{who}, and for a day nothing has changed",
        End.INTERRUPTED: "interrupted; this is what was known by then",
    }
    return f"{after}: {texts[shown.ending.end]}"


def never_started(result: Mapping[str, Any]) -> Iterator[str]:
    """Say which gangs never started; nothing where all did."""
    names = [gang["name"] for gang in result["gangs"] if gang["started"] is None]
    if names:
        shown = listed(names, MOST_NAMED)
        yield f"{result['profile']}: {len(names)} of {counted(len(result['gangs']), 'gang')} never started: {shown}"


def missing_text(names: Sequence[str]) -> Iterator[str]:
    """Say which profiles were not compared because of Ctrl-C; nothing where all were."""
    if names:
        yield f"interrupted before {', '.join(names)}: {'it is' if len(names) == 1 else 'they are'} missing here"


# --- one simulation ------------------------------------------------------------------------------------------------------


def write_one(shown: ShownSimulation, screen: Terminal) -> None:
    """Write everything about a simulation."""
    write_lines(_lines(shown, screen))


def _lines(shown: ShownSimulation, screen: Terminal) -> Iterator[str]:
    found = shown.result
    if not found["gangs"]:
        yield f"No gang arrived. {ending_text(shown)}"
        return
    yield from ("TIMELINE", *_timeline(shown), "", *_gangs(found["gangs"], screen))
    yield from ("", "WAITS", *aligned(_waits(found["metrics"])))
    yield from ("", "METRICS", *aligned([(metric.label, metric.text(found)) for metric in _shown_apart(found)], numbers=False))
    if found["deadlocks"]:
        yield from ("", "DEADLOCKS", *(_deadlock(item, found["resource"]) for item in found["deadlocks"]))
    yield from ("", ending_text(shown), *never_started(found))


def _timeline(shown: ShownSimulation) -> Iterator[str]:
    events = sorted(_events(shown), key=lambda event: event[0])
    yield from columns([(short_time(moment), text) for moment, text in events[:MOST_EVENTS]])
    if len(events) > MOST_EVENTS:
        yield f"and {len(events) - MOST_EVENTS} more events; -o json has all of them"


def _events(shown: ShownSimulation) -> Iterator[tuple[float, str]]:
    """Yield what happened, unordered."""
    for moment, node, event in shown.node_events:
        yield moment, f"node {node} {NODE_PHRASES[event]}"
    for gang in shown.result["gangs"]:
        yield gang["submitted"], f"{gang['name']} arrives with {counted(gang['tasks'], 'task')}"
        yield from _life(gang)
    yield from _evictions(shown.result["evictions"])
    yield from ((item["time"], scale_event(item)) for item in shown.result.get("autoscaler", {}).get("events", ()))
    yield from ((item["time"], f"{item['gang']} times out: {item['message']}") for item in shown.result["timeouts"])


def _life(gang: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    for number, (since, until) in enumerate(gang["spans"]):
        yield since, f"{gang['name']} {'starts again' if number else 'starts'}"
        if until is not None and until != gang["finished"]:
            yield until, f"{gang['name']} is interrupted"
    if gang["finished"] is not None:
        yield gang["finished"], f"{gang['name']} finishes"


def _evictions(evictions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, str]]:
    """Yield the pods that one gang loses at one moment for one reason as one event."""
    counts: dict[tuple[float, str, str, str, str], int] = {}
    for item in evictions:
        key = item["time"], item["gang"] or item["pod"], item["action"], item["for"], item["message"]
        counts[key] = counts.get(key, 0) + 1
    for (moment, gang, action, preemptor, message), count in counts.items():
        reason = f" for {preemptor}" if preemptor and preemptor != gang else ""
        yield moment, f"{gang} loses {counted(count, 'pod')} by {action}{reason}{f': {message}' if message else ''}"


def _gangs(gangs: Sequence[Mapping[str, Any]], screen: Terminal) -> Iterator[str]:
    header = ("GANG", "QUEUE", "TASKS", "MIN", "ARRIVES", "STARTS", "FINISHES", "WAIT", "RUN", "EVICTED")
    rows = [
        (*(str(gang[name]) for name in ("name", "queue", "tasks", "minimum")), *map(short_time, _times(gang)), str(gang["evicted"]))
        for gang in gangs[:MOST_GANGS]
    ]
    lines = list(aligned([header, *rows], texts=2))
    width = max(map(len, lines))
    yield f"{lines[0].ljust(width)}  WHY"
    for line, gang in zip(lines[1:], gangs, strict=False):
        yield from with_sentence(line.ljust(width), width + 2, gang["why"], screen)
    if len(gangs) > MOST_GANGS:
        yield f"and {counted(len(gangs) - MOST_GANGS, 'more gang')}; -o json has all of them"


def _times(gang: Mapping[str, Any]) -> tuple[float | None, ...]:
    return gang["submitted"], gang["started"], gang["finished"], gang["wait"], gang["run"]


def aligned(rows: Sequence[Sequence[str]], *, texts: int = 1, numbers: bool = True) -> Iterator[str]:
    """Align columns: the first ones are texts, the rest numbers."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if place < texts or not numbers else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _waits(metrics: Mapping[str, Any]) -> list[tuple[str, ...]]:
    header = ("OF", "GANGS", "MEAN", "P50", "P90", "P99", "MAX")
    groups = {"all": metrics["wait"]}
    groups |= {f"queue {name}": waits for name, waits in metrics["waitByQueue"].items()}
    groups |= {size_words(name): waits for name, waits in metrics["waitBySize"].items()}
    return [header, *((name, *_wait_cells(waits)) for name, waits in groups.items())]


def _wait_cells(waits: Mapping[str, float]) -> tuple[str, ...]:
    return str(waits["count"]), *(short_time(waits[name]) for name in ("mean", "p50", "p90", "p99", "max"))


def _shown_apart(result: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the metrics that are not in the table of waits."""
    return (metric for metric in metrics_of_one(result) if metric.path[0] not in ("wait", "waitBySize"))


def _deadlock(item: Mapping[str, Any], resource: str) -> str:
    names, holds = item["gangs"], f"{item['holds']:g} {resource}"
    since = f"since {short_time(item['since'])}"
    if len(names) == 1:
        return f"{since} {names[0]} holds {holds}, has less than its minimum, and gets no more"
    shown = (
        ", ".join(names[:-1][:MOST_GANGS]) + f" and {names[-1] if len(names) <= MOST_GANGS else f'{len(names) - MOST_GANGS} more'}"
    )
    return f"{since} {shown} hold {holds} together; none of them has its minimum, and each waits for what the others hold"


# --- several side by side ------------------------------------------------------------------------------------------------


def write_comparison(found: Comparison, shown: Sequence[ShownSimulation]) -> None:
    """Write one column per profile, with a star at the best of each line, and what each profile left undone."""
    write_lines([*comparison_lines(found), *_undone(shown)])


def comparison_lines(found: Comparison) -> Iterator[str]:
    """Write one column per profile, with a star at the best of each line, and what that means."""
    rows = [("", *(f"{profile}  " for profile in found.profiles)), *map(_compared, found.lines)]
    yield from aligned(rows)
    yield from ("", *found.notes)


def _compared(line: ComparedMetric) -> tuple[str, ...]:
    return line.metric.label, *(f"{value.text} {'*' if value.is_best else ' '}" for value in line.values)


def _undone(shown: Sequence[ShownSimulation]) -> Iterator[str]:
    for item in shown:
        yield ending_text(item)
        for deadlock in item.result["deadlocks"]:
            yield f"{item.result['profile']}: deadlock {_deadlock(deadlock, item.result['resource'])}"
        yield from never_started(item.result)
