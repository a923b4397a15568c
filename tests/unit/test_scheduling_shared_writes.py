"""What several want to write is tried once, and not again at once when it was refused."""

from phalanx.controllers.controller import Create, Patch
from phalanx.errors import ClusterError, Forbidden
from phalanx.model.kinds import Document, kind_of
from phalanx.scheduling.port import Done
from phalanx.scheduling.refusals import SharedWrites

GROUP: Document = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"namespace": "a", "name": "pg"}}
KIND = kind_of(GROUP)
NO = Forbidden("podgroups is forbidden")


class Wanted:
    """Somebody who wants objects, and a server whose answers come when asked for."""

    def __init__(self) -> None:
        self.writes, self.now = SharedWrites(), 10.0
        self.sent: list[Done] = []
        self.heard: list[ClusterError | None] = []

    def want(self, document: Document = GROUP) -> None:
        self.want_write(Create(document))

    def want_patch(self, minimum: int, *, is_status: bool = False) -> None:
        self.want_write(Patch(KIND, "a", "pg", {"spec": {"minMember": minimum}}, is_status))

    def want_write(self, write: Create | Patch) -> None:
        self.writes.send(write, lambda: self.now, self.sent.append, self.heard.append)

    def answer(self, problem: ClusterError | None = None) -> None:
        self.sent.pop(0)(problem)


def test_an_object_that_many_want_at_once_is_created_by_one_request() -> None:
    wanted = Wanted()
    for _ in range(16):
        wanted.want({**GROUP})
    assert len(wanted.sent) == 1
    wanted.answer()
    assert wanted.heard == [None] * 16


def test_whoever_wants_what_was_refused_a_moment_ago_hears_why() -> None:
    wanted = Wanted()
    wanted.want()
    wanted.answer(NO)
    wanted.now = 10.5
    wanted.want()
    assert [str(problem) for problem in wanted.heard] == [str(NO)] * 2
    assert [problem.retry_after for problem in wanted.heard if problem is not None] == [1.0, 0.5]
    assert not wanted.sent


def test_the_pause_doubles_with_each_try() -> None:
    wanted = Wanted()
    for moment in (10.0, 11.0, 13.0):
        wanted.now = moment
        wanted.want()
        wanted.answer(NO)
    wanted.now = 16.9
    wanted.want()
    assert not wanted.sent
    wanted.now = 17.0
    wanted.want()
    assert wanted.sent


def test_an_object_that_was_created_begins_anew() -> None:
    wanted = Wanted()
    for moment, problem in ((10.0, NO), (11.0, None), (12.0, NO)):
        wanted.now = moment
        wanted.want()
        wanted.answer(problem)
    wanted.now = 13.0
    wanted.want()
    assert wanted.sent


def test_a_change_that_many_want_is_sent_once_and_rests_for_all_when_it_was_refused() -> None:
    wanted = Wanted()
    for _ in range(6):
        wanted.want_patch(6)
    assert len(wanted.sent) == 1
    wanted.answer(NO)
    assert [problem.retry_after for problem in wanted.heard if problem is not None] == [1.0] * 6
    wanted.now = 10.9
    wanted.want_patch(6)
    assert not wanted.sent
    wanted.now = 11.0
    wanted.want_patch(6)
    assert wanted.sent


def test_another_change_of_the_same_object_does_not_rest() -> None:
    wanted = Wanted()
    wanted.want_patch(6)
    wanted.answer(NO)
    wanted.want_patch(5)
    wanted.want_patch(6, is_status=True)
    assert len(wanted.sent) == 2


def test_objects_without_a_name_are_many() -> None:
    wanted = Wanted()
    for _ in range(2):
        wanted.want({**GROUP, "metadata": {"generateName": "pg-"}})
    assert len(wanted.sent) == 2


def test_what_was_refused_is_not_remembered_for_ever() -> None:
    wanted = Wanted()
    for number in range(5000):
        wanted.want({**GROUP, "metadata": {"namespace": "a", "name": str(number)}})
        wanted.answer(NO)
    assert len(wanted.writes) <= 1000
