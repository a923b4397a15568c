"""What pods and groups remember of binds that failed: an annotation, written until the server has it.

Sessions go by it at once. Whoever leads next knows only what the server has, so what it refuses is written again, after a pause
that doubles every time.
"""

from functools import partial

from phalanx.controllers.controller import Patch
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.errors import ClusterError, Missing, Unreachable
from phalanx.model.kinds import Document, Kind, kind_of
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.port import ClusterPort, Effort
from phalanx.scheduling.refusals import Refusals

Spot = tuple[Kind, str, str]


class FailureNotes:
    """Writes the annotations of one process."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache) -> None:
        """Begin with nothing to write."""
        self._port, self._cache = port, cache
        self._texts: dict[Spot, tuple[str, str | None]] = {}
        """By object: its uid, and what is to be written that the server has not taken yet."""
        self._refusals = Refusals()

    def write(self, document: Document, text: str | None) -> None:
        """Let an object remember something, or forget everything."""
        meta = document["metadata"]
        spot = (kind_of(document), meta.get("namespace", ""), meta["name"])
        self._texts[spot] = (meta.get("uid", ""), text)
        self._cache.note(document, FAILED_BINDS, text)
        self._send(spot, text)

    def _send(self, spot: Spot, text: str | None) -> None:
        patch = Patch(*spot, {"metadata": {"annotations": {FAILED_BINDS: text}}})
        self._port.send(patch, partial(self._answered, spot, text), effort=Effort.JOINED)

    def _answered(self, spot: Spot, text: str | None, problem: ClusterError | None) -> None:
        if spot not in self._texts or self._texts[spot][1] != text:
            return  # a later one is on its way
        if problem is None or isinstance(problem, Missing | Unreachable):  # the object is gone, or another scheduler has taken over
            self._settle(spot)
            return
        now = self._port.clock.now
        self._refusals.note(str(spot), now, at_least=problem.retry_after)
        self._port.clock.after(self._refusals.until(str(spot), now) - now, partial(self._again, spot, text))

    def _again(self, spot: Spot, text: str | None) -> None:
        if spot not in self._texts or self._texts[spot][1] != text:
            return
        document = self._port.view.find(*spot)
        if document is None or document["metadata"].get("uid", "") != self._texts[spot][0]:
            self._settle(spot)
        else:
            self._send(spot, text)

    def _settle(self, spot: Spot) -> None:
        del self._texts[spot]
        self._refusals.clear(str(spot))
        self._cache.settle(spot[0], f"{spot[1] or 'default'}/{spot[2]}", self._port.view.find(*spot))
