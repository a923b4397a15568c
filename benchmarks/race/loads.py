"""The four kinds of load: all gangs there before the start, gangs that arrive, twice the capacity, and a backlog on full nodes.

Each returns what was measured, by name. A contender that does not get there in time has a problem instead of its seconds, and
everything else all the same.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from benchmarks.race.gangs import Submitted, in_turn
from benchmarks.race.results import percentile
from benchmarks.race.rows import Load, Row
from benchmarks.race.running import Bind, Running
from benchmarks.race.site import Site, Watching

from phalanx.model.kinds import POD, Document

AFTER_SECONDS = 3.0
"""For so long nothing may change for the worse once all is used."""
IDLE_SECONDS, SETTLE_SECONDS, QUIET = 5.0, 30.0, 0.05
"""How long is looked at a scheduler that has nothing to do; first it may settle, until it uses less than this share of a core."""
PAUSES_SECONDS = (0.5, 1.5)
"""Between two gangs that end: long enough to be told apart, and in step with nobody's period."""


@dataclass(slots=True)
class Measured:
    """Numbers by name, and what went wrong."""

    numbers: dict[str, float] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One contender on one row."""

    site: Site
    submitted: Submitted
    running: Running
    watching: Watching
    patience: float

    @property
    def row(self) -> Row:
        """The row."""
        return self.submitted.row

    async def submit(self, names: Sequence[str], nodes: Callable[[int], list[str]] | None = None) -> list[list[Document]]:
        """Create groups and Jobs, and return the pods of each gang, which are not created yet.

        `nodes` names those of a gang that runs already, by its number.
        """
        await self.create_groups(names)
        return await self.pods(names, nodes)

    async def create_groups(self, names: Iterable[str]) -> None:
        """Create the groups of gangs."""
        await self.site.create(group for name in names if (group := self.submitted.group(name)))

    async def pods(self, names: Sequence[str], nodes: Callable[[int], list[str]] | None = None) -> list[list[Document]]:
        """Create Jobs, and return their pods, which are not created yet."""
        jobs = await self.site.create(self.submitted.job(name) for name in names)
        return [
            self.submitted.pods(name, job, nodes(number) if nodes else None)
            for number, (name, job) in enumerate(zip(names, jobs, strict=True))
        ]

    def plan(self, pods: Sequence[Document], first: int = 0) -> list[Bind]:
        """Return where raw binds put pods: to nodes in turn."""
        return [bind_of(pod, f"node-{number % self.row.nodes + 1}") for number, pod in enumerate(pods, first)]

    async def until(self, holds: Callable[[], bool]) -> str:
        """Wait until something holds; return what is wrong if it does not in time."""
        if await self.watching.until(holds, self.patience):
            return ""
        if self.running.has_ended():
            return f"ended by itself: {self.running.last_words()}"
        started = self.watching.started
        return f"not in {self.patience:g} s: {started.whole:,} gangs whole, {started.in_part:,} in part"


def bind_of(pod: Document, node: str) -> Bind:
    """Return the bind of a pod that is there."""
    meta = pod["metadata"]
    return Bind(meta["namespace"], meta["name"], meta["uid"], node)


def names(count: int) -> list[str]:
    """Return the names of so many gangs."""
    return [f"gang-{number}" for number in range(count)]


async def wave(attempt: Attempt) -> Measured:
    """All pods are there; from the start of the process to the last bind."""
    gangs = await attempt.submit(names(attempt.row.gangs))
    pods = await attempt.site.create(in_turn(gangs))
    started = attempt.watching.started
    begun = await attempt.running.begin(attempt.plan(pods))
    problem = await attempt.until(lambda: started.binds >= len(pods))
    if problem:
        return Measured({"part_seconds": _longest_part(attempt)}, problem)
    return Measured({"seconds": started.last_bind - begun, "part_seconds": started.longest_part})


async def arrivals(attempt: Attempt) -> Measured:
    """Gangs arrive at a scheduler that runs; from the last member created to the last one bound."""
    warm, *rest = await attempt.pods(["warm-up", *names(attempt.row.gangs)])
    await attempt.running.begin([])
    whole_at = attempt.watching.started.whole_at
    await _arrive(attempt, "warm-up", warm, 0)
    problem = await attempt.until(lambda: len(whole_at) == 1)
    if problem:
        return Measured(problem=problem)
    before, begun = attempt.running.use(), time.monotonic()
    created = await _at_rate(attempt, rest)
    problem = await attempt.until(lambda: len(whole_at) == 1 + len(rest))
    after, seconds = attempt.running.use(), time.monotonic() - begun
    cpu = (after.cpu_seconds - before.cpu_seconds) / seconds
    numbers = {"cpu_per_second": cpu, "part_seconds": attempt.watching.started.longest_part}
    if problem:  # the waits of those that did start would flatter it
        return Measured(numbers, problem)
    return Measured({**numbers, **_percentiles([max(0.0, whole_at[gang] - at) for gang, at in created.items()])})


def _percentiles(waits: Sequence[float]) -> dict[str, float]:
    return {"p50": percentile(waits, 50), "p99": percentile(waits, 99)}


async def _at_rate(attempt: Attempt, gangs: Sequence[list[Document]]) -> dict[str, float]:
    """Create gangs at their times, whether or not earlier ones have started; return when each was complete."""
    begun, created = time.monotonic(), dict[str, float]()

    async def arrive(number: int, pods: list[Document]) -> None:
        await asyncio.sleep(begun + number / attempt.row.rate - time.monotonic())
        name = f"gang-{number}"
        created[name] = await _arrive(attempt, name, pods, (number + 1) * attempt.row.size)

    await asyncio.gather(*(arrive(number, pods) for number, pods in enumerate(gangs)))
    return created


async def _arrive(attempt: Attempt, name: str, pods: list[Document], first: int) -> float:
    """Create the group of a gang, then its pods, and return when the last was there."""
    await attempt.create_groups([name])
    made = await attempt.site.create(pods)
    at = time.monotonic()
    await attempt.running.bind(attempt.plan(made, first))
    return at


async def overload(attempt: Attempt) -> Measured:
    """Twice what fits: until all that whole gangs can use is used, and a while longer."""
    gangs = await attempt.submit(names(attempt.row.gangs))
    pods = await attempt.site.create(in_turn(gangs))
    first = {f"gang-{number}" for number in range(attempt.row.fitting)}
    plan = attempt.plan([pod for pod in pods if pod["metadata"]["name"].rpartition("-")[0] in first])
    started = attempt.watching.started
    begun = await attempt.running.begin(plan)
    problem = await attempt.until(lambda: started.whole >= attempt.row.fitting)
    seconds = {} if problem else {"seconds": started.last_bind - begun}
    await asyncio.sleep(AFTER_SECONDS)
    return Measured({**seconds, "part_seconds": _longest_part(attempt), "part_gangs": float(started.in_part)}, problem)


def _longest_part(attempt: Attempt) -> float:
    attempt.watching.started.close(time.monotonic())
    return attempt.watching.started.longest_part


async def backlog(attempt: Attempt) -> Measured:
    """Full nodes and many who wait; one gang at a time ends, and another one starts in its place."""
    row, started = attempt.row, attempt.watching.started
    holders = [f"runs-{number}" for number in range(row.fitting)]
    full = await attempt.submit(holders, lambda number: _nodes_of(row, number))
    await attempt.site.create(chain.from_iterable(full))
    left = iter(await attempt.site.create(chain.from_iterable(await attempt.submit(names(row.gangs)))))
    await attempt.running.begin([])
    problem = await attempt.until(lambda: started.whole == row.fitting)
    warm_up = problem or await _next_start(attempt, holders[0], 0, left)
    if isinstance(warm_up, str):
        return Measured(problem=warm_up)
    idle = await _idle_cpu_per_second(attempt)
    before, begun = attempt.running.use(), time.monotonic()
    waits = await _one_by_one(attempt, holders, left)
    used, seconds = attempt.running.use().cpu_seconds - before.cpu_seconds, time.monotonic() - begun
    numbers = {"cpu_per_second": used / seconds, "idle_cpu_per_second": idle, "part_seconds": started.longest_part}
    if isinstance(waits, str):
        return Measured(numbers, waits)
    return Measured({**numbers, **_percentiles(waits)})


async def _idle_cpu_per_second(attempt: Attempt) -> float:
    """Return what it costs that nothing happens, once it has seen all that waits, or after a while."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        before = attempt.running.use().cpu_seconds
        await asyncio.sleep(IDLE_SECONDS)
        idle = (attempt.running.use().cpu_seconds - before) / IDLE_SECONDS
        if idle < QUIET or time.monotonic() > end:
            return idle


async def _one_by_one(attempt: Attempt, holders: Sequence[str], left: Iterator[Document]) -> list[float] | str:
    """End one gang after the other and return how long each time the next start took, or what went wrong."""
    waits: list[float] = []
    for number, holder in enumerate(islice(holders, 1, 1 + attempt.row.ends), 1):
        await asyncio.sleep(random.uniform(*PAUSES_SECONDS))
        found = await _next_start(attempt, holder, number, left)
        if isinstance(found, str):
            return found
        waits.append(found)
    return waits


def _nodes_of(row: Row, number: int) -> list[str]:
    """Return the nodes of a gang that fills them."""
    return [f"node-{number * row.size + place + 1}" for place in range(row.size)]


async def _next_start(attempt: Attempt, holder: str, number: int, left: Iterator[Document]) -> float | str:
    """End a gang and return how long it took until another one was whole, or what went wrong."""
    started, row = attempt.watching.started, attempt.row
    before = len(started.whole_at)
    started.retire(holder)
    await attempt.site.delete(POD, attempt.submitted.namespace, [f"{holder}-{member}" for member in range(row.size)])
    ended = time.monotonic()
    plan = [bind_of(pod, node) for pod, node in zip(islice(left, row.size), _nodes_of(row, number), strict=True)]
    await attempt.running.bind(plan)
    problem = await attempt.until(lambda: len(started.whole_at) > before)
    return problem or max(0.0, list(started.whole_at.values())[before] - ended)


LOADS: dict[Load, Callable[[Attempt], Awaitable[Measured]]] = {
    "wave": wave, "arrivals": arrivals, "overload": overload, "backlog": backlog,
}  # fmt: skip
