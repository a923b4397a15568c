"""Kubeflow's training jobs: gangs of all their replicas, or of as many as their policies ask for."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import field

from phalanx.controllers.grouper.grouping import (
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
from phalanx.controllers.grouper.owners import OwnerChain, pods_under, read
from phalanx.controllers.objects import is_leaving, labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError

REPLICA_TYPE, REPLICA_INDEX = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
MASTER, WORKER, LAUNCHER = "master", "worker", "launcher"
WAITS_FOR_WORKERS = "WaitForWorkersReady"


class ReplicaSpec(Read):
    """Pods of one role."""

    replicas: Count | None = None
    template: PodTemplateRead | None = None

    @property
    def count(self) -> int:
        """Return how many there are; one by default."""
        return 1 if self.replicas is None else self.replicas


class SchedulingPolicy(Read):
    """What the job says to a scheduler."""

    min_available: Count | None = None


class RunPolicy(Read):
    """How the job is run."""

    scheduling_policy: SchedulingPolicy | None = None


class ElasticPolicy(Read):
    """Between which sizes the job may be."""

    min_replicas: Count | None = None


ReplicaSpecs = dict[str, ReplicaSpec]


class TrainingSpec(Read):
    """A training job of any framework; each has its replicas under a name of its own."""

    run_policy: RunPolicy | None = None
    elastic_policy: ElasticPolicy | None = None
    launcher_creation_policy: str | None = None
    pytorch_replica_specs: ReplicaSpecs | None = None
    tf_replica_specs: ReplicaSpecs | None = None
    xgb_replica_specs: ReplicaSpecs | None = None
    jax_replica_specs: ReplicaSpecs | None = None
    paddle_replica_specs: ReplicaSpecs | None = None
    mpi_replica_specs: ReplicaSpecs | None = None

    @property
    def min_available(self) -> int | None:
        """Return how many pods its policy asks for."""
        policy = (self.run_policy or RunPolicy()).scheduling_policy
        return None if policy is None or not policy.min_available else policy.min_available


class TrainingJob(Read):
    """A training job."""

    spec: TrainingSpec = field(default_factory=TrainingSpec)


def distributed(field_name: str, roles: Sequence[str], *, needed: Sequence[str] = ()) -> Callable[[OwnerChain], Grouping]:
    """Return the rule of a framework whose pods are one gang without parts."""

    def group(chain: OwnerChain) -> Grouping:
        spec = read(chain.head, TrainingJob).spec
        specs = _replica_specs(chain, spec, field_name, roles=roles, needed=needed)
        return one_group(chain, minimum=spec.min_available or sum(each.count for each in specs.values()))

    return group


def _replica_specs(
    chain: OwnerChain, spec: TrainingSpec, field_name: str, *, roles: Sequence[str], needed: Sequence[str] = ()
) -> Mapping[str, ReplicaSpec]:
    """Return the replicas of a job by role; a job without pods, with unknown roles or without one it needs is refused."""
    specs: ReplicaSpecs = getattr(spec, _snake(field_name)) or {}
    where = f"{describe(chain.head)}: spec.{field_name}"
    for role in specs:
        if role not in roles:
            raise SnapshotError(f"{where}: {role!r} is unknown; write {', '.join(roles)}")
    for role in needed:
        if role not in specs or not specs[role].count:
            raise SnapshotError(f"{where}.{role}: missing or without replicas; write replicas: 1 or more")
    if not sum(each.count for each in specs.values()):
        raise SnapshotError(f"{where}: no replicas; write replicas: 1 or more for one of {', '.join(roles)}")
    return specs


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def mpi(chain: OwnerChain) -> Grouping:
    """Group an MPIJob; a launcher that is made when all workers are ready counts once it is there."""
    spec = read(chain.head, TrainingJob).spec
    specs = _replica_specs(chain, spec, "mpiReplicaSpecs", roles=("Launcher", "Worker"), needed=("Launcher",))
    # Both operators make no workers where their number is missing, though every other role has one by default.
    minimum = sum(each.count for role, each in specs.items() if role == "Launcher" or each.replicas)
    if spec.launcher_creation_policy == WAITS_FOR_WORKERS and not _has_launcher(chain):
        minimum -= specs["Launcher"].count
    return one_group(chain, minimum=max(minimum, 1))


def _has_launcher(chain: OwnerChain) -> bool:
    pods = pods_under(chain.view, str(meta_of(chain.head).get("uid", "")))
    return any(labels_of(pod).get(JOB_ROLE) == LAUNCHER and not is_leaving(pod) for pod in pods)


# --- PyTorchJob ----------------------------------------------------------------------------------------------------------


def pytorch(chain: OwnerChain) -> Grouping:
    """Group a PyTorchJob: a part for the master, and one for the workers or for each segment of them."""
    spec = read(chain.head, TrainingJob).spec
    specs = _replica_specs(chain, spec, "pytorchReplicaSpecs", roles=("Master", "Worker"))
    masters = specs["Master"].count if "Master" in specs else 0
    minimum = chain.min_member() or spec.min_available or _elastic_minimum(spec) or sum(each.count for each in specs.values())
    parts = [GroupPart(MASTER, masters)] if masters else []
    if "Worker" in specs and specs["Worker"].count:
        parts += _workers(chain, specs["Worker"], max(minimum - masters, 0))
    whole = one_group(chain, minimum=minimum)
    return Grouping(whole.name, whole.owner, minimum, parts, _part_of(chain, specs), whole.constraint)


def _elastic_minimum(spec: TrainingSpec) -> int:
    return (spec.elastic_policy or ElasticPolicy()).min_replicas or 0


def _workers(chain: OwnerChain, worker: ReplicaSpec, minimum: int) -> list[GroupPart]:
    annotations = segment_annotations(chain.head, worker.template or PodTemplateRead())
    size = segment_size(chain.head, annotations, least=1)
    if size is None:
        return [GroupPart(WORKER, minimum)]
    return [GroupPart(WORKER, minimum), *_segments(chain, worker.count, size, segment_constraint(annotations))]


def _segments(chain: OwnerChain, workers: int, size: int, constraint: GroupConstraint | None) -> list[GroupPart]:
    """Return the segments of the workers; the last one may be smaller."""
    check_segments(chain.head, -(-workers // size))
    starts = range(0, workers, size)
    return [GroupPart(f"{WORKER}-{start // size}", min(size, workers - start), WORKER, constraint) for start in starts]


def _part_of(chain: OwnerChain, specs: Mapping[str, ReplicaSpec]) -> str:
    role = labels_of(chain.pod).get(REPLICA_TYPE, "").lower()
    if role not in (name.lower() for name in specs):
        known = " or ".join(repr(name.lower()) for name in specs)
        raise SnapshotError(
            f"{describe(chain.pod)}: metadata.labels[{REPLICA_TYPE!r}]: {role!r} is no role of its job; write {known}"
        )
    if role != WORKER:
        return role
    worker = specs["Worker"]
    size = segment_size(chain.head, segment_annotations(chain.head, worker.template or PodTemplateRead()), least=1)
    if size is None:
        return WORKER
    index = number_label(chain.pod, REPLICA_INDEX, why="the number of the worker, from '0'")
    return f"{WORKER}-{min(index, max(worker.count - 1, 0)) // size}"
