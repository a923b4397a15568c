"""The client of the API, spoken to a store that is served over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing

import pytest
from aiohttp import web

from phalanx.errors import Busy, Conflict, Exists, Gone, Missing, Unreachable
from phalanx.model.kinds import kind_at
from phalanx.store.kube.client import LONGEST_ASKED_SECONDS, NOT_SENT, Client
from phalanx.store.kube.credentials import Credential, FixedCredentials
from phalanx.store.memory import MemoryStore
from phalanx.web.server import serving
from tests.support.http_api import served
from tests.support.store_contract import pod

POD, CONFIG = kind_at("", "pods"), kind_at("", "configmaps")
NOW = 1_767_225_600.0


@pytest.fixture
def address() -> Iterator[str]:
    store = MemoryStore(lambda: NOW)
    store.history.compact(store.history.version)
    with served(store) as connection:
        yield connection.server


def ask(address: str, question: Callable[[Client], Awaitable[None]]) -> None:
    async def asked() -> None:
        async with Client(address) as client:
            await question(client)

    asyncio.run(asked())


def test_an_object_goes_its_way(address: str) -> None:
    async def question(client: Client) -> None:
        made = await client.create(pod("a"))
        assert await client.get(POD, "default", "a") == made
        await client.bind("default", "a", "node-1", uid=made["metadata"]["uid"])
        patched = await client.patch(POD, "default", "a", {"status": {"phase": "Running"}}, is_status=True)
        assert (patched["spec"]["nodeName"], patched["status"]["phase"]) == ("node-1", "Running")
        replaced = await client.replace({**patched, "metadata": {**patched["metadata"], "labels": {"a": "b"}}})
        assert replaced["metadata"]["labels"] == {"a": "b"}
        await client.evict("default", "a", grace=5)
        assert (await client.get(POD, "default", "a"))["metadata"]["deletionGracePeriodSeconds"] == 5
        await client.delete(POD, "default", "a", grace=0, uid=made["metadata"]["uid"])
        assert (await client.list(POD)).items == []

    ask(address, question)


def test_refusals_are_errors_of_our_own(address: str) -> None:
    async def question(client: Client) -> None:
        with pytest.raises(Missing, match='pods "a" not found'):
            await client.get(POD, "default", "a")
        await client.create(pod("a"))
        with pytest.raises(Exists):
            await client.create(pod("a"))
        await client.bind("default", "a", "node-1")
        with pytest.raises(Conflict, match="already assigned") as caught:
            await client.bind("default", "a", "node-1")
        assert caught.value.kind == "pods/binding"

    ask(address, question)


def test_a_budget_says_what_it_needs(address: str) -> None:
    async def question(client: Client) -> None:
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
        await client.create({**budget, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}})
        await client.create(pod("a", labels={"app": "x"}))
        await client.bind("default", "a", "node-1")
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(POD, "default", "a", {"status": status}, is_status=True)
        with pytest.raises(Busy) as caught:
            await client.evict("default", "a")
        assert caught.value.cause == ("DisruptionBudget", "The disruption budget b needs 1 healthy pods and has 1 currently")

    ask(address, question)


def test_a_trial_creates_nothing(address: str) -> None:
    async def question(client: Client) -> None:
        assert (await client.create(pod("a"), is_trial=True))["metadata"]["name"] == "a"
        assert (await client.list(POD)).items == []

    ask(address, question)


def test_long_lists_are_read_in_parts(address: str) -> None:
    async def question(client: Client) -> None:
        for number in range(7):
            await client.create(pod(f"pod-{number}", labels={"odd": str(number % 2)}))
        assert [item["metadata"]["name"] for item in (await client.list(POD, page=3)).items] == [f"pod-{n}" for n in range(7)]
        assert len((await client.list(POD, "default", labels="odd=1", page=2)).items) == 3
        assert len((await client.list(POD, fields="metadata.name=pod-3")).items) == 1

    ask(address, question)


def test_a_watch_goes_on_from_a_list(address: str) -> None:
    async def question(client: Client) -> None:
        since = (await client.list(POD)).version
        await client.create(pod("a"))
        async with aclosing(client.watch(POD, since=since)) as events:
            first = await anext(events)
            assert (first.type, first.object["metadata"]["name"]) == ("ADDED", "a")
            await client.delete(POD, "default", "a")
            assert [(await anext(events)).type for _ in range(2)] == ["MODIFIED", "DELETED"]

    ask(address, question)


def test_a_watch_from_too_long_ago_is_gone(address: str) -> None:
    async def question(client: Client) -> None:
        async with aclosing(client.watch(POD, since="1")) as events:
            with pytest.raises(Gone, match="too old resource version"):
                await anext(events)

    ask(address, question)


def test_the_clock_is_the_one_of_the_server(address: str) -> None:
    async def question(client: Client) -> None:
        assert (await client.version())["major"] == "1"
        assert client.now == NOW

    ask(address, question)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nobody_there_is_an_error_of_our_own(scheme: str) -> None:
    async def question(client: Client) -> None:
        with pytest.raises(Unreachable, match=rf"^no cluster at {scheme}://127\.0\.0\.1:1: connection refused$"):
            await client.get(CONFIG, "default", "a")

    ask(f"{scheme}://127.0.0.1:1", question)


def test_who_may_not_write_still_reads_records_events_and_takes_the_lease(address: str) -> None:
    async def question(client: Client) -> None:
        await client.create(pod("a"))
        client.may_write = lambda: False
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "phalanx", "namespace": "default"}}
        about = {"kind": "Pod", "name": "a", "namespace": "default"}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": about}
        for document in (lease, event):
            await client.create(document)
        for write in (
            client.create(pod("b")), client.bind("default", "a", "n0"), client.evict("default", "a"),
            client.patch(POD, "default", "a", {"metadata": {"labels": {"x": "y"}}}), client.delete(POD, "default", "a"),
        ):  # fmt: skip
            with pytest.raises(Unreachable, match=NOT_SENT):
                await write
        (left,) = (await client.list(POD)).items
        assert (left["metadata"]["name"], "nodeName" in left["spec"], left["metadata"].get("labels", {})) == ("a", False, {})

    ask(address, question)


def test_a_write_that_needs_a_new_credential_is_not_sent_again_by_who_may_not_write_any_more() -> None:
    asked, may = list[str](), [True]

    class Renewed(FixedCredentials):
        async def renew(self, refused: Credential) -> bool:
            may[0] = False  # fetching another one took longer than the lease
            return True

    async def refuse(request: web.Request) -> web.Response:
        asked.append(request.method)
        return web.Response(status=401)

    async def question() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", refuse)
        async with serving(application) as place, Client(place, credentials=Renewed()) as client:
            client.may_write = lambda: may[0]
            with pytest.raises(Unreachable, match=NOT_SENT):
                await client.bind("default", "a", "n0")

    asyncio.run(question())
    assert asked == ["POST"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0), ("", 0.0), ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0),
        ("3600", LONGEST_ASKED_SECONDS), ("9" * 400, LONGEST_ASKED_SECONDS),
    ],
)  # fmt: skip
def test_how_long_the_server_wants_to_be_left_alone_is_read(header: str, seconds: float) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": header})

    async def question() -> None:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", refuse)
        async with serving(application) as place, Client(place) as client:
            with pytest.raises(Busy) as raised:
                await client.bind("default", "a", "n0")
        assert raised.value.retry_after == seconds

    asyncio.run(question())


def test_a_list_that_was_requested_ahead_serves_once(address: str) -> None:
    async def question(client: Client) -> None:
        await client.create(pod("first"))
        client.read_ahead(POD)
        await asyncio.sleep(0.2)
        await client.create(pod("second"))
        before = asyncio.get_running_loop().time() - 0.1
        ahead, now = await client.list(POD), await client.list(POD)
        assert [[item["metadata"]["name"] for item in found.items] for found in (ahead, now)] == [["first"], ["first", "second"]]
        assert ahead.begun is not None
        assert now.begun is not None
        assert ahead.begun < before < now.begun

    ask(address, question)


@pytest.mark.parametrize("is_frugal", [True, False])
def test_only_who_may_be_far_away_lets_the_server_compress(is_frugal: bool) -> None:
    async def version(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Accept-Encoding", ""))
        answer = web.json_response({"major": "1"})
        answer.enable_compression()
        return answer

    async def run() -> None:
        application = web.Application()
        application.router.add_get("/version", version)
        async with serving(application) as place, Client(place, is_frugal=is_frugal) as client:
            assert await client.version() == {"major": "1"}

    asked: list[str] = []
    asyncio.run(run())
    assert asked == ["" if is_frugal else "gzip"]
