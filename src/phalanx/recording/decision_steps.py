"""The decisions of a session one after the other, from its record, and the first one at which two sessions part.

A record keeps decisions in the order in which they were taken, and so does a recording. How a session came to them is not in it:
that is a trace, and needs the code that decided.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from phalanx.recording.decision_record import Record
from phalanx.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """One decision about one pod."""

    event: str
    """bind, nominate, evict or plan."""
    task: str
    gang: str
    node: str = ""
    why: str = ""
    """Of an eviction: the action, and for whom."""

    @property
    def text(self) -> str:
        """The step as a sentence."""
        if self.event == "evict":
            return f"evict {self.task}{f' ({self.why})' if self.why else ''}"
        return f"{self.event} {self.task} {'to' if self.event == 'bind' else 'on'} {self.node}"

    def document(self) -> dict[str, str]:
        """Return the step as plain data."""
        found = {"event": self.event, "gang": self.gang, "task": self.task, "node": self.node, "why": self.why, "text": self.text}
        return {name: text for name, text in found.items() if text}


@dataclass(frozen=True, slots=True)
class StepPair:
    """The steps of both sessions at one place; None where one has fewer."""

    then: DecisionStep | None
    now: DecisionStep | None

    @property
    def gang(self) -> str:
        """Whom it is about."""
        return next((step.gang for step in (self.then, self.now) if step is not None), "")


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two sessions part."""

    number: int
    """So many steps are the same before it, in the same order."""
    pairs: list[StepPair]
    """What differs from there on, side by side, gang by gang; empty where only the order does."""
    alike: int
    """So many steps after it are on both sides too."""


def steps_of(record: Record, snapshot: Snapshot) -> list[DecisionStep]:
    """Return the decisions of a record: binds, nominations and evictions, each in the order in which they were taken."""
    gangs = {task: str(key) for key in snapshot.gangs for task in snapshot.members_of(key)}
    return [step for part in record.values() for step in _steps(part, gangs)]


def _steps(part: Mapping[str, Any], gangs: Mapping[Any, str]) -> Iterator[DecisionStep]:  # Any: a part of a record; keys of tasks
    for name, event in (("binds", "bind"), ("pipelined", "nominate")):
        for task, node in part.get(name, {}).items():
            yield DecisionStep(event, task, gangs.get(task, ""), node)
    for task, plan in part.get("plans", {}).items():
        yield DecisionStep("plan", task, gangs.get(task, ""), ", ".join(str(item) for item in plan if item))
    for task, (action, preemptor, _) in part.get("evictions", {}).items():
        yield DecisionStep("evict", task, gangs.get(task, ""), why=f"{action} for {preemptor}" if preemptor else action)


def parting(then: Sequence[DecisionStep], now: Sequence[DecisionStep]) -> Parting | None:
    """Return where two sessions part; None if both decide the same in the same order."""
    number = next((number for number, pair in enumerate(zip_longest(then, now)) if pair[0] != pair[1]), None)
    if number is None:
        return None
    pairs = _by_gang(then[number:], now[number:])
    differing = [pair for pair in pairs if pair.then != pair.now]
    return Parting(number, differing, len(pairs) - len(differing))


def _by_gang(then: Sequence[DecisionStep], now: Sequence[DecisionStep]) -> list[StepPair]:
    """Return the steps of both sides in pairs; gangs come in the order in which either side first decides about them."""
    sides = [{(step.gang, step.event, step.task): step for step in side} for side in (then, now)]
    firsts = sorted((number, step.gang) for side in (then, now) for number, step in enumerate(side))
    gangs = {gang: number for number, gang in enumerate(dict.fromkeys(gang for _, gang in firsts))}
    places = sorted({**sides[0], **sides[1]}, key=lambda place: gangs[place[0]])
    return [StepPair(sides[0].get(place), sides[1].get(place)) for place in places]
