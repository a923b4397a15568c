"""The trace of a session: what was considered, in which order, and why it went the way it did.

Nothing is recorded unless a level is asked for; a silent session pays one comparison for each step, and callers test the level
themselves before they compute something for it. An entry is data, one class for each kind (`trace_events.py`,
`trace_operations.py`, `trace_searches.py`), and its sentence is made when somebody reads it. The classes are structs of msgspec: so
many dataclasses would add a tenth of a second to the start of every command.

    3  what happened: queues and gangs in order, domains, tasks tried, placed and undone, the room of a node after that, nodes
       considered for a preemptor, evictions tried and decided, commit and discard
    4  orders, votes, admission, whatever is tried without effect
    5  each node and plugin: actions entered and left, filters, scores, the nodes and candidates that are refused

A line that stands for one of Volcano's log has its level (`docs/reference/trace.md` has both side by side).
"""

from collections.abc import Callable, Collection
from typing import ClassVar, ParamSpec

import msgspec

Fields = ParamSpec("Fields")

NEVER = 99
"""The level of what is not recorded: dry runs that only answer a question."""


class TraceEvent(msgspec.Struct, frozen=True):
    """One step of a session. A kind declares its level, its name and its sentence; the fields are what it is about."""

    at_level: ClassVar[int]
    event: ClassVar[str]
    sentence: ClassVar[str]

    @property
    def level(self) -> int:
        """From which verbosity on it is recorded."""
        return self.at_level

    @property
    def fields(self) -> dict[str, object]:
        """What it is about, by name; whether it is a trial comes last."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @property
    def text(self) -> str:
        """The step as a sentence."""
        return self.sentence.format_map(self.fields)

    @property
    def gangs(self) -> tuple[str, ...]:
        """The gangs that it concerns; none for a step of the session or of a queue, which concerns all."""
        return tuple(filter(None, (getattr(self, name, "") for name in ("gang", "preemptor"))))


class TrialEvent(TraceEvent, frozen=True, kw_only=True):
    """A step that is taken for good or in a dry run; a dry run is told later, and marked as such."""

    trial_level: ClassVar[int] = 4
    is_trial: bool = False

    @property
    def level(self) -> int:
        """From which verbosity on it is recorded."""
        return self.trial_level if self.is_trial else self.at_level

    @property
    def text(self) -> str:
        """The step as a sentence, marked if it is a trial."""
        return f"{'trial: ' if self.is_trial else ''}{self.unmarked}"

    @property
    def unmarked(self) -> str:
        """The sentence without the mark."""
        return self.sentence.format_map(self.fields)


class Trace:
    """Collects entries up to a level, of all gangs or of some; level 0 collects nothing."""

    __slots__ = ("_gangs", "events", "level")

    def __init__(self, level: int = 0, gangs: Collection[str] = ()) -> None:
        """Start empty."""
        self.level = level
        self._gangs = frozenset(gangs)
        self.events: list[TraceEvent] = []

    def wants(self, level: int, *gangs: str) -> bool:
        """Tell whether a step of this level is recorded that concerns these gangs, or the whole session if none is given."""
        return level <= self.level and (not self._gangs or not gangs or not self._gangs.isdisjoint(gangs))

    def note(self, kind: Callable[Fields, TraceEvent], *args: Fields.args, **kwargs: Fields.kwargs) -> None:
        """Record a step of a kind with these fields if it is wanted; a silent trace does not even make it."""
        if self.level:
            step = kind(*args, **kwargs)
            if self.wants(step.level, *step.gangs):
                self.events.append(step)
