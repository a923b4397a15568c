"""The modes of Kubeflow's trainer, with JobSet beneath it: groups of Coscheduling, and none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import Process
from tests.support.operator_lane import GPUS, URGENT
from tests.support.operator_mode import OperatorMode, Order, Sample, job_spec, template
from tests.support.real_operators import trainer
from tests.support.webhook_operators import jobset

MODULE = "github.com/kubeflow/trainer/v2"
API = "trainer.kubeflow.org/v1alpha1"
RUNTIMES = "manifests/base/runtimes"
USUAL, HURRIED = "torch", "torch-urgent"
"""Runtimes; a TrainJob has no priority of its own."""


@contextmanager
def with_jobset(plane: ControlPlane, folder: Path, *flags: str) -> Iterator[Process]:
    """Run the trainer, and JobSet, which makes the Jobs."""
    with jobset(plane, folder), trainer(plane, folder, *flags) as process:
        yield process


def runtime(name: str, priority: str = "", **policy: Any) -> dict[str, Any]:
    """Return a runtime in which each node of a TrainJob is a pod."""
    pod = template("node", Order(name, 1, GPUS), schedulerName="phalanx", priorityClassName=priority, restartPolicy="Never")
    labels = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    job = {"name": "node", "template": {"metadata": labels, "spec": job_spec(1, pod)}}
    learning = {"numNodes": 1, "torch": {"numProcPerNode": "auto"}}
    spec = {"mlPolicy": learning, "template": {"spec": {"replicatedJobs": [job]}}, **policy}
    return {"apiVersion": API, "kind": "TrainingRuntime", "metadata": {"name": name}, "spec": spec}


def train_job(name: str, nodes: int, reference: str, kind: str = "TrainingRuntime") -> dict[str, Any]:
    """Return a TrainJob that runs so many nodes of a runtime."""
    runs = {"apiGroup": "trainer.kubeflow.org", "kind": kind, "name": reference}
    spec = {"runtimeRef": runs, "trainer": {"numNodes": nodes}}
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


def write(order: Order) -> dict[str, Any]:
    """Return a TrainJob; a priority is that of its runtime."""
    return train_job(order.name, order.pods, HURRIED if order.priority else USUAL)


def _mode(name: str, **fields: Any) -> OperatorMode:
    policy = fields.pop("policy", {})
    return OperatorMode(
        "trainer", "Kubeflow trainer", name, "TrainJob", with_jobset, write, module=MODULE, needs=("jobset",),
        is_replaced_late=True, surroundings=(runtime(USUAL, **policy), runtime(HURRIED, URGENT, **policy)),
        not_applicable={"scale": "the trainer does not change the JobSet of a TrainJob that is not suspended"},
        samples=(
            Sample((f"{RUNTIMES}/torch_distributed.yaml",), 3, then=[_of_cluster("torch", 3, "torch-distributed")]),
            Sample((f"{RUNTIMES}/mpi_distributed.yaml",), 3, then=[_of_cluster("mpi", 3, "mpi-distributed")]),
        ),
        **fields,
    )  # fmt: skip


def _of_cluster(name: str, nodes: int, reference: str) -> dict[str, Any]:
    return train_job(name, nodes, reference, "ClusterTrainingRuntime")


MODES = (
    _mode(
        "coscheduling", policy={"podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": 60}}},
        switch_on="Write `podGroupPolicy.coscheduling` into a runtime, and `schedulerName: phalanx` into the templates of its "
        "jobs: the trainer makes Coscheduling's groups, and writes no name. A priority class belongs into the templates too.",
    ),
    _mode(
        "schedulerName",
        switch_on="Write `schedulerName: phalanx` into the templates of a runtime's jobs. Phalanx makes the groups, as it does "
        "for the JobSet beneath.",
    ),
)  # fmt: skip
