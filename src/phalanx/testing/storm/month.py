"""A long life of one cluster under storm: days of virtual time in which workloads, queues and nodes come and go without an end.

Every day ends with a night: incidents stop, the cluster comes to rest and is judged, then everybody leaves. At midnight the cluster
is empty, as it was the midnight before, and so what its processes hold must be the same: whatever grows from night to night is a
leak, and is told by its name. The first replica lives from the first day to the last, because a restart hides a leak.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

from phalanx.errors import ClusterError
from phalanx.live.operations import Operations
from phalanx.model.kinds import EVENT, POD, Document, kind_at
from phalanx.model.moment import moment_of
from phalanx.model.watch_event import WatchEvent
from phalanx.sim.memory_client import LEASES
from phalanx.sim.virtual_loop import START
from phalanx.testing.storm import incidents
from phalanx.testing.storm.growth import Growth, grown, measured
from phalanx.testing.storm.invariants import Violation
from phalanx.testing.storm.loop import StormLoop
from phalanx.testing.storm.orders import BARE, DIALECTS, Order
from phalanx.testing.storm.plan import CLASSES, ON_REPLICAS, QUEUES, Incident, Plan, plan_of
from phalanx.testing.storm.replica import Replica
from phalanx.testing.storm.server import Server
from phalanx.testing.storm.storm import Storm
from phalanx.testing.storm.wire import Fault, Wire, own
from phalanx.testing.storm.workloads import workload_of

QUEUE = kind_at("scheduling.volcano.sh", "queues")
DAY_SECONDS, NIGHT_SECONDS = 86_400.0, 3_600.0
STEP_SECONDS, HOUSEKEEPING_SECONDS = 5.0, 300.0
"""Between two looks of those who make pods; and between two compactions of etcd."""
EVENTS_LAST_SECONDS = 3_600.0
LOOK_SECONDS = 30.0
"""Between two looks at a gang of which nothing has changed."""
BETWEEN_BOOKMARKS_SECONDS, BETWEEN_DISCOVERIES_SECONDS, SLOW_LEASE = 85.0, 300.0, (60.0, 40.0, 10.0)
"""Most of a quiet day goes into these; rarer ones cost less and change nothing else."""
PATIENCE = 0.06
"""After this share of a day a gang that waits is withdrawn, or those that never fit would be more and more until the night."""
QUEUE_LASTS = 7
"""So many workloads share a queue of their own, which goes when they are gone."""
DEADLY = frozenset({"kill", "stop", "crash at write", "deaf heir", "blind heir"})
KEPT_LINES = 500
SETTLED_DAYS = 12
"""From the night after so many days on nothing grows: until then caches fill, and memories with a bound (uids that are gone)."""


@dataclass(frozen=True, slots=True)
class Life:
    """How long a cluster lives, and how much happens to it."""

    seed: int = 1
    days: int = 30
    day_seconds: float = DAY_SECONDS
    night_seconds: float = NIGHT_SECONDS
    workloads: int = 100
    """Per day."""
    incidents: int = 60
    """Per day."""
    replicas: int = 2
    nodes: int = 4


@dataclass(frozen=True, slots=True)
class Chronicle:
    """What became of a cluster."""

    nights: tuple[Growth, ...]
    """The first ones, and the last."""
    violations: tuple[Violation, ...]
    cpu_seconds: float
    requests: int
    sessions: int
    lines: tuple[str, ...] = field(repr=False, default=())


def live_through(life: Life, tell: Callable[[int, Growth, int], None] = lambda day, growth, broken: None) -> Chronicle:
    """Let a cluster live; `tell` is called every night with the number of the day, what there is, and how much was broken."""
    random.seed(life.seed)
    with asyncio.Runner(loop_factory=StormLoop) as runner:
        return runner.run(Month(life, tell).live())


class SwiftWire(Wire):
    """A wire on which, in good weather, reads and leases are answered at once: a month has millions of them, all alike."""

    def __init__(self, server: Server, chance: random.Random, outside: Context) -> None:
        """Begin with good weather."""
        super().__init__(server, chance, outside)
        self._between_bookmarks = BETWEEN_BOOKMARKS_SECONDS

    async def _ask(self, verb: str, about: str, answer: Callable[[], Any], *, is_write: bool = False) -> Any:  # Any: per request
        is_lease = about.startswith(LEASES)
        if self.windows or self.is_over or (is_write and not is_lease):
            return await super()._ask(verb, about, answer, is_write=is_write)
        self.sent += not is_lease
        return own(self._outside.run(answer))


class Month(Storm):
    """A cluster that lives for long."""

    lease = SLOW_LEASE

    def __init__(self, life: Life, tell: Callable[[int, Growth, int], None]) -> None:
        """Begin with nothing."""
        super().__init__(Plan(life.seed, life.replicas, life.nodes, (), ()))
        self.life, self._tell = life, tell
        self._chance = random.Random(f"month {life.seed}")
        self._number = 0
        self._changed: set[str] = set()
        self._ends: list[tuple[float, incidents.End]] = []
        self._versions: list[tuple[float, int]] = []
        self.nights: list[Growth] = []

    async def live(self) -> Chronicle:
        """Live for all days."""
        begun = process_time()
        self._make()
        self.server.store.listen(self._hear)
        for replica in self.replicas:
            replica.wired = SwiftWire
            replica.start()
        for day in range(self.life.days):
            await self._day(day * self.life.day_seconds)
            await self._night((day + 1) * self.life.day_seconds)
            self._measure(day + 1)
        outcome = self._end()
        return Chronicle(
            tuple(self.nights), (*outcome.violations, *self._grown()), process_time() - begun,
            outcome.requests, outcome.sessions, outcome.lines,
        )  # fmt: skip

    def _started(self, replica: Replica) -> None:
        super()._started(replica)
        assert replica.live is not None
        replica.live.watching.longest_pause = BETWEEN_DISCOVERIES_SECONDS
        Operations(replica.live, config=None, describe=str)

    def _hear(self, event: WatchEvent) -> None:
        """Note whose pods or object have changed: nobody else has to look."""
        meta = event.object["metadata"]
        self._changed.add((meta.get("labels") or {}).get("app") or meta["name"])

    def _tick(self) -> None:
        """Let those look after their gangs who have something to do."""
        now = self.judge.clock()
        changed, self._changed = self._changed, set()
        is_due = now % LOOK_SECONDS < STEP_SECONDS
        for workload in self.workloads:
            if is_due or workload.order.name in changed:
                workload.tick()
        self.judge.tick()

    # --- days ------------------------------------------------------------------------------------------------------------

    async def _day(self, begins_at: float) -> None:
        ends_at = begins_at + self.life.day_seconds - self.life.night_seconds
        todo = sorted((self._incident(begins_at, ends_at) for _ in range(self.life.incidents)), key=lambda item: item.at)
        orders = sorted((self._order(begins_at, ends_at) for _ in range(self.life.workloads)), key=lambda item: item.at)
        while (now := self.judge.clock()) < ends_at:
            while orders and orders[0].at <= now:
                self._submit(orders.pop(0))
            while todo and todo[0].at <= now:
                self._happen(todo.pop(0))
            self._end_incidents(now)
            self._tick()
            self._keep_house(now)
            await asyncio.sleep(STEP_SECONDS)

    def _order(self, begins_at: float, ends_at: float) -> Order:
        self._number += 1
        chance, nodes, dialect = self._chance, self.life.nodes, self._chance.choice(DIALECTS)
        size = 1 if dialect == BARE else chance.choice((1, 2, 2, 3, 4, nodes, nodes + 1, 2 * nodes))
        queue = chance.choice((*QUEUES, f"own-{self._number // QUEUE_LASTS}"))
        return Order(
            name=f"{dialect}-{self._number}", dialect=dialect, size=size, gpus=chance.choice((1, 1, 2, 4)),
            priority=chance.choice(tuple(CLASSES)), queue=queue, seconds=self.life.day_seconds * chance.uniform(0.0005, 0.025),
            at=chance.uniform(begins_at, ends_at - 60.0),
        )  # fmt: skip

    def _submit(self, order: Order) -> None:
        if order.queue.startswith("own-") and self.server.store.find(QUEUE, "", order.queue) is None:
            meta = {"metadata": {"name": order.queue}, "spec": {"weight": 1}}
            self.server.store.create({"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, **meta})
        loop = asyncio.get_running_loop()
        self._changed.add(order.name)
        self.workloads.append(workload_of(order, self.pods, lambda: loop.time() - START))

    def _incident(self, begins_at: float, ends_at: float) -> Incident:
        """Draw an incident; what ends a process never meets the first replica."""
        drawn = self._chance.choice(plan_of(self._chance.randrange(1 << 30)).incidents)
        seconds = drawn.seconds * self._chance.choice((1.0, 1.0, 5.0, 20.0))
        return replace(drawn, at=self._chance.uniform(begins_at, ends_at - seconds), seconds=seconds)

    def _happen(self, incident: Incident) -> None:
        if not self.workloads and incident.name not in ON_REPLICAS and incident.name.upper() not in Fault.__members__:
            return
        everybody = self.replicas
        if incident.name in DEADLY:
            self.replicas = everybody[1:]
        try:
            self._ends.append((incident.at + incident.seconds, incidents.begin(self, incident)))
        finally:
            self.replicas = everybody

    def _end_incidents(self, now: float) -> None:
        for end in [end for until, end in self._ends if until <= now and end is not None]:
            end()
        self._ends = [(until, end) for until, end in self._ends if until > now]

    def _keep_house(self, now: float) -> None:
        """Do what goes on in a cluster and around it: events expire, etcd is compacted, who has left is forgotten."""
        if now % HOUSEKEEPING_SECONDS >= STEP_SECONDS:
            return
        self._expire_events()
        self._compact(now)
        self._withdraw(now)
        self.workloads = [workload for workload in self.workloads if not workload.is_gone or workload.pods()]
        self._remove_queues()
        for replica in self.replicas:
            replica.bury_past()
        self._forget()

    def _withdraw(self, now: float) -> None:
        for workload in self.workloads:
            if now - workload.order.at > PATIENCE * self.life.day_seconds and not workload.is_gone and not any(workload.members()):
                workload.remove()

    def _expire_events(self) -> None:
        store = self.server.store
        for event in store.items(EVENT):
            if store.now - _moment(event) > EVENTS_LAST_SECONDS:
                store.delete(EVENT, event["metadata"]["namespace"], event["metadata"]["name"])

    def _compact(self, now: float) -> None:
        history = self.server.store.history
        for _, version in self._versions[:-1]:
            history.compact(version)
        self._versions = [*self._versions[-1:], (now, history.version)]

    def _remove_queues(self) -> None:
        used = {workload.order.queue for workload in self.workloads}
        for queue in self.server.store.items(QUEUE):
            name = queue["metadata"]["name"]
            if name.startswith("own-") and name not in used:
                with suppress(ClusterError):
                    self.server.store.delete(QUEUE, "", name)

    def _forget(self) -> None:
        """Let those who watch and play the cluster forget what is gone: they are no part of what is measured."""
        known = {pod["metadata"]["uid"] for pod in self.server.store.items(POD)}
        for memory in (self.judge._nodes, self.nodes._seen):
            for uid in [uid for uid in memory if uid not in known]:
                del memory[uid]
        self.judge.evictions.clear()
        del self.judge.lines[:-KEPT_LINES]

    # --- nights ----------------------------------------------------------------------------------------------------------

    async def _night(self, ends_at: float) -> None:
        """Come to rest, be judged, and let everybody leave."""
        self._calm()
        self._ends = []
        await self._quiet()
        self._judge_rest()
        self.judge.is_calm = False
        self.judge.calm_evictions.clear()
        for workload in self.workloads:
            workload.remove()
        while (now := self.judge.clock()) < ends_at:
            self._tick()
            self._keep_house(now)
            await asyncio.sleep(min(STEP_SECONDS, ends_at - now))
        self.conduct.forget()

    def _grown(self) -> Iterator[Violation]:
        """Yield what grew from the first night that counts to the last."""
        if len(self.nights) > 1:
            first = self.nights[min(SETTLED_DAYS, len(self.nights) - 1) - 1]
            yield from (Violation("grows", text) for text in grown(first, self.nights[-1]))

    def _measure(self, day: int) -> None:
        roots = {f"{replica.name}.live": replica.live for replica in self.replicas[:1]}
        outside = (self.server, self.server.store, self.judge, self.nodes, self, self.replicas, *self.replicas, self._loop)
        wires = tuple(replica.wire for replica in self.replicas)
        growth = measured(roots, (*outside, *wires))
        del self.nights[SETTLED_DAYS:]  # nobody looks at those between the first that count and the last
        self.nights.append(growth)
        self._tell(day, growth, len(self.judge.violations))


def _moment(event: Document) -> float:
    return moment_of(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]) or 0.0
