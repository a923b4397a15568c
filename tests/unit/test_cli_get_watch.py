"""`phalanx get -w`: what changes is shown, also what changes before a watch begins, or while there is none."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from io import StringIO

import pytest

from phalanx.cli.get import GetOptions
from phalanx.cli.get_run import changes, show
from phalanx.errors import Gone
from phalanx.model.kinds import kind_at
from phalanx.store.kube.client import Client
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.embedded_server import PATIENCE_SECONDS, Server, going_on, until

CONFIG_MAP = kind_at("", "configmaps")
ASKED = GetOptions("configmaps", (), "default", follows=True)
GANGS = GetOptions("gangs", (), "default", form="name", follows=True)


def settings(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def run(question: Callable[[Server, Client], Awaitable[None]], kind: type[Server] = Server) -> None:
    async def asked() -> None:
        server = kind()
        async with server.opened() as client, asyncio.timeout(PATIENCE_SECONDS):
            await question(server, client)

    asyncio.run(asked())


def paint(server: Server, name: str, colour: str) -> None:
    server.store.patch(CONFIG_MAP, "default", name, {"data": {"colour": colour}})


def test_what_changed_since_it_was_listed_is_shown_before_what_changes_later() -> None:
    async def question(server: Server, client: Client) -> None:
        for name in ("gone", "same", "painted"):
            server.store.create(settings(name))
        known = (await client.list(CONFIG_MAP, "default")).items
        paint(server, "painted", "red")
        server.store.delete(CONFIG_MAP, "default", "gone")
        server.store.create(settings("new"))
        found = changes(client, CONFIG_MAP, ASKED, known=known)
        names = [(await anext(found))["metadata"]["name"] for _ in range(3)]
        paint(server, "same", "blue")
        assert (sorted(names), (await anext(found))["data"]) == (["gone", "new", "painted"], {"colour": "blue"})
        await found.aclose()

    run(question)


def test_what_changed_in_a_gap_of_a_watch_is_shown_once() -> None:
    async def question(server: Server, client: Client) -> None:
        for name in ("same", "painted"):
            server.store.create(settings(name))
        known = (await client.list(CONFIG_MAP, "default")).items
        found = changes(client, CONFIG_MAP, ASKED, known=known)
        coming = asyncio.ensure_future(anext(found))
        await until(lambda: server.requests >= 3)  # a list, a list and a watch
        server.refusals.append(Gone("too old"))
        server.end_watches()
        paint(server, "painted", "red")
        first = await coming
        paint(server, "same", "blue")
        seen = [(item["metadata"]["name"], item["data"]["colour"]) for item in (first, await anext(found))]
        assert seen == [("painted", "red"), ("same", "blue")]
        await found.aclose()

    run(question)


class Busy(Server):
    """A cluster to which a gang comes right before a request."""

    comes_before = 0

    def _look(self) -> None:
        super()._look()
        if self.requests == self.comes_before:
            for document in build.gang("late", tasks=1, cpu=1):
                self.store.create(document)


def test_a_gang_that_comes_between_the_list_and_the_watch_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    async def question(server: Server, client: Client) -> None:
        assert isinstance(server, Busy)
        await show(client, replace(GANGS, follows=False))
        server.comes_before = 2 * server.requests + 1
        shown = StringIO()

        def is_shown() -> bool:
            shown.write(capsys.readouterr().out)
            return "gang/late" in shown.getvalue()

        async with going_on(_followed(client)):
            await until(is_shown)

    run(question, Busy)


async def _followed(client: Client) -> None:
    await show(client, GANGS)
