"""Binds that a binder carries out: sessions ask for them by BindRequests, and see those at once, before the server has them."""

from collections.abc import Callable, Iterable
from functools import partial

from phalanx.controllers.controller import Create, Write
from phalanx.errors import ClusterError
from phalanx.live.binding import Hands
from phalanx.model.kinds import BIND_REQUEST, Document, object_key, split_key


class Requesting:
    """Sends BindRequests."""

    def __init__(self, hands: Hands, *, wake: Callable[[], None], report: Callable[[str], None]) -> None:
        """Ask for nothing yet; `wake` asks for another session, `report` is told what was refused."""
        self._hands, self._wake, self._report = hands, wake, report

    def start(self, writes: Iterable[Write]) -> None:
        """Send what a session asks for; the next one sees its pods on their way."""
        for write in writes:
            if isinstance(write, Create):
                self._hands.picture.foresee(write.document)
                self._hands.writer.leave(write, done=partial(self._settle, write.document))
            else:
                self._hands.writer.leave(write)

    def _settle(self, document: Document, problem: ClusterError | None) -> None:
        found = self._hands.mirror.find(BIND_REQUEST, *split_key(object_key(document)))
        is_as_foreseen = self._hands.picture.settle(document, found)
        if problem is not None:
            self._report(str(problem))
        if not is_as_foreseen:
            self._wake()
