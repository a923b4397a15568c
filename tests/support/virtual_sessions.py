"""Sessions in virtual time on a few nodes: gangs come, run as long as they say, and end; nothing takes time but work."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random

from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.session.reservation import ReservedStart
from phalanx.testing import build
from phalanx.testing.build import Document

BEGIN = 1_700_000_000
"""Times of objects are whole seconds since 1970."""
NODE_GPUS = 8


@dataclass(frozen=True, slots=True)
class Job:
    """A gang that comes at a moment, in seconds after the beginning, and runs for a while."""

    name: str
    arrives: int
    seconds: int
    tasks: int
    gpus: int
    queue: str = "default"
    says: bool = True
    """It says how long it runs."""
    rack: bool = False
    """All of it has to be in one rack."""

    @property
    def key(self) -> GangKey:
        """The key of the gang."""
        return GangKey(f"default/{self.name}")

    def documents(self) -> list[Document]:
        """Return the group and its pods."""
        group, *pods = build.gang(self.name, tasks=self.tasks, queue=self.queue, cpu=0, gpus=self.gpus)
        for document in (group, *pods):
            document["metadata"]["creationTimestamp"] = moment_text(BEGIN + self.arrives)
        if self.says:
            group["metadata"]["annotations"] = {"phalanx.dev/duration": f"{self.seconds}s"}
        if self.rack:
            group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
        return [group, *pods]


def nodes_of(count: int, rack: int = 0) -> list[Document]:
    """Return nodes of eight GPUs, and with `rack` a HyperNode for so many of them each."""
    names = [f"n{number:02}" for number in range(count)]
    racks = [names[at : at + rack] for at in range(0, count, rack)] if rack else []
    found = [build.node(name, gpus=NODE_GPUS) for name in names]
    found += [build.hypernode(f"r{number}", tier=1, members=members) for number, members in enumerate(racks)]
    if racks:
        found.append(build.hypernode("top", tier=2, members=[f"r{number}" for number in range(len(racks))], of="HyperNode"))
    return found


@dataclass(slots=True)
class VirtualCluster:
    """A cluster with a clock."""

    policy: Policy
    now: int = 0
    waiting: dict[str, Job] = field(default_factory=dict)
    running: dict[str, tuple[Job, int, dict[str, str]]] = field(default_factory=dict)
    """By name: the job, when it ends, and the node of each pod."""
    fixed: list[Document] = field(default_factory=list)
    starts: dict[GangKey, int] = field(default_factory=dict)
    latest: Decisions = field(default_factory=Decisions)
    reserved: tuple[GangKey, ...] = ()
    """Who had a reserved start in the last session."""

    def copy(self, policy: Policy, keeps: Sequence[str]) -> "VirtualCluster":
        """Return the same cluster with another policy and, of those that wait, only these."""
        waiting = {name: self.waiting[name] for name in keeps}
        return VirtualCluster(policy, self.now, waiting, dict(self.running), self.fixed, dict(self.starts))

    def session(self) -> list[ReservedStart]:
        """Hold a session and carry it out; return who has a reserved start."""
        cluster = ObjectCluster()
        for document in self.fixed:
            assert cluster.put(deepcopy(document))
        for job in self.waiting.values():
            assert all(cluster.put(document) for document in job.documents())
        for job, end, places in self.running.values():
            assert all(cluster.put(document) for document in _running(job, end - job.seconds, places))
        snapshot = replace(cluster.snapshot(float(BEGIN + self.now)), reserved=self.reserved)
        self.latest = decisions = run_cycle(snapshot, self.policy, CATALOGUE)
        self.reserved = tuple(each.gang for each in decisions.reservations)
        for name, job in list(self.waiting.items()):
            keys = [f"default/{name}-{number}" for number in range(job.tasks)]
            places = {str(key): node for key, node in decisions.binds.items() if key in keys}
            assert len(places) in (0, job.tasks)
            if places:
                del self.waiting[name]
                self.running[name] = (job, self.now + job.seconds, places)
                self.starts[job.key] = self.now
        return decisions.reservations

    def end_due(self) -> None:
        """Let everybody end whose time has come."""
        self.running = {name: entry for name, entry in self.running.items() if entry[1] > self.now}

    def next_end(self) -> int | None:
        """Return when the next one ends."""
        return min((end for _, end, _ in self.running.values()), default=None)

    def run_out(self) -> None:
        """Go on without arrivals until nobody waits or runs."""
        while self.waiting:
            self.session()
            end = self.next_end()
            if end is None:
                return
            self.now = end
            self.end_due()


def _running(job: Job, begun: int, places: dict[str, str]) -> list[Document]:
    group, *pods = job.documents()
    group["status"] = {"phase": "Running"}
    for pod in pods:
        pod["spec"]["nodeName"] = places[f"default/{pod['metadata']['name']}"]
        pod["status"] = {"phase": "Running", "startTime": moment_text(BEGIN + begun)}
    return [group, *pods]


def play(cluster: VirtualCluster, jobs: Sequence[Job]) -> Iterator[list[ReservedStart]]:
    """Let jobs come in their time, and hold a session whenever something has changed; yield what each one reserves."""
    left = sorted(jobs, key=lambda job: (job.arrives, job.name))
    while left or cluster.running or cluster.waiting:
        while left and left[0].arrives <= cluster.now:
            job = left.pop(0)
            cluster.waiting[job.name] = job
        yield cluster.session()
        moments = [moment for moment in (cluster.next_end(), left[0].arrives if left else None) if moment is not None]
        if not moments:
            return
        cluster.now = min(moments)
        cluster.end_due()


def some_jobs(random: Random, nodes: int, count: int, *, says: bool = True, racks: bool = False, queues: int = 1) -> list[Job]:
    """Draw jobs that fit into so many empty nodes, in about one rack if they have to be in one."""
    return [
        Job(
            f"j{number:02}", random.randrange(0, 4000), random.choice((60, 300, 900, 3600, 7200)),
            random.randint(1, max(nodes // (2 if racks else 1), 1)), random.choice((1, 2, 4, 8, 8)),
            "default" if queues == 1 else f"q{random.randrange(queues)}", says, racks and random.random() < 0.4,
        )
        for number in range(count)
    ]  # fmt: skip
