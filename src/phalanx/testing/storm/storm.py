"""One storm: replicas, server, nodes and workloads on one loop in virtual time; then calm, and what must hold then."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf

from phalanx.config.policies import policy_of_gates, policy_of_profile
from phalanx.live.app import Live
from phalanx.live.catalogue import connected
from phalanx.model.kinds import Document
from phalanx.model.resources import amount_of
from phalanx.plugins.bindbackoff import shortest_wait
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.sim.virtual_loop import START
from phalanx.state.snapshot import Snapshot
from phalanx.testing.storm import incidents
from phalanx.testing.storm.conduct import Conduct
from phalanx.testing.storm.invariants import Rest, Violation, evicted_in_vain
from phalanx.testing.storm.judge import Judge
from phalanx.testing.storm.loop import StormLoop
from phalanx.testing.storm.nodes import Nodes
from phalanx.testing.storm.orders import Order
from phalanx.testing.storm.plan import CAPPED_GPUS, CLASSES, STORM_SECONDS, Plan
from phalanx.testing.storm.replica import (
    LEASE_SECONDS,
    RENEW_SECONDS,
    RETRY_SECONDS,
    SCHEDULER,
    Replica,
    Surroundings,
    controllers_of,
)
from phalanx.testing.storm.server import Server
from phalanx.testing.storm.volumes import Volumes
from phalanx.testing.storm.wire import Window
from phalanx.testing.storm.workloads import Pods, Workload, workload_of

GPU = "nvidia.com/gpu"
NEW_YEAR = 1_767_225_600.0
STEP_SECONDS = 0.5
"""Between two looks of those who make pods."""
BETWEEN_BACKUPS_SECONDS, BETWEEN_COLLECTIONS_SECONDS = 15.0, 5.0
CALM_SECONDS, SILENT_SECONDS = 900.0, 70.0
"""Once faults have stopped: for how long everything may take to find its place, and how long nothing is written then. A gang that
lost members is healed after a minute, and one that was refused is tried again after five at most."""
OVERTAKING_SECONDS = 60.0
FAULTY = "please report it"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a storm."""

    plan: Plan
    violations: tuple[Violation, ...]
    lines: tuple[str, ...] = field(repr=False)
    requests: int = 0
    faults: int = 0
    sessions: int = 0


def play(plan: Plan, *, until: frozenset[str] = frozenset(), at_rest: Callable[[], None] = lambda: None) -> Outcome:
    """Play a storm from its beginning to its end; the same plan gives the same outcome.

    It ends early when an invariant of `until` is broken. `at_rest` is called before it is judged what was left behind.
    """
    random.seed(plan.seed)
    with asyncio.Runner(loop_factory=StormLoop) as runner:
        return runner.run(Storm(plan, until=until, at_rest=at_rest).run())


class Storm:
    """A cluster in bad weather."""

    lease = (LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS)

    def __init__(
        self, plan: Plan, *, until: frozenset[str] = frozenset(), at_rest: Callable[[], None] = lambda: None
    ) -> None:  # fmt: skip
        """Begin with nothing; everything is made on the loop."""
        self.plan, self._until, self._at_rest = plan, until, at_rest
        self._policy = self._in_force = policy_of_profile(plan.profile)
        self.replicas: list[Replica] = []
        self.workloads: list[Workload] = []
        self._by_name: dict[str, Workload] = {}
        self.calm_since = 0.0

    async def run(self) -> Outcome:
        """Play it."""
        self._make()
        for replica in self.replicas:
            replica.start()
        await self._storm()
        self._calm()
        await self._quiet()
        if not self._is_over():
            self._at_rest()
            self._judge_rest()
        return self._end()

    def _is_over(self) -> bool:
        return any(violation.invariant in self._until for violation in self.judge.violations)

    # --- the beginning ---------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self.server = Server(lambda: NEW_YEAR + loop.time() - START)
        self.judge = Judge(self.server.store, lambda: loop.time() - START)
        self.server.store.listen(self.judge.hear)
        limits = {"capped": {GPU: amount_of(GPU, CAPPED_GPUS)}}
        self.conduct = Conduct(self.judge, lambda: self._by_name, limits, self.lease[0])
        self.server.store.listen(self.conduct.hear)
        self.nodes = Nodes(self.server.store, random.Random(f"nodes {self.plan.seed}"), loop.call_later)
        self.nodes.admits_all = self.plan.admits_all
        self.volumes = Volumes(self.server.store, random.Random(f"volumes {self.plan.seed}"), loop.call_later)
        around = Surroundings(self.server, self._policy, lambda: NEW_YEAR + loop.time() - START, self._complain, self.lease)
        self.replicas = [Replica(around, f"r{number}", f"{self.plan.seed}") for number in range(self.plan.replicas)]
        for replica in self.replicas:
            replica.started = self._started
        self.pods = Pods(self.server.store)
        self.workloads = [workload_of(order, self.pods, lambda: loop.time() - START) for order in self.plan.orders]
        self._by_name = {workload.order.name: workload for workload in self.workloads}
        self._objects()

    def _objects(self) -> None:
        for name, value in CLASSES.items():
            meta = {"metadata": {"name": name}, "value": value}
            self.server.store.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **meta})
        specs: dict[str, Document] = {"wide": {"weight": 2}, "capped": {"capability": {GPU: CAPPED_GPUS}}}
        for name, spec in specs.items():
            meta = {"metadata": {"name": name}, "spec": {"weight": 1, **spec}}
            self.server.store.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **meta})
        for number in range(self.plan.nodes):
            self.nodes.add(f"n{number}")

    def _started(self, replica: Replica) -> None:
        live, wire = replica.live, replica.wire
        assert live is not None
        assert wire is not None
        wire.be_far(self.plan.latency, self.plan.lag)
        self._read_configuration(live)

        def note(snapshot: Snapshot, decisions: Decisions) -> None:
            self.judge.decided(replica.name, decisions)

        live.loop.decided.append(note)
        self.conduct.watch(replica)

    def _complain(self, who: str, text: str) -> None:
        self.judge.say(f"{who}: {text}")
        if text == f"{who} leads":
            self.conduct.begins_term(who)
        if FAULTY in text:
            self.judge.accuse("failed", f"{who.partition('.')[0]}: {text}")

    # --- the storm -------------------------------------------------------------------------------------------------------

    def weather(self, replica: Replica, window: Window) -> None:
        """Let requests of a replica go wrong."""
        if replica.wire is not None:
            replica.wire.windows.append(window)

    def excuse(self, seconds: float) -> None:
        """Let nodes hold too much for a while: nobody can call back what is on the wire, nor be in two heads."""
        self.judge.excused_until = max(self.judge.excused_until, self.judge.clock() + seconds)

    def hurry_next(self) -> None:
        """Let somebody who wants to run something come at once: the most important of those who are still to come."""
        now = self.judge.clock()
        others = [item for item in self.workloads if now < item.begins_at < STORM_SECONDS]
        for following in sorted(others, key=lambda item: (-CLASSES[item.order.priority], item.begins_at))[:1]:
            following.begins_at = now + 2 * STEP_SECONDS

    def submit(self, order: Order) -> None:
        """Let somebody come whom the plan does not know."""
        workload = workload_of(order, self.pods, self.judge.clock)
        self.workloads.append(workload)
        self._by_name[order.name] = workload

    def configure(self, policy: Policy) -> None:
        """Let every process read its configuration again, as when the file has changed."""
        self._in_force = policy
        for replica in self.replicas:
            if replica.live is not None:
                self._read_configuration(replica.live)

    def _read_configuration(self, live: Live) -> None:
        live.loop.profile = replace(live.loop.profile, policy=self._in_force)

    def set_back(self) -> None:
        """Let the store be what it was a while ago, as when etcd is restored from a backup."""
        self.server.set_back()
        self.judge.look_anew()
        self.conduct.look_anew()
        self.nodes.look_anew()
        self.volumes.look_anew()
        self.pods.look_anew()

    async def _storm(self) -> None:
        self._ends: list[tuple[float, incidents.End]] = []
        todo = list(self.plan.incidents)
        while self.judge.clock() < STORM_SECONDS and not self._is_over():
            now = self.judge.clock()
            while todo and todo[0].at <= now:
                incident = todo.pop(0)
                self._ends.append((now + incident.seconds, incidents.begin(self, incident)))
            for end in [end for until, end in self._ends if until <= now and end is not None]:
                end()
            self._ends = [(until, end) for until, end in self._ends if until > now]
            self._tick()
            if now % BETWEEN_BACKUPS_SECONDS < STEP_SECONDS:
                self.server.back_up()
            await asyncio.sleep(STEP_SECONDS)

    def _tick(self) -> None:
        for workload in self.workloads:
            workload.tick()
        if self.judge.clock() % BETWEEN_COLLECTIONS_SECONDS < STEP_SECONDS:
            self.server.collect_garbage()
        self.judge.tick()
        self.conduct.tick(self.replicas)

    def _calm(self) -> None:
        """Let everything that can go wrong stop doing so; what runs goes on running."""
        self.judge.say("CALM")
        for _, end in self._ends:
            if end is not None:
                end()
        for workload in self.workloads:
            workload.never_ends = True
        for replica in self.replicas:
            replica.thaw()
            replica.start()
            if replica.wire is not None:
                replica.wire.windows.clear()
        # Where binds are refused, gangs that come back from their back-off take what was cleared for others.
        self.judge.is_calm, self.calm_since = not self.nodes.refusing, self.judge.clock()

    async def _quiet(self) -> None:
        """Wait until nothing has been written for a while, and nobody waits for a moment that is known."""
        while self.judge.clock() < self.calm_since + CALM_SECONDS and not self._is_over():
            for replica in self.replicas:  # one may have been told to stop while it was frozen
                replica.start()
            self._tick()
            await asyncio.sleep(2 * STEP_SECONDS)
            if self.judge.clock() - self._last_write() >= SILENT_SECONDS and not self.nodes.refusing:
                rest = self._rest()
                pause = min(shortest_wait(rest.decisions), SILENT_SECONDS if rest.old_messages() else inf)
                if pause == inf:
                    return
                await asyncio.sleep(pause)

    def _rest(self) -> Rest:
        now = NEW_YEAR + asyncio.get_running_loop().time() - START
        profile, gates = connected(self._policy), connected(policy_of_gates(self._policy))
        return Rest(self.server.store.everything(), profile, now, frozenset({SCHEDULER}), controllers_of(profile), gates)

    def _last_write(self) -> float:
        """Return when a replica wrote something last, or when it became calm and the last one submitted what he wants to run."""
        begun = (workload.begins_at for workload in self.workloads)
        return max((self.calm_since, *begun, *(moment - START for moment, _ in self._latest_writes())))

    def _latest_writes(self) -> list[tuple[float, str]]:
        wires = [replica.wire for replica in self.replicas if replica.wire is not None]
        return [wire.last_write for wire in wires if wire.last_write is not None]

    # --- the end ---------------------------------------------------------------------------------------------------------

    def _judge_rest(self) -> None:
        for violation in self._rest().violations():
            self.judge.accuse(violation.invariant, violation.text)
        if self.judge.clock() - self._last_write() < SILENT_SECONDS:
            self.judge.accuse("not at rest", f"{CALM_SECONDS:g} s later still: {max(self._latest_writes())[1]}")
        if not any(replica.is_leader for replica in self.replicas):
            self.judge.accuse("not at rest", "nobody leads")
        self._judge_evictions()

    def _judge_evictions(self) -> None:
        """Whoever had others evicted in calm weather was placed then, unless somebody more important came in between."""
        calm = ((moment, str(eviction.task.key), eviction.preemptor) for moment, eviction in self.judge.calm_evictions)
        for found in evicted_in_vain(calm, self._is_excused):
            self.judge.accuse(found.invariant, found.text)

    def _is_excused(self, preemptor: str, moment: float) -> bool:
        workload = self._by_name.get(preemptor.partition("/")[2])
        return workload is None or self.conduct.was_placed(workload.order.name, moment) or self._is_overtaken(workload, moment)

    def _is_overtaken(self, workload: Workload, moment: float) -> bool:
        rank = CLASSES[workload.order.priority]
        others = (item for item in self.workloads if CLASSES[item.order.priority] > rank)
        return any(abs(item.begins_at - moment) < OVERTAKING_SECONDS for item in others)

    def _end(self) -> Outcome:
        sent = sum(replica.wire.sent for replica in self.replicas if replica.wire is not None)
        faults = sum(replica.wire.faults for replica in self.replicas if replica.wire is not None)
        sessions = sum(replica.live.loop.count for replica in self.replicas if replica.live is not None)
        for replica in self.replicas:
            replica.bury()
        return Outcome(self.plan, tuple(self.judge.violations), tuple(self.judge.lines), sent, faults, sessions)
