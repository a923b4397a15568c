"""Kubeflow's training operator and MPI operator: pods by role, each with a number."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import field

from phalanx.controllers.grouper.grouping import Count
from phalanx.controllers.grouper.kubeflow import JOB_ROLE, LAUNCHER, MASTER, REPLICA_INDEX, REPLICA_TYPE, WAITS_FOR_WORKERS, WORKER
from phalanx.controllers.grouper.owners import read
from phalanx.controllers.objects import meta_of
from phalanx.controllers.owner_pods.children import Children, Template, asking, child_of, numbers, pod_of, with_init_container
from phalanx.dialects.schema import Read
from phalanx.model.kinds import Document

JOB_NAME, OPERATOR = "training.kubeflow.org/job-name", "training.kubeflow.org/operator-name"
WAITS_FOR_MASTER: Document = {
    "name": "init-pytorch", "image": "alpine:3.10",
    "resources": {"requests": {"cpu": "50m", "memory": "10Mi"}, "limits": {"cpu": "100m", "memory": "20Mi"}},
}  # fmt: skip
"""The init container of workers that have a master, by the operator's default."""
DELIVERS_KUBECTL: Document = {
    "name": "kubectl-delivery", "image": "mpioperator/kubectl-delivery",
    "resources": asking(cpu="100m", memory="512Mi", ephemeral_storage="5Gi"),
}  # fmt: skip
"""The init container of the launcher of an MPIJob of version 1, by the operator's default."""
ONLY_FOR_GANGS = ("queue", "priorityClass", "minResources", "scheduleTimeoutSeconds")
"""Fields of the scheduling policy that the operator hands on only in the groups that it makes itself."""
FIRST_VERSION = "kubeflow.org/v1"


class Replica(Read):
    """Pods of one role."""

    replicas: Count | None = None
    restart_policy: str | None = None
    template: Template = field(default_factory=Template)

    @property
    def count(self) -> int:
        """Return how many there are; one by default."""
        return 1 if self.replicas is None else self.replicas

    @property
    def restart(self) -> dict[str, str]:
        """Return what the spec of a pod says of restarts; by exit code is the operator's own way."""
        policy = "Never" if self.restart_policy == "ExitCode" else self.restart_policy
        return {"restartPolicy": policy} if policy else {}


Replicas = dict[str, Replica]
IsMaster = Callable[[str, int, Mapping[str, Replica]], bool]


class RunPolicyRead(Read):
    """How a job is run."""

    scheduling_policy: dict[str, Any] | None = None  # any: only which fields are there matters


class ReplicasOfJob(Read):
    """The replicas of a job, under the name that its framework has for them."""

    run_policy: RunPolicyRead | None = None
    pytorch_replica_specs: Replicas | None = None
    tf_replica_specs: Replicas | None = None
    xgb_replica_specs: Replicas | None = None
    paddle_replica_specs: Replicas | None = None
    jax_replica_specs: Replicas | None = None
    mpi_replica_specs: Replicas | None = None
    launcher_creation_policy: str | None = None

    @property
    def by_role(self) -> Replicas:
        """Return the replicas by role."""
        named = (self.pytorch_replica_specs, self.tf_replica_specs, self.xgb_replica_specs, self.paddle_replica_specs)
        return next((found for found in (*named, self.jax_replica_specs, self.mpi_replica_specs) if found), {})


class JobOfRoles(Read):
    """A training job of any framework."""

    spec: ReplicasOfJob = field(default_factory=ReplicasOfJob)


def _is_named_master(role: str, index: int, replicas: Mapping[str, Replica]) -> bool:
    return role == "Master"


def _is_chief(role: str, index: int, replicas: Mapping[str, Replica]) -> bool:
    """Tell whether a pod leads a job: the chief or master, or the first worker of a job without one."""
    chiefs = {"Chief", "Master"}
    return role in chiefs or (role == "Worker" and index == 0 and chiefs.isdisjoint(replicas))


MASTER_OF: Mapping[str, IsMaster] = {"PyTorchJob": _is_chief, "TFJob": _is_chief, "JAXJob": _is_chief}


def training_job(owner: Document) -> Children:
    """Return the pods of a training job."""
    spec = read(owner, JobOfRoles).spec
    replicas = spec.by_role
    pods = [_pod(owner, role, index, replicas) for role, each in replicas.items() for index in numbers(owner, each.count)]
    return Children(pods, list(_notes(spec)))


def _pod(owner: Document, role: str, index: int, replicas: Mapping[str, Replica]) -> Document:
    kind, name = str(owner["kind"]), str(meta_of(owner)["name"])
    is_master = MASTER_OF.get(kind, _is_named_master)(role, index, replicas)
    labels = {
        JOB_NAME: name, OPERATOR: f"{kind.lower()}-controller", REPLICA_TYPE: role.lower(), REPLICA_INDEX: str(index),
        **({JOB_ROLE: MASTER} if is_master else {}),
    }  # fmt: skip
    template = replicas[role].template
    spec: dict[str, Any] = replicas[role].restart
    if kind == "PyTorchJob" and role == "Worker" and "Master" in replicas:
        spec = with_init_container({**template.spec, **spec}, WAITS_FOR_MASTER)
    return pod_of(owner, f"{name}-{role.lower()}-{index}", template, labels=labels, spec=spec)


def _notes(spec: ReplicasOfJob) -> Iterator[str]:
    policy = (spec.run_policy or RunPolicyRead()).scheduling_policy or {}
    unread = [name for name in ONLY_FOR_GANGS if name in policy]
    if unread:
        where = f"spec.runPolicy.schedulingPolicy: {', '.join(unread)}"
        yield f"{where}: without effect here, where it is assumed that its operator makes no groups of its own"


# --- MPIJob --------------------------------------------------------------------------------------------------------------


def mpi_job(owner: Document) -> Children:
    """Return the workers and the launcher of an MPIJob: a pod of the training operator, a Job of the MPI operator."""
    spec = read(owner, JobOfRoles).spec
    workers, launcher = spec.by_role.get("Worker"), spec.by_role.get("Launcher")
    is_first = owner["apiVersion"] == FIRST_VERSION
    # Workers without a number are none, though every other role has one by default.
    count = 0 if workers is None else workers.replicas or 0
    documents = (
        [_worker(owner, workers, index, is_first=is_first) for index in numbers(owner, count)] if workers is not None else []
    )
    notes = list(_notes(spec))
    if launcher is not None and spec.launcher_creation_policy == WAITS_FOR_WORKERS and documents:
        notes.append("its launcher is made once all workers are ready")
    elif launcher is not None and launcher.count:
        documents.append(_launcher_pod(owner, launcher) if is_first else _launcher_job(owner, launcher))
    return Children(documents, notes)


def _labels(owner: Document, role: str, *, is_first: bool) -> dict[str, str]:
    """Return what both operators write; each has its own label for the role."""
    name = {JOB_NAME: str(meta_of(owner)["name"])}
    if is_first:
        return {**name, OPERATOR: "mpijob-controller", REPLICA_TYPE: role, **({JOB_ROLE: MASTER} if role == LAUNCHER else {})}
    return {**name, OPERATOR: "mpi-operator", JOB_ROLE: role}


def _worker(owner: Document, workers: Replica, index: int, *, is_first: bool) -> Document:
    job = str(meta_of(owner)["name"])
    name, labels = f"{job}-{WORKER}-{index}", {**_labels(owner, WORKER, is_first=is_first), REPLICA_INDEX: str(index)}
    place = {} if is_first else {"hostname": name, "subdomain": job}
    return pod_of(owner, name, workers.template, labels=labels, spec={"restartPolicy": "Never", **workers.restart, **place})


def _launcher_pod(owner: Document, launcher: Replica) -> Document:
    spec = with_init_container({**launcher.template.spec, "restartPolicy": "Never", **launcher.restart}, DELIVERS_KUBECTL)
    labels = _labels(owner, LAUNCHER, is_first=True)
    return pod_of(owner, f"{meta_of(owner)['name']}-{LAUNCHER}", launcher.template, labels=labels, spec=spec)


def _launcher_job(owner: Document, launcher: Replica) -> Document:
    job = str(meta_of(owner)["name"])
    template = launcher.template.plus(_labels(owner, LAUNCHER, is_first=False))
    own = {"restartPolicy": "OnFailure", **launcher.restart, "hostname": f"{job}-{LAUNCHER}", "subdomain": job}
    made = {"template": {**template, "spec": {**template["spec"], **own}}}
    return child_of(owner, "batch/v1", "Job", f"{job}-{LAUNCHER}", spec=made)
