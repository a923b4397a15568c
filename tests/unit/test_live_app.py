"""A whole scheduler on an embedded cluster behind real sockets: sessions, binds, roll-backs, evictions, takeover, the end."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.errors import Forbidden
from phalanx.live import app, watching
from phalanx.live import outbox as outbox_module
from phalanx.live.app import Live, Setup
from phalanx.live.election import LEASE, Terms
from phalanx.model.bounds import SESSION_SECONDS
from phalanx.model.kinds import BIND_REQUEST, EVENT, POD, Document, kind_at
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.scheduling import loop as loop_module
from phalanx.scheduling.cache import Urgency
from phalanx.scheduling.loop import Pace
from phalanx.session.cycle import Profile, run_cycle
from phalanx.session.policy import Policy
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import Discovery, served_kinds
from phalanx.store.kube.reflector import Reflector
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support.embedded_server import Server, until

CONFIG, GROUP, BUDGET = (
    kind_at("", "configmaps"), kind_at("scheduling.volcano.sh", "podgroups"), kind_at("policy", "poddisruptionbudgets"),
)  # fmt: skip


def without(policy: Policy, plugin: str) -> Policy:
    return replace(policy, tiers=tuple(tuple(item for item in tier if item.name != plugin) for tier in policy.tiers))


HASTY = {"name": "bindbackoff", "arguments": {"first": "50ms"}}
PLAIN = build.policy([["priority", "gang", HASTY], ["predicates", "binpack"]], "allocate")
PREEMPTING = without(policy_of_profile("phalanx"), "pdb")
"""Knows nothing of disruption budgets, and so asks for what they refuse."""
HASTY_PACE = Pace(gap=0.002, later=0.02, after_fault=0.01)
TERMS = Terms("phalanx", "default", "", lease_seconds=1.0, renew_seconds=0.6, retry_seconds=0.02)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "PACE", HASTY_PACE)
    monkeypatch.setattr(outbox_module, "FIRST_WAIT", 0.002)
    monkeypatch.setattr(watching, "AFTER_FAULT_SECONDS", 0.01)


class Scene:
    """An embedded cluster and a scheduler on it."""

    def __init__(self, server: Server, client: Client, *, policy: Policy = PLAIN, identity: str = "", **setup: Any) -> None:
        self.server, self.store, self.client = server, server.store, client
        self.reports: list[str] = []
        profile = Profile(policy, KAI_CATALOGUE if policy.catalogue == "kai" else CATALOGUE)
        terms = replace(TERMS, identity=identity) if identity else None
        whole = Setup(profile=profile, gates=profile, controllers=(), schedulers=frozenset(), terms=terms, **setup)
        self.live = Live(client, whole, report=self.reports.append)
        self.is_over = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.live.run(self.is_over))
        try:
            yield
        finally:
            self.is_over.set()
            await task

    def load(self, *parts: Document | Sequence[Document]) -> None:
        for part in parts:
            for document in [part] if isinstance(part, Mapping) else part:
                self.store.load({**document, "metadata": {**document["metadata"], "uid": ""}})

    def nodes_of_pods(self) -> dict[str, str]:
        return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in self.store.items(POD)}

    def leaving(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.store.items(POD) if "deletionTimestamp" in item["metadata"]]

    def events(self, reason: str) -> list[tuple[str, str]]:
        events = [item for item in self.store.items(EVENT) if item["reason"] == reason]
        return sorted((item["involvedObject"]["name"], item["message"]) for item in events)

    def refuse(self, *names: str) -> None:
        """Let a rule of the cluster refuse binds of these pods."""

        def rule(pod: Document, node: str) -> None:
            if pod["metadata"]["name"] in names:
                raise Forbidden(f'pods "{pod["metadata"]["name"]}" is forbidden: not today')

        self.store.binding[:] = [rule]

    def status(self, name: str) -> Status:
        task = self.live.cache.cluster.state.task(TaskKey(f"default/{name}"))
        assert task is not None
        return task.status


def run(question: Callable[[Scene], Awaitable[None]], **setup: Any) -> None:
    async def asked() -> None:
        server = Server()
        async with server.opened() as client:
            await question(Scene(server, client, **setup))

    asyncio.run(asked())


# --- binds ---------------------------------------------------------------------------------------------------------------


def test_a_gang_is_bound_whole_and_everybody_is_told() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.node("n1", cpu=2))
        async with scene.running():
            scene.load(build.gang("train", tasks=4, cpu=1))
            await until(lambda: all(scene.nodes_of_pods().values()) and len(scene.events("Scheduled")) >= 4)
            assert sorted(scene.nodes_of_pods().values()) == ["n0", "n0", "n1", "n1"]
            assert ("train-0", "Successfully assigned default/train-0 to n0") in scene.events("Scheduled")
            for name in scene.nodes_of_pods():
                scene.store.patch(POD, "default", name, {"status": {"phase": "Running"}}, is_status=True)
            await until(lambda: scene.store.get(GROUP, "default", "train")["status"]["phase"] == "Running")
        assert scene.reports == []

    run(question)


def test_who_leads_decides_nothing_before_it_hears_the_server_about_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reflector, "_note_contact", lambda reflector: None)

    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=2, cpu=1))
        async with scene.running():
            await scene.live.watching.has_synced.wait()
            await asyncio.sleep(0.2)
            assert (scene.live.loop.count, set(scene.nodes_of_pods().values())) == (0, {""})
            for reflector in scene.live.watching.reflectors.values():
                reflector.is_following = True
            await until(lambda: all(scene.nodes_of_pods().values()))

    run(question)


def test_a_kind_that_is_gone_holds_no_leader_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reflector, "_note_contact", lambda reflector: None)
    monkeypatch.setattr(watching, "CATCH_UP_SECONDS", 0.05)

    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=2, cpu=1))
        async with scene.running():
            await until(lambda: all(scene.nodes_of_pods().values()))

    run(question)


def test_what_was_there_before_the_start_is_scheduled_too() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=2, cpu=1))
        async with scene.running():
            await until(lambda: all(scene.nodes_of_pods().values()))
        assert scene.events("Scheduled") == []

    run(question, has_pod_events=False)


def test_a_gang_that_does_not_fit_has_nothing_bound_and_says_why() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=3, cpu=1))
        async with scene.running():
            await until(lambda: scene.events("FailedScheduling"))
            await until(lambda: all("conditions" in item["status"] for item in scene.store.items(POD)))
            conditions = [item["status"]["conditions"][0] for item in scene.store.items(POD)]
            assert {(item["type"], item["status"]) for item in conditions} == {("PodScheduled", "False")}
            assert any("Insufficient cpu" in item["message"] for item in conditions)
            assert set(scene.nodes_of_pods().values()) == {""}
            scene.load(build.node("n1", cpu=1))
            await until(lambda: all(scene.nodes_of_pods().values()))

    run(question)


# --- refused binds -------------------------------------------------------------------------------------------------------


def test_one_refused_bind_rolls_the_others_back() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=3, cpu=1))
        scene.refuse("train-1")
        async with scene.running():
            await until(lambda: scene.leaving() == ["train-0", "train-2"])
            await until(lambda: FAILED_BINDS in scene.store.get(POD, "default", "train-1")["metadata"]["annotations"])
            await until(lambda: len(scene.events("BindingError")) == 3)
            texts = dict(scene.events("BindingError"))
            assert texts["train-1"] == 'binding to node n0 was refused: pods "train-1" is forbidden: not today'
            assert texts["train-0"].startswith("rolled back: pod train-1 of its gang could not be bound: ")
            assert (scene.status("train-1"), scene.nodes_of_pods()["train-1"]) == (Status.PENDING, "")

    run(question)


def test_a_gang_that_is_whole_without_the_refused_pod_keeps_the_others() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=3, min_member=2, cpu=1))
        scene.refuse("train-1")
        async with scene.running():
            await until(lambda: scene.events("BindingError"))
            await scene.live.outbox.drain(1.0)
            assert (scene.leaving(), scene.nodes_of_pods()) == ([], {"train-0": "n0", "train-1": "", "train-2": "n0"})

    run(question)


def test_a_pod_that_is_refused_is_tried_again_after_a_while_and_elsewhere() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.node("n1"), build.gang("train", tasks=1, cpu=1))
        refused: list[str] = []

        def rule(pod: Document, node: str) -> None:
            if not refused:
                refused.append(node)
                raise Forbidden("not on this one")

        scene.store.binding.append(rule)
        async with scene.running():
            await until(lambda: all(scene.nodes_of_pods().values()))
            assert [scene.nodes_of_pods()["train-0"]] != refused

    run(question)


def test_a_pod_that_is_gone_is_no_reason_to_roll_back() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=2, cpu=1))

        def rule(pod: Document, node: str) -> None:
            if pod["metadata"]["name"] == "train-1":
                scene.store.binding.clear()
                scene.store.delete(POD, "default", "train-1")
                raise Forbidden('pods "train-1" not found')

        scene.store.binding.append(rule)
        async with scene.running():
            await until(lambda: scene.nodes_of_pods() == {"train-0": "n0"})
            await scene.live.outbox.drain(1.0)
            assert (scene.leaving(), scene.events("BindingError")) == ([], [])

    run(question)


def test_what_is_dropped_when_another_takes_over_is_not_rolled_back() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=3, cpu=1))
        for kind in (kind_at("", "nodes"), GROUP, POD):
            for item in scene.store.items(kind):
                scene.live.mirror.put(kind, {**item, "metadata": dict(item["metadata"])})
        snapshot = scene.live.cache.snapshot(0.0)
        decisions = run_cycle(snapshot, PLAIN, CATALOGUE)
        scene.live.loop.binding.start(decisions)
        assert (len(decisions.binds), scene.status("train-0")) == (3, Status.BINDING)
        await until(lambda: any(scene.nodes_of_pods().values()))
        scene.live.outbox.drop()
        assert scene.live.outbox.waiting() == 0
        await asyncio.sleep(0.02)
        assert (scene.leaving(), scene.events("BindingError")) == ([], [])

    run(question)


# --- binds by requests ---------------------------------------------------------------------------------------------------


def test_a_bind_is_asked_for_once_however_long_the_server_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question(scene: Scene) -> None:
        asked: list[str] = []
        is_slow, create = asyncio.Event(), scene.client.create

        async def late(document: Document, **more: Any) -> Document:
            if document["kind"] == "BindRequest":
                await is_slow.wait()
            return await create(document, **more)

        monkeypatch.setattr(scene.client, "create", late)
        scene.live.loop.decided.append(lambda snapshot, decisions: asked.extend(decisions.binds))
        scene.load(kai.queue("default", parent="", quota=-1), kai.queue("a", quota=-1), build.node("n0", cpu=2, gpus=1))
        scene.load([kai.priority_class(name) for name in kai.CLASSES])
        async with scene.running():
            scene.load(kai.gang("first", gpus=1))
            await until(lambda: asked)
            sessions = scene.live.loop.count
            scene.load(kai.gang("second", gpus=1))
            await until(lambda: scene.live.loop.count > sessions + 1)
            is_slow.set()
            await until(lambda: scene.store.items(BIND_REQUEST))
        assert asked == ["default/first-0"]

    run(question, policy=kai.policy())


# --- evictions -----------------------------------------------------------------------------------------------------------


def with_victim(scene: Scene) -> None:
    """Fill the one node with a pod that a budget guards, and let an important gang come."""
    classes = [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}]
    victim, waiting = build.gang("low", tasks=1, cpu=1), build.gang("high", tasks=1, cpu=1)
    for document in waiting:
        document["spec"]["priorityClassName"] = "high"
    waiting[1]["spec"]["priority"] = 100
    victim[1]["spec"]["nodeName"], victim[1]["metadata"]["labels"] = "n0", {"app": "low"}
    victim[1]["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    scene.load(build.queue("default"), build.node("n0", cpu=1), classes, victim, waiting)


def guard(scene: Scene) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}}
    scene.store.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec})


def test_a_victim_is_told_to_go_and_why() -> None:
    async def question(scene: Scene) -> None:
        with_victim(scene)
        async with scene.running():
            await until(lambda: scene.leaving() == ["low-0"] and scene.events("Preempted"))
            assert scene.events("Preempted")[0][1].startswith("By gangpreempt for default/high")
            await until(lambda: scene.status("low-0") is Status.RELEASING)
            scene.store.delete(POD, "default", "low-0", grace=0)
            await until(lambda: scene.nodes_of_pods() == {"high-0": "n0"})

    run(question, policy=PREEMPTING)


def test_an_eviction_that_a_budget_refuses_is_given_up_and_another_session_looks_again() -> None:
    async def question(scene: Scene) -> None:
        with_victim(scene)
        guard(scene)
        refused: list[str] = []
        scene.live.loop.evictor.refused.append(lambda eviction, reason: refused.append(f"{eviction.task.key}: {reason}"))
        async with scene.running():
            await until(lambda: len(refused) >= 2)
            assert refused[0] == "default/low-0: Cannot evict pod as it would violate the pod's disruption budget."
            assert (scene.leaving(), scene.events("Preempted")) == ([], [])
            scene.store.delete(BUDGET, "default", "b")
            await until(lambda: scene.leaving() == ["low-0"])

    run(question, policy=PREEMPTING)


# --- sessions ------------------------------------------------------------------------------------------------------------


def test_a_session_that_fails_is_told_of_and_the_next_one_is_held() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=2, cpu=1))
        faults = [KeyError("what")]

        def broken(seconds: float, snapshot_seconds: float, times: object) -> None:
            if faults:
                raise faults.pop()

        scene.live.loop.timed.append(broken)
        async with scene.running():
            await until(lambda: all(scene.nodes_of_pods().values()))
            assert scene.reports == ["session 1 failed, please report it: KeyError: 'what'"]

    run(question)


def test_a_session_that_takes_too_long_is_told_of_with_the_bound_and_what_took_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SESSION_SECONDS", replace(SESSION_SECONDS, usual=0))

    async def question(scene: Scene) -> None:
        scene.load(build.node("n0", cpu=4), build.gang("bert", tasks=2, cpu=1))
        async with scene.running():
            await until(lambda: any(" took " in text for text in scene.reports))
        (told,) = (text for text in scene.reports if " took " in text)
        assert re.fullmatch(r"session 1 took 0\.\d s, more than 0 s \(PHALANX_MAX_SESSION_SECONDS\): .* of it in \w+.*", told)

    run(question)


def test_a_listener_that_fails_is_told_of_and_the_session_is_carried_out() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=2, cpu=1))

        def broken(snapshot: object, decisions: object) -> None:
            raise KeyError("what")

        scene.live.loop.decided.append(broken)
        async with scene.running():
            await until(lambda: all(scene.nodes_of_pods().values()))
            assert scene.reports == ["part of session 1 failed, please report it: KeyError: 'what'"]

    run(question)


def test_nothing_is_decided_when_nothing_matters() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"))
        async with scene.running():
            await until(lambda: scene.live.loop.count)
            before = scene.live.loop.count
            scene.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
            scene.live.loop.wake(Urgency.NEVER)
            await asyncio.sleep(0.05)
            assert scene.live.loop.count == before
            scene.live.loop.wake(Urgency.LATER)
            await until(lambda: scene.live.loop.count > before)

    run(question)


def test_time_alone_brings_a_session_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "PACE", replace(HASTY_PACE, heartbeat=0.01))

    async def question(scene: Scene) -> None:
        async with scene.running():
            await until(lambda: scene.live.loop.count >= 3)

    run(question)


# --- objects -------------------------------------------------------------------------------------------------------------


def test_an_object_that_nobody_understands_is_left_out_alone() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=2, cpu=1))
        async with scene.running():
            for version in ("1", "2"):
                meta = {"namespace": "default", "name": "odd", "uid": "odd", "resourceVersion": version}
                scene.live.mirror.put(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta})
            await until(lambda: all(scene.nodes_of_pods().values()))
            assert scene.reports == ["Pod default/odd: spec: missing"]

    run(question)


def test_what_nobody_watches_goes_with_its_owner() -> None:
    async def question(scene: Scene) -> None:
        mirror = scene.live.mirror
        owner = {"namespace": "default", "name": "train", "uid": "train", "resourceVersion": "1"}
        owned = {
            "namespace": "default",
            "name": "hosts",
            "uid": "hosts",
            "resourceVersion": "2",
            "ownerReferences": [{"uid": "train"}],
        }
        group = {**build.pod_group("train"), "metadata": owner}
        mirror.put(GROUP, group)
        mirror.put(CONFIG, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**owned, "ownerReferences": [{"uid": "train"}]}})
        mirror.remove(GROUP, group)
        assert mirror.find(CONFIG, "default", "hosts") is None

    run(question)


# --- several replicas, and the end ---------------------------------------------------------------------------------------


def test_a_standby_takes_over_when_the_leader_stops() -> None:
    async def question(first: Scene) -> None:
        second = Scene(first.server, first.client, identity="second")
        first.load(build.queue("default"), build.node("n0", cpu=4))
        async with second.running():
            async with first.running():
                await until(lambda: first.live.is_leader != second.live.is_leader)
                leader, other = (first, second) if first.live.is_leader else (second, first)
                first.load(build.gang("one", tasks=2, cpu=1))
                await until(lambda: all(first.nodes_of_pods().values()))
                assert (leader.live.loop.count > 0, other.live.loop.count) == (True, 0)
            await until(lambda: second.live.is_leader)
            first.load(build.gang("two", tasks=2, cpu=1))
            await until(lambda: len(first.nodes_of_pods()) == 4 and all(first.nodes_of_pods().values()))
            lease = second.live.election_object()
            assert lease is not None
            assert lease["metadata"] == {"name": "phalanx", "namespace": "default"}
        assert first.store.get(LEASE, "default", "phalanx")["spec"]["holderIdentity"] == ""

    run(question, identity="first")


def test_who_stops_sends_what_was_decided() -> None:
    async def question(scene: Scene) -> None:
        scene.load(build.queue("default"), build.node("n0", pods=200, cpu=200), build.gang("train", tasks=150, cpu=1))
        scene.live.loop.decided.append(lambda snapshot, decisions: scene.is_over.set())
        async with scene.running():
            await scene.is_over.wait()
        assert all(scene.nodes_of_pods().values())

    run(question)


def test_kinds_that_are_served_later_are_followed_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "SHORTEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(watching, "LONGEST_PAUSE_SECONDS", 0.01)

    async def question(scene: Scene) -> None:
        kinds = [kind_at("", "nodes"), POD]

        async def fewer(client: Client, among: Any) -> Any:
            return Discovery(frozenset(kind for kind in await served_kinds(client, among) if kind in kinds), {})

        monkeypatch.setattr(watching, "discover", fewer)
        scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=2, cpu=1))
        async with scene.running():
            await until(lambda: scene.live.watching.has_synced.is_set())
            assert set(scene.live.watching.reflectors) == set(kinds)
            kinds += [GROUP, kind_at("scheduling.volcano.sh", "queues")]
            await until(lambda: all(scene.nodes_of_pods().values()))

    run(question)


def test_without_an_api_server_it_says_so_and_goes_on_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "LAST_WORDS_SECONDS", 0.05)

    async def question() -> None:
        server = Server()
        async with server.opened() as client:
            address, port = client.server, int(client.server.rpartition(":")[2])
        async with Client(address) as client:
            scene = Scene(server, client)
            scene.load(build.queue("default"), build.node("n0"), build.gang("train", tasks=2, cpu=1))
            async with scene.running():
                await until(lambda: scene.reports)
                assert scene.reports[0].startswith(f"discovery: no cluster at {address}: ")
                async with server.opened(port):
                    await until(lambda: all(scene.nodes_of_pods().values()))

    asyncio.run(question())
