"""Writes of sessions and controllers, on their way to an API server."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from phalanx.controllers.controller import Bind, Create, Delete, Evict, Patch, RecordEvent, Try, Write
from phalanx.errors import ClusterError, Conflict, Exists, Invalid, Missing, ServerError
from phalanx.live import outbox as outbox_module
from phalanx.live.api_port import ApiPort, joined
from phalanx.live.clock import LoopClock
from phalanx.live.outbox import Outbox, Rank
from phalanx.model.conditions import cleared
from phalanx.model.kinds import EVENT, NODE, POD, Document, kind_at
from phalanx.scheduling.controllers import WriteSequence
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.embedded_server import Server, until
from tests.support.store_contract import pod

CONFIG, QUEUE = kind_at("", "configmaps"), kind_at("scheduling.volcano.sh", "queues")


class Desk:
    """A port on an embedded cluster."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server, self.store, self.client = server, server.store, client
        self.complaints: list[str] = []
        self.mirror = Mirror(lambda: 0.0)
        self.outbox = Outbox(report=self.complaints.append)
        self.port = ApiPort(client, self.outbox, self.mirror, LoopClock(lambda: 0.0), instance="test")

    def make(self, name: str = "a", **more: Any) -> Document:
        """Create a pod that both the store and the mirror know."""
        made = self.store.create(pod(name, **more))
        self.mirror.put(POD, {**made, "metadata": dict(made["metadata"])})
        return made

    def pod(self, name: str = "a") -> Document:
        return self.store.get(POD, "default", name)

    async def write(self, *writes: Write) -> None:
        """Write one after the other; a refusal is raised."""
        answer: asyncio.Future[ClusterError | None] = asyncio.get_running_loop().create_future()
        WriteSequence(self.port, writes, answer.set_result).go()
        if (problem := await answer) is not None:
            raise problem

    def recorded(self) -> list[Document]:
        return self.store.items(EVENT)

    async def finish(self) -> None:
        await until(lambda: not self.outbox.waiting())


def run(question: Callable[[Desk], Awaitable[None]]) -> None:
    async def asked() -> None:
        server = Server()
        async with server.opened() as client:
            await question(Desk(server, client))

    asyncio.run(asked())


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "FIRST_WAIT", 0.001)


def labels(**values: str | None) -> Patch:
    return Patch(POD, "default", "a", {"metadata": {"labels": values}})


def condition(type_: str, reason: str) -> dict[str, str]:
    return {"type": type_, "status": "False", "reason": reason}


def conditions(*items: dict[str, str]) -> Patch:
    return Patch(POD, "default", "a", {"status": {"conditions": list(items)}}, is_status=True)


def shown(document: Document) -> dict[str, str]:
    return {item["type"]: item.get("reason", "") for item in document["status"].get("conditions", ())}


def test_a_write_that_is_joined_to_a_note_goes_before_other_notes() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        desk.port.send(conditions(condition("PodScheduled", "Unschedulable")), is_note=True)
        assert desk.outbox.waiting(Rank.WRITE) == 0
        desk.port.send(conditions(condition("DisruptionTarget", "Preempted")))
        assert (desk.outbox.waiting(Rank.WRITE), desk.outbox.waiting()) == (1, 1)
        await desk.finish()
        assert shown(desk.pod()) == {"PodScheduled": "Unschedulable", "DisruptionTarget": "Preempted"}

    run(question)


# --- one after the other -------------------------------------------------------------------------------------------------


def test_every_write_does_what_it_says() -> None:
    async def question(desk: Desk) -> None:
        event = RecordEvent(pod("a"), "Reason", "words")
        await desk.write(Create(pod("a")), labels(x="y"), Bind("default", "a", "n0"), event)
        await desk.finish()
        assert (desk.pod()["metadata"]["labels"], desk.pod()["spec"]["nodeName"], len(desk.recorded())) == ({"x": "y"}, "n0", 1)
        await desk.write(Evict("default", "a"))
        assert "deletionTimestamp" in desk.pod()["metadata"]
        await desk.write(Create(pod("b")), Delete(POD, "default", "b"))
        assert desk.store.find(POD, "default", "b") is None

    run(question)


def test_what_the_server_answers_is_known_at_once() -> None:
    async def question(desk: Desk) -> None:
        await desk.write(Create(pod("a")))
        await desk.write(labels(x="y"))
        found = desk.mirror.find(POD, "default", "a")
        assert found is not None
        assert (found["metadata"]["labels"], found["kind"]) == ({"x": "y"}, "Pod")

    run(question)


def test_a_refusal_is_raised_and_leaves_out_the_rest() -> None:
    async def question(desk: Desk) -> None:
        with pytest.raises(Missing):
            await desk.write(labels(x="y"), Create(pod("b")))
        assert desk.store.items(POD) == []

    run(question)


def test_what_was_only_tried_has_its_own_end() -> None:
    async def question(desk: Desk) -> None:
        def refused(reason: str) -> list[Create]:
            assert reason == 'pods "a" not found'
            return [Create(pod("instead"))]

        await desk.write(Create(pod("first")), Try(labels(x="y"), refused), Create(pod("last")))
        assert [item["metadata"]["name"] for item in desk.store.items(POD)] == ["first", "instead"]
        await desk.write(Try(Create(pod("b")), refused), Create(pod("c")))
        assert len(desk.store.items(POD)) == 4

    run(question)


def test_an_object_that_is_there_already_is_no_fault_and_becomes_known() -> None:
    async def question(desk: Desk) -> None:
        made = desk.store.create(pod("a", labels={"made by": "somebody"}))
        await desk.write(Create(pod("a")))
        found = desk.mirror.find(POD, "default", "a")
        assert found is not None
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        before = desk.server.requests
        await desk.write(Create(pod("a")))
        assert desk.server.requests == before + 1

    run(question)


def owned(uid: str) -> Document:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hosts", "namespace": "default", "ownerReferences": [owner]},
    }


def test_what_an_earlier_owner_of_the_same_name_has_left_is_waited_for() -> None:
    async def question(desk: Desk) -> None:
        desk.store.create(owned("before"))
        with pytest.raises(Exists):
            await desk.write(Create(owned("now")))
        assert desk.mirror.find(CONFIG, "default", "hosts") is None
        await desk.write(Create(owned("before")))
        assert desk.mirror.find(CONFIG, "default", "hosts") is not None

    run(question)


def test_the_owner_of_what_cannot_be_made_says_why() -> None:
    async def question(desk: Desk) -> None:
        for problem in (Missing("no such namespace"), Invalid('ConfigMap "hosts" is invalid: data: too long')):
            desk.server.refusals.append(problem)
            with pytest.raises(type(problem)):
                await desk.write(Create(owned("now")))
        await desk.finish()
        (event,) = desk.recorded()
        about = event["involvedObject"]
        assert (about["kind"], about["uid"], event["reason"]) == ("Job", "now", "FailedCreate")
        assert event["message"] == 'ConfigMap "hosts" is invalid: data: too long; Job train waits until that is mended'

    run(question)


def test_what_is_gone_already_need_not_go() -> None:
    async def question(desk: Desk) -> None:
        await desk.write(Delete(POD, "default", "a"), Evict("default", "a"))

    run(question)


def test_a_bind_that_came_through_unheard_counts() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        for _ in range(2):
            await desk.write(Bind("default", "a", "n0"))
        with pytest.raises(Conflict, match="already assigned"):
            await desk.write(Bind("default", "a", "n1"))

    run(question)


def test_another_pod_of_the_same_name_is_left_alone() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        for write in (Bind("default", "a", "n0", "other"), Delete(POD, "default", "a", "other"), Evict("default", "a", "other")):
            with pytest.raises(Conflict):
                await desk.write(write)

    run(question)


# --- left to be written --------------------------------------------------------------------------------------------------


def test_patches_of_one_object_that_wait_are_sent_as_one() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        for write in (labels(x="1", y="1"), labels(x="2"), labels(z="3"), conditions(condition("Ready", "One"))):
            desk.port.send(write)
        await desk.finish()
        assert desk.pod()["metadata"]["labels"] == {"x": "2", "y": "1", "z": "3"}
        assert (shown(desk.pod()), desk.server.requests) == ({"Ready": "One"}, 2)

    run(question)


def test_a_patch_that_comes_while_one_is_under_way_is_sent_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "FIRST_WAIT", 0.1)

    async def question(desk: Desk) -> None:
        desk.make()
        desk.server.refusals.append(ServerError("etcd is away"))
        desk.port.send(labels(x="1", y="1"))
        await until(lambda: desk.server.requests == 1)
        desk.port.send(labels(x="2"))
        await desk.finish()
        assert (desk.pod()["metadata"]["labels"], desk.server.requests) == ({"x": "2", "y": "1"}, 3)

    run(question)


def test_what_is_left_to_be_written_need_not_find_its_object() -> None:
    async def question(desk: Desk) -> None:
        for write in (labels(x="y"), Delete(POD, "default", "a"), RecordEvent(pod("a"), "Reason", "words")):
            desk.port.send(write)
        desk.port.send(Create(build.queue("q")), is_note=True)
        await desk.finish()
        assert (desk.complaints, len(desk.recorded()), desk.store.find(QUEUE, "", "q") is not None) == ([], 1, True)

    run(question)


def test_after_somebody_else_took_over_nothing_is_joined_to_what_was_dropped() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        desk.port.send(labels(x="old"))
        desk.outbox.drop()
        desk.port.forget()
        desk.port.send(labels(y="new"))
        await desk.finish()
        assert desk.pod()["metadata"]["labels"] == {"y": "new"}

    run(question)


@pytest.mark.parametrize(
    ("first", "then", "both"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": None}}, {"a": {"x": None, "y": 1}}),
        ({"a": [1]}, {"a": [2, 3]}, {"a": [2, 3]}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": None}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    ],
)
def test_two_patches_as_one(first: Any, then: Any, both: Any) -> None:
    assert joined(first, then) == both


# --- conditions of pods --------------------------------------------------------------------------------------------------


def test_conditions_that_others_write_on_pods_are_left_alone() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        desk.store.patch(POD, "default", "a", {"status": {"conditions": [condition("Ready", "Theirs")]}}, is_status=True)
        await desk.write(conditions(condition("PodScheduled", "Unschedulable")))
        assert shown(desk.pod()) == {"Ready": "Theirs", "PodScheduled": "Unschedulable"}
        await desk.write(conditions(condition("PodScheduled", "Other")))
        assert shown(desk.pod()) == {"Ready": "Theirs", "PodScheduled": "Other"}

    run(question)


def test_a_condition_goes_that_a_patch_removes() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        await desk.write(conditions(condition("PodScheduled", "Unschedulable"), condition("Ready", "Ours")))
        await desk.write(conditions(cleared(is_gated=False)))
        assert shown(desk.pod()) == {"Ready": "Ours"}

    run(question)


def test_conditions_that_wait_to_be_written_do_not_replace_each_other() -> None:
    async def question(desk: Desk) -> None:
        desk.make()
        for item in (condition("PodScheduled", "Old"), condition("PodBound", "Ours"), condition("PodScheduled", "New")):
            desk.port.send(conditions(item))
        await desk.finish()
        assert shown(desk.pod()) == {"PodScheduled": "New", "PodBound": "Ours"}

    run(question)


def test_the_status_of_a_node_is_patched_as_a_whole() -> None:
    async def question(desk: Desk) -> None:
        desk.store.create(build.node("n0"))
        await desk.write(Patch(NODE, "", "n0", {"status": {"allocatable": {"cpu": "1"}}}, is_status=True))
        assert desk.store.get(NODE, "", "n0")["status"]["allocatable"]["cpu"] == "1"

    run(question)


def _without_status(desk: Desk) -> Patch:
    """Let the client know of no status subresource of queues, and return a patch of the status of one."""
    made = desk.store.create({"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "research"}, "spec": {}})
    desk.mirror.put(QUEUE, {**made, "metadata": dict(made["metadata"])})
    desk.client.served = {QUEUE: replace(QUEUE, has_status=False)}
    return Patch(QUEUE, "", "research", {"status": {"state": "Open", "running": 0}}, is_status=True)


def test_a_status_is_written_with_its_object_where_there_is_no_other_place() -> None:
    async def question(desk: Desk) -> None:
        write = _without_status(desk)
        desk.store.without_status.add(QUEUE)
        await desk.write(write)
        assert desk.store.get(QUEUE, "", "research")["status"] == {"state": "Open", "running": 0}

    run(question)


def test_a_status_that_the_server_leaves_out_is_not_taken_for_written_and_kinds_are_looked_for() -> None:
    async def question(desk: Desk) -> None:
        write, looked = _without_status(desk), list[str]()
        desk.port.misplaced = lambda: looked.append("kinds")
        with pytest.raises(ClusterError, match="its status was left out: its kind has a status subresource by now"):
            await desk.write(write)
        assert looked == ["kinds"]

    run(question)


def test_a_part_of_a_status_that_the_schema_does_not_know_is_no_fault() -> None:
    async def question(desk: Desk) -> None:
        write = _without_status(desk)
        desk.store.without_status.add(QUEUE)
        port_of_schema = desk.store.change
        desk.store.change = lambda kind, namespace, name, change, **more: port_of_schema(  # type: ignore[method-assign]  # prunes
            kind, namespace, name, lambda old: _pruned(change(old)), **more
        )
        await desk.write(write)
        assert desk.store.get(QUEUE, "", "research")["status"] == {"state": "Open"}

    run(question)


def _pruned(document: Document) -> Document:
    return {**document, "status": {key: value for key, value in document.get("status", {}).items() if key != "running"}}
