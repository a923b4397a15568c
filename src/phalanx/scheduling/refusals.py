"""Writes that did not come through: each is made again, after a pause that doubles every time.

What was written is remembered, so that it is not written again in every session. What the server refused, or never got, was not
written: it is forgotten, and the next session that may do so writes it anew. Where the rights to write are missing that must not
happen every second.
"""

from collections.abc import Callable, Container
from copy import copy

from msgspec.json import encode as to_json

from phalanx.controllers.controller import Create, Patch
from phalanx.errors import ClusterError
from phalanx.model.kinds import kind_of, object_key
from phalanx.scheduling.port import Done

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
MOST_REFUSED = 1000


class Refusals:
    """Knows until when each write rests."""

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        """Know of none; no pause is longer than `longest` seconds, unless the server asks for it."""
        self._longest = longest
        self._rests: dict[str, tuple[float, float, float]] = {}
        """By what they are about: how long the pause is, since when and until when."""
        self.due: float | None = None
        """When the first write may be made of those that were asked about and rest; set to None to begin anew."""

    def note(self, key: str, now: float, *, at_least: float = 0.0) -> None:
        """Let a write rest that failed; the server may ask for some seconds at least."""
        pause = min(2 * self._rests[key][0], self._longest) if key in self._rests else SHORTEST_PAUSE
        self._rests[key] = (pause, now, now + max(pause, at_least))

    def clear(self, key: str) -> None:
        """Forget failures: a write came through."""
        self._rests.pop(key, None)

    def until(self, key: str, now: float) -> float:
        """Return when a write may be made; 0 if at any time, also when the clock was set back since."""
        _, since, until = self._rests.get(key, (0.0, 0.0, 0.0))
        return until if now >= since else 0.0

    def is_due(self, key: str, now: float) -> bool:
        """Tell whether a write may be made; if not, `due` is no later than when it may."""
        until = self.until(key, now)
        if until > now:
            self.due = min(until, self.due or until)
        return until <= now

    def keep(self, keys: Container[str]) -> None:
        """Forget all others."""
        self._rests = {key: rest for key, rest in self._rests.items() if key in keys}

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._rests)


Send = Callable[[Done], None]


class SharedWrites:
    """Creations and patches that several want: each is tried once, and whoever wants it at the same time hears the same answer.

    A controller that is asked about a thousand pods may want to create, or to change, their one group a thousand times. What was
    refused is not tried again at once, whoever asks for it.
    """

    def __init__(self) -> None:
        """Know of none."""
        self._refusals = Refusals()
        self._problems: dict[str, ClusterError] = {}
        self._waiting: dict[str, list[Done]] = {}
        """Who waits for the answer to a request that is under way, by what is asked for."""

    def send(self, write: Create | Patch, now: Callable[[], float], send: Send, done: Done) -> None:
        """Write something, or hear what became of it; `send` sends the request."""
        key = _subject_of(write)
        if key and self._refusals.until(key, now()) > now():
            done(self._resting(key, now()))
        elif key in self._waiting:
            self._waiting[key].append(done)
        elif key:
            self._waiting[key] = [done]
            send(lambda problem: self._answered(key, problem, now()))
        else:
            send(done)

    def _answered(self, key: str, problem: ClusterError | None, now: float) -> None:
        if problem is None:
            self._refusals.clear(key)
            self._problems.pop(key, None)
        else:
            self._note(key, problem, now)
        for done in self._waiting.pop(key, ()):
            done(None if problem is None else self._resting(key, now))

    def _resting(self, key: str, now: float) -> ClusterError:
        """Return why something was not written, and for how long nobody is to try it."""
        problem = copy(self._problems[key])
        problem.retry_after = self._refusals.until(key, now) - now
        return problem

    def _note(self, key: str, problem: ClusterError, now: float) -> None:
        if len(self._problems) >= MOST_REFUSED:
            self._problems, self._refusals = {}, Refusals()
        self._problems[key] = problem
        self._refusals.note(key, now, at_least=problem.retry_after)

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._problems)


def _subject_of(write: Create | Patch) -> str:
    """Return what is asked for: an object, or a change of one; empty where the server makes up the name."""
    if isinstance(write, Patch):
        part = "status" if write.is_status else "object"
        return f"{write.kind.resource} {write.namespace}/{write.name} {part} {to_json(write.patch).decode()}"
    document = write.document
    return f"{kind_of(document).resource} {object_key(document)}" if document["metadata"].get("name") else ""
