"""What would start a gang: changes that were tried by a whole session, and as little of each as is enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.whatif.changes.object_change import ObjectChange

Changes = tuple[ObjectChange, ...]


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes with which a gang starts."""

    sentence: str
    changes: Changes
    smaller: tuple[Changes, ...] = ()
    """A step less, each: the gang does not start with any of these."""

    @property
    def text(self) -> str:
        """The sentence, and how one asks for more about it."""
        asked = " ".join(f"--if '{change.text}'" for change in self.changes)
        return f"{self.sentence} ({asked})"

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"text": self.sentence, "changes": [change.text for change in self.changes]}


@dataclass(frozen=True, slots=True)
class Candidate:
    """Changes that may start a gang: fixed ones, or as many steps of something as are needed."""

    sentence: Callable[[int], str]
    """What so many steps are, behind "would start"."""
    changes: Callable[[int], Changes]
    most: int = 1
    """The largest number of steps that makes sense."""
    guess: int = 1
    """How many steps are probably enough."""

    @classmethod
    def fixed(cls, sentence: str, *changes: ObjectChange) -> "Candidate":
        """Return changes of which there is no more or less."""
        return cls(lambda _: sentence, lambda _: changes)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found."""

    remedies: Sequence[Remedy]
    """What the user of the gang can change comes first, then queues, other gangs and nodes."""
    tried: int
    """How many different changes were tried, each by a session."""
    untried: Sequence[str] = ()
    """Kinds of changes for which no time was left."""

    @property
    def summary(self) -> str:
        """What to say where nothing was found, or not everything was tried."""
        late = f"; no time was left to try {', '.join(self.untried)}" if self.untried else ""
        if not self.remedies:
            return f"none of the {self.tried} changes tried starts it{late}" if self.tried else f"no change was tried{late}"
        return late.removeprefix("; ")

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        found = {"remedies": [remedy.document() for remedy in self.remedies], "tried": self.tried, "untried": list(self.untried)}
        return {**found, **({"summary": self.summary} if self.summary else {})}
