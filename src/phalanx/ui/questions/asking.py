"""Asks a process of its own, which is started for the first question and ends when nobody has asked for a while.

It is given all objects once, and with each further question what has changed since. Whoever serves the page only writes objects
down as JSON, a few at a time, and goes on meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

import msgspec

from phalanx.errors import Busy, PhalanxError, SnapshotError
from phalanx.model.kinds import Document
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.ui.questions.desk import ConnectPolicy, Question, Rules, Update, answered, begin, updated
from phalanx.ui.source import ClusterSource

AT_ONCE = 1000
"""Objects are written down so many at a time."""
IDLE_SECONDS = 120.0
MOST_WAITING = 8
"""Questions that wait for their turn; whoever asks more is refused."""
ENDED = "the process that answers has ended; ask again"
Key = tuple[str, str, str, str]


class Changes:
    """What has changed in a cluster since somebody asked for it."""

    def __init__(self, source: ClusterSource) -> None:
        """Listen from now on."""
        self._put: dict[Key, Document] = {}
        self._gone: dict[Key, Document] = {}
        self.stop = source.listen(self._note)

    def _note(self, event: WatchEvent) -> None:
        key = _key(event.object)
        into, out = (self._gone, self._put) if event.type == DELETED else (self._put, self._gone)
        out.pop(key, None)
        into[key] = event.object

    def take(self) -> tuple[list[Document], list[Document]]:
        """Return what is there now and what is gone, and begin anew."""
        found = list(self._put.values()), list(self._gone.values())
        self._put.clear()
        self._gone.clear()
        return found


def _key(document: Document) -> Key:
    meta = document["metadata"]
    return str(document["apiVersion"]), str(document["kind"]), str(meta.get("namespace", "")), str(meta["name"])


class Asking:
    """Answers questions about one cluster."""

    def __init__(self, source: ClusterSource, connect: ConnectPolicy, started: Callable[[], None]) -> None:
        """`started` is called first in the process that answers; it ends it with this one."""
        self._source, self._connect, self._started = source, connect, started
        self._pool: ProcessPoolExecutor | None = None
        self._changes: Changes | None = None
        self._turn, self._waiting = asyncio.Lock(), 0
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, question: Question) -> bytes:
        """Return the answer as JSON; one question is answered after the other."""
        if self._waiting >= MOST_WAITING:
            raise Busy("too many questions wait for an answer; ask again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                return await self._answer(question)
        finally:
            self._waiting -= 1

    async def _answer(self, question: Question) -> bytes:
        if self._ending is not None:
            self._ending.cancel()
        try:
            await self._update()
            answer: bytes = await self._run(answered, question)
        except BrokenProcessPool as problem:
            self.close()
            raise PhalanxError(ENDED) from problem
        else:
            return answer
        finally:
            self._ending = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.close)

    async def _update(self) -> None:
        if self._pool is None or self._changes is None:
            await self._begin()
            return
        put, gone = self._changes.take()
        await self._run(updated, Update(self._source.now, await _encoded(put), await _encoded(gone)))

    async def _begin(self) -> None:
        self.close()
        self._pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_begin_process, initargs=(self._started,))
        self._changes = Changes(self._source)  # what changes while everything is written down is sent once more
        rules = Rules(self._source.profile.policy, self._source.schedulers, self._connect)
        everything = await _encoded(list(self._source.objects()))
        await self._run(updated, Update(self._source.now, everything, b"[]", rules))

    async def _run(self, work: Callable[..., Any], *given: object) -> Any:  # Any: what the work returns
        assert self._pool is not None, "begun before anything is run"
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *given)

    def close(self) -> None:
        """End the process; the next question begins anew."""
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if self._changes is not None:
            self._changes.stop()
            self._changes = None
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _begin_process(started: Callable[[], None]) -> None:
    started()
    begin()


async def _encoded(documents: Iterable[Document]) -> bytes:
    """Return objects as one list in JSON, a few at a time."""
    parts: list[bytes] = []
    for number, document in enumerate(documents):
        try:
            parts.append(msgspec.json.encode(document))
        except (TypeError, ValueError, OverflowError, RecursionError) as problem:
            raise SnapshotError(
                f"{document.get('kind')} {document['metadata'].get('name')}: cannot be written: {problem}"
            ) from problem
        if number % AT_ONCE == AT_ONCE - 1:
            await asyncio.sleep(0)
    return b"[" + b",".join(parts) + b"]"
