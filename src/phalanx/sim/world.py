"""A cluster in virtual time: objects, kubelets, work and sessions, put together.

Everything that happens goes through the store, as on a real cluster; whoever cares listens to it. The same objects, settings and
seed give the same history, to the byte.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from random import Random

from phalanx.controllers.controller import Controller, Evict, RecordEvent
from phalanx.controllers.gates import GANG_TIMED_OUT
from phalanx.controllers.objects import controller_of
from phalanx.controllers.unmade_pods import UnmadePods
from phalanx.controllers.volcano_job.job import JOB as VOLCANO_JOB
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.fresh_pods import fresh
from phalanx.dialects.yunikorn import GANG_DEGRADED, TIMED_OUT
from phalanx.errors import ClusterError, SnapshotError
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.why import why
from phalanx.manifests.gpu_reservations import home_documents
from phalanx.model.kinds import GROUP_BY_DIALECT, NAMESPACE, NODE, POD, QUEUE, SILENT, Document, Kind, object_key, split_key
from phalanx.model.moment import moment_text
from phalanx.model.resources import CPU, GPU, scale_of
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import COMPLETED, Status
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED, WatchEvent
from phalanx.model.work_annotations import LAST_CHECKPOINT
from phalanx.scheduling.cache import SchedulerCache, Urgency
from phalanx.scheduling.controllers import ControllerRunner
from phalanx.scheduling.gates import GateLoop, GatePlanner
from phalanx.scheduling.loop import BinderUse, Pace, SessionLoop
from phalanx.scheduling.quarantine_events import QuarantineEvents
from phalanx.scheduling.shards import decide
from phalanx.session.cycle import Profile, run_cycle, run_isolated
from phalanx.session.decision import Decisions, Eviction
from phalanx.session.shard_decisions import as_one
from phalanx.sim.autoscaler import Autoscaler, ClusterView
from phalanx.sim.claim_controller import ClaimKeeping
from phalanx.sim.cloud_provider import CloudProvider
from phalanx.sim.device_plugins import Devices
from phalanx.sim.faults import Faults
from phalanx.sim.kubelets import Kubelets
from phalanx.sim.recorder import Recorder
from phalanx.sim.replacement_pods import ReplacementPods
from phalanx.sim.running_work import Work
from phalanx.sim.settings import FOREVER, Settings
from phalanx.sim.store_port import StorePort
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.sim.without_gangs import SoloCluster
from phalanx.state.snapshot import Snapshot
from phalanx.store.memory import MemoryStore

START = 1_767_225_600.0
"""The first of January 2026, in UTC."""
BETWEEN_PLANS_SECONDS = 1.0
TIMEOUTS = frozenset({GANG_TIMED_OUT, GANG_DEGRADED, TIMED_OUT})
"""Events of controllers about a gang that waited too long."""
SHORT_NAMES = {GPU: "gpu"}
"""What KAI's queues call a resource."""


Place = tuple[Kind, str, str]
"""An object by kind, namespace and name."""


class World:
    """A cluster that lives as long as somebody advances it."""

    def __init__(
        self, profile: Profile, *, settings: Settings | None = None, seed: int = 0, start: float = START, is_solo: bool = False,
        controllers: Sequence[Controller] = (), gates: Profile | None = None, is_served: bool = False,
        schedulers: frozenset[str] = frozenset(), isolates: bool = False,
    ) -> None:  # fmt: skip
        """Begin with an empty cluster; with `is_solo` the scheduler sees pods and no gangs. `gates` plans for gangs held back.

        With `is_served` users look at it while it runs: pods have conditions, and those of a gang come one after the other. Pods
        that wait for a scheduler not in `schedulers`, if any, are left to it. With `isolates`, and wherever users look, sessions go
        on without a gang on which they fail.
        """
        self.last_change = start
        """When something happened last, besides sessions that change nothing for anybody."""
        self.last_progress = start
        """The same, besides nodes that an autoscaler adds and removes: they may come and go for ever and help nobody."""
        chosen = settings or Settings()
        self.settings, self.start, self._chance = replace(chosen, has_binder=chosen.has_binder and not is_solo), start, Random(seed)
        self.time = VirtualTime(start)
        self.autoscaler: Autoscaler | None = None
        self.store = MemoryStore(lambda: self.time.now)
        self.problems: list[str] = []
        """Objects that could not be understood, each with what is wrong."""
        self._gang_by_uid: dict[str, GangKey] = {}
        self._arrived: dict[GangKey, None] = {}
        self._refused_binds: dict[str, str] = {}
        """The last refusal of a bind, by gang: the reason to wait where a session finds room again and again."""
        self._wake: Callable[[Urgency], None] = lambda urgency: None
        """Called with how soon a session should look at a change; until there are sessions, nobody is."""
        self.port = StorePort(self.store, self.time, Precedence.SESSION, bind=self.settings.delays.bind, chance=self._chance)
        self._controller_port = StorePort(self.store, self.time, Precedence.CONTROLLER)
        self._begin_clusters(schedulers, is_solo=is_solo)
        self._begin_nodes(controllers)
        self._isolates = isolates or is_served
        if is_served:
            self.store.on_failure = self._note_failure
            QuarantineEvents(self.port, self.cache).start()
        self._begin_scheduling(profile, gates, controllers, is_served=is_served)
        self._begin_work()
        self._begin_autoscaler(seed)

    def _begin_clusters(self, schedulers: frozenset[str], *, is_solo: bool) -> None:
        """Keep the cluster as it is, and as the scheduler sees it; both are one unless the scheduler knows no gangs."""
        self.cluster = ObjectCluster(schedulers=schedulers)
        seen = SoloCluster(schedulers=schedulers) if is_solo else self.cluster
        self.cache = SchedulerCache(seen, report=self.problems.append)
        if is_solo:
            self.store.listen(self._enter)
        self.store.listen(self._notice)
        for document in home_documents({}) if self.settings.has_binder else ():
            self.store.create(document)

    def _begin_nodes(self, controllers: Sequence[Controller]) -> None:
        """Begin what machines and their owners do: devices, claims, kubelets, pods that come back, faults."""
        Devices(self.store, self.time)
        ClaimKeeping(self.store, self.time)
        self._kubelets = Kubelets(self.store, self.time, self.settings, self._chance)
        restored = {(kind.api_version, kind.kind) for controller in controllers for kind in controller.brings_back}
        self._replacements = ReplacementPods(self.store, self.time, self.settings, partial(_is_restored, restored))
        self.faults = Faults(self.store, self._kubelets, self._replacements)
        self._kubelets.lost.append(self.faults.lose)

    def _begin_scheduling(
        self, profile: Profile, gates: Profile | None, controllers: Sequence[Controller], *, is_served: bool
    ) -> None:  # fmt: skip
        """Begin what the process does on a real cluster: sessions, plans behind gates, controllers."""
        pace = Pace(
            gap=self.settings.period, later=self.settings.settling, heartbeat=self.settings.heartbeat, rests=True,
            is_resilient=is_served, isolates=self._isolates, arrival=Pace().arrival if is_served else 0.0,
            writes_pod_conditions=is_served or self._has_autoscaler, wakes_all=is_served,
            says_why=self.settings.says_why or self._has_autoscaler,
        )  # fmt: skip
        is_unschedulable_kept = self.settings.parks_up_to > 0 and not profile.policy.counts_all_gangs
        self.loop = SessionLoop(
            self.port, self.cache, profile, pace, report=self.problems.append,
            longest_rest=self.settings.parks_up_to if is_unschedulable_kept else None,
        )  # fmt: skip
        self.loop.binder_use = lambda: BinderUse.EVERYBODY if self.settings.has_binder else BinderUse.NOBODY
        self.gates: GateLoop | None = None
        if gates is not None:
            planner = GatePlanner(gates, self.store.everything)
            self.gates = GateLoop(
                StorePort(self.store, self.time, Precedence.PLAN), planner, gap=BETWEEN_PLANS_SECONDS, report=self.problems.append
            )
            self.store.listen(self.gates.notice)
            self.gates.start()
        self._runner: ControllerRunner | None = None
        if controllers:
            runner = ControllerRunner(self._controller_port, [*controllers, UnmadePods()], report=self.problems.append)
            self.store.listen(lambda event: runner.notice(event.kind, event.object))
            runner.start()
            self._runner = runner
        self.loop.start()
        self._wake = self.loop.notice

    def _begin_work(self) -> None:
        """Begin what gangs do, and what is kept of it."""
        self.work = Work(self.cluster, self.time, self.settings, self._chance, self.finish)
        self.recorder = Recorder(self.cluster, self.time, self.start)
        self.work.listeners.append(self.recorder.set_whole)
        self.work.saving.append(self._write_checkpoint)
        for port in (self.port, self._controller_port):
            port.evicting.append(lambda eviction: self._replacements.expect(eviction.uid))
            port.recorded.append(self._note_warning)
        self._controller_port.evicted.append(self._note_removal)
        self.loop.evictor.evicted.append(self._note_eviction)
        self.loop.binding.rolled_back.append(self._note_roll_back)
        self.loop.binding.refused.append(self._note_refusal)
        self.loop.decided.append(self._note_session)
        self.store.listen(self._follow)

    @property
    def _has_autoscaler(self) -> bool:
        """Somebody reads the conditions of pods."""
        return self.settings.autoscaler is not None

    def _begin_autoscaler(self, seed: int) -> None:
        """Begin what adds and removes nodes; what it draws leaves everything else that is drawn as it is."""
        chosen = self.settings.autoscaler
        if chosen is None:
            return
        self._choose_resource([])
        provider = CloudProvider(chosen, self.store, self.time, self.faults, Random(f"{seed} autoscaler"))
        view = ClusterView(self.cluster.state.task, self.cache.cluster.state.on_node)
        self.autoscaler = Autoscaler(chosen, provider, self.store, self.time, view)
        provider.restocked.append(self._note_progress)

    def on_event(self, listener: Callable[[RecordEvent], None]) -> None:
        """Call somebody with every event that a session or a controller records."""
        for port in (self.port, self._controller_port):
            port.recorded.append(listener)

    @property
    def planner(self) -> GatePlanner | None:
        """Who looks behind scheduling gates."""
        return None if self.gates is None else self.gates.planner

    # --- time --------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self.time.now

    def next_time(self) -> float | None:
        """Return the moment at which something happens next; None when nothing will."""
        return self.time.next_time()

    def next_deed(self) -> float | None:
        """Return the moment at which something may change, besides checkpoints, plans, sessions, and writes refused before."""
        is_retrying = self._runner is not None and self._runner.is_only_retrying
        return self.time.next_deed(Precedence.CONTROLLER if is_retrying else Precedence.CHECKPOINT)

    def advance(self, moment: float) -> None:
        """Let everything happen that is due until then."""
        self.time.advance(moment)

    # --- objects -----------------------------------------------------------------------------------------------------

    def load(self, documents: Iterable[Document]) -> None:
        """Enter objects as they are: nodes, queues, and pods that run already."""
        found = list(documents)
        nodes = [document for document in found if document.get("kind") == "Node"]
        if nodes:
            self._choose_resource(nodes)
        for document in found:
            self.store.load(document)
        self._record_arrivals()

    def _choose_resource(self, nodes: list[Document]) -> None:
        """Count GPUs where nodes have any, else CPUs; the nodes that an autoscaler may add count too."""
        pools = self.settings.autoscaler.pools if self.settings.autoscaler is not None else ()
        offers = [
            *(node.get("status", {}).get("allocatable") or {} for node in nodes),
            *(pool.template.allocatable for pool in pools),
        ]
        has_gpus = any(str(offered.get(GPU, 0)) != "0" for offered in offers)
        self.recorder.resource = GPU if has_gpus else CPU

    def submit(self, groups: Sequence[Sequence[Document]]) -> None:
        """Create the objects of gangs that arrive at one moment: groups first, then pods of all of them in turn."""
        pods = [[fresh(item) for item in group if item.get("kind") == "Pod"] for group in groups]
        others = [item for group in groups for item in group if item.get("kind") != "Pod"]
        for document in (*others, *(pod for turn in zip_longest(*pods) for pod in turn if pod is not None)):
            self._create(document)

    def plan(self, offset: float, deed: Callable[[], object]) -> None:
        """Let something happen so many seconds after the start; what the cluster refuses is noted, and the rest goes on."""
        self.time.at(self.start + offset, Precedence.WORLD, lambda: self._try(deed))

    def _try(self, deed: Callable[[], object]) -> None:
        try:
            deed()
        except ClusterError as problem:
            self.problems.append(f"{self.now - self.start:g} s: {problem}")

    def _create(self, document: Document) -> None:
        namespace = document.get("metadata", {}).get("namespace")
        try:
            if namespace and self.store.find(NAMESPACE, "", namespace) is None:
                self.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            self.store.create(document)
        except ClusterError as problem:
            self.problems.append(f"{document.get('kind')} {document.get('metadata', {}).get('name')}: {problem}")

    # --- what happens ------------------------------------------------------------------------------------------------

    def _enter(self, event: WatchEvent) -> None:
        """Let the cluster know of a change where the scheduler has a view of its own. A broken object is noted."""
        try:
            if event.type == DELETED:
                self.cluster.remove(event.object)
            else:
                self.cluster.put(event.object)
        except SnapshotError as problem:
            self.problems.append(str(problem))

    def _note_failure(self, event: WatchEvent, problem: Exception) -> None:
        """Go on: users look at the cluster, and one object that somebody did not think of is no reason to end it."""
        place = f"{event.kind.resource} {object_key(event.object)}"
        self.problems.append(f"{place}: left out, please report it: {type(problem).__name__}: {problem}")

    def _notice(self, event: WatchEvent) -> None:
        self._wake(self.cache.notice(event))

    def _follow(self, event: WatchEvent) -> None:
        """Tell those who work and decide of a change that the clusters know already."""
        self.recorder.hear(event)
        if not _is_a_note(event):
            self.last_change = self.now
            if not self._is_scaling(event):
                self._note_progress()
        if event.kind is not POD:
            self._follow_others(event)
            return
        before = self._gang_by_uid.get(event.object["metadata"]["uid"])
        if (gang := self._gang_of(event)) is not None:
            self.work.touch(gang)
            if event.type == ADDED or gang != before:
                self._arrive(gang)

    def _note_progress(self) -> None:
        self.last_progress = self.now

    def _is_scaling(self, event: WatchEvent) -> bool:
        """Tell whether a change is only a node that an autoscaler adds or removes."""
        return self.autoscaler is not None and event.kind is NODE and self.autoscaler.may_have(event.object["metadata"]["name"])

    def _follow_others(self, event: WatchEvent) -> None:
        """Note a group that a controller made, whose pods come later, and the end of a job that ends its gang."""
        meta = event.object["metadata"]
        if event.kind.kind == "PodGroup" and event.type == ADDED and controller_of(event.object) is not None:
            self._arrive(GangKey(f"{meta['namespace']}/{meta['name']}"))
        elif event.kind is VOLCANO_JOB and (event.object.get("status") or {}).get("state", {}).get("phase") == "Completed":
            self.recorder.finish(GangKey(f"{meta['namespace']}/{meta['name']}-{meta['uid']}"))

    def _arrive(self, gang: GangKey) -> None:
        """Note at the end of this moment how large a gang is that got new pods."""
        if not self._arrived:
            self.time.after(0, Precedence.WORK, self._record_arrivals)
        self._arrived[gang] = None

    def _record_arrivals(self) -> None:
        arrived, self._arrived = self._arrived, {}
        for key in arrived:
            self.recorder.submit(key)

    def _gang_of(self, event: WatchEvent) -> GangKey | None:
        """Return the gang of a pod, also of one that is gone."""
        uid = event.object["metadata"]["uid"]
        if event.type == DELETED:
            return self._gang_by_uid.pop(uid, None)
        task = self._task(event.object)
        if task is not None and task.gang is not None:
            self._gang_by_uid[uid] = task.gang
        return self._gang_by_uid.get(uid)

    def finish(self, keys: list[TaskKey]) -> None:
        """Let pods succeed."""
        gangs: dict[GangKey, None] = {}
        for key in keys:
            pod = self.store.find(POD, *split_key(key))
            if pod is not None and "deletionTimestamp" not in pod["metadata"]:
                self._kubelets.succeed(pod)
            task = self.cluster.state.task(key)
            if task is not None and task.gang is not None:
                gangs[task.gang] = None
        for gang in gangs:
            members = self.cluster.state.members(gang).values()
            if all(task.status in COMPLETED or task.is_placeholder for task in members):
                self.recorder.finish(gang)
                if self.settings.removes_finished:
                    self._remove(gang)

    def _remove(self, key: GangKey) -> None:
        groups = self._groups_of(key)
        for member in [*self.cluster.state.members(key)]:
            self.store.delete(POD, *split_key(member), grace=0)
        for place in groups:
            if self.store.find(*place) is not None:  # it may have gone with the last pod
                self.store.delete(*place)
        self.work.forget(key)

    def _groups_of(self, key: GangKey) -> list[Place]:
        """Return the group objects of a gang: none where pods alone make it, several where it was put together."""
        gang = self.cluster.state.gang(key)
        pieces = (gang.pieces or (gang,)) if gang is not None and gang.dialect in GROUP_BY_DIALECT else ()
        places = [(GROUP_BY_DIALECT[group.dialect], group.namespace, group.name) for group in pieces]
        return [place for place in places if self.store.find(*place) is not None]

    def _write_checkpoint(self, key: GangKey) -> None:
        """Write when a gang saved its work, as its job would: on its group, or on its pods. For everybody else nothing changes."""
        before, patch = self.last_change, {"metadata": {"annotations": {LAST_CHECKPOINT: moment_text(int(self.now))}}}
        members = self.cluster.state.members(key).values()
        pods = [(POD, *split_key(task.key)) for task in members if task.status is Status.RUNNING]
        for place in self._groups_of(key) or pods:
            self._try(partial(self.store.patch, *place, patch))
        self.last_change = before

    def pods_of(self, gang: str) -> list[str]:
        """Return the pods of a gang."""
        return sorted(self.cluster.state.members(GangKey(gang)))

    def reasons(self) -> dict[str, str]:
        """Return why gangs wait, as a session would find it now; where pods are placed one by one, why the first of each does."""
        snapshot, decisions = self.look()
        found: dict[str, str] = dict[str, str](missing_groups(self.cluster.snapshot(self.now)).items())
        for outcome in decisions.outcomes:
            sentence = why(outcome, snapshot)
            if sentence:
                found.setdefault(self._gang_named(outcome.state.key), sentence)
        for key, text in self.gates.planner.reasons(self.now).items() if self.gates is not None else ():
            found[key] = text
        return {**self._refused_binds, **found}

    def look(self) -> tuple[Snapshot, Decisions]:
        """Return what a session would decide now; nothing is carried out."""
        snapshot = self.cache.snapshot(self.now)
        return as_one(snapshot, decide(snapshot, self.loop.profile, run=run_isolated if self._isolates else run_cycle))

    def _gang_named(self, key: str) -> str:
        """Return the gang of a name that may be the one of a pod, where every pod is a gang of its own."""
        task = None if self.cluster.state.gang(GangKey(key)) is not None else self.cluster.state.task(TaskKey(key))
        return key if task is None or task.gang is None else task.gang

    def _task(self, pod: Document) -> Task | None:
        meta = pod.get("metadata", {})
        return self.cluster.state.task(TaskKey(f"{meta.get('namespace') or 'default'}/{meta.get('name', '')}"))

    def _note_warning(self, event: RecordEvent) -> None:
        """Keep what is wrong with objects, and which gangs waited too long."""
        is_known = any(event.message == found.problem for found in self.cache.quarantined.values())
        if event.is_warning and not event.is_expected and not is_known:
            self.problems.append(event.message)
        task = self._task(event.about) if event.reason in TIMEOUTS else None
        if task is not None:
            self.recorder.time_out(task.gang or task.key, event.message)

    def _note_eviction(self, eviction: Eviction) -> None:
        self.recorder.evict(eviction.task, eviction.action, eviction.preemptor, eviction.message)

    def _note_removal(self, eviction: Evict) -> None:
        """Keep that a controller has evicted a pod, for the sake of its own gang."""
        task = self.cluster.state.task(TaskKey(f"{eviction.namespace}/{eviction.name}"))
        if task is not None:
            self.recorder.evict(task, "bind", task.gang or "", eviction.message)

    def _note_refusal(self, task: Task, problem: ClusterError, seconds: float) -> None:
        self._refused_binds[task.gang or task.key] = f"the last bind of pod {task.name} was refused: {problem}"

    def _note_roll_back(self, task: Task, text: str) -> None:
        self.recorder.evict(task, "bind", task.gang or "", text)

    def _note_session(self, snapshot: Snapshot, decisions: Decisions) -> None:
        names = (self.recorder.resource, SHORT_NAMES.get(self.recorder.resource, ""))
        scale = scale_of(CPU) if CPU in names else 1
        for queue, figures in decisions.queues.items():
            shares = figures.get("fair_share") or figures.get("deserved") or {}
            amount = next((shares[name] for name in names if name in shares), None)
            if amount is not None and 0 <= amount < FOREVER:
                self.recorder.note_deserved(queue, amount / scale)


def _is_restored(owners: set[tuple[str, str]], pod: Document) -> bool:
    """Tell whether a controller sees to it that a pod that was lost is made anew."""
    owner = controller_of(pod)
    return owner is not None and (owner["apiVersion"], owner["kind"]) in owners


def _is_a_note(event: WatchEvent) -> bool:
    """Tell whether a change is only what a session left on an object: the status of a group, the nominated node of a pod."""
    if event.type != MODIFIED:
        return event.kind.kind in SILENT
    return event.kind.kind == "PodGroup" or (event.kind is POD and not event.object["spec"].get("nodeName")) or _is_a_count(event)


def _is_a_count(event: WatchEvent) -> bool:
    """Tell whether a change is only what a controller has counted in a queue."""
    if event.kind is not QUEUE or event.type != MODIFIED or event.before is None:
        return False
    return _decisive(event.before) == _decisive(event.object)


def _decisive(queue: Document) -> object:
    """Return what sessions look at in a queue."""
    return queue.get("spec"), queue["metadata"].get("annotations"), queue.get("status", {}).get("state")
