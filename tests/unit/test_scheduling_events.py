"""Events on a real cluster: counted, capped, with valid names, and never in the way."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from phalanx.controllers.controller import RecordEvent
from phalanx.errors import Busy, ClusterError, Forbidden
from phalanx.live.api_port import ApiPort
from phalanx.live.clock import LoopClock
from phalanx.live.outbox import Outbox
from phalanx.model.kinds import EVENT, Document
from phalanx.scheduling import events as module
from phalanx.scheduling.events import EventRecorder
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.embedded_server import Server, until

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Desk:
    """A sender, and the events that a server has from it."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server, self.now = server, 1_767_225_600.25
        self.complaints: list[str] = []
        self.outbox = Outbox(connections=1, report=self.complaints.append)
        clock = LoopClock(lambda: self.now)
        port = ApiPort(client, self.outbox, Mirror(lambda: self.now), clock, instance="phalanx-0")
        self.recorder = EventRecorder(port, instance="phalanx-0")

    def tell(self, message: str = "no room", *, about: Document | None = None, reason: str = "FailedScheduling") -> None:
        self.recorder.record(RecordEvent(about or build.pod("a"), reason, message, is_warning=True))

    async def events(self) -> list[Document]:
        await until(lambda: not self.outbox.waiting())
        return self.server.store.items(EVENT)


def run(question: Callable[[Desk], Awaitable[None]]) -> None:
    async def asked() -> None:
        server = Server()
        async with server.opened() as client:
            await question(Desk(server, client))

    asyncio.run(asked())


def test_an_event_says_what_kubectl_shows() -> None:
    async def question(desk: Desk) -> None:
        desk.tell()
        (event,) = await desk.events()
        assert (event["type"], event["reason"], event["message"], event["action"]) == (
            "Warning", "FailedScheduling", "no room", "Scheduling",
        )  # fmt: skip
        assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "a", "uid": "a"}
        assert (event["reportingComponent"], event["reportingInstance"]) == ("phalanx", "phalanx-0")
        assert event["eventTime"] == "2026-01-01T00:00:00.250000Z"
        assert (event["firstTimestamp"], event["count"]) == ("2026-01-01T00:00:00Z", 1)

    run(question)


def test_an_event_may_be_about_an_owner_of_a_kind_that_nobody_knows() -> None:
    async def question(desk: Desk) -> None:
        desk.tell(
            about={"apiVersion": "example.com/v1", "kind": "Simulation", "metadata": {"name": "flow", "namespace": "default"}}
        )
        (event,) = await desk.events()
        assert (event["involvedObject"]["apiVersion"], event["involvedObject"]["kind"]) == ("example.com/v1", "Simulation")

    run(question)


def test_the_same_again_is_counted_once_in_a_while() -> None:
    async def question(desk: Desk) -> None:
        for seconds in (0.0, 10.0, 49.0, 1.0):
            desk.now += seconds
            desk.tell()
        (event,) = await desk.events()
        assert event["series"] == {"count": 4, "lastObservedTime": "2026-01-01T00:01:00.250000Z"}

    run(question)


def test_other_words_are_another_event() -> None:
    async def question(desk: Desk) -> None:
        for message in ("no room", "no GPU", "no room"):
            desk.tell(message)
        desk.tell(about=build.pod("b"))
        assert len(await desk.events()) == 3

    run(question)


def test_what_the_server_has_forgotten_is_told_anew() -> None:
    async def question(desk: Desk) -> None:
        desk.tell()
        (event,) = await desk.events()
        desk.server.store.delete(EVENT, "default", event["metadata"]["name"])
        desk.now += 3600.0
        desk.tell()  # is refused: there is nothing to count
        assert await desk.events() == []
        desk.tell()
        (event,) = await desk.events()
        assert (event["count"], "series" in event, desk.complaints) == (1, False, [])

    run(question)


@pytest.mark.parametrize("problem", [Busy("slow down"), Forbidden("the namespace is being terminated")])
def test_what_is_refused_is_not_tried_again_until_it_comes_again(problem: ClusterError) -> None:
    async def question(desk: Desk) -> None:
        desk.server.refusals.append(problem)
        desk.tell()
        assert (await desk.events(), desk.complaints) == ([], [])
        desk.tell()
        assert len(await desk.events()) == 1

    run(question)


def test_when_too_many_wait_new_ones_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 3)

    async def question(desk: Desk) -> None:
        for number in range(10):
            desk.tell(f"reason {number}")
        assert len(await desk.events()) == 3
        desk.tell("there is room again")
        assert len(await desk.events()) == 4

    run(question)


def test_what_is_dropped_does_not_wait_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 1)

    async def question(desk: Desk) -> None:
        desk.tell("before")
        desk.outbox.drop()
        desk.tell("after")
        assert [event["message"] for event in await desk.events()] == ["after"]

    run(question)


def test_only_so_many_events_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 2)

    async def question(desk: Desk) -> None:
        for message in ("one", "two", "three", "one"):
            desk.tell(message)
        assert sorted(event["message"] for event in await desk.events()) == ["one", "one", "three", "two"]

    run(question)


@pytest.mark.parametrize("name", ["a", "x" * 253, "y" * 235 + "." + "z" * 17])
def test_names_are_valid_however_long_the_object_s_is(name: str) -> None:
    async def question(desk: Desk) -> None:
        for message in ("one", "two"):
            desk.tell(message, about=build.pod(name))
        names = [event["metadata"]["name"] for event in await desk.events()]
        assert len(set(names)) == 2
        for found in names:
            assert len(found) <= 253
            assert NAME.fullmatch(found)

    run(question)


def test_an_object_without_namespace_is_told_of_in_default() -> None:
    async def question(desk: Desk) -> None:
        desk.tell("x" * 2000, about=build.queue("research"), reason="QueueClosed")
        (event,) = await desk.events()
        assert (event["metadata"]["namespace"], event["involvedObject"]["name"]) == ("default", "research")
        assert "namespace" not in event["involvedObject"]
        assert (event["action"], len(event["message"])) == ("QueueClosed", 1024)

    run(question)
