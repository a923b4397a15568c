"""A cluster is looked at once for all readers, no more often than it can afford, and not at all for nobody."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from phalanx.errors import PhalanxError, SnapshotError
from phalanx.ui.board import Board, LookPace
from phalanx.ui.seen import SeenCluster
from tests.support.ui_pages import fail, seen

PACE = LookPace(least=0.01, factor=10.0, most=0.3, linger=0.02, failing=0.01)
EMPTY = seen()


class Source:
    """A cluster that changes when a test says so."""

    problem, now = "", 0.0

    def __init__(self, took: float = 0.0) -> None:
        self.looks = self.follows = self.leaves = 0
        self.took, self.problems = took, list[PhalanxError]()
        self.change: Callable[[], None] = lambda: None

    def follow(self, changed: Callable[[], None]) -> None:
        self.follows += 1
        self.change = changed
        changed()

    def leave(self) -> None:
        self.leaves += 1

    async def look(self, version: str) -> SeenCluster:
        self.looks += 1
        if self.problems:
            raise self.problems.pop()
        return replace(EMPTY, version=version, took=self.took)


def board(source: Source, report: Callable[[str], None] = fail) -> Board:
    return Board(source, PACE, report)  # type: ignore[arg-type]  # a board needs no more of a source


def test_nothing_happens_before_somebody_reads() -> None:
    source = Source()

    async def run() -> None:
        made = board(source)
        await asyncio.sleep(0.05)
        assert not made.is_followed

    asyncio.run(run())
    assert (source.follows, source.looks) == (0, 0)


def test_readers_share_one_look() -> None:
    source = Source()

    async def run() -> set[str]:
        made = board(source)
        async with made.reading(), made.reading():
            found = await asyncio.gather(*(made.current() for _ in range(10)))
            made.close()
            return {each.version for each in found}

    assert len(asyncio.run(run())) == 1
    assert (source.follows, source.looks) == (1, 1)


def test_a_change_is_looked_at_and_waited_for() -> None:
    source = Source()

    async def run() -> tuple[str, str]:
        made = board(source)
        async with made.reading():
            first = (await made.current()).version
            source.change()
            second = (await made.after(first)).version
            made.close()
            return first, second

    first, second = asyncio.run(run())
    assert first != second
    assert source.looks == 2


def test_many_changes_make_few_looks() -> None:
    source = Source(took=0.01)

    async def run() -> None:
        made = board(source)
        async with made.reading():
            for _ in range(100):
                source.change()
                await asyncio.sleep(0.002)
            made.close()

    asyncio.run(run())
    assert source.looks <= 4, "a look of 10 ms is followed by a pause of 100"


def test_documents_count_for_the_pause() -> None:
    source = Source()

    async def run() -> None:
        made = board(source)
        async with made.reading():
            await made.current()
            made.spent += 1.0
            for _ in range(20):
                source.change()
                await asyncio.sleep(0.005)
            made.close()

    asyncio.run(run())
    assert source.looks == 1


def test_whoever_waits_for_a_look_that_will_not_come_is_told_and_asks_again() -> None:
    class Slow(Source):
        async def look(self, version: str) -> SeenCluster:
            if not self.leaves:
                await asyncio.sleep(60)
            return await super().look(version)

    async def run() -> None:
        made = board(Slow())
        async with made.reading():
            waiting = asyncio.create_task(made.current())
            await asyncio.sleep(0.02)
            made.close()
            with pytest.raises(PhalanxError, match="ask again"):
                await waiting
        async with made.reading():
            assert (await made.current()).version
            made.close()

    asyncio.run(run())


def test_when_nobody_reads_any_more_the_cluster_is_left_after_a_while() -> None:
    source = Source()

    async def run() -> None:
        made = board(source)
        async with made.reading():
            await made.current()
        assert made.is_followed, "pages are loaded again"
        await asyncio.sleep(0.1)
        assert not made.is_followed
        source.change()
        await asyncio.sleep(0.05)

    asyncio.run(run())
    assert (source.leaves, source.looks) == (1, 1)


def test_a_look_that_fails_is_said_and_tried_again() -> None:
    source, told = Source(), list[str]()
    source.problems = [SnapshotError("the cluster is not there")]

    async def run() -> str:
        made = board(source, told.append)
        async with made.reading():
            with pytest.raises(PhalanxError, match="the cluster is not there"):
                await made.current()
            found = await made.after("")
            made.close()
            return found.version

    assert asyncio.run(run())
    assert told == ["the cluster is not there"]
