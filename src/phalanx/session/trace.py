"""The trace of a session: what was considered, in which order, and why it went the way it did.

Nothing is recorded unless a level is asked for; callers test `level` first, so a silent session pays one comparison.

    3  queues and gangs in order, overused queues, gangs skipped, tasks placed, commit and discard
    4  orders and votes: validity, readiness, starving, enqueue votes, tasks tried
    5  actions entered and left, filters and scores per class of tasks, the nodes that each filter refuses
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_NAMES = 5
"""A sentence lists this many; the fields of a step have all."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One step of a session."""

    level: int
    event: str
    text: str
    fields: dict[str, object] = field(default_factory=dict)


class Trace:
    """Collects events up to a level; level 0 collects nothing."""

    __slots__ = ("events", "level")

    def __init__(self, level: int = 0) -> None:
        """Start empty."""
        self.level = level
        self.events: list[TraceEvent] = []

    def note(self, level: int, event: str, text: str, **fields: object) -> None:
        """Record a step if its level is wanted."""
        if level <= self.level:
            self.events.append(TraceEvent(level, event, text, fields))


def listed(names: Sequence[str]) -> str:
    """Write the first few of many names."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def note_votes(trace: Trace, hook: str, question: Sequence[Any], votes: Mapping[str, Any], chosen: Sequence[Any]) -> None:
    """Record what each plugin says about victims, and what comes out."""
    preemptor = question[0].task.key
    said = {name: "no say" if vote is None else [task.task.key for task in vote] for name, vote in votes.items()}
    names = [task.task.key for task in chosen]
    text = f"{len(names)} task(s) may go for {preemptor}" + (f": {', '.join(names)}" if names else "")
    trace.note(4, "victims", text, task=preemptor, hook=hook, votes=said, victims=names)
