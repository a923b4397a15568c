"""What pods and groups remember of failed binds: seen by sessions at once, and written until the server has it."""

from collections.abc import Callable

from phalanx.controllers.controller import Patch, View
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ClusterError, Conflict, Missing, Unreachable
from phalanx.model.kinds import Document, kind_of
from phalanx.model.task import GangKey
from phalanx.model.watch_event import DELETED, MODIFIED, WatchEvent
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.failure_notes import FailureNotes
from phalanx.scheduling.port import Done, Effort, SingleWrite
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build

NOW = 1_767_225_600.0
FAILED = '[{"node":"n0","attempts":1,"latest":"2026-01-01T00:00:00Z","message":"no"}]'
TWICE = '[{"node":"n0","attempts":2,"latest":"2026-01-01T00:00:01Z","message":"no"}]'


class Waiting:
    """Something that happens later."""

    def __init__(self, moment: float, action: Callable[[], None]) -> None:
        self.moment, self.action = moment, action

    def cancel(self) -> None:
        raise AssertionError("nobody takes it back")


class Outside:
    """A port and its clock: requests wait until they are answered, and time stands until it is set."""

    def __init__(self, mirror: Mirror) -> None:
        self.view: View = mirror
        self.now = self.elapsed = NOW
        self.sent: list[tuple[Patch, Done]] = []
        self.timers: list[Waiting] = []

    @property
    def clock(self) -> "Outside":
        return self

    def after(self, seconds: float, action: Callable[[], None]) -> Waiting:
        self.timers.append(Waiting(self.now + seconds, action))
        return self.timers[-1]

    def send(self, write: SingleWrite, done: Done | None = None, *, effort: Effort = Effort.USUAL, is_note: bool = False) -> None:
        assert isinstance(write, Patch)
        assert done is not None
        assert (effort, is_note) == (Effort.JOINED, False)
        self.sent.append((write, done))

    def answer(self, problem: ClusterError | None) -> str | None:
        """Answer the first request; return what it was to write."""
        write, done = self.sent.pop(0)
        done(problem)
        text: str | None = write.patch["metadata"]["annotations"][FAILED_BINDS]
        return text

    def wait(self) -> float:
        """Let the next timer come; return after how many seconds it did."""
        timer, before = self.timers.pop(0), self.now
        self.now = timer.moment
        timer.action()
        return self.now - before


class Scene:
    """One group, known to a cache, and what is written on it."""

    def __init__(self) -> None:
        self.mirror = Mirror(lambda: NOW)
        self.outside = Outside(self.mirror)
        self.cache = SchedulerCache(ObjectCluster(), report=lambda text: None)
        self.group, *_ = build.gang("train", tasks=1, cpu=1)
        self.kind = kind_of(self.group)
        self.group = {**self.group, "metadata": {**self.group["metadata"], "uid": "u1", "resourceVersion": "1"}}
        self.mirror.put(self.kind, self.group)
        self.cache.notice(WatchEvent(1, "ADDED", self.kind, self.group))
        self.notes = FailureNotes(self.outside, self.cache)

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
    scene.notes.write(scene.group, FAILED)
    assert scene.attempts == 1
    scene.reported(phase="Inqueue")
    assert scene.attempts == 1
    assert FAILED_BINDS in scene.cache.as_noted(scene.group)["metadata"]["annotations"]


def test_what_the_server_refuses_is_written_again_after_a_pause_that_doubles() -> None:
    scene, pauses = Scene(), list[float]()
    scene.notes.write(scene.group, FAILED)
    for _ in range(3):
        assert scene.outside.answer(Conflict("the object has been modified")) == FAILED
        assert scene.outside.sent == []
        pauses.append(scene.outside.wait())
    assert pauses == [1.0, 2.0, 4.0]
    assert scene.outside.answer(None) == FAILED
    assert scene.outside.timers == []


def test_only_the_latest_is_written_again() -> None:
    scene = Scene()
    scene.notes.write(scene.group, FAILED)
    scene.outside.answer(Conflict("the object has been modified"))
    scene.notes.write(scene.group, TWICE)
    assert scene.attempts == 2
    scene.outside.wait()
    assert scene.outside.answer(None) == TWICE
    assert scene.outside.sent == []


def test_a_group_that_forgets_is_seen_so_at_once() -> None:
    scene = Scene()
    scene.notes.write(scene.group, FAILED)
    scene.outside.answer(None)
    scene.notes.write(scene.group, None)
    assert scene.attempts == 0


def test_once_another_scheduler_leads_sessions_see_what_the_server_has() -> None:
    scene = Scene()
    scene.notes.write(scene.group, FAILED)
    scene.outside.answer(Unreachable("not sent: another scheduler has taken over"))
    assert scene.attempts == 0
    assert scene.outside.timers == []


def test_what_is_gone_is_not_written_again_nor_on_another_of_its_name() -> None:
    scene = Scene()
    scene.notes.write(scene.group, FAILED)
    scene.outside.answer(Conflict("the object has been modified"))
    scene.cache.notice(WatchEvent(3, DELETED, scene.kind, scene.group, scene.group))
    another = {**scene.group, "metadata": {**scene.group["metadata"], "uid": "u2", "resourceVersion": "4"}}
    scene.mirror.put(scene.kind, another)
    scene.cache.notice(WatchEvent(4, "ADDED", scene.kind, another))
    scene.outside.wait()
    assert scene.outside.sent == []
    assert scene.attempts == 0


def test_an_object_that_was_not_found_is_left_alone() -> None:
    scene = Scene()
    scene.notes.write(scene.group, FAILED)
    scene.outside.answer(Missing("not found"))
    assert scene.outside.timers == []
    assert scene.attempts == 0
