"""What objects remember for sessions: seen at once, and written until the server has it."""

from phalanx.controllers.controller import Patch
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ClusterError, Conflict, Missing, Unreachable
from phalanx.model.kinds import Document, kind_of
from phalanx.model.task import GangKey
from phalanx.model.watch_event import DELETED, MODIFIED, WatchEvent
from phalanx.scheduling.annotator import Annotator
from phalanx.scheduling.cache import SchedulerCache
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build
from tests.support.still_port import Outside

NOW = 1_767_225_600.0
FAILED = '[{"node":"n0","attempts":1,"latest":"2026-01-01T00:00:00Z","message":"no"}]'
TWICE = '[{"node":"n0","attempts":2,"latest":"2026-01-01T00:00:01Z","message":"no"}]'


class Scene:
    """One group, known to a cache, and what is written on it."""

    def __init__(self) -> None:
        self.mirror = Mirror(lambda: NOW)
        self.outside = Outside(self.mirror, NOW)
        self.cache = SchedulerCache(ObjectCluster(), report=lambda text: None)
        self.group, *_ = build.gang("train", tasks=1, cpu=1)
        self.kind = kind_of(self.group)
        self.group = {**self.group, "metadata": {**self.group["metadata"], "uid": "u1", "resourceVersion": "1"}}
        self.mirror.put(self.kind, self.group)
        self.cache.notice(WatchEvent(1, "ADDED", self.kind, self.group))
        self.notes = Annotator(self.outside, self.cache)

    def answer(self, problem: ClusterError | None) -> str | None:
        """Answer the first request; return what it was to write."""
        write = self.outside.answer(problem)
        assert isinstance(write, Patch)
        text: str | None = write.patch["metadata"]["annotations"][FAILED_BINDS]
        return text

    @property
    def attempts(self) -> int:
        """How often binds of the gang have failed, as sessions see it."""
        gang = self.cache.cluster.state.gang(GangKey("default/train"))
        assert gang is not None
        return sum(each.attempts for each in gang.failed_binds)

    def reported(self, **status: object) -> Document:
        """Let the watch report another status of the group, without any annotation."""
        after = {**self.group, "status": status}
        self.cache.notice(WatchEvent(2, MODIFIED, self.kind, after, self.group))
        return after


def test_sessions_go_by_it_before_the_server_has_it_and_whatever_watches_bring() -> None:
    scene = Scene()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    assert scene.attempts == 1
    scene.reported(phase="Inqueue")
    assert scene.attempts == 1
    assert FAILED_BINDS in scene.cache.as_noted(scene.group)["metadata"]["annotations"]


def test_what_the_server_refuses_is_written_again_after_a_pause_that_doubles() -> None:
    scene, pauses = Scene(), list[float]()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    for _ in range(3):
        assert scene.answer(Conflict("the object has been modified")) == FAILED
        assert scene.outside.sent == []
        pauses.append(scene.outside.wait())
    assert pauses == [1.0, 2.0, 4.0]
    assert scene.answer(None) == FAILED
    assert scene.outside.timers == []


def test_only_the_latest_is_written_again() -> None:
    scene = Scene()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    scene.answer(Conflict("the object has been modified"))
    scene.notes.write(scene.group, {FAILED_BINDS: TWICE})
    assert scene.attempts == 2
    assert scene.outside.sent == []  # not before the pause is over
    scene.outside.wait()
    assert scene.answer(None) == TWICE
    assert scene.outside.sent == []


def test_a_group_that_forgets_is_seen_so_at_once() -> None:
    scene = Scene()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    scene.answer(None)
    scene.notes.write(scene.group, {FAILED_BINDS: None})
    assert scene.attempts == 0


def test_once_another_scheduler_leads_sessions_see_what_the_server_has() -> None:
    scene = Scene()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    scene.answer(Unreachable("not sent: another scheduler has taken over"))
    assert scene.attempts == 0
    assert scene.outside.timers == []


def test_what_is_gone_is_not_written_again_nor_on_another_of_its_name() -> None:
    scene = Scene()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    scene.answer(Conflict("the object has been modified"))
    scene.cache.notice(WatchEvent(3, DELETED, scene.kind, scene.group, scene.group))
    another = {**scene.group, "metadata": {**scene.group["metadata"], "uid": "u2", "resourceVersion": "4"}}
    scene.mirror.put(scene.kind, another)
    scene.cache.notice(WatchEvent(4, "ADDED", scene.kind, another))
    scene.outside.wait()
    assert scene.outside.sent == []
    assert scene.attempts == 0


def test_an_object_that_was_not_found_is_left_alone() -> None:
    scene = Scene()
    scene.notes.write(scene.group, {FAILED_BINDS: FAILED})
    scene.answer(Missing("not found"))
    assert scene.outside.timers == []
    assert scene.attempts == 0
