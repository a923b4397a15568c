"""What is listed of a live cluster: every kind that matters, nothing else, and what may not be read is said."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from phalanx.controllers.grouper.rules import owner_kinds
from phalanx.dialects.cluster import kinds_read
from phalanx.errors import Busy, Forbidden, Gone, Unauthorized, Unreachable
from phalanx.manifests.permissions import kinds_listed
from phalanx.model.kinds import KINDS, NODE, POD, Kind, kind_at
from phalanx.store.api_client import ListingPage
from phalanx.store.kube import cluster_objects
from phalanx.store.kube.client import Client
from phalanx.store.kube.cluster_objects import list_cluster
from phalanx.store.listed_cluster import EFFECTS, ListedCluster
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support.embedded_server import Server
from tests.support.http_api import Gatekeeper, served

HYPERNODES = kind_at("topology.volcano.sh", "hypernodes")


def a_store() -> MemoryStore:
    store = MemoryStore(lambda: 1_000_000.0)
    for document in (build.node("node-0"), *build.gang("train", tasks=3), build.queue("research")):
        store.load(document)
    store.load({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "private"}})
    store.load({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}})
    return store


def listed(keeper: Gatekeeper, progress: Callable[[Kind, int, int], None] = lambda kind, read, total: None) -> ListedCluster:
    async def ask(address: str) -> ListedCluster:
        async with Client(address, is_frugal=True) as client:
            return await list_cluster(client, progress)

    with served(a_store(), gatekeeper=keeper) as connection:
        return asyncio.run(ask(connection.server))


def test_every_kind_that_sessions_and_grouping_read_is_listed() -> None:
    missing = {*kinds_read(), *owner_kinds()} - {*kinds_listed()}
    assert missing == set()
    assert not {kind.kind for kind in kinds_listed()} & {"Secret", "ConfigMap", "Event", "Lease"}


def test_objects_are_complete_and_the_clock_is_that_of_the_server() -> None:
    found = listed(Gatekeeper())
    kinds = [(item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in found.documents]
    assert ("v1", "Node", "node-0") in kinds
    assert ("v1", "Pod", "train-2") in kinds
    assert ("scheduling.volcano.sh/v1beta1", "Queue", "research") in kinds
    assert found.now == 1_000_000.0
    assert list(found.notes()) == []


def test_only_lists_are_requested_and_no_secrets() -> None:
    keeper = Gatekeeper()
    listed(keeper)
    assert {method for method, _ in keeper.asked} == {"GET"}
    assert not [path for _, path in keeper.asked if "secret" in path or "configmap" in path or "events" in path]


def test_large_lists_come_in_pages_and_others_wait_for_the_first_page_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_objects, "PAGE", 2)
    keeper, seen = Gatekeeper(), []
    found = listed(keeper, lambda kind, read, total: seen.append((kind.plural, read, total)))
    assert [item["metadata"]["name"] for item in found.documents if item["kind"] == "Pod"] == ["train-0", "train-1", "train-2"]
    assert [line for line in seen if line[0] == "pods"] == [("pods", 2, 3), ("pods", 3, 3)]
    lists = [urlsplit(path) for _, path in keeper.asked if "limit=" in path]
    assert lists[0].path == "/api/v1/pods"
    assert {parse_qs(url.query)["limit"][0] for url in lists} == {"2"}


def test_a_kind_that_may_not_be_listed_is_said_with_what_follows() -> None:
    found = listed(Gatekeeper(hidden=("hypernodes", "storageclasses", "csinodes", "jobs")))
    assert list(found.notes()) == [
        "may not list jobs.batch, jobs.batch.volcano.sh (forbidden): pods without a group are grouped by the names of their owners",
        "may not list storageclasses.storage.k8s.io, csinodes.storage.k8s.io (forbidden): pods with volumes cannot be judged",
        "may not list hypernodes.topology.volcano.sh (forbidden): constraints on network topology cannot be judged",
    ]
    assert HYPERNODES in found.problems


def test_without_nodes_or_pods_there_is_nothing_to_decide() -> None:
    with pytest.raises(Forbidden, match=r"you may not list the pods of all namespaces; ask for the ClusterRole that"):
        listed(Gatekeeper(hidden=("pods",)))
    with pytest.raises(Forbidden, match="you may not list the nodes and pods of all namespaces"):
        listed(Gatekeeper(hidden=("pods", "nodes")))


def test_every_kind_that_sessions_read_has_an_effect() -> None:
    named = {resource for resources in EFFECTS.values() for resource in resources}
    assert {kind.resource for kind in kinds_read()} - named - {NODE.resource, POD.resource} == set()
    assert named <= {kind.resource for kind in KINDS}


@pytest.mark.parametrize("problem", [Busy("wait"), Gone("too old")])
def test_a_list_is_tried_again_where_that_helps(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_objects, "SHORTEST_PAUSE_SECONDS", 0.0)
    failures = {POD: problem}

    class Moody(Client):
        async def pages(self, kind: Kind, namespace: str = "", **more: Any) -> AsyncGenerator[ListingPage, None]:
            if kind in failures:
                raise failures.pop(kind)
            async for page in super().pages(kind, namespace, **more):
                yield page

    async def ask(address: str) -> ListedCluster:
        async with Moody(address) as client:
            return await list_cluster(client)

    with served(a_store()) as connection:
        assert len([item for item in asyncio.run(ask(connection.server)).documents if item["kind"] == "Pod"]) == 3


def test_a_user_who_is_not_known_is_told_so() -> None:
    server = Server()
    server.refusals.extend([Unauthorized("Unauthorized")] * 3)

    async def ask() -> None:
        async with server.opened() as client:
            await list_cluster(client)

    with pytest.raises(Unauthorized):
        asyncio.run(ask())


def test_a_server_that_goes_away_midway_is_no_smaller_cluster() -> None:
    with pytest.raises(Unreachable):
        listed(Gatekeeper(dropped=("queues", "version")))


def test_a_kind_that_alone_is_not_answered_is_said() -> None:
    (note,) = [text for text in listed(Gatekeeper(dropped=("hypernodes",))).notes() if "hypernodes" in text]
    assert note.endswith("constraints on network topology cannot be judged")


def test_a_mute_server_is_waited_for_as_long_as_was_said() -> None:
    async def ask(address: str) -> None:
        async with Client(address, answer_seconds=0.05) as client:
            await list_cluster(client)

    said = pytest.raises(Unreachable, match=r"127\.0\.0\.1:\d+ does not answer; waited for 0\.05 s")
    with served(a_store(), gatekeeper=Gatekeeper(mute=("apis",))) as connection, said:
        asyncio.run(ask(connection.server))
