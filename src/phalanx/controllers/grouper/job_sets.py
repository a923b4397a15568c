"""JobSet and LeaderWorkerSet: several groups of pods, each a gang of its own."""

from dataclasses import dataclass

from msgspec import field

from phalanx.controllers.grouper.grouping import (
    SEGMENT_SIZE,
    Count,
    GroupConstraint,
    Grouping,
    GroupPart,
    PodTemplateRead,
    check_segments,
    number_label,
    one_group,
    segment_annotations,
    segment_constraint,
    segment_size,
)
from phalanx.controllers.grouper.owners import OwnerChain, find, read
from phalanx.controllers.objects import labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD

REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
IN_ORDER, ANY_ORDER = "InOrder", "AnyOrder"
GROUP_INDEX, WORKER_INDEX = "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index"
LEADER_CREATED, LEADER_READY = "LeaderCreated", "LeaderReady"
LEADER_WORKER, LEADER_EXCLUDED = "LeaderWorker", "LeaderExcluded"
LEADER, WORKERS = "leader", "workers"


class BatchJobSpec(Read):
    """How many pods a Job has at a time, and in all."""

    parallelism: Count | None = None
    completions: Count | None = None

    @property
    def pods(self) -> int:
        """Return how many run together."""
        parallel = 1 if self.parallelism is None else self.parallelism
        return parallel if self.completions is None else min(parallel, self.completions)


class BatchJobTemplate(Read):
    """A template of Jobs."""

    spec: BatchJobSpec = field(default_factory=BatchJobSpec)


class JobDependency(Read):
    """A replicated job that has to be ready or complete before another is made."""

    name: str = ""


class ReplicatedJob(Read):
    """Equal Jobs of a JobSet; what is read of their template differs."""

    name: str = ""
    replicas: Count | None = None
    depends_on: list[JobDependency] | None = None

    @property
    def count(self) -> int:
        """Return how many there are; one by default."""
        return 1 if self.replicas is None else self.replicas


class GroupedJobs(ReplicatedJob):
    """Jobs, with how many pods each has."""

    template: BatchJobTemplate = field(default_factory=BatchJobTemplate)

    @property
    def pods(self) -> int:
        """Return how many pods run together."""
        return self.count * self.template.spec.pods


class StartupPolicy(Read):
    """Which Jobs start when."""

    startup_policy_order: str | None = None


class JobSetSpec(Read):
    """What a JobSet is made of."""

    replicated_jobs: list[GroupedJobs] | None = None
    startup_policy: StartupPolicy = field(default_factory=StartupPolicy)

    @property
    def has_dependencies(self) -> bool:
        """Tell whether some jobs are made after others; JobSet then still writes that the order does not matter."""
        return any(job.depends_on for job in self.replicated_jobs or ())


class JobSet(Read):
    """A JobSet."""

    spec: JobSetSpec = field(default_factory=JobSetSpec)


def job_set(chain: OwnerChain) -> Grouping:
    """Group a JobSet: each replicated job if one is made after another, else all together."""
    spec = read(chain.head, JobSet).spec
    order = spec.startup_policy.startup_policy_order or IN_ORDER
    jobs = {job.name: job.pods for job in spec.replicated_jobs or ()}
    if order not in (IN_ORDER, ANY_ORDER):
        where = f"{describe(chain.head)}: spec.startupPolicy.startupPolicyOrder"
        raise SnapshotError(f"{where}: {order!r} is unknown; write {IN_ORDER!r} or {ANY_ORDER!r}")
    if order == ANY_ORDER and not spec.has_dependencies:
        return one_group(chain, minimum=_some(chain, sum(jobs.values())))
    name = labels_of(chain.pod).get(REPLICATED_JOB, "")
    if name not in jobs:
        known = ", ".join(map(repr, jobs)) or "none"
        where = f"{describe(chain.pod)}: metadata.labels[{REPLICATED_JOB!r}]"
        raise SnapshotError(f"{where}: {name!r} is no replicated job of {describe(chain.head)}; known are {known}")
    return one_group(chain, minimum=_some(chain, jobs[name]), suffix=f"-{name}")


def _some(chain: OwnerChain, pods: int) -> int:
    if not pods:
        raise SnapshotError(
            f"{describe(chain.head)}: spec.replicatedJobs: no pods; write replicas, parallelism and completions of 1 or more"
        )
    return pods


# --- LeaderWorkerSet -----------------------------------------------------------------------------------------------------


class LeaderWorkerSubGroups(Read):
    """How the pods of one replica are divided."""

    sub_group_size: Count | None = None
    sub_group_policy_type: str | None = None


class LeaderWorkerTemplate(Read):
    """What one replica is made of."""

    size: Count | None = None
    worker_template: PodTemplateRead = field(default_factory=PodTemplateRead)
    sub_group_policy: LeaderWorkerSubGroups = field(default_factory=LeaderWorkerSubGroups)


class LeaderWorkerSpec(Read):
    """What a LeaderWorkerSet asks for."""

    leader_worker_template: LeaderWorkerTemplate = field(default_factory=LeaderWorkerTemplate)
    startup_policy: str | None = None


class LeaderWorkerSet(Read):
    """A LeaderWorkerSet."""

    spec: LeaderWorkerSpec = field(default_factory=LeaderWorkerSpec)


def leader_worker_set(chain: OwnerChain) -> Grouping:
    """Group each replica of a LeaderWorkerSet: its leader and its workers."""
    spec = read(chain.head, LeaderWorkerSet).spec
    group = number_label(chain.pod, GROUP_INDEX, why="the number of the replica, from '0'")
    worker = number_label(chain.pod, WORKER_INDEX, why="the number in the replica, '0' for the leader")
    size = _size(chain, spec, group)
    parts, part = _divided(chain, spec, size, worker)
    whole = one_group(chain, minimum=size, suffix=f"-group-{group}")
    return Grouping(whole.name, whole.owner, size, parts, part, whole.constraint)


def _size(chain: OwnerChain, spec: LeaderWorkerSpec, group: int) -> int:
    """Return how many pods are needed now: the leader alone, while workers wait until it has a place."""
    size, where = spec.leader_worker_template.size, describe(chain.head)
    policy = spec.startup_policy or LEADER_CREATED
    if policy not in (LEADER_CREATED, LEADER_READY):
        raise SnapshotError(f"{where}: spec.startupPolicy: {policy!r} is unknown; write {LEADER_CREATED!r} or {LEADER_READY!r}")
    if not size:
        raise SnapshotError(f"{where}: spec.leaderWorkerTemplate.size: missing or 0; write how many pods a replica has")
    return 1 if policy == LEADER_READY and not _leader_has_place(chain, group) else size


def _leader_has_place(chain: OwnerChain, group: int) -> bool:
    leader = find(chain.view, POD, chain.pod, f"{meta_of(chain.head)['name']}-{group}")
    return leader is not None and bool(leader["spec"].get("nodeName"))


def _divided(chain: OwnerChain, spec: LeaderWorkerSpec, size: int, worker: int) -> tuple[list[GroupPart], str]:
    """Return the parts of a replica, and the one that a worker is in."""
    template = spec.leader_worker_template
    annotations = segment_annotations(chain.head, template.worker_template)
    segment = template.sub_group_policy.sub_group_size or segment_size(chain.head, annotations, least=2)
    if segment is None or size == 1:
        rest = [GroupPart(WORKERS, size - 1)] if size > 1 else []
        return [GroupPart(LEADER, 1), *rest], WORKERS if worker and rest else "" if worker else LEADER
    if not 2 <= segment <= size:
        where = f"{describe(chain.head)}: spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize or {SEGMENT_SIZE}"
        raise SnapshotError(f"{where}: {segment} is not between 2 and the size {size}; write such a number")
    check_segments(chain.head, size // segment + 1)
    kind = template.sub_group_policy.sub_group_policy_type or LEADER_WORKER
    return _segmented(chain, Segments(size, segment, kind, segment_constraint(annotations)), worker)


@dataclass(frozen=True, slots=True)
class Segments:
    """How a replica of `size` pods is divided into segments."""

    size: int
    segment: int
    kind: str
    constraint: GroupConstraint | None

    @property
    def has_extra_leader(self) -> bool:
        """Tell whether the workers alone fill whole segments, so that the leader is one more in the first."""
        return (self.size - 1) % self.segment == 0

    def index(self, worker: int) -> int:
        """Return the segment of a worker."""
        return max(worker - self.has_extra_leader, 0) // self.segment

    def parts(self) -> list[GroupPart]:
        """Return a part for each segment; the leader is not counted where it is one more."""
        counted = self.size - self.has_extra_leader
        sizes = (min(self.segment, counted - start) for start in range(0, counted, self.segment))
        return [GroupPart(f"segment-{index}", size, constraint=self.constraint) for index, size in enumerate(sizes)]


def _segmented(chain: OwnerChain, segments: Segments, worker: int) -> tuple[list[GroupPart], str]:
    parts, own = segments.parts(), f"segment-{segments.index(worker)}"
    if segments.kind == LEADER_EXCLUDED:
        if not segments.has_extra_leader:
            where = f"{describe(chain.head)}: spec.leaderWorkerTemplate"
            raise SnapshotError(
                f"{where}: {segments.size - 1} workers do not fill segments of {segments.segment}; write a size that does"
            )
        return [GroupPart(LEADER, 1), *parts], own if worker else LEADER
    if segments.kind != LEADER_WORKER:
        where = f"{describe(chain.head)}: spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType"
        raise SnapshotError(f"{where}: {segments.kind!r} is unknown; write {LEADER_WORKER!r} or {LEADER_EXCLUDED!r}")
    first = GroupPart(parts[0].name, parts[0].minimum + segments.has_extra_leader, constraint=segments.constraint)
    inner = [GroupPart(LEADER, 1, first.name), GroupPart(WORKERS, first.minimum - 1, first.name)]
    if segments.index(worker) == 0:
        own = WORKERS if worker else LEADER
    return [first, *parts[1:], *inner], own
