"""One request for something on the page: what it is about, and what whoever asks may see."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from phalanx.errors import ConfigError, Missing
from phalanx.model.bounds import NESTING, is_too_deep

if TYPE_CHECKING:  # a scheduler that serves the page loads these when somebody opens it
    from phalanx.ui.moments import RecordedMoments
    from phalanx.ui.questions.desk import Question
    from phalanx.ui.scope import Scope
    from phalanx.ui.serving.access import Access
    from phalanx.ui.showing import Showing
    from phalanx.ui.simulations import Simulations

MOST_BYTES = 64 * 1024
MOST_DIGITS = 9
Json = dict[str, Any]  # Any: as JSON has it
Answer = Callable[["Reader"], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class PageSetup:
    """What is shown, and to whom."""

    title: str
    access: "Access"
    showing: "Showing | None" = None
    """The cluster as it is; None where only a recording or simulations are shown."""
    moments: "RecordedMoments | None" = None
    simulations: "Simulations | None" = None
    extra: "Mapping[str, Callable[..., Question]]" = field(default_factory=dict)
    """Questions that are answered by what lies above this package, such as ``eta``."""


@dataclass(frozen=True, slots=True)
class Served:
    """Everything behind the page."""

    setup: PageSetup
    answers: Mapping[str, Answer]
    """What can be asked about a cluster, by method and path: ``GET overview``."""
    others: Mapping[str, Answer]
    """What can be asked that is about no cluster."""

    def showings(self) -> "Collection[Showing]":
        """Return what has to be closed at the end."""
        return [] if self.setup.showing is None else [self.setup.showing]


@dataclass(frozen=True, slots=True)
class Reader:
    """Whoever asks, and what about."""

    request: web.Request
    page: PageSetup
    scope: "Scope"
    about: "Showing | None" = None

    @property
    def showing(self) -> "Showing":
        """The cluster that it is about, where it has to be about one."""
        if self.about is None:
            raise Missing("there is no cluster here")
        return self.about

    def asked(self, name: str) -> str:
        """Return a parameter that has to be there."""
        found = self.request.query.get(name, "")
        if not found:
            raise ConfigError(f"{name}: missing; write ?{name}=...")
        return found

    def number(self, name: str, default: int) -> int:
        """Return a parameter that is a whole number."""
        text = self.request.query.get(name, str(default))
        if not text.isdecimal() or len(text) > MOST_DIGITS:
            raise ConfigError(f"{name}: {text!r} is not a whole number of at most {MOST_DIGITS} digits")
        return int(text)

    async def body(self) -> Json:
        """Return the body of the request, a JSON object."""
        text = await self.request.read()
        if len(text) > MOST_BYTES:
            raise ConfigError(f"the body has {len(text):,} bytes; {MOST_BYTES:,} at most")
        try:
            found: Any = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise ConfigError(f"the body is not JSON: {problem}") from problem
        if not isinstance(found, dict):
            raise ConfigError("the body is no JSON object; write for example {'changes': ['node/n1=drained']}")
        if is_too_deep(found):
            raise ConfigError(f"the body is nested too deeply: {NESTING.text}")
        return found
