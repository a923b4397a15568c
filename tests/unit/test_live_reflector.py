"""Watching an API server that compacts, fails, ends watches and goes away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any

import pytest
from aiohttp import web

from phalanx.errors import Busy, Forbidden, Gone, Missing, ServerError
from phalanx.model.kinds import POD, Kind, kind_at
from phalanx.store.kube import reflector as module
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror
from phalanx.store.kube.reflector import Reflector
from phalanx.web import watches as watching
from phalanx.web.server import serving
from tests.support.embedded_server import Server, going_on, until
from tests.support.store_contract import pod

METRICS = kind_at("metrics.k8s.io", "nodes")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Follower:
    """A mirror that follows one kind."""

    def __init__(self, client: Client, kind: Kind) -> None:
        self.complaints: list[str] = []
        self.heard: list[str] = []
        self.mirror = Mirror(lambda: 0.0)
        self.reflector = Reflector(client, self.mirror, kind, report=self.complaints.append)
        self.reflector.listeners.on_event = lambda kind, type_: self.heard.append(type_)

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.mirror.within(self.reflector.kind)]

    def knows(self, names: list[str]) -> bool:
        return self.names == names


def has_more_than(server: Server, requests: int) -> bool:
    return server.requests > requests


@asynccontextmanager
async def following(client: Client, kind: Kind = POD) -> AsyncIterator[Follower]:
    follower = Follower(client, kind)
    async with going_on(follower.reflector.run()):
        yield follower


def run(question: Callable[[Server, Client], Awaitable[None]]) -> None:
    async def asked() -> None:
        server = Server()
        async with server.opened() as client:
            await question(server, client)

    asyncio.run(asked())


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.008)
    monkeypatch.setattr(module, "TOO_SHORT_SECONDS", 0.0)


def test_one_list_and_then_a_watch() -> None:
    async def question(server: Server, client: Client) -> None:
        server.store.create(pod("a"))
        async with following(client) as follower:
            await follower.reflector.is_synced.wait()
            assert follower.names == ["a"]
            server.store.create(pod("b"))
            server.store.patch(POD, "default", "b", {"metadata": {"labels": {"x": "y"}}})
            server.store.delete(POD, "default", "a")
            await until(lambda: "DELETED" in follower.heard)
            assert (set(follower.heard), follower.names) == ({"ADDED", "MODIFIED", "DELETED"}, ["b"])
            assert (follower.reflector.lists, follower.complaints) == (1, [])

    run(question)


def test_when_a_watch_ends_the_next_goes_on_where_it_was() -> None:
    async def question(server: Server, client: Client) -> None:
        async with following(client) as follower:
            for number in range(3):
                before = server.requests
                server.end_watches()
                server.store.create(pod(f"pod-{number}"))
                await until(partial(has_more_than, server, before))
            await until(lambda: len(follower.names) == 3)
            assert (follower.reflector.lists, len(set(follower.names)), follower.complaints) == (1, 3, [])

    run(question)


def test_when_the_server_has_forgotten_where_we_were_everything_is_listed_again() -> None:
    async def question(server: Server, client: Client) -> None:
        for name in "ab":
            server.store.create(pod(name))
        async with following(client) as follower:
            await until(lambda: follower.names == ["a", "b"] and server.requests == 2)
            server.end_watches()
            server.store.delete(POD, "default", "a")
            server.store.create(pod("c"))
            server.store.history.compact(server.store.history.version)
            await until(lambda: follower.reflector.lists == 2)
            assert (follower.names, follower.complaints) == (["b", "c"], [])

    run(question)


def test_a_list_whose_parts_the_server_has_forgotten_begins_anew() -> None:
    async def question(server: Server, client: Client) -> None:
        server.store.create(pod("a"))
        server.refusals.append(Gone("The provided continue parameter is too old"))
        async with following(client) as follower:
            await until(lambda: follower.names == ["a"])
            assert follower.complaints == []

    run(question)


def test_bookmarks_move_the_version_so_that_compaction_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BETWEEN_BOOKMARKS", 0.01)

    async def question(server: Server, client: Client) -> None:
        async with following(client) as follower:
            await follower.reflector.is_synced.wait()
            server.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
            await until(lambda: len(follower.heard) > 1)
            server.store.history.compact(server.store.history.version)
            before = server.requests
            server.end_watches()
            await until(lambda: server.requests > before)
            server.store.create(pod("a"))
            await until(lambda: follower.names == ["a"])
            assert (follower.reflector.lists, set(follower.heard)) == (1, {"BOOKMARK", "ADDED"})

    run(question)


def test_what_goes_wrong_is_told_and_tried_again() -> None:
    async def question(server: Server, client: Client) -> None:
        server.refusals.extend([Forbidden("pods is forbidden"), ServerError("etcd is away")])
        server.store.create(pod("a"))
        async with following(client) as follower:
            await until(lambda: follower.names == ["a"])
            first, second = follower.complaints
            assert first.startswith("watch of pods: pods is forbidden; tried again in ")
            assert second.startswith("watch of pods: etcd is away; tried again in ")

    run(question)


def test_a_kind_that_may_be_hidden_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HIDDEN_SECONDS", 0.01)

    async def question(server: Server, client: Client) -> None:
        server.refusals.extend([Forbidden("pods is forbidden")] * 3)
        server.store.create(pod("a"))
        mirror, complaints = Mirror(lambda: 0.0), list[str]()
        reflector = Reflector(client, mirror, POD, report=complaints.append, may_be_hidden=True)
        async with going_on(reflector.run()):
            await reflector.is_synced.wait()
            assert mirror.is_hidden(POD)
            await until(lambda: [item["metadata"]["name"] for item in mirror.within(POD)] == ["a"])
            assert not mirror.is_hidden(POD)
            assert complaints == ["pods are left out: pods is forbidden; allow get, list and watch of them"]

    run(question)


def test_one_object_of_a_kind_is_followed_and_others_are_left_alone() -> None:
    async def question(server: Server, client: Client) -> None:
        mirror, store = Mirror(lambda: 0.0), server.store
        mirror.put(POD, {**pod("ours"), "metadata": {"name": "ours", "namespace": "default", "uid": "known-from-an-answer"}})
        for name in ("a", "b"):
            store.create(pod(name))
        reflector = Reflector(client, mirror, POD, report=print, only=("default", "a"))
        async with going_on(reflector.run()):
            await until(lambda: reflector.is_following)
            assert [item["metadata"]["name"] for item in mirror.within(POD)] == ["a", "ours"]
            store.delete(POD, "default", "a", grace=0)
            await until(lambda: mirror.find(POD, "default", "a") is None)
            store.create(pod("a"))
            await until(lambda: mirror.find(POD, "default", "a"))
            server.refusals.append(Gone("too old"))
            store.delete(POD, "default", "a", grace=0)
            server.end_watches()
            await until(lambda: reflector.lists == 2)
            assert [item["metadata"]["name"] for item in mirror.within(POD)] == ["ours"]

    run(question)


def test_a_kind_that_is_served_no_longer_is_told_about_and_no_fault() -> None:
    async def question(server: Server, client: Client) -> None:
        missed: list[bool] = []
        server.refusals.extend([Missing("the server could not find the requested resource")] * 2)
        async with following(client) as follower:
            follower.reflector.listeners.on_missing = lambda: missed.append(True)
            await follower.reflector.is_synced.wait()
            assert (missed, follower.complaints) == ([True, True], [])

    run(question)


def test_waits_grow_until_something_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.2)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.5)
    monkeypatch.setattr("random.uniform", lambda low, high: 0.01)

    async def question(server: Server, client: Client) -> None:
        async with following(client) as follower:
            await follower.reflector.is_synced.wait()
            for _ in range(2):
                server.refusals.extend([ServerError("no")] * 3)
                server.end_watches()
                await until(lambda: not server.refusals)
                server.store.create({**pod("x"), "metadata": {"generateName": "x-"}})
                await until(lambda: follower.heard)
                follower.heard.clear()
            waits = [text.rpartition(" in ")[2] for text in follower.complaints]
            assert waits == ["0.2 s", "0.4 s", "0.5 s"] * 2

    run(question)


def test_a_server_that_asks_for_patience_is_not_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(server: Server, client: Client) -> None:
        busy = Busy("slow down")
        busy.retry_after, listed, asked = 0.2, client.list, list[float]()

        async def refused(*where: Any, **which: Any) -> Any:  # Any: as the client answers
            asked.append(monotonic())
            if len(asked) == 1:
                raise busy
            return await listed(*where, **which)

        monkeypatch.setattr(client, "list", refused)
        async with following(client) as follower:
            await until(lambda: follower.complaints)
            follower.reflector.hurry()
            await follower.reflector.is_synced.wait()
            assert follower.complaints == ["watch of pods: slow down; tried again in 0.2 s"]
            assert asked[1] - asked[0] >= 0.2

    run(question)


def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOO_SHORT_SECONDS", 1.0)

    async def question(server: Server, client: Client) -> None:
        async with following(client) as follower:
            await until(lambda: server.requests == 2)
            server.end_watches()
            await until(lambda: follower.complaints)
            assert follower.complaints[0].startswith("watch of pods: the server ended it at once; tried again in ")

    run(question)


def test_a_server_that_goes_away_is_followed_again_when_it_is_back() -> None:
    async def question() -> None:
        server = Server()
        async with server.opened() as client:
            address, port = client.server, int(client.server.rpartition(":")[2])
        async with Client(address) as client, following(client) as follower:
            await until(lambda: follower.complaints)
            assert follower.complaints[0].startswith(f"watch of pods: no cluster at {address}: ")
            for names in (["a"], ["a", "b"]):
                server.store.create(pod(names[-1]))
                async with server.opened(port):
                    await until(partial(follower.knows, names))
            assert follower.reflector.lists == 1

    asyncio.run(question())


def test_whoever_waits_for_the_server_tries_again_at_once_when_somebody_has_heard_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 60.0)

    async def question(server: Server, client: Client) -> None:
        returns = []
        server.refusals.append(ServerError("storage is (re)initializing"))
        async with following(client) as follower:
            follower.reflector.listeners.on_return = lambda: returns.append(True)
            await until(lambda: follower.complaints)
            assert not follower.reflector.is_following
            follower.reflector.hurry()
            await until(lambda: follower.reflector.is_following)
            assert returns == [True]

    run(question)


def test_who_has_lost_the_server_knows_it() -> None:
    async def question() -> None:
        server = Server()
        async with server.opened() as client, following(client) as follower:
            await until(lambda: follower.reflector.is_following)
            server.refusals.extend([ServerError("no")] * 100)
            server.end_watches()
            await until(lambda: not follower.reflector.is_following)

    asyncio.run(question())


def served_by(handler: Handler, kind: Kind, question: Callable[[Follower], Awaitable[None]]) -> None:
    async def asked() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handler)
        async with serving(application) as address, Client(address) as client, following(client, kind) as follower:
            await question(follower)

    asyncio.run(asked())


def test_an_event_that_cannot_be_read_is_told_and_the_watch_begins_anew() -> None:
    watches = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "5"}, "items": []})
        watches.append(request.query["resourceVersion"])
        good = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","uid":"a","resourceVersion":"6"}}}\n'
        return web.Response(body=b'{"type":\n' if len(watches) == 1 else good)

    async def question(follower: Follower) -> None:
        await until(lambda: follower.names == ["a"])
        assert "an event cannot be read" in follower.complaints[0]
        assert watches[:2] == ["5", "5"]

    served_by(answer, POD, question)


def test_measurements_are_asked_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BETWEEN_POLLS_SECONDS", 0.005)
    asked: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(dict(request.query))
        item = {"metadata": {"name": "n0"}, "usage": {"cpu": f"{len(asked)}"}}
        return web.json_response({"metadata": {}, "items": [item]})

    async def question(follower: Follower) -> None:
        await until(lambda: follower.reflector.lists >= 3)
        assert int(follower.mirror.within(METRICS)[0]["usage"]["cpu"]) >= 3
        assert not any("watch" in query for query in asked)

    served_by(answer, METRICS, question)


def test_a_watch_that_tells_nothing_is_given_up_for_a_new_list_when_one_is_wanted() -> None:
    async def question(server: Server, client: Client) -> None:
        async with following(client) as follower:
            await until(lambda: follower.reflector.is_following)
            server.store.create(pod("a"))
            await until(lambda: follower.names == ["a"])
            now = monotonic()
            assert not follower.reflector.is_fresh(now)
            follower.reflector.refresh(now)
            await until(lambda: follower.reflector.is_fresh(now))
            server.store.create(pod("b"))
            await until(lambda: follower.names == ["a", "b"])
            follower.reflector.refresh(now)
            assert (follower.reflector.lists, follower.complaints) == (2, [])

    run(question)


def test_a_watch_that_falls_silent_after_a_bookmark_is_replaced_by_one_that_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BETWEEN_BOOKMARKS_SECONDS", 0.05)
    watches = list[str]()

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "5"}, "items": []})
        watches.append(request.query["resourceVersion"])
        told = web.StreamResponse()
        await told.prepare(request)
        await told.write(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"6"}}}\n')
        await asyncio.Event().wait()
        return told

    async def question(follower: Follower) -> None:
        await until(lambda: len(watches) > 1)
        assert (watches[:2], follower.reflector.lists, follower.complaints) == (["5", "6"], 1, [])

    served_by(answer, POD, question)
