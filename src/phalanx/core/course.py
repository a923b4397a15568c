"""The course of a session: what was considered, in which order, and why it went the way it did.

Nothing is recorded unless a level is asked for; callers test `level` first, so a silent session pays one comparison.

    3  queues and gangs in order, overused queues, gangs skipped, tasks placed, commit and discard
    4  orders and votes: validity, readiness, starving, enqueue votes, tasks tried
    5  actions entered and left, filters and scores per class of tasks
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CourseEvent:
    """One step of a session."""

    level: int
    event: str
    text: str
    fields: dict[str, object] = field(default_factory=dict)


class Course:
    """Collects events up to a level; level 0 collects nothing."""

    __slots__ = ("events", "level")

    def __init__(self, level: int = 0) -> None:
        """Start empty."""
        self.level = level
        self.events: list[CourseEvent] = []

    def note(self, level: int, event: str, text: str, **fields: object) -> None:
        """Record a step if its level is wanted."""
        if level <= self.level:
            self.events.append(CourseEvent(level, event, text, fields))
