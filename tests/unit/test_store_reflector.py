"""Following a server in virtual time that forgets versions at once, or was restored from a backup."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from math import inf
from typing import Any

import pytest

from phalanx.errors import Gone
from phalanx.model.kinds import POD, Kind
from phalanx.sim.memory_client import MemoryClient
from phalanx.sim.virtual_loop import run_virtually
from phalanx.store.api_client import Change
from phalanx.store.kube.mirror import Mirror
from phalanx.store.kube.reflector import Reflector
from phalanx.store.memory import MemoryStore
from phalanx.testing.storm.server import Server
from tests.support.store_contract import pod


class Moody(MemoryClient):
    """A client of a server whose watches can be made to end."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.store)
        self._server = server
        self.forgets = 0.0
        """So many times a watch ends with 410."""
        self.watches = 0

    async def changes(
        self, kind: Kind, namespace: str = "", *, since: str, seconds: int, fields: str = ""
    ) -> AsyncGenerator[Sequence[Change], None]:
        self.watches += 1
        self._forget()
        async for found in super().changes(kind, namespace, since=self._server.checked(since), seconds=seconds, fields=fields):
            self._forget()
            yield found

    def _forget(self) -> None:
        if self.forgets > 0:
            self.forgets -= 1
            raise Gone("too old resource version")


class Scene:
    """A server, a mirror that follows its pods, and what went wrong."""

    def __init__(self) -> None:
        self.server = Server(lambda: 0.0)
        self.client = Moody(self.server)
        self.mirror, self.reports, self.set_back = Mirror(lambda: 0.0), list[str](), list[float]()
        self.reflector = Reflector(self.client, self.mirror, POD, report=self.reports.append)
        self.reflector.listeners.on_set_back = lambda: self.set_back.append(asyncio.get_running_loop().time())

    @property
    def store(self) -> MemoryStore:
        return self.server.store

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.mirror.within(POD)]

    async def restore(self) -> None:
        """Let the server be what its last backup holds; connections are cut by that."""
        self.client.disconnect()
        await asyncio.sleep(1.0)
        self.server.set_back()
        self.client.connect()


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def played() -> None:
        scene = Scene()
        following = asyncio.create_task(scene.reflector.run())
        await scene.reflector.is_synced.wait()
        await asyncio.sleep(1.0)
        await story(scene)
        following.cancel()
        await asyncio.wait({following})

    run_virtually(played())


def test_the_first_time_that_a_version_is_gone_everything_is_listed_at_once() -> None:
    async def story(scene: Scene) -> None:
        scene.client.forgets = 1
        scene.store.create(pod("a"))
        await asyncio.sleep(0.05)
        assert (scene.names, scene.reflector.lists) == (["a"], 2)

    play(story)


def test_a_server_that_forgets_every_version_at_once_is_asked_less_and_less_often() -> None:
    async def story(scene: Scene) -> None:
        scene.client.forgets, before = inf, scene.client.watches
        scene.store.create(pod("a"))
        await asyncio.sleep(60.0)
        assert scene.client.watches - before < 20
        scene.client.forgets = 0
        await asyncio.sleep(20.0)
        scene.store.create(pod("b"))
        await asyncio.sleep(1.0)
        assert scene.names == ["a", "b"]

    play(story)


def test_after_a_watch_that_lasted_the_next_410_is_a_first_one_again() -> None:
    async def story(scene: Scene) -> None:
        for name in ("a", "b", "c"):
            scene.client.forgets = 1
            scene.store.create(pod(name))
            await asyncio.sleep(0.05)
            assert scene.names[-1] == name
            await asyncio.sleep(60.0)

    play(story)


def test_a_server_that_was_restored_from_a_backup_is_followed_on() -> None:
    async def story(scene: Scene) -> None:
        for name in ("kept", "changed", "deleted"):
            scene.store.create(pod(name))
        scene.server.back_up()
        scene.store.create(pod("made-since"))
        scene.store.patch(POD, "default", "changed", {"metadata": {"labels": {"x": "y"}}})
        scene.store.delete(POD, "default", "deleted", grace=0)
        await asyncio.sleep(1.0)
        assert scene.names == ["changed", "kept", "made-since"]
        await scene.restore()
        await asyncio.sleep(5.0)
        assert scene.names == ["changed", "deleted", "kept"]
        found = scene.mirror.find(POD, "default", "changed")
        assert found is not None
        assert not found["metadata"].get("labels")
        assert len(scene.set_back) == 1
        scene.store.create(pod("new"))
        await asyncio.sleep(1.0)
        assert scene.names == ["changed", "deleted", "kept", "new"]

    play(story)


def test_a_server_that_has_passed_our_version_by_then_is_seen_through_by_the_next_list() -> None:
    async def story(scene: Scene) -> None:
        scene.server.back_up()
        for _ in range(3):
            scene.store.create(pod("train"))
            scene.store.delete(POD, "default", "train", grace=0)
        scene.store.create(pod("train"))
        await asyncio.sleep(1.0)
        scene.client.disconnect()
        await asyncio.sleep(1.0)
        scene.server.set_back()
        found = scene.store.create(pod("train"))
        for number in range(20):
            scene.store.create(pod(f"other-{number}"))
        scene.client.connect()
        await asyncio.sleep(20.0)
        scene.reflector.refresh(asyncio.get_running_loop().time())
        await asyncio.sleep(1.0)
        known = scene.mirror.find(POD, "default", "train")
        assert known is not None
        assert (known["metadata"]["uid"], len(scene.names)) == (found["metadata"]["uid"], 21)
        assert len(scene.set_back) == 1

    play(story)


def _undone(scene: Scene) -> dict[str, Any]:
    """Return the pod as the answer to a write of ours would show it, of a version that the server has not come to."""
    known = scene.mirror.find(POD, "default", "train")
    assert known is not None
    return {**known, "metadata": {**known["metadata"], "resourceVersion": "900", "labels": {"x": "y"}}}


def _answer_under_way(scene: Scene, patch: pytest.MonkeyPatch, answer: dict[str, Any]) -> None:
    """Let the answer to a write come while the next list is under way."""
    client = scene.reflector._client
    lists = client.list

    async def overtaken(*args: Any, **more: Any) -> Any:  # Any: passed on
        listing = await lists(*args, **more)
        scene.mirror.put(POD, answer)
        return listing

    patch.setattr(client, "list", overtaken)


def test_what_we_know_from_our_own_writes_is_void_when_another_kind_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(scene: Scene) -> None:
        scene.store.create(pod("train"))
        await asyncio.sleep(1.0)
        known, undone = scene.mirror.find(POD, "default", "train"), _undone(scene)
        with monkeypatch.context() as patch:
            _answer_under_way(scene, patch, undone)
            scene.reflector.refresh(asyncio.get_running_loop().time())
            await asyncio.sleep(1.0)
        assert scene.mirror.find(POD, "default", "train") == undone, "an answer may overtake a list"
        scene.reflector.distrust()
        await asyncio.sleep(1.0)
        assert scene.mirror.find(POD, "default", "train") == known
        assert scene.set_back == []

    play(story)


def test_a_list_that_is_older_than_what_an_answer_showed_before_it_was_requested_shows_a_restore() -> None:
    async def story(scene: Scene) -> None:
        scene.store.create(pod("train"))
        await asyncio.sleep(1.0)
        known = scene.mirror.find(POD, "default", "train")
        scene.mirror.put(POD, _undone(scene))
        scene.reflector.refresh(asyncio.get_running_loop().time())
        await asyncio.sleep(1.0)
        assert scene.mirror.find(POD, "default", "train") == known
        assert len(scene.set_back) == 1

    play(story)


def test_a_server_that_is_only_slow_was_not_set_back() -> None:
    async def story(scene: Scene) -> None:
        scene.store.create(pod("a"))
        await asyncio.sleep(1.0)
        scene.reflector.refresh(asyncio.get_running_loop().time())
        await asyncio.sleep(1.0)
        assert (scene.reflector.lists, scene.set_back, scene.names) == (2, [], ["a"])

    play(story)
