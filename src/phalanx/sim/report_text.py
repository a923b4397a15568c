"""The texts of the report page: durations, amounts, and sentences about a whole simulation."""

from collections.abc import Sequence
from itertools import pairwise
from math import floor
from typing import Any

NOTHING = "–"
NAMED_GANGS = 8
"""Of a deadlock; the others are counted."""

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_RESOURCES = {"nvidia.com/gpu": "GPU", "cpu": "CPU"}

Result = dict[str, Any]  # plain data, as it is written to JSON


def duration(seconds: float | None) -> str:
    """Write seconds in the two largest units that say something: "2 h 5 min"."""
    if seconds is None:
        return NOTHING
    if seconds < 9.95:
        return f"{floor(seconds * 10 + 0.5) / 10:.1f}".removesuffix(".0") + " s"
    for (large, size), (small, part) in pairwise(_UNITS):
        whole, rest = divmod(floor(seconds / part + 0.5), size // part)
        if whole:
            return f"{whole} {large}" + (f" {rest} {small}" if rest else "")
    return f"{floor(seconds + 0.5)} s"


def number(value: float | None) -> str:
    """Write a number with commas, and with decimals only where they matter."""
    if value is None:
        return NOTHING
    decimals = 0 if abs(value) >= 100 or value == floor(value) else 2
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").removesuffix(".") if decimals else text


def percent(fraction: float | None) -> str:
    """Write a fraction as a percentage."""
    return NOTHING if fraction is None else f"{number(floor(fraction * 1000 + 0.5) / 10)} %"


def counted(count: float, noun: str) -> str:
    """Write a number with its noun, one or many."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def resource_noun(result: Result) -> str:
    """Return what one unit of the counted resource is called."""
    return _RESOURCES.get(result["resource"], str(result["resource"]))


def resource_word(result: Result) -> str:
    """Return what the counted resource is called."""
    return f"{resource_noun(result)}s" if result["resource"] in _RESOURCES else str(result["resource"])


def work(result: Result, amount_seconds: float | None) -> str:
    """Write an amount of a resource, held for some seconds."""
    if amount_seconds is None:
        return NOTHING
    hours = amount_seconds / 3600
    amount, unit = (hours, "hours") if hours >= 1 else (amount_seconds, "seconds")
    return f"{number(amount)} {resource_noun(result)} {unit}"


def titles(results: Sequence[Result]) -> list[str]:
    """Return what each result is called beside the others; those that would be called the same get a number."""
    plain = [f"{result['profile']}{_seed(result)}" for result in results]
    return [text if plain.count(text) == 1 else f"{text} ({plain[: index + 1].count(text)})" for index, text in enumerate(plain)]


def _seed(result: Result) -> str:
    return "" if result["seed"] is None else f", seed {result['seed']}"


def headline(result: Result) -> str:
    """Say in a few sentences what happened."""
    return " ".join(
        sentence for sentence in (_scope(result), _fate(result), _use(result), _waiting(result), _losses(result)) if sentence
    )


def _scope(result: Result) -> str:
    sessions = counted(result["metrics"]["sessions"], "session")
    return f"{duration(result['seconds'])} of virtual time from {result['start']}, decided in {sessions}."


def _fate(result: Result) -> str:
    metrics = result["metrics"]
    if not metrics["gangs"]:
        return "No gang was submitted."
    came, started, finished = counted(metrics["gangs"], "gang"), number(metrics["started"]), number(metrics["finished"])
    return f"{came} came: {started} started, {finished} finished, {_waiting_at_end(metrics['waiting'])}."


def _waiting_at_end(count: int) -> str:
    return f"{number(count)} {'waits' if count == 1 else 'wait'} at the end" if count else "none waits at the end"


def _use(result: Result) -> str:
    metrics = result["metrics"]
    if metrics["allocation"] is None:
        return ""
    held, useful = percent(metrics["allocation"]), percent(metrics["occupancy"])
    return f"On average {held} of all {resource_word(result)} were held, {useful} by gangs that were whole."


def _waiting(result: Result) -> str:
    wait = result["metrics"]["wait"]
    if not wait["count"]:
        return ""
    if not wait["max"]:
        return "No gang had to wait."
    usual, long, longest = (duration(wait[key]) for key in ("p50", "p90", "max"))
    return f"Half of the gangs waited {usual} at most, nine of ten {long} at most, and the longest wait was {longest}."


def _losses(result: Result) -> str:
    metrics = result["metrics"]
    if not metrics["evictions"]:
        return "Nothing was evicted."
    were = "was" if metrics["evictions"] == 1 else "were"
    lost = f"; {work(result, metrics['lostWork'])} of work were lost" if metrics["lostWork"] else ""
    return f"{counted(metrics['evictions'], 'pod')} of {counted(metrics['evictedGangs'], 'gang')} {were} evicted{lost}."


def deadlocks(result: Result) -> list[str]:
    """Say of each deadlock who is in it, since when, and what it costs."""
    if not result["deadlocks"]:
        return ["There was no deadlock: no gangs kept each other from starting by what they hold."]
    return [_deadlock(result, deadlock) for deadlock in result["deadlocks"]]


def _deadlock(result: Result, deadlock: dict[str, Any]) -> str:  # plain data
    gangs = deadlock["gangs"]
    noun = resource_noun(result) if deadlock["holds"] == 1 else resource_word(result)
    who = f"{_list(gangs)} {'holds' if len(gangs) == 1 else 'hold'} {number(deadlock['holds'])} {noun}"
    cause = "and cannot start" if len(gangs) == 1 else "together and keep each other from starting"
    since = duration(deadlock["since"]) if deadlock["since"] else "the start"
    return f"From {since} on, {who} {cause}: none gives back what it has, and what is free is not enough."


def _list(names: list[str]) -> str:
    shown = list(names[:NAMED_GANGS])
    if len(names) > NAMED_GANGS:
        shown.append(counted(len(names) - NAMED_GANGS, "other gang"))
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
