"""Watching kinds of owners: those that come late, those that nobody lets us read, and those that go away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from phalanx.errors import Busy, ClusterError, Forbidden, Missing, ServerError, Unreachable
from phalanx.live import watching as module
from phalanx.live.watching import Watching
from phalanx.model.kinds import POD, Kind, kind_at
from phalanx.store.kube import reflector as reflector_module
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import Discovery
from phalanx.store.kube.mirror import Mirror
from tests.support import owned_pods as workloads
from tests.support.embedded_server import Server, going_on, until

JOBS, SETS = kind_at("kubeflow.org", "pytorchjobs"), kind_at("jobset.x-k8s.io", "jobsets")
KINDS = (POD, JOBS, SETS)


class Cluster:
    """A mirror that follows some kinds of a cluster, of which it may serve fewer, and forbid some."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.served, self.forbidden, self.complaints, self.is_gone = list(KINDS), list[Kind](), list[str](), False
        self.silent: dict[Kind, ClusterError] = {}
        self.mirror, self._list = Mirror(lambda: 0.0), client.list
        monkeypatch.setattr(module, "discover", self._discover)
        monkeypatch.setattr(client, "list", self._listed)
        self.watching = Watching(client, self.mirror, KINDS, report=self.complaints.append)

    async def _discover(self, client: Client, among: object) -> Discovery:
        return Discovery(frozenset(kind for kind in self.served if kind not in self.silent), dict(self.silent))

    async def _listed(self, kind: Kind, *where: Any, **which: Any) -> Any:  # Any: as the client answers
        if self.is_gone:
            raise Unreachable("no cluster at all")
        if kind in self.forbidden:
            raise Forbidden(f"{kind.resource} is forbidden")
        if kind not in self.served:
            raise Missing("the server could not find the requested resource")
        return await self._list(kind, *where, **which)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHORTEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(reflector_module, "FIRST_WAIT", 0.001)


def run(monkeypatch: pytest.MonkeyPatch, question: Callable[[Cluster], Awaitable[None]]) -> None:
    async def asked() -> None:
        async with Server().opened() as client:
            await question(Cluster(client, monkeypatch))

    asyncio.run(asked())


def test_the_kind_of_an_owner_that_came_a_moment_ago_is_looked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        cluster.served.remove(SETS)
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            cluster.served.append(SETS)
            assert SETS not in cluster.watching.kinds
            for owner in (None, workloads.owner("example.com/v1", "Simulation")):
                cluster.watching.look_for_owner(workloads.pod(by=owner))
            cluster.watching.look_for_owner(workloads.pod(by=workloads.owner("jobset.x-k8s.io/v1alpha2", "JobSet")))
            await until(lambda: SETS in cluster.watching.kinds)

    run(monkeypatch, question)


def test_whether_a_kind_is_served_is_known_and_found_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        cluster.served.remove(SETS)
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            assert (cluster.mirror.is_served(JOBS), cluster.mirror.is_served(SETS)) == (True, False)
            cluster.served.append(SETS)
            cluster.watching.look_for_kinds()
            await until(lambda: cluster.mirror.is_served(SETS))

    run(monkeypatch, question)


def test_what_all_watches_run_into_is_said_once_and_that_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        cluster.is_gone = True
        async with going_on(cluster.watching.run()):
            await until(lambda: cluster.complaints)
            await asyncio.sleep(0.05)
            cluster.is_gone = False
            await cluster.watching.catch_up()
        lost, found = cluster.complaints
        assert lost.endswith(": no cluster at all; tried again in 0.0 s, and so are all others that run into this")
        assert found.startswith("all watches go on, after 0.")

    run(monkeypatch, question)


def test_an_outage_is_said_less_and_less_often_while_the_server_is_tried_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_FAULT_SECONDS", 0.001)
    tries = 0

    async def question(cluster: Cluster) -> None:
        async def refused(client: Client, among: object) -> Discovery:
            nonlocal tries
            tries += 1
            raise Unreachable("no cluster at all")

        monkeypatch.setattr(module, "discover", refused)
        async with going_on(cluster.watching.run()):
            await until(lambda: tries >= 80)
        assert cluster.complaints[0] == "discovery: no cluster at all; tried again every 0.001 s"
        assert 2 <= len(cluster.complaints) <= 20

    run(monkeypatch, question)


def test_a_discovery_is_tried_again_no_sooner_than_the_server_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_FAULT_SECONDS", 0.001)
    busy, tries = Busy("slow down"), list[float]()
    busy.retry_after = 0.2

    async def question(cluster: Cluster) -> None:
        async def refused(client: Client, among: object) -> Discovery:
            tries.append(asyncio.get_running_loop().time())
            raise busy

        monkeypatch.setattr(module, "discover", refused)
        async with going_on(cluster.watching.run()):
            await until(lambda: len(tries) == 2)
        assert tries[1] - tries[0] >= 0.2
        assert cluster.complaints[0] == "discovery: slow down; tried again every 0.2 s"

    run(monkeypatch, question)


def test_a_kind_of_owners_that_nobody_lets_us_read_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        cluster.forbidden.append(JOBS)
        async with going_on(cluster.watching.run()):
            async with asyncio.timeout(5.0):
                await cluster.watching.catch_up()
            assert cluster.mirror.is_hidden(JOBS)
            assert len(cluster.complaints) == 1

    run(monkeypatch, question)


def test_pods_that_nobody_lets_us_read_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        cluster.forbidden.append(POD)
        async with going_on(cluster.watching.run()):
            await until(lambda: cluster.complaints)
            assert not cluster.watching.has_synced.is_set()
            cluster.forbidden.clear()
            await cluster.watching.has_synced.wait()

    run(monkeypatch, question)


def test_a_kind_that_goes_before_it_was_read_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        cluster.served.remove(SETS)
        first = True

        async def late(client: Client, among: object) -> Discovery:
            nonlocal first
            was_first, first = first, False
            return Discovery(frozenset(KINDS if was_first else cluster.served), {})

        monkeypatch.setattr(module, "discover", late)
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            assert (set(cluster.watching.kinds), cluster.complaints) == ({POD, JOBS}, [])

    run(monkeypatch, question)


def test_a_group_that_does_not_answer_keeps_its_kinds_and_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            cluster.mirror.put(JOBS, {"metadata": {"namespace": "default", "name": "train", "uid": "1", "resourceVersion": "9"}})
            cluster.silent = {JOBS: ServerError("etcd is away")}
            cluster.watching.look_for_kinds()
            await until(lambda: cluster.complaints)
            assert (JOBS in cluster.watching.kinds, cluster.mirror.count(JOBS)) == (True, 1)
            cluster.silent = {}
            await until(lambda: len(cluster.complaints) > 1)
        assert cluster.complaints == [
            "discovery: kubeflow.org does not answer: etcd is away; its kinds stay as they were until it does",
            "discovery: kubeflow.org answers again",
        ]

    run(monkeypatch, question)


def test_at_the_start_a_group_that_does_not_answer_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_PATIENCE_SECONDS", 0.3)

    async def question(cluster: Cluster) -> None:
        cluster.silent = {JOBS: ServerError("etcd is away"), SETS: ServerError("etcd is away")}
        async with going_on(cluster.watching.run()):
            await until(lambda: all(reflector.is_synced.is_set() for reflector in cluster.watching.reflectors.values()))
            assert not cluster.watching.has_synced.is_set()
            del cluster.silent[SETS]
            await until(lambda: SETS in cluster.watching.kinds)
            await cluster.watching.has_synced.wait()
            assert JOBS not in cluster.watching.kinds

    run(monkeypatch, question)


def test_who_begins_to_lead_later_lists_everything_again_and_waits_for_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", 0.05)

    async def question(cluster: Cluster) -> None:
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            cluster.forbidden.append(POD)
            catching_up = asyncio.create_task(cluster.watching.catch_up())
            await until(lambda: "nothing is decided before these are listed again: pods" in cluster.complaints)
            assert not catching_up.done()
            cluster.forbidden.clear()
            await catching_up
            assert {kind: reflector.lists for kind, reflector in cluster.watching.reflectors.items()} == dict.fromkeys(KINDS, 2)

    run(monkeypatch, question)


def test_at_the_start_nothing_is_listed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(cluster: Cluster) -> None:
        async with going_on(cluster.watching.run()):
            await cluster.watching.catch_up()
            assert {kind: reflector.lists for kind, reflector in cluster.watching.reflectors.items()} == dict.fromkeys(KINDS, 1)

    run(monkeypatch, question)


@pytest.mark.parametrize(("has_others", "lists"), [(True, 2), (False, 1)])
def test_what_is_known_for_long_is_listed_again_only_where_others_may_have_written(
    monkeypatch: pytest.MonkeyPatch, has_others: bool, lists: int
) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)

    async def question(cluster: Cluster) -> None:
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            await cluster.watching.catch_up(has_others=has_others)
            counts = {kind: reflector.lists for kind, reflector in cluster.watching.reflectors.items()}
            assert counts == dict.fromkeys(KINDS, lists)

    run(monkeypatch, question)


def test_a_kind_that_is_not_needed_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(module, "CATCH_UP_SECONDS", 0.05)

    async def question(cluster: Cluster) -> None:
        async with going_on(cluster.watching.run()):
            await cluster.watching.has_synced.wait()
            monkeypatch.setattr(cluster.watching.reflectors[JOBS], "refresh", lambda since: None)
            async with asyncio.timeout(5.0):
                await cluster.watching.catch_up()

    run(monkeypatch, question)
