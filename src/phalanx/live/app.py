"""One scheduler on one cluster: what it follows, who leads, and the end."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time

from phalanx.controllers.controller import Controller, RecordEvent
from phalanx.controllers.objects import group_of
from phalanx.dialects.cluster import ObjectCluster, kinds_read
from phalanx.errors import ClusterError, Conflict
from phalanx.explain.event_text import bind_text, gang_events
from phalanx.explain.gangs import GangBook
from phalanx.live.binding import Hands
from phalanx.live.cache import Picture, Urgency
from phalanx.live.controlling import Controlling
from phalanx.live.election import LEASE, Election, Terms
from phalanx.live.events import EventSender
from phalanx.live.following import UNWATCHED, Following
from phalanx.live.outbox import Outbox, Rank
from phalanx.live.sessions import PoliciesOf, Sessions
from phalanx.live.writing import Writer
from phalanx.model.gang import Gang
from phalanx.model.kinds import KINDS, POD, Document, Kind, kind_of, object_key, split_key
from phalanx.model.task import Task
from phalanx.model.watch_event import ADDED, DELETED, WatchEvent
from phalanx.scheduling.gates import GatePlanner
from phalanx.scheduling.pod_conditions import GatedConditions
from phalanx.scheduling.workqueue import Agenda
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot
from phalanx.store.kube.client import Client
from phalanx.store.kube.mirror import Mirror, Place

UNWATCHED_KINDS = [kind for kind in KINDS if kind.kind in UNWATCHED]
LAST_WORDS_SECONDS = 10.0
BETWEEN_TURNS_SECONDS = 2.0


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
    policies_of: PoliciesOf = lambda _, policy: (policy,)
    """Which shards there are to decide for."""
    single: Mapping[Kind, Place] = field(default_factory=dict)
    """Of kinds that nobody watches, the one object that is."""


class Live:
    """Follows a cluster, and schedules while it leads."""

    def __init__(self, client: Client, setup: Setup, *, report: Callable[[str], None]) -> None:
        """Begin with nothing known; `report` is told what goes wrong and who leads."""
        self.client, self._setup, self._report = client, setup, report
        self.mirror = Mirror(time)
        self.picture = Picture(ObjectCluster(schedulers=setup.schedulers), report=report)
        self.outbox = Outbox(report=report, may_write=lambda: client.may_write())
        self._events = EventSender(client, self.outbox, self.mirror, instance=setup.identity)
        self._writer = Writer(client, self.outbox, self.mirror, self._events.tell)
        self.sessions = Sessions(
            Hands(client, self.outbox, self._writer, self.picture, self.mirror),
            setup.profile,
            report=report,
            policies_of=setup.policies_of,
        )
        self.book = GangBook()
        self._planner = GatePlanner(setup.gates.policy, setup.gates.catalogue, self.mirror.everything)
        self._gate_bell, self._gated = asyncio.Event(), GatedConditions(self.mirror)
        self._agenda: Agenda | None = None
        self._controlling: Controlling | None = None
        self.election = None if setup.terms is None else Election(client, setup.terms, report=report)
        wanted = {*kinds_read(), *(kind for controller in setup.controllers for kind in controller.watches)}
        self.following = Following(client, self.mirror, wanted, report=report, single=setup.single)
        self.sessions.followed = lambda: self.following.kinds
        if (election := self.election) is not None:
            client.may_write = lambda: election.is_leader
            self.sessions.despaired = election.step_down
        self.is_stopping = False
        self.turned: list[Callable[[], None]] = []
        """Told whenever the loop turns, several times a minute."""
        self.turned.append(self._tell_behind_gates)
        self.sessions.decided.append(self._tell_session)
        self.sessions.binding.bound.append(self._tell_bound)
        self.mirror.listen(self._hear)

    @property
    def is_leader(self) -> bool:
        """Tell whether this one decides."""
        return not self.is_stopping and (self.election is None or self.election.is_leader)

    def tell(self, event: RecordEvent) -> None:
        """Let an event be known."""
        self._events.tell(event)

    def election_object(self) -> Document | None:
        """Return the object that stands for all replicas; None where nobody is elected."""
        terms = self._setup.terms
        if terms is None:
            return None
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": terms.name, "namespace": terms.namespace}}

    # --- changes -----------------------------------------------------------------------------------------------------

    def _hear(self, event: WatchEvent) -> None:
        try:
            self._take_in(event)
        except Exception as problem:  # an object that nobody understands stops nobody else
            place = f"{event.kind.resource} {object_key(event.object)}"
            self._report(f"{place}: set aside, please report it: {type(problem).__name__}: {problem}")
        if event.type == DELETED:
            self._forget_unwatched(str(event.object["metadata"].get("uid", "")))

    def _forget_unwatched(self, uid: str) -> None:
        """Nobody tells us when what an object owned goes after it, where we do not watch: it is taken for gone."""
        for kind in UNWATCHED_KINDS:
            for document in self.mirror.owned(uid, kind):
                self.mirror.remove(kind, document)

    def _take_in(self, event: WatchEvent) -> None:
        urgency = self.picture.hear(event)
        if event.type == ADDED:
            self.following.look_for_owner(event.object)
        if self._planner.hear(event.kind, event.object, is_gone=event.type == DELETED):
            self._gate_bell.set()
        if self._agenda is not None and self._controlling is not None:
            self._agenda.hear(event.kind, event.object)
            self._controlling.wake()
        if urgency is not Urgency.NEVER:
            self.sessions.wake(urgency)

    def _tell_session(self, snapshot: Snapshot, decisions: Decisions) -> None:
        for key, text in self.book.note(snapshot, decisions, self._planner.waits).items():
            self._tell_group(snapshot.gangs[key], "FailedScheduling", text, is_warning=True)
        for item in gang_events(decisions):
            self._tell_group(item.group, item.reason, item.message, is_warning=item.is_warning)

    def _tell_group(self, gang: Gang, reason: str, text: str, *, is_warning: bool) -> None:
        group = group_of(self.mirror, gang)
        if group is not None:
            self._events.tell(RecordEvent(group, reason, text, is_warning=is_warning))

    def _tell_bound(self, task: Task, node: str, seconds: float) -> None:
        pod = self.mirror.find(POD, task.namespace, task.name) if self._setup.has_pod_events else None
        if pod is not None:
            self._events.tell(RecordEvent(pod, "Scheduled", bind_text(task.key, node)))

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
            tasks.create_task(self.following.run())
            tasks.create_task(self._lead() if self.election is None else self.election.run(self._lead))

    async def _lead(self) -> None:
        await self.following.catch_up()
        agenda = Agenda(self.mirror, self._setup.controllers, report=self._report)
        controlling = Controlling(self.mirror, agenda, self._writer, is_busy=lambda: self.outbox.is_binding, report=self._report)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.sessions.run(lambda: self.is_leader))
                tasks.create_task(self._plan_behind_gates())
                for document in self.mirror.everything():
                    agenda.hear(kind_of(document), document)
                self._agenda, self._controlling = agenda, controlling
                tasks.create_task(controlling.run())
        finally:
            self._agenda = self._controlling = None
            self.outbox.drop()
            self._writer.forget()
            self.picture.give_up_all(lambda key: self.mirror.find(POD, *split_key(key)))

    def _tell_behind_gates(self) -> None:
        for write in self._gated.writes(self._planner.waiting_pods(), self.mirror.now) if self._agenda is not None else ():
            self._writer.leave(write, Rank.NOTE)

    async def _plan_behind_gates(self) -> None:
        while True:
            await self._gate_bell.wait()
            self._gate_bell.clear()
            try:
                await asyncio.gather(*map(self._writer.write, self._planner.plan(self.mirror.now)))
                await asyncio.sleep(0.2)
            except Conflict:  # a pod has changed meanwhile, its gate may be lifted: look again
                await asyncio.sleep(0.2)
                self._gate_bell.set()
            except ClusterError as problem:
                self._report(f"a plan behind gates could not be written: {problem}")
                await asyncio.sleep(5.0)
                self._gate_bell.set()
