"""Pages of a list: the next one is on its way while the last one is read."""

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from phalanx.errors import Gone
from phalanx.store.kube.paging import PagesAhead


class Server:
    """Answers with pages by number; `fails_at` is refused."""

    def __init__(self, pages: int, fails_at: int | None = None) -> None:
        self.pages, self.fails_at, self.asked = pages, fails_at, 0

    async def get(self, query: Mapping[str, str]) -> bytes:
        number = int(query.get("continue", "0"))
        self.asked += 1
        if number == self.fails_at:
            raise Gone("too old")
        following = {"continue": str(number + 1)} if number + 1 < self.pages else {}
        return msgspec.json.encode({"items": [{"number": number}], "metadata": {"resourceVersion": "7", **following}})


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("ahead", "asked"), [(1, 2), (3, 4), (9, 6)])
def test_so_many_pages_wait_for_who_reads_and_one_more_to_be_put_there(ahead: int, asked: int) -> None:
    async def run() -> None:
        server = Server(6)
        pages = PagesAhead(server.get, {"limit": "1"}, ahead=ahead)
        await settle()
        assert server.asked == asked
        assert [msgspec.json.decode(body)["items"][0]["number"] async for body in pages.bodies()] == list(range(6))

    asyncio.run(run())


def test_a_refusal_comes_after_the_pages_before_it() -> None:
    async def run() -> None:
        bodies = PagesAhead(Server(6, fails_at=2).get, {}).bodies()
        for _ in range(2):
            await anext(bodies)
        with pytest.raises(Gone):
            await anext(bodies)

    asyncio.run(run())


def test_who_stops_reading_asks_for_no_more() -> None:
    async def run() -> None:
        server = Server(6)
        bodies = PagesAhead(server.get, {}).bodies()
        await anext(bodies)
        await bodies.aclose()
        before = server.asked
        await settle()
        assert server.asked == before

    asyncio.run(run())
