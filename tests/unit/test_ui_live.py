"""The page of a real cluster and of a running scheduler: it only reads, and costs nothing while nobody looks."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.errors import Forbidden, SnapshotError
from phalanx.explain.gangs import GangBook
from phalanx.live import page_scheduler
from phalanx.live.app import Live, Setup
from phalanx.live.clock import LoopClock
from phalanx.live.page_cluster import FollowedCluster
from phalanx.live.page_scheduler import NOT_LEADING, SchedulerSource
from phalanx.model.kinds import NODE, POD, Document
from phalanx.model.task import GangKey
from phalanx.sim.memory_client import MemoryClient
from phalanx.sim.page_source import WorldSource
from phalanx.sim.virtual_loop import START, run_virtually
from phalanx.store.kube.client import Client
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.ui.seen import SeenCluster
from phalanx.ui.source import ClusterSource
from tests.support import sim_worlds as worlds
from tests.support.embedded_server import Server, going_on, until
from tests.support.ui_pages import connect, fail

PROFILE = connect(policy_of_profile("phalanx"))
CLUSTER = [
    build.queue("default"),
    build.node("n0", gpus=1),
    *build.gang("train", tasks=1, gpus=1),
    *build.gang("wide", tasks=3, gpus=1),
]
NEW_YEAR = 1_767_225_600.0


def load(store: MemoryStore, documents: Sequence[Document]) -> None:
    for document in documents:
        store.load({**document, "metadata": {**document["metadata"], "uid": ""}})


# --- a cluster that is followed ------------------------------------------------------------------------------------------


def follow(question: Callable[[FollowedCluster, Server], Awaitable[None]]) -> None:
    async def run() -> None:
        server = Server()
        load(server.store, CLUSTER)
        async with server.opened() as client:
            source = FollowedCluster(client, "there", PROFILE, connect, report=fail)
            async with going_on(source.run()):
                await question(source, server)

    asyncio.run(run())


def test_a_cluster_is_seen_with_what_a_session_would_do_and_nothing_is_written() -> None:
    async def question(source: FollowedCluster, server: Server) -> None:
        before = list(server.store.everything())
        found = await source.look("1")
        assert {key: gang.status.value for key, gang in found.gangs.items()} == {"default/train": "Starts", "default/wide": "Waits"}
        assert list(server.store.everything()) == before

    follow(question)


def test_a_change_is_told_while_somebody_looks_and_not_afterwards() -> None:
    async def question(source: FollowedCluster, server: Server) -> None:
        await source.look("1")
        told: list[int] = []
        source.follow(lambda: told.append(1))
        load(server.store, [build.node("n1", gpus=1)])
        await until(lambda: len(told) > 1)
        source.leave()
        count = len(told)
        load(server.store, [build.node("n2", gpus=1)])
        await until(lambda: source.mirror.find(NODE, "", "n2"))
        assert len(told) == count

    follow(question)


def test_a_kind_that_nobody_lets_us_list_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> SeenCluster:
        server = Server()
        load(server.store, CLUSTER)
        async with server.opened() as client:
            _forbid(client, monkeypatch, "poddisruptionbudgets")
            source = FollowedCluster(client, "there", PROFILE, connect, report=lambda text: None)
            async with going_on(source.run()):
                return await source.look("1")

    assert any("you may not list" in text and "poddisruptionbudgets" in text for text in asyncio.run(run()).problems)


def _forbid(client: Client, monkeypatch: pytest.MonkeyPatch, plural: str) -> None:
    listed = client.list

    async def refuse(kind, *where, **which):  # type: ignore[no-untyped-def]  # as the client answers
        if kind.plural == plural:
            raise Forbidden(f"{plural} is forbidden")
        return await listed(kind, *where, **which)

    monkeypatch.setattr(client, "list", refuse)


# --- a scheduler ---------------------------------------------------------------------------------------------------------


def schedule(question: Callable[[SchedulerSource, Live, MemoryStore], Awaitable[None]]) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        store = MemoryStore(lambda: NEW_YEAR + loop.time() - START)
        load(store, CLUSTER)
        client = MemoryClient(store)
        setup = Setup(profile=PROFILE, gates=PROFILE, controllers=(), schedulers=frozenset(), terms=None)
        live = Live(client, setup, report=fail, clock=LoopClock(wall=lambda: NEW_YEAR + loop.time() - START, boot=loop.time))
        is_over = asyncio.Event()
        task = asyncio.create_task(live.run(is_over))
        while not any(pod["spec"].get("nodeName") for pod in store.items(POD)):
            await asyncio.sleep(0.1)
        await question(SchedulerSource(live, client, ()), live, store)
        is_over.set()
        await task

    run_virtually(run())


def listeners(live: Live) -> tuple[int, int]:
    return len(live.loop.decided), len(live.loop.held)


def test_nothing_of_a_scheduler_is_heard_before_and_after_somebody_looks() -> None:
    async def question(source: SchedulerSource, live: Live, store: MemoryStore) -> None:
        before = listeners(live)
        source.follow(lambda: None)
        assert listeners(live) == (before[0] + 1, before[1] + 1)
        await asyncio.sleep(30.0)
        assert source.sessions.kept()
        source.leave()
        assert listeners(live) == before
        assert source.sessions.kept() == []

    schedule(question)


def test_gangs_have_the_reasons_that_the_scheduler_gave() -> None:
    async def question(source: SchedulerSource, live: Live, store: MemoryStore) -> None:
        source.follow(lambda: None)
        await asyncio.sleep(30.0)
        found = (await source.look("1")).gangs["default/wide"]
        said = live.session_events.book.reason(GangKey(found.key), live.cache.snapshot(source.now))
        assert (found.status.value, found.why) == ("Waits", said)
        assert said
        source.leave()

    schedule(question)


def test_sessions_of_a_large_cluster_are_not_gone_through_where_it_is_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_scheduler, "LARGE_NODES", 0)

    async def question(source: SchedulerSource, live: Live, store: MemoryStore) -> None:
        source.follow(lambda: None)
        await asyncio.sleep(30.0)
        with pytest.raises(SnapshotError, match="record it with --record DIR"):
            source.sessions.take(source.sessions.kept()[0].key)
        source.leave()

    schedule(question)


def test_a_replica_that_does_not_lead_says_so() -> None:
    async def question(source: SchedulerSource, live: Live, store: MemoryStore) -> None:
        assert (live.is_leader, source.problem) == (True, "")
        live.is_stopping = True
        assert source.problem == NOT_LEADING
        live.is_stopping = False

    schedule(question)


def test_a_scheduler_that_could_show_the_page_loads_none_of_it() -> None:
    program = (
        "import sys; from phalanx.ui.serving.mounted import mount; from phalanx.ui.serving.page import Page;"
        "print([name for name in sys.modules if name.startswith(('phalanx.ui.views', 'phalanx.ui.questions', 'phalanx.whatif',"
        " 'phalanx.stepping', 'numpy'))])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- an embedded cluster -------------------------------------------------------------------------------------------------


def test_an_embedded_cluster_is_seen_as_it_is() -> None:
    world = worlds.world(nodes=1, gpus=1)
    source: ClusterSource = WorldSource(world, GangBook())
    worlds.submit(world, worlds.gang("train", tasks=1, duration="10m", gpus=1))
    worlds.run(world, 60)
    found = asyncio.run(source.look("1"))
    assert {key: gang.status.value for key, gang in found.gangs.items()} == {"default/train": "Runs"}
    assert source.sessions is not None
    assert [row.placed for row in source.sessions.kept() if row.placed] == [1]
    assert asyncio.run(source.events("default", ["train"])) == []
