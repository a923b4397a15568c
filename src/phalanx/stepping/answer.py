"""What a command of the debugger answers: lines for people and the same as data, and how a step is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.explain.answer import step_document
from phalanx.model.listing import listed
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_events import GangsAhead
from phalanx.session.trace_searches import NoVictimsFound, VictimsVoted
from phalanx.stepping.place import Place
from phalanx.stepping.stepped_session import Step
from phalanx.stepping.watches import Value, change_text

INDENT = "     "


@dataclass(frozen=True, slots=True)
class Answer:
    """What is shown."""

    lines: Sequence[str]
    data: Mapping[str, Any] = field(default_factory=dict)  # Any: as JSON has it
    is_last: bool = False
    """Nothing more is asked."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value before and after a step."""

    before: Value
    after: Value

    @property
    def is_one(self) -> bool:
        """Tell whether both differ."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class StepView:
    """A step, and everything that is known about it."""

    step: Step
    of: int
    node: str = ""
    """The node that it is about."""
    room: Mapping[str, Change] = field(default_factory=dict)
    """The books of that node."""
    watches: Mapping[str, Change] = field(default_factory=dict)
    stops: Sequence[str] = ()
    """Why the session stops here, if it was told to."""

    def answer(self) -> Answer:
        """Return it for people and programs."""
        return Answer(self._lines(), self._data())

    def _lines(self) -> list[str]:
        own = [*place_lines(self.step.place), *_details(self.step.event), *self._room_lines()]
        watched = [f"watch {name}: {change_text(each.before, each.after)}" for name, each in self.watches.items()]
        head = [f"stop at {text}" for text in self.stops if not text.startswith("watch")]  # those show how they change
        return [*head, str(self.step), *(f"{INDENT}{line}" for line in (*own, *watched))]

    def _room_lines(self) -> list[str]:
        """Say how the room of the node changes; `used` and mostly `future` say nothing else than `idle`."""
        if not self.room:
            return []
        idle = self.room["idle"]
        others = {book: each for book, each in self.room.items() if book != "used" and each.is_one and each != idle}
        texts = (f"{book} {change_text(each.before, each.after)}" for book, each in {"idle": idle, **others}.items())
        return [f"room on {self.node}: {'; '.join(texts)}"]

    def _data(self) -> dict[str, Any]:
        place = self.step.place
        data: dict[str, Any] = {
            "step": self.step.number, "of": self.of, **place_data(place), "trace": step_document(self.step.event),
            "watches": _changes(self.watches), "stops": list(self.stops),
        }  # fmt: skip
        return data | ({"room": {"node": self.node, **_changes(self.room)}} if self.node else {})


def _changes(changes: Mapping[str, Change]) -> dict[str, Any]:
    return {name: {"before": each.before, "after": each.after} for name, each in changes.items()}


def place_data(place: Place) -> dict[str, Any]:
    """Return where a step belongs."""
    names = {"shard": place.shard, "action": place.action, "queue": place.queue, "gang": place.gang}
    return {name: text for name, text in names.items() if text} | {"undecided": dict(place.undecided)}


def place_lines(place: Place) -> list[str]:
    """Say where a step belongs: in which action, queue and gang, and how much is not decided."""
    parts = (("shard", place.shard), ("action", place.action), ("queue", place.queue), ("gang", place.gang))
    inside = ", ".join(f"{word} {name}" for word, name in parts if name)
    open_operations = ", ".join(f"{count} to {kind}" for kind, count in place.undecided.items())
    return [f"in {inside}"] * bool(inside) + [f"not decided yet: {open_operations}"] * bool(open_operations)


def _details(event: TraceEvent) -> list[str]:
    """Say what the sentence of an event leaves out."""
    match event:
        case VictimsVoted():
            return [
                f"{plugin} lets go: {'no say' if vote is None else listed(vote) or 'nobody'}"
                for plugin, vote in event.votes.items()
            ]
        case GangsAhead():
            return [_ahead_text(each.gang, each.plugin, each.its, each.mine) for each in event.ahead]
        case NoVictimsFound():
            return [f"{each.gang} stays: it {each.reason}{f' ({each.plugin})' if each.plugin else ''}" for each in event.spared]
        case _:
            return []


def _ahead_text(gang: str, plugin: str, its: float | str, mine: float | str) -> str:
    return f"{gang} is before it by {plugin}: {its} and {mine}" if plugin else f"{gang} is before it: it is older"
