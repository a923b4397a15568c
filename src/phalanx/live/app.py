"""One scheduler on one cluster: what it watches, who leads, and the end.

Everything that decides and carries out is in `scheduling/`; here it is connected with an API server and an event loop. Whoever does
not lead keeps its caches up to date and decides nothing. When it begins to lead it first lists everything anew
(`Watching.catch_up`): the one before may have bound pods a moment ago, and a watch that is open and silent would not tell. When it
ends, whatever was not sent is dropped and every assumption forgotten: the next leader goes by what is on the server, and so do we
if we lead again. The same happens when the server is set back to an earlier state: what was written may not have been.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from phalanx.controllers.controller import Controller, RecordEvent
from phalanx.controllers.provisioning.controller import ProvisioningController, requests_nodes
from phalanx.dialects.cluster import ObjectCluster, kinds_read
from phalanx.live.api_port import ApiPort
from phalanx.live.clock import LoopClock
from phalanx.live.election import LEASE, Election, Terms
from phalanx.live.outbox import Outbox
from phalanx.live.watching import UNWATCHED, Watching
from phalanx.model.kinds import BIND_REQUEST, KINDS, POD, Document, Kind, kind_of, object_key, split_key
from phalanx.model.watch_event import ADDED, DELETED, WatchEvent
from phalanx.scheduling.cache import SchedulerCache, Urgency
from phalanx.scheduling.controllers import ControllerRunner
from phalanx.scheduling.events import SessionEvents
from phalanx.scheduling.gates import GateLoop, GatePlanner
from phalanx.scheduling.loop import BinderUse, Pace, SessionLoop
from phalanx.scheduling.pod_conditions import GatedConditions
from phalanx.scheduling.quarantine_events import QuarantineEvents
from phalanx.session.cycle import Profile
from phalanx.store.api_client import ApiClient
from phalanx.store.kube.mirror import Mirror, Place

UNWATCHED_KINDS = [kind for kind in KINDS if kind.kind in UNWATCHED]
LAST_WORDS_SECONDS = 10.0
BETWEEN_TURNS_SECONDS = 2.0
BETWEEN_PLANS_SECONDS = 0.2
PACE = Pace()


@dataclass(frozen=True, slots=True)
class Setup:
    """How a scheduler runs."""

    profile: Profile
    gates: Profile
    controllers: Sequence[Controller]
    schedulers: frozenset[str]
    terms: Terms | None
    """None: nobody else schedules here, and no lease is needed."""
    identity: str = "phalanx"
    has_pod_events: bool = True
    keeps_nodes: bool = False
    """Nodes that gangs are nominated to are kept from autoscalers."""
    single: Mapping[Kind, Place] = field(default_factory=dict)
    """Of kinds that nobody watches, the one object that is."""
    on_synced: Callable[[], None] = lambda: None
    """Called when everything has been listed for the first time."""


class Live:
    """Watches a cluster, and schedules while it leads."""

    def __init__(
        self, client: ApiClient, setup: Setup, *, report: Callable[[str], None], clock: LoopClock | None = None
    ) -> None:  # fmt: skip
        """`report` is called with what goes wrong and who leads; `clock` is that of the running event loop by default."""
        self.client, self._setup, self._report, self.clock = client, setup, report, clock or LoopClock()
        self.mirror = Mirror(lambda: self.clock.now)
        self.cache = SchedulerCache(ObjectCluster(schedulers=setup.schedulers), report=report)
        self.outbox = Outbox(report=report, may_write=lambda: client.may_write())
        self.port = ApiPort(client, self.outbox, self.mirror, self.clock, instance=setup.identity)
        self.loop = SessionLoop(self.port, self.cache, setup.profile, PACE, report=report, longest_rest=PACE.heartbeat)
        self.loop.keeps_nodes = setup.keeps_nodes
        if any(controller.name == ProvisioningController.name for controller in setup.controllers):
            self.loop.requests_nodes = partial(requests_nodes, self.mirror)
        planner = GatePlanner(setup.gates, self.mirror.everything)
        self.gates = GateLoop(self.port, planner, gap=BETWEEN_PLANS_SECONDS, report=report)
        self._gated = GatedConditions(self.mirror)
        self._quarantine_events = QuarantineEvents(self.port, self.cache)
        self.session_events = SessionEvents(self.port, self.loop, behind_gates=lambda: planner.waits)
        if setup.has_pod_events:
            self.session_events.record_binds(self.loop)
        self._runner: ControllerRunner | None = None
        """Runs the controllers while we lead."""
        self.election = None if setup.terms is None else Election(client, setup.terms, clock=self.clock, report=report)
        wanted = {*kinds_read(), *(kind for controller in setup.controllers for kind in controller.watches)}
        self.watching = Watching(client, self.mirror, wanted, report=report, single=setup.single)
        self.watching.on_synced = setup.on_synced
        self.is_stopping = False
        self._was_set_back = asyncio.Event()
        self.turned: list[Callable[[], None]] = [self._explain_gated]
        """Called whenever the loop turns, several times a minute."""
        self._connect()

    def _connect(self) -> None:
        self.client.heard = self.clock.hear
        self.port.doubted = self.watching.doubt
        self.port.misplaced = self.watching.look_for_kinds
        self.watching.on_set_back = self._was_set_back.set
        self.watching.on_outage = self.loop.doubt_writes
        self.loop.may_decide = lambda: self.is_leader
        self.loop.binder_use = self._binder_use
        if (election := self.election) is not None:
            self.client.may_write = lambda: election.is_leader
            self.loop.despaired = election.step_down
        self.mirror.listen(self._notice)

    def _binder_use(self) -> BinderUse:
        if BIND_REQUEST not in self.watching.kinds:
            return BinderUse.NOBODY
        return BinderUse.EVERYBODY if self.loop.profile.policy.binds_by_request else BinderUse.WITH_CLAIMS

    @property
    def is_leader(self) -> bool:
        """Tell whether this one decides."""
        return not self.is_stopping and (self.election is None or self.election.is_leader)

    def record(self, event: RecordEvent) -> None:
        """Record an event."""
        self.port.send(event)

    def election_object(self) -> Document | None:
        """Return the object that stands for all replicas; None where nobody is elected."""
        terms = self._setup.terms
        if terms is None:
            return None
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": terms.name, "namespace": terms.namespace}}

    # --- changes -----------------------------------------------------------------------------------------------------

    def _notice(self, event: WatchEvent) -> None:
        try:
            self._take_in(event)
        except Exception as problem:  # an object that nobody understands stops nobody else
            place = f"{event.kind.resource} {object_key(event.object)}"
            self._report(f"{place}: left out, please report it: {type(problem).__name__}: {problem}")
        if event.type == DELETED:
            self._forget_unwatched(str(event.object["metadata"].get("uid", "")))

    def _forget_unwatched(self, uid: str) -> None:
        """Where we do not watch, nobody reports that what an object owned goes after it: it is taken for gone."""
        for kind in UNWATCHED_KINDS:
            for document in self.mirror.owned(uid, kind):
                self.mirror.remove(kind, document)

    def _take_in(self, event: WatchEvent) -> None:
        urgency = self.cache.notice(event)
        try:
            if event.type == ADDED:
                self.watching.look_for_owner(event.object)
            self.gates.notice(event)
            if self._runner is not None:
                self._runner.notice(event.kind, event.object)
                self.loop.noticed(event)
        finally:
            self.loop.notice(urgency)

    def _explain_gated(self) -> None:
        for write in self._gated.writes(self.gates.planner.waiting_pods(), self.clock.now) if self._runner is not None else ():
            self.port.send(write, is_note=True)

    # --- leading -----------------------------------------------------------------------------------------------------

    async def run(self, is_over: asyncio.Event) -> None:
        """Follow and, when it is our turn, lead, until it is over; then what was decided is finished, and the lease given back."""
        work, end = asyncio.create_task(self._work()), asyncio.create_task(is_over.wait())
        await asyncio.wait({work, end}, return_when=asyncio.FIRST_COMPLETED)
        self.is_stopping = True
        if not work.done():
            await self.outbox.drain(LAST_WORDS_SECONDS)
        for task in (work, end):
            task.cancel()
        await asyncio.wait({work, end})
        if self.election is not None:
            await self.election.release()
        if not work.cancelled() and (problem := work.exception()) is not None:
            raise problem

    async def _turn(self) -> None:
        while True:
            for listener in self.turned:
                listener()
            await asyncio.sleep(BETWEEN_TURNS_SECONDS)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._turn())
            tasks.create_task(self.watching.run())
            tasks.create_task(self._lead() if self.election is None else self.election.run(self._lead))

    async def _lead(self) -> None:
        has_others = self.election is not None
        while True:
            await self._lead_on(has_others=has_others)
            has_others = True  # whoever has set the server back

    async def _lead_on(self, *, has_others: bool) -> None:
        """Lead until the term ends, or the server is not what it was."""
        self._was_set_back.clear()
        await self.watching.catch_up(has_others=has_others)
        runner = ControllerRunner(
            self.port, self._setup.controllers, is_busy=lambda: self.outbox.is_binding, report=self._report
        )  # fmt: skip
        for document in self.mirror.everything():
            runner.notice(kind_of(document), document)
        self._runner = runner
        try:
            self.loop.start()
            self.loop.wake(Urgency.SOON)
            self.gates.start()
            runner.start()
            self._quarantine_events.start()
            await self._was_set_back.wait()
        finally:
            self._runner = None
            self.loop.stop()
            self.gates.stop()
            runner.stop()
            self._quarantine_events.stop()
            self.outbox.drop()
            self.port.forget()
            self.cache.forget_all(lambda key: self.mirror.find(POD, *split_key(key)))
