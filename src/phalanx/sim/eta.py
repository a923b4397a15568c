"""When waiting gangs will start: the cluster as it is, simulated on in virtual time with the durations that are known.

Each seed draws a duration for every gang from what is known about it (`known_durations.py`) and lets the world go on until
everybody who was asked about has started, or the horizon is reached. The sessions, the binding and the controllers are those of
production.

Work that nobody has submitted yet is not known. Some of the runs leave it out: their median, p50, is the best guess of a start.
Others draw it from that of the last day (`arrivals.py`): they say how late a start may become, p90.

A gang of which nothing is known never ends. Whoever waits for it has no expected start; a run in which such gangs end at once
says whether that is the reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, inf
from random import Random

from phalanx.model.kinds import POD, Document, kind_of, object_key
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import COMPLETED, ENDED, Status
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.arrivals import Arrivals
from phalanx.sim.known_durations import Basis, Durations, KnownDuration
from phalanx.sim.settings import FOREVER, Settings
from phalanx.sim.setup import default_queues, load_absent
from phalanx.sim.world import World
from phalanx.state.snapshot import Snapshot

QUIET_SECONDS = 7200.0
"""Sessions that change nothing for so long, with nobody about to end, will not change anything later."""
SOON_SECONDS = 1.0
"""When gangs end of which nothing is known, in the run that asks whether they are the reason to wait."""
AT_ONCE_SECONDS = 10.0
"""From an end to the start that it made possible, at most: a session, a bind and the start of pods lie between."""
P90 = 0.9
ARRIVING = 0.5
"""For which part of the time until the last gang starts others are submitted, in simulations with later submissions."""
HEARTBEAT_SECONDS, SETTLING_SECONDS, PARKED_SECONDS = 600.0, 10.0, 1800.0
"""Sessions that most likely find nothing to do are rarer than on a real cluster; see `Settings`."""
CROWDED_HEARTBEAT_SECONDS, CROWDED_PARKED_SECONDS = 3600.0, 14_400.0
"""The same with later submissions: queues are long, each session is slow, and p90 is not a matter of minutes. Half as much work."""


@dataclass(frozen=True, slots=True)
class EtaQuestion:
    """The cluster now, who is asked about, and what is known about durations."""

    documents: Sequence[Document]
    now: float
    horizon: float
    gangs: tuple[GangKey, ...]
    """Gangs that wait."""
    durations: Mapping[GangKey, KnownDuration]
    done: Mapping[GangKey, float]
    """For how long gangs that run have run already."""
    since: Mapping[str, float] = field(default_factory=dict)
    """When gangs that wait were created, where that is known."""
    pods: Mapping[TaskKey, tuple[KnownDuration, float]] = field(default_factory=dict)
    """Pods without a gang that will end, and how long they have run already."""
    seeds: int = 1
    """How many simulations are planned."""
    arrivals: Arrivals | None = None
    """Like what gangs are submitted later; None if none are."""
    arrive_until: float = inf
    """For how many seconds gangs are submitted later."""
    stuck: frozenset[str] = frozenset()
    """Gangs that do not start even if none are submitted later: no simulation goes on for their sake."""

    @property
    def endless(self) -> frozenset[str]:
        """Gangs of which nothing is known."""
        return frozenset(key for key, known in self.durations.items() if known.basis is Basis.UNKNOWN)

    def settings(self, seed: int, unknown: float = FOREVER) -> Settings:
        """Return how a cluster behaves with this seed; gangs of which nothing is known run for `unknown` seconds more."""
        drawn = {key: self._drawn(key, seed, unknown) for key, known in self.durations.items() if known.basis is not Basis.PODS}
        usual = Settings(settling=SETTLING_SECONDS, duration_by_gang=drawn, done_by_gang=self.done)
        if self.arrivals is not None:
            return replace(usual, heartbeat=CROWDED_HEARTBEAT_SECONDS, parks_up_to=CROWDED_PARKED_SECONDS)
        return replace(usual, heartbeat=HEARTBEAT_SECONDS, parks_up_to=PARKED_SECONDS)

    def _drawn(self, key: GangKey, seed: int, unknown: float) -> float:
        done = self.done.get(key, 0.0)
        found = self.durations[key].at(self.part(key, seed), done)
        return done + unknown if found == FOREVER else found

    def without_arrivals(self, seeds: int) -> "EtaQuestion":
        """Return the question for so many simulations in which nothing is submitted later."""
        return replace(self, seeds=seeds, arrivals=None)

    def with_arrivals(self, seeds: int, alone: "EtaRun") -> "EtaQuestion":
        """Return the question for so many simulations with later submissions, given one without them.

        They come for half as long as the last gang waited in that one. With all of that time a simulation
        takes twice as long, as queues get longer and longer.
        """
        stuck = frozenset(set(self.gangs) - alone.starts.keys())
        last = max(alone.starts.values(), default=0.0)
        return replace(self, seeds=seeds, stuck=stuck, arrive_until=last * ARRIVING)

    def part(self, key: str, seed: int) -> float:
        """Draw a number from 0 to 1 for a gang or pod; one of all seeds draws from each equal part, so that a few of them do."""
        places = Random(key).sample(range(self.seeds), self.seeds)
        return (places[seed % self.seeds] + Random(f"{seed} {key}").random()) / self.seeds


def question_of(
    documents: Sequence[Document], snapshot: Snapshot, gangs: Iterable[str], durations: Durations, horizon: float
) -> EtaQuestion:  # fmt: skip
    """Ask about gangs of a cluster, given as complete objects and as the snapshot that they make."""
    active = [key for key, members in snapshot.members.items() if key in snapshot.gangs and not _has_ended(members)]
    running = [key for key in active if any(task.status is Status.RUNNING for task in snapshot.members_of(key).values())]
    return EtaQuestion(
        list(map(_with_namespace, _without_ended(documents, snapshot))), snapshot.now, horizon, tuple(map(GangKey, gangs)),
        {key: durations.of(key) for key in active}, {key: durations.done(key) for key in running},
        {key: gang.created for key, gang in snapshot.gangs.items() if gang.created}, _pods_that_end(snapshot, durations),
    )  # fmt: skip


def _pods_that_end(snapshot: Snapshot, durations: Durations) -> dict[TaskKey, tuple[KnownDuration, float]]:
    lone = [task for tasks in snapshot.on_node.values() for task in tasks.values() if task.gang not in snapshot.gangs]
    known = {task: durations.of_pod(task) for task in lone if task.status is Status.RUNNING}
    return {
        task.key: (found, max(snapshot.now - task.started, 0.0) if task.started else 0.0)
        for task, found in known.items()
        if found.basis is not Basis.UNKNOWN
    }


def _without_ended(documents: Sequence[Document], snapshot: Snapshot) -> Iterator[Document]:
    """Yield the objects without gangs that have ended and that nobody owns who might miss them."""
    ended = {key for key, members in snapshot.members.items() if key in snapshot.gangs and _has_ended(members)}
    gone = {("PodGroup", f"{snapshot.gangs[key].namespace}/{snapshot.gangs[key].name}") for key in ended}
    gone |= {("Pod", str(task)) for key in ended for task in snapshot.members_of(key)}
    for item in documents:
        if (item["kind"], object_key(item)) not in gone or item["metadata"].get("ownerReferences"):
            yield item


def _has_ended(members: Mapping[TaskKey, Task]) -> bool:
    return all(task.status in COMPLETED for task in members.values())


def _with_namespace(document: Document) -> Document:
    meta = document["metadata"]
    own = {"namespace": meta.get("namespace") or "default"} if kind_of(document).is_namespaced else {}
    return {**document, "metadata": {**meta, **own}}


# --- one run ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EtaRun:
    """What happened with one seed; times in seconds from now."""

    seed: int
    starts: Mapping[str, float]
    after: Mapping[str, tuple[str, ...]]
    """Gangs whose end each gang waited for, the last one first."""
    evicts: Mapping[str, tuple[str, ...]]
    """Gangs of which each one had pods evicted."""
    reached: float
    is_whole: bool = True
    """Nobody stopped it before its time."""
    has_arrivals: bool = False
    """Gangs were submitted later."""


def simulate_on(world: World, question: EtaQuestion, seed: int, is_over: Callable[[], bool] = lambda: False) -> EtaRun:
    """Let an empty world, which has the question's settings and begins now, go on from the question's cluster."""
    watch = _Watch(world, question.gangs, frozenset((*question.durations, *question.pods)))
    load_absent(world, [*question.documents, *default_queues(question.documents)])
    for pod, (known, done) in question.pods.items():
        world.plan(known.at(question.part(pod, seed), done) - done, partial(world.finish, [pod]))
    if question.arrivals is not None:
        question.arrivals.plan(world, seed, min(question.arrive_until, question.horizon))
    stopped = False
    while watch.waiting - question.stuck and not (stopped := is_over()):
        due = world.next_time()
        if due is None or due > question.now + question.horizon or _is_quiet(world, due):
            break
        world.advance(due)
    return EtaRun(
        seed, watch.starts, watch.after, watch.evicts, world.now - world.start, is_whole=not stopped,
        has_arrivals=question.arrivals is not None,
    )  # fmt: skip


def _is_quiet(world: World, due: float) -> bool:
    return due - world.last_change > QUIET_SECONDS and world.next_deed() is None


@dataclass(frozen=True, slots=True)
class _End:
    moment: float
    gang: str
    node: str


@dataclass(slots=True)
class _Watch:
    """Follows pods that leave nodes, and gangs that start on them."""

    world: World
    gangs: Iterable[GangKey]
    known: frozenset[str]
    """Gangs and pods that are there from the beginning."""
    waiting: set[str] = field(default_factory=set)
    starts: dict[str, float] = field(default_factory=dict)
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)
    evicts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Gang and node of each pod that has one."""
    _ends: list[_End] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waiting = set(self.gangs)
        self.world.store.listen(self._hear)
        self.world.work.listeners.append(self._set_whole)

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is not POD:
            return
        pod = event.object
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        is_gone = event.type == DELETED or pod.get("status", {}).get("phase") in ENDED
        if is_gone and uid in self._places:
            self._ends.append(_End(self.world.now, *self._places.pop(uid)))
        elif not is_gone and node:
            key = TaskKey(object_key(pod))
            task = self.world.cluster.state.task(key)
            self._places[uid] = (str((task.gang if task else None) or key), node)

    def _set_whole(self, key: GangKey, is_whole: bool, kept: float) -> None:
        if is_whole and key in self.waiting:
            self.waiting.discard(key)
            self.starts[key] = self.world.now - self.world.start
            victims = (item.gang or item.pod for item in self.world.recorder.evictions if item.preemptor == key)
            evictions = [name for name in victims if name in self.known]
            self.evicts[key] = tuple(dict.fromkeys(evictions))
            self.after[key] = tuple(name for name in self._ends_before(key) if name in self.known and name not in (*evictions, key))

    def _ends_before(self, key: GangKey) -> dict[str, None]:
        """Return who left the nodes of a gang; and who left last at all, if that is what let it start."""
        nodes = {task.node for task in self.world.cluster.state.members(key).values()}
        here = [end for end in self._ends if end.node in nodes]
        last = self._ends[-1].moment if self._ends else -inf
        is_sudden = self.world.now - last <= AT_ONCE_SECONDS
        if is_sudden and (not here or self.world.now - here[-1].moment > AT_ONCE_SECONDS):
            here += [end for end in self._ends if end.moment == last]
        return dict.fromkeys(end.gang for end in sorted(here, key=lambda end: -end.moment))


# --- all runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a gang starts, in seconds from now, as several seeds say."""

    gang: str
    starts: tuple[float, ...]
    """One for each seed without later submissions, the earliest first; `inf` where it did not start."""
    delayed: tuple[float, ...] = ()
    """The same for each seed with later submissions."""
    after: tuple[str, ...] = ()
    """Gangs whose end it waited for in the middle one of the runs without later submissions."""
    evicts: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Gangs of unknown duration that keep it from starting."""

    @property
    def seeds_started(self) -> int:
        """In how many runs without later submissions it started."""
        return sum(start < inf for start in self.starts)

    @property
    def p50(self) -> float | None:
        """When it has started in half of the runs without later submissions; None if not within the horizon."""
        return _finite(_start_in(self.starts, ceil(len(self.starts) / 2)))

    @property
    def p90(self) -> float | None:
        """When it has started in nine of ten runs, also in those with later submissions; None if not within the horizon.

        Of n runs, place 0.9 (n + 1): the chance that the truth lies behind one of n draws like it is not 1/n but 1/(n + 1).
        Later submissions make nobody start earlier, so that this is at least what the runs without them say.
        """
        last = max(_start_in(starts, ceil(P90 * (len(starts) + 1))) for starts in (self.starts, self.delayed or self.starts))
        return _finite(last)


def _start_in(starts: Sequence[float], place: int) -> float:
    """Return the start in this place, from 1; that in the last place if there are fewer."""
    return starts[min(max(place, 1), len(starts)) - 1] if starts else inf


def _finite(start: float) -> float | None:
    return None if start == inf else start


def estimates(question: EtaQuestion, runs: Sequence[EtaRun], hopeful: EtaRun | None = None) -> list[Estimate]:
    """Return when each gang starts; `hopeful` is the run in which gangs of unknown duration end at once."""
    return [_estimate(str(key), question, runs, hopeful) for key in question.gangs]


def _estimate(gang: str, question: EtaQuestion, runs: Sequence[EtaRun], hopeful: EtaRun | None) -> Estimate:
    ordered = sorted((run for run in runs if not run.has_arrivals), key=lambda run: run.starts.get(gang, inf))
    starts = tuple(run.starts.get(gang, inf) for run in ordered)
    found = Estimate(gang, starts, tuple(sorted(run.starts.get(gang, inf) for run in runs if run.has_arrivals)))
    if found.p50 is not None:
        run = ordered[starts.index(found.p50)]
        return replace(found, after=run.after.get(gang, ()), evicts=run.evicts.get(gang, ()))
    if hopeful is None or gang not in hopeful.starts:
        return found
    waited_for = tuple(name for name in hopeful.after.get(gang, ()) if name in question.endless)
    return replace(found, unknown=waited_for or tuple(sorted(question.endless - {gang})))
