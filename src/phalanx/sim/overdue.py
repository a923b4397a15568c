"""Gangs that have run longer than anybody expected, and whether that is so only because the cluster was looked at long ago.

Such a gang is assumed to end before it has run twice as long (`KnownDuration.at`). In a file that was written some days ago every
gang has: then the right question is asked as of the moment of the file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from phalanx.model.kinds import Document
from phalanx.model.moment import moment_of
from phalanx.sim.eta import EtaQuestion
from phalanx.sim.known_durations import KnownDuration

TIME_ENDINGS = ("Timestamp", "Time", "At", "time")
"""Fields of Kubernetes objects that end so hold a moment."""


@dataclass(frozen=True, slots=True)
class OverdueGang:
    """A gang, or a pod without one, that should have ended."""

    name: str
    known: KnownDuration
    done: float

    @property
    def at_most(self) -> float:
        """How much longer it is assumed to run at most."""
        return self.known.at(1.0, self.done) - self.done


def overdue_gangs(question: EtaQuestion) -> list[OverdueGang]:
    """Return those that have run longer than expected, by name."""
    gangs = [OverdueGang(str(key), question.durations[key], done) for key, done in question.done.items()]
    pods = [OverdueGang(str(key), known, done) for key, (known, done) in question.pods.items()]
    return sorted((item for item in (*gangs, *pods) if item.known.is_overdue(item.done)), key=lambda item: item.name)


def moment_of_input(question: EtaQuestion, documents: Iterable[Document]) -> float | None:
    """Return the newest moment in the objects, if some gang is overdue that was not at that moment; otherwise None."""
    overdue = overdue_gangs(question)
    if not overdue:
        return None
    past = (moment for document in documents for moment in _moments(document) if moment <= question.now)
    newest = max(past, default=question.now)
    age = question.now - newest
    return newest if any(not item.known.is_overdue(max(item.done - age, 0.0)) for item in overdue) else None


def _moments(value: Any, name: str = "") -> Iterator[float]:  # Any: a part of an object, as it was written
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _moments(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from _moments(part, name)
    elif isinstance(value, str) and name.endswith(TIME_ENDINGS):
        moment = moment_of(value)
        if moment is not None:
            yield moment
