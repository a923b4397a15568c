"""Requests that wait to be sent."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic

import pytest

from phalanx.errors import Busy, ClusterError, Conflict, Invalid, ServerError, Unreachable
from phalanx.live import outbox as module
from phalanx.live.outbox import MOST_ATTEMPTS, Outbox, Rank, Send
from phalanx.store.kube.client import NOT_SENT
from tests.support.embedded_server import Server, until
from tests.support.store_contract import pod

SPENT = Busy("the budget is spent", cause=("DisruptionBudget", "it needs 1 healthy pod and has 1"))
SEVERAL = ServerError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")


class Post:
    """An outbox, what was sent through it, and what became of that."""

    def __init__(self, connections: int = 4) -> None:
        self.complaints: list[str] = []
        self.outbox = Outbox(connections=connections, report=self.complaints.append)
        self.sent: list[str] = []
        self.ended: list[tuple[str, ClusterError | None]] = []
        self.gate = asyncio.Event()

    def letter(self, name: str, *problems: ClusterError, waits: bool = False) -> Send:
        """Return a request that is refused so often, and is served then."""
        left = list(problems)

        async def send() -> None:
            self.sent.append(name)
            if waits:
                await self.gate.wait()
            if left:
                raise left.pop(0)

        return send

    def put(self, rank: Rank, place: str, name: str, *problems: ClusterError, waits: bool = False, is_patient: bool = True) -> None:
        self.outbox.put(
            rank, place, self.letter(name, *problems, waits=waits),
            lambda problem: self.ended.append((name, problem)), is_patient=is_patient,
        )  # fmt: skip

    async def finish(self) -> None:
        await until(lambda: self.outbox.waiting() == 0)


def sent_in_turn(*letters: tuple[Rank, str, str]) -> list[str]:
    """Return the order in which requests go out over one connection that is taken when they come."""
    post_order: list[str] = []

    async def story() -> None:
        post = Post(connections=1)
        post.put(Rank.NOTE, "taken", "taken", waits=True)
        await until(lambda: post.sent == ["taken"])
        for rank, place, name in letters:
            post.put(rank, place, name)
        post.gate.set()
        await post.finish()
        post_order.extend(post.sent[1:])

    asyncio.run(story())
    return post_order


def test_what_waits_before_an_important_request_about_the_same_object_goes_with_it() -> None:
    letters = [
        (Rank.NOTE, "pod", "note"),
        (Rank.WRITE, "other", "write"),
        (Rank.BIND, "pod", "bind"),
        (Rank.EVICT, "third", "evict"),
    ]
    assert sent_in_turn(*letters) == ["note", "bind", "evict", "write"]


def test_a_request_that_waits_may_become_more_important() -> None:
    async def story() -> None:
        post = Post(connections=1)
        post.put(Rank.NOTE, "taken", "taken", waits=True)
        await until(lambda: post.sent == ["taken"])
        job = post.outbox.put(Rank.NOTE, "pod", post.letter("raised"))
        post.put(Rank.WRITE, "other", "write")
        post.outbox.raise_rank("pod", job, Rank.EVICT)
        post.gate.set()
        await post.finish()
        assert post.sent == ["taken", "raised", "write"]

    run(story)


def run(question: Callable[[], Awaitable[None]]) -> None:
    async def asked() -> None:
        await question()

    asyncio.run(asked())


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.004)


def test_important_requests_go_first() -> None:
    async def question() -> None:
        post = Post(connections=1)
        for rank in (Rank.NOTE, Rank.WRITE, Rank.BIND, Rank.EVICT):
            post.put(rank, f"about {rank.name}", rank.name)
        await post.finish()
        assert post.sent == ["BIND", "EVICT", "WRITE", "NOTE"]

    run(question)


def test_requests_of_one_rank_go_in_the_order_they_came() -> None:
    async def question() -> None:
        post = Post(connections=1)
        for name in "cab":
            post.put(Rank.BIND, name, name)
        await post.finish()
        assert post.sent == ["c", "a", "b"]

    run(question)


def test_requests_about_one_object_wait_for_each_other_whatever_their_rank() -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.NOTE, "pod", "first", waits=True)
        post.put(Rank.BIND, "pod", "second")
        post.put(Rank.NOTE, "other", "beside")
        await until(lambda: len(post.ended) == 1)
        assert (post.sent, post.outbox.waiting()) == (["first", "beside"], 2)
        post.gate.set()
        await post.finish()
        assert [name for name, _ in post.ended] == ["beside", "first", "second"]

    run(question)


def test_there_are_never_more_requests_under_way_than_connections() -> None:
    async def question() -> None:
        post = Post(connections=3)
        for number in range(10):
            post.put(Rank.WRITE, str(number), f"{number}", waits=True)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(post.sent) == 3
        post.gate.set()
        await post.finish()
        assert len(post.sent) == 10

    run(question)


@pytest.mark.parametrize("problem", [Busy("slow down"), ServerError("etcd is away"), Unreachable("nobody there")])
def test_what_the_server_could_not_take_is_sent_again(problem: ClusterError) -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.WRITE, "a", "a", problem, problem)
        await post.finish()
        assert (post.sent, post.ended) == (["a", "a", "a"], [("a", None)])

    run(question)


def test_while_a_request_waits_to_be_sent_again_the_next_about_its_object_waits_too() -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.WRITE, "a", "first", Busy("slow down"))
        post.put(Rank.WRITE, "a", "second")
        await post.finish()
        assert post.sent == ["first", "first", "second"]

    run(question)


def test_each_attempt_waits_longer_than_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async def question() -> None:
        waits: list[float] = []
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def at_once(wait: float, again: Callable[[], None]) -> asyncio.TimerHandle:
            waits.append(wait)
            return call_later(0.0, again)

        monkeypatch.setattr(loop, "call_later", at_once)
        post = Post()
        post.outbox.put(Rank.WRITE, "a", post.letter("a", *[Unreachable("nobody there")] * 5))
        while post.outbox.waiting():
            await asyncio.sleep(0)
        for wait, middle in zip(waits, (0.001, 0.002, 0.004, 0.004, 0.004), strict=True):
            assert 0.75 * middle <= wait <= 1.25 * middle

    run(question)


def test_a_server_that_answers_is_asked_so_often_and_no_more() -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.WRITE, "a", "a", *[ServerError("target.name: Required value")] * 99)
        await post.finish()
        assert len(post.sent) == MOST_ATTEMPTS
        assert str(post.ended[0][1]) == "target.name: Required value"

    run(question)


def test_a_server_that_is_not_there_is_asked_for_as_long_as_it_takes() -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.WRITE, "a", "a", *[Unreachable("nobody there")] * (MOST_ATTEMPTS + 3), is_patient=False)
        await post.finish()
        assert (len(post.sent), post.ended) == (MOST_ATTEMPTS + 4, [("a", None)])

    run(question)


def test_an_impatient_request_takes_a_busy_server_for_an_answer() -> None:
    async def question() -> None:
        post = Post()
        for number, problem in enumerate((SPENT, SEVERAL)):
            post.put(Rank.EVICT, f"{number}", f"{number}", problem, is_patient=False)
        post.put(Rank.NOTE, "note", "note", Busy("slow down"), is_patient=False)
        await post.finish()
        assert sorted(post.sent) == ["0", "1", "note"]
        assert {str(problem) for _, problem in post.ended} == {str(SPENT), str(SEVERAL), "slow down"}

    run(question)


@pytest.mark.parametrize("problem", [Busy("slow down"), ServerError("etcd is away")])
@pytest.mark.parametrize("rank", [Rank.BIND, Rank.EVICT])
def test_a_bind_or_an_eviction_outlasts_a_server_that_fails(rank: Rank, problem: ClusterError) -> None:
    async def question() -> None:
        post = Post()
        post.put(rank, "a", "a", *[problem] * (MOST_ATTEMPTS + 3), is_patient=False)
        await post.finish()
        assert (len(post.sent), post.ended) == (MOST_ATTEMPTS + 4, [("a", None)])

    run(question)


def test_a_bind_that_the_server_fails_at_for_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SERVER_PATIENCE_SECONDS", 0.05)

    async def question() -> None:
        post = Post()
        post.put(Rank.BIND, "a", "a", *[ServerError("no webhook there")] * 9999)
        await post.finish()
        assert str(post.ended[0][1]) == "no webhook there"

    run(question)


def test_an_endless_eviction_outlasts_a_budget() -> None:
    async def question() -> None:
        post = Post()
        post.outbox.put(Rank.EVICT, "a", post.letter("a", *[SPENT] * (MOST_ATTEMPTS + 3)), is_endless=True)
        await post.finish()
        assert (len(post.sent), post.complaints) == (MOST_ATTEMPTS + 4, [])

    run(question)


def test_a_server_that_names_a_wait_is_not_asked_before() -> None:
    async def question() -> None:
        problem, post, begun = Busy("slow down"), Post(), monotonic()
        problem.retry_after = 0.2
        post.put(Rank.BIND, "a", "a", problem)
        await post.finish()
        assert (post.ended, monotonic() - begun >= 0.2) == ([("a", None)], True)

    run(question)


@pytest.mark.parametrize("problem", [Conflict("changed meanwhile"), Invalid("wrong")])
def test_a_refusal_is_told_to_whoever_asked_and_stops_nobody(problem: ClusterError) -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.WRITE, "a", "first", problem)
        post.put(Rank.WRITE, "a", "second")
        await post.finish()
        assert (post.ended, post.complaints) == ([("first", problem), ("second", None)], [])

    run(question)


def test_a_refusal_that_nobody_asked_about_is_reported() -> None:
    async def question() -> None:
        post = Post()
        post.outbox.put(Rank.WRITE, "a", post.letter("a", Invalid("spec.x: wrong")))
        await post.finish()
        assert post.complaints == ["spec.x: wrong"]

    run(question)


def test_a_request_that_cannot_even_be_made_is_a_refusal_like_others() -> None:
    async def question() -> None:
        post = Post()

        async def send() -> None:
            raise KeyError("metadata")

        post.outbox.put(Rank.WRITE, "a", send)
        post.put(Rank.WRITE, "b", "b")
        await post.finish()
        assert (post.complaints, post.ended) == (["KeyError: 'metadata'"], [("b", None)])

    run(question)


def test_a_request_that_comes_when_the_last_connection_has_just_become_free_is_sent() -> None:
    async def question() -> None:
        post = Post(connections=1)
        async with asyncio.timeout(1.0):
            for name in "abc":
                answer: asyncio.Future[ClusterError | None] = asyncio.get_running_loop().create_future()
                post.outbox.put(Rank.WRITE, name, post.letter(name), answer.set_result)
                await answer
        assert post.sent == ["a", "b", "c"]

    run(question)


def test_draining_waits_for_what_is_important() -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.NOTE, "a", "note", waits=True)
        post.put(Rank.BIND, "b", "bind")
        assert await post.outbox.drain(1.0)
        assert (post.ended, post.outbox.waiting(), post.outbox.waiting(Rank.WRITE)) == ([("bind", None)], 1, 0)
        assert not await post.outbox.drain(0.01, Rank.NOTE)

    run(question)


def test_what_is_dropped_is_not_sent_and_those_who_wait_are_told() -> None:
    async def question() -> None:
        post = Post(connections=1)
        post.put(Rank.BIND, "a", "under way", waits=True)
        post.put(Rank.BIND, "b", "next")
        post.outbox.put(Rank.BIND, "c", post.letter("nobody asks"))
        await until(lambda: post.sent)
        post.outbox.drop()
        post.gate.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert (post.sent, [(name, str(problem)) for name, problem in post.ended]) == (
            ["under way"],
            [(name, "not sent: another scheduler has taken over") for name in ("under way", "next")],
        )

    run(question)


def test_after_a_drop_new_requests_are_sent_and_old_ones_do_not_come_back() -> None:
    async def question() -> None:
        post = Post()
        post.put(Rank.BIND, "a", "old", *[Unreachable("nobody there")] * 99)
        await until(lambda: len(post.sent) > 1)
        post.outbox.drop()
        before = post.sent.count("old")
        post.put(Rank.BIND, "a", "new")
        await post.finish()
        await asyncio.sleep(0.01)
        assert (post.sent.count("old"), post.ended[-1]) == (before, ("new", None))

    run(question)


def test_a_request_right_after_a_drop_does_not_wait_for_those_that_were_cut_off() -> None:
    async def question() -> None:
        post = Post(connections=1)
        post.put(Rank.BIND, "a", "old", waits=True)
        await until(lambda: post.sent)
        post.outbox.drop()
        post.put(Rank.BIND, "b", "new")
        await post.finish()
        assert post.sent == ["old", "new"]

    run(question)


def test_nothing_goes_out_once_we_may_not_write() -> None:
    async def question() -> None:
        server, ended = Server(), list[ClusterError | None]()
        async with server.opened() as client:
            outbox = Outbox(connections=2, report=lambda text: None, may_write=lambda: client.may_write())
            for name in "abcd":
                server.store.create(pod(name))
            requests = server.requests
            client.may_write = lambda: server.requests < requests + 2
            for name in "abcd":
                outbox.put(Rank.BIND, name, partial(client.bind, "default", name, "n0"), ended.append)
            await until(lambda: outbox.waiting() == 0)
            assert server.requests == requests + 2
            refusals = [problem for problem in ended if problem is not None]
            assert [(type(problem), str(problem)) for problem in refusals] == [(Unreachable, NOT_SENT)] * 2

    run(question)


@pytest.mark.parametrize("failure", [Unreachable("nobody there"), Busy("too many requests"), ServerError("no leader of etcd")])
def test_what_failed_is_not_sent_again_once_we_may_not_write_and_was_not_refused(failure: ClusterError) -> None:
    async def question() -> None:
        may, post = [True], Post()
        post.outbox = Outbox(report=post.complaints.append, may_write=lambda: may[0])
        post.put(Rank.BIND, "a", "a", *[failure] * 99)
        await until(lambda: len(post.sent) > 2)
        may[0] = False
        await post.finish()
        [(_, problem)] = post.ended
        assert isinstance(problem, Unreachable)
        assert str(failure) in str(problem)

    run(question)
