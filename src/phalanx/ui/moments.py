"""A recording as clusters: one for each moment that somebody looks at."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from phalanx.ui.showing import Showing
from phalanx.ui.views import Json

MOST_OPEN = 4


@dataclass(frozen=True, slots=True)
class RecordedSpan:
    """From when to when there is a recording, in seconds since 1970."""

    begun: float
    ended: float

    def document(self) -> Json:
        """Return it as plain data."""
        return {"begun": self.begun, "ended": self.ended}


class Recording(Protocol):
    """A recording that can be looked at."""

    async def span(self) -> RecordedSpan:
        """Return from when to when it is."""
        ...

    async def moment(self, text: str) -> float:
        """Return the moment that a text means; empty for the end. Raises where it is none of the recording."""
        ...

    async def showing(self, moment: float) -> Showing:
        """Return the cluster as it was."""
        ...

    async def happenings(self) -> Json:
        """Return what happened in it over time, for the slider."""
        ...

    async def history(self, gang: str, until: float) -> list[Json]:
        """Return the moments in the life of a gang that the recording tells."""
        ...


class RecordedMoments:
    """The moments of a recording that were looked at last."""

    def __init__(self, recording: Recording) -> None:
        """Begin with none."""
        self.recording = recording
        self._open: OrderedDict[float, Showing] = OrderedDict()
        self._turn = asyncio.Lock()
        """A browser asks several things about a moment at once: it is read for the first of them."""

    async def at(self, text: str) -> Showing:
        """Return the cluster at a moment."""
        moment = await self.recording.moment(text)
        async with self._turn:
            if moment not in self._open:
                self._open[moment] = await self.recording.showing(moment)
        self._open.move_to_end(moment)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return self._open[moment]

    def close(self) -> None:
        """Close all of them."""
        for showing in self._open.values():
            showing.close()
