"""Which faults strike the requests of one replica: drawn from a seed, and changing every few seconds like the weather."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from aiohttp import web

from tests.support.fault_proxy import Blow, Harm

T = TypeVar("T")
READ_CODES = (429, 500, 502, 503, 504)
CODES, WATCH_CODES, CODES_AFTER = (409, *READ_CODES), (410, *READ_CODES), (500, 502, 503, 504)
"""Nobody conflicts with a question, only what a watch goes on from can be gone, and what took effect was not refused by anybody: a
server that says 409 or 429 then has done nothing."""
SHORTEST_SPELL, LONGEST_SPELL = 3.0, 12.0
"""For how many seconds the weather stays as it is."""
REQUESTS: Mapping[Harm, float] = {
    Harm.LATE: 5.0, Harm.REFUSED: 6.0, Harm.REFUSED_AFTER: 2.0, Harm.RESET: 2.0, Harm.RESET_AFTER: 2.0, Harm.MUTE: 0.3,
    Harm.MUTE_AFTER: 0.3, Harm.SLOW: 2.0, Harm.HALF: 1.0,
}  # fmt: skip
"""What happens to requests, and how often in proportion. Few are mute: each takes a connection for half a minute."""
WATCHES: Mapping[Harm, float] = {
    Harm.CUT: 3.0, Harm.TRUNCATED: 2.0, Harm.GONE: 1.0, Harm.REPEATED: 2.0, Harm.SILENT: 0.5, Harm.REFUSED: 1.0, Harm.RESET: 1.0,
    Harm.LATE: 1.0,
}  # fmt: skip
LONGEST_WATCH = 20.0
"""Something happens to a watch within so many seconds, if it does at all."""
LONGEST_DELAY = 2.0


@dataclass(frozen=True, slots=True)
class Spell:
    """The weather of a few seconds: how many requests are struck, and by what if all are struck alike."""

    name: str
    requests: float
    watches: float
    code: int = 0


FAIR = Spell("fair", 0.005, 0.05)
SPELLS: Mapping[Spell, float] = {
    FAIR: 3.0,
    Spell("windy", 0.05, 0.4): 4.0,
    Spell("rough", 0.25, 0.8): 1.5,
    Spell("overloaded", 0.6, 0.1, 429): 0.4,
    Spell("broken", 0.8, 0.1, 500): 0.4,
}


@dataclass(slots=True)
class Weather:
    """Draws what happens to each request of one replica."""

    chance: Random
    clock: Callable[[], float] = time.monotonic
    struck: Counter[str] = field(default_factory=Counter)
    """How often what has happened."""
    _spell: Spell = FAIR
    _ends: float = float("-inf")

    def draw(self, request: web.Request) -> Blow | None:
        """Say what happens to a request."""
        blow = self.blow(is_watch="watch" in request.query, is_read=request.method == "GET")
        self.struck.update([] if blow is None else [blow.name])
        return blow

    def blow(self, *, is_watch: bool, is_read: bool) -> Blow | None:
        """Draw what happens to a watch or a request; one that only reads has no effect that could come before the fault."""
        self._change()
        if self.chance.random() >= (self._spell.watches if is_watch else self._spell.requests):
            return None
        if self._spell.code and not is_watch:
            return Blow(Harm.REFUSED, self._spell.code)
        harm = _drawn(self.chance, WATCHES if is_watch else REQUESTS)
        codes = WATCH_CODES if is_watch else READ_CODES if is_read else CODES_AFTER if harm is Harm.REFUSED_AFTER else CODES
        code = self.chance.choice(codes) if harm in (Harm.REFUSED, Harm.REFUSED_AFTER) else 0
        return Blow(harm, code, self.chance.uniform(0.05, LONGEST_WATCH if is_watch and harm is not Harm.LATE else LONGEST_DELAY))

    def _change(self) -> None:
        if (now := self.clock()) >= self._ends:
            self._spell = _drawn(self.chance, SPELLS)
            self._ends = now + self.chance.uniform(SHORTEST_SPELL, LONGEST_SPELL)


def _drawn(chance: Random, weights: Mapping[T, float]) -> T:
    return chance.choices(list(weights), list(weights.values()))[0]
