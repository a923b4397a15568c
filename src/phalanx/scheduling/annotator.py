"""Annotations by which objects remember what sessions build on, such as binds that failed: written until the server has them.

Sessions go by them at once. Whoever leads next knows only what the server has, so what it refuses is written again, after a pause
that doubles every time.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from phalanx.controllers.controller import Patch
from phalanx.errors import ClusterError, Missing, Unreachable
from phalanx.model.kinds import Document, Kind, kind_of, object_key
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.object_notes import Texts
from phalanx.scheduling.port import ClusterPort, Effort
from phalanx.scheduling.refusals import Refusals

Spot = tuple[Kind, str, str]


class Owed(NamedTuple):
    """What is to be written on an object that the server has not taken yet."""

    uid: str
    key: str
    texts: dict[str, str | None]


class Annotator:
    """Writes the annotations of one process."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache) -> None:
        """Begin with nothing to write."""
        self._port, self._cache = port, cache
        self._owed: dict[Spot, Owed] = {}
        """Of each object in it one request is under way, or rests."""
        self._refusals = Refusals()

    def write(self, document: Document, texts: Texts) -> None:
        """Let an object bear annotations; None removes one."""
        meta = document["metadata"]
        spot, uid = (kind_of(document), meta.get("namespace", ""), meta["name"]), meta.get("uid", "")
        before = self._owed.get(spot)
        kept = before.texts if before is not None and before.uid == uid else {}
        self._owed[spot] = Owed(uid, object_key(document), {**kept, **texts})
        self._cache.note(document, self._owed[spot].texts)
        if before is None:
            self._send(spot)

    def _send(self, spot: Spot) -> None:
        texts = self._owed[spot].texts
        patch = Patch(*spot, {"metadata": {"annotations": texts}})
        self._port.send(patch, partial(self._answered, spot, texts), effort=Effort.JOINED)

    def _answered(self, spot: Spot, texts: Mapping[str, str | None], problem: ClusterError | None) -> None:
        if isinstance(problem, Missing | Unreachable):  # the object is gone, or another scheduler has taken over
            self._settle(spot)
        elif problem is not None:
            now = self._port.clock.now
            self._refusals.note(str(spot), now, at_least=problem.retry_after)
            self._port.clock.after(self._refusals.until(str(spot), now) - now, partial(self._again, spot))
        elif self._owed[spot].texts == texts:
            self._settle(spot)
        else:  # more was to be written meanwhile
            self._send(spot)

    def _again(self, spot: Spot) -> None:
        document = self._port.view.find(*spot)
        if document is None or document["metadata"].get("uid", "") != self._owed[spot].uid:
            self._settle(spot)
        else:
            self._send(spot)

    def _settle(self, spot: Spot) -> None:
        owed = self._owed.pop(spot)
        self._refusals.clear(str(spot))
        self._cache.settle(spot[0], owed.key, self._port.view.find(*spot))
