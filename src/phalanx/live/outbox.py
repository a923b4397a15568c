"""Requests that wait to be sent: important ones first, those about one object in order, as many at once as there are connections.

What the server could not take just now is sent again a little later; whoever asked for it is called with a refusal. Once we may
not write any more nothing is sent again: the client refuses to send, and that counts as dropped.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from enum import IntEnum

from phalanx.errors import Busy, ClusterError, ServerError, Unreachable
from phalanx.scheduling.port import Done

CONNECTIONS = 32
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0
MOST_ATTEMPTS = 6
"""Of a request that a server which answers could not serve; one that nobody answers is tried for as long as we may write."""
SERVER_PATIENCE_SECONDS = 60.0
"""For so long a bind or an eviction that the server fails at (500) is tried: half a gang is bound or gone meanwhile, and etcd may
take half a minute to find a leader. Some failures last, such as that of a webhook which nobody serves, so not for ever."""
BUDGET, SEVERAL_BUDGETS = "DisruptionBudget", "more than one PodDisruptionBudget"
"""How one disruption budget says no (429), and how the server says that it cannot ask several (500)."""

Send = Callable[[], Awaitable[object]]


class Rank(IntEnum):
    """How important a request is."""

    BIND = 0
    EVICT = 1
    WRITE = 2
    NOTE = 3


@dataclass(slots=True)
class Job:
    """One request."""

    rank: Rank
    send: Send
    done: Done | None
    is_patient: bool
    """A busy server, or a disruption budget, is asked again; otherwise that is an answer like others."""
    is_endless: bool
    """And it is asked for as long as we may write."""
    is_reported: bool
    """A refusal is reported, whoever is called with it."""
    attempts: int = 0
    begun: float = 0.0


class Outbox:
    """Sends requests."""

    def __init__(
        self, *, connections: int = CONNECTIONS, report: Callable[[str], None], may_write: Callable[[], bool] = lambda: True
    ) -> None:
        """`report` is called with refusals that nobody waits for, `may_write` says whether to try again."""
        self._connections, self._report, self._may_write = connections, report, may_write
        self._lines: dict[Hashable, deque[Job]] = {}
        """Requests by object; the first of a line is under way or next."""
        self._ready: list[tuple[int, int, Hashable]] = []
        self._entries: dict[Hashable, tuple[int, int]] = {}
        """Rank and number of the entry by which each line waits in `_ready`; other entries of it are out of date."""
        self._numbers = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    def put(
        self,
        rank: Rank,
        place: Hashable,
        send: Send,
        done: Done | None = None,
        *,
        is_patient: bool = True,
        is_endless: bool = False,
        is_reported: bool = False,
    ) -> Job:
        """Send a request about an object, after those about it that wait already; the most important one takes them along."""
        line, job = (
            self._lines.setdefault(place, deque()),
            Job(rank, send, done, is_patient, is_endless, is_reported or done is None),
        )
        line.append(job)
        if len(line) == 1:
            self._push(place)
        else:
            self._hurry(place)
        return job

    def raise_rank(self, place: Hashable, job: Job, rank: Rank) -> None:
        """Let a request that waits be at least so important."""
        job.rank = min(job.rank, rank)
        self._hurry(place)

    def waiting(self, rank: Rank = Rank.NOTE) -> int:
        """Return how many requests are not through, of some importance at least."""
        return sum(job.rank <= rank for line in self._lines.values() for job in line)

    @property
    def is_binding(self) -> bool:
        """Tell whether binds wait for a connection."""
        return bool(self._ready) and self._ready[0][0] == Rank.BIND

    async def drain(self, seconds: float, rank: Rank = Rank.WRITE) -> bool:
        """Wait until everything important is through, for so long at most; tell whether it is."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self.waiting(rank) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)
        return not self.waiting(rank)

    def drop(self) -> None:
        """Forget everything that was not sent: somebody else decides now."""
        for timer in self._timers:
            timer.cancel()
        for worker in self._workers:
            worker.cancel()
        self._workers = set()  # those that end do not count any more
        lines, self._lines, self._ready, self._entries = self._lines, {}, [], {}
        self._timers.clear()
        for job in (job for line in lines.values() for job in line):
            if job.done is not None:
                job.done(Unreachable("not sent: another scheduler has taken over"))

    # --- inside ------------------------------------------------------------------------------------------------------

    def _hurry(self, place: Hashable) -> None:
        """Move a line forward that waits for a connection behind less important ones."""
        entry = self._entries.get(place)
        if entry is not None and entry[0] > self._rank(place):
            self._push(place)

    def _rank(self, place: Hashable) -> int:
        line = self._lines[place]
        return line[0].rank if len(line) == 1 else min(job.rank for job in line)

    def _push(self, place: Hashable) -> None:
        self._numbers += 1
        self._entries[place] = (self._rank(place), self._numbers)
        heapq.heappush(self._ready, (*self._entries[place], place))
        if len(self._workers) < self._connections:
            self._workers.add(asyncio.get_running_loop().create_task(self._work()))

    async def _work(self) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        try:
            while self._ready:
                rank, number, place = heapq.heappop(self._ready)
                if self._entries.get(place) == (rank, number):
                    del self._entries[place]
                    await self._try(place, self._lines[place])
        finally:  # in the same breath: what comes next must not count on one who is about to leave
            self._workers.discard(worker)

    async def _try(self, place: Hashable, line: deque[Job]) -> None:
        job, problem = line[0], None
        job.attempts, job.begun = job.attempts + 1, job.begun or asyncio.get_running_loop().time()
        try:
            await job.send()
        except ClusterError as refusal:
            problem = refusal
        except Exception as fault:  # one request that cannot be made stops no other
            problem = ClusterError(f"{type(fault).__name__}: {fault}")
        if self._lines.get(place) is not line:
            return  # dropped meanwhile
        if problem is not None and _may_pass(problem, job):
            if self._may_write():
                self._later(place, job, problem)
                return
            problem = _dropped(problem)
        self._finish(place, line, problem)

    def _later(self, place: Hashable, job: Job, problem: ClusterError) -> None:
        pause = min(FIRST_WAIT * 2 ** min(job.attempts - 1, 10), LONGEST_WAIT) * random.uniform(0.75, 1.25)
        wait = max(pause, problem.retry_after)  # never sooner than the server asked for
        timer: asyncio.TimerHandle | None = None

        def again() -> None:
            assert timer is not None
            self._timers.discard(timer)
            if place in self._lines:
                self._push(place)

        timer = asyncio.get_running_loop().call_later(wait, again)
        self._timers.add(timer)

    def _finish(self, place: Hashable, line: deque[Job], problem: ClusterError | None) -> None:
        job = line.popleft()
        if line:
            self._push(place)
        else:
            del self._lines[place]
        if job.done is not None:
            job.done(problem)
        if problem is not None and job.is_reported and self._may_write():
            self._report(f"{problem}")


def _dropped(problem: ClusterError) -> Unreachable:
    """Return that a request was not sent again: what the server could not take just now is not refused."""
    if isinstance(problem, Unreachable):
        return problem
    return Unreachable(f"not sent again, another scheduler may have taken over: {problem}")


def _may_pass(problem: ClusterError, job: Job) -> bool:
    """Tell whether it makes sense to send a request again."""
    if isinstance(problem, Unreachable):
        return True
    if not isinstance(problem, Busy | ServerError):
        return False
    if job.rank <= Rank.EVICT and not _is_of_budget(problem):
        return (
            isinstance(problem, Busy) or job.is_endless or asyncio.get_running_loop().time() - job.begun < SERVER_PATIENCE_SECONDS
        )
    return job.is_endless or (job.is_patient and job.attempts < MOST_ATTEMPTS)


def _is_of_budget(problem: ClusterError) -> bool:
    """Tell whether it is about the pod, and not about the server."""
    return (problem.cause is not None and problem.cause[0] == BUDGET) or SEVERAL_BUDGETS in str(problem)
