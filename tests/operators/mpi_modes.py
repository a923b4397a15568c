"""The mpi-operator's modes: groups of Volcano, groups of Coscheduling, and none."""

from functools import partial
from typing import Any

from tests.support.operator_mode import OperatorMode, Order, Patch, Sample, scale_by, template
from tests.support.real_operators import mpi_operator

MODULE = "github.com/kubeflow/mpi-operator"
EXAMPLES = "examples/v2beta1"


def mpi_job(order: Order, scheduler: str = "") -> dict[str, Any]:
    """Return an MPIJob whose launcher is as its workers."""
    roles = {"Launcher": 1, **({"Worker": order.pods - 1} if order.pods > 1 else {})}
    pod = template("mpi", order, schedulerName=scheduler, priorityClassName=order.priority)
    replicas = {role: {"replicas": count, "template": pod} for role, count in roles.items()}
    return {
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": order.name},
        "spec": {"mpiReplicaSpecs": replicas},
    }  # fmt: skip


def scale(pods: int) -> Patch:
    """Change the number of workers."""
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": pods - 1}}}}


def _mode(name: str, scheduler: str = "", **fields: Any) -> OperatorMode:
    return OperatorMode(
        "mpi-operator", "MPI operator", name, "MPIJob", mpi_operator, partial(mpi_job, scheduler=scheduler), module=MODULE,
        scale=scale_by(scale), failing="launcher", is_replaced_late=True,
        samples=(Sample((f"{EXAMPLES}/pi/pi.yaml",), 3), Sample((f"{EXAMPLES}/horovod/tensorflow-mnist.yaml",), 3)), **fields,
    )  # fmt: skip


MODES = (
    _mode(
        "volcano", flags=("--gang-scheduling=volcano",),
        switch_on="Start the operator with `--gang-scheduling=volcano` and Phalanx with `--scheduler-name=volcano`: the operator "
        "writes this name into all pods. `runPolicy.schedulingPolicy` has the queue, the priority class and the minimum. "
        "An MPIJob without workers ends mpi-operator 0.6.0 itself in this mode and the next.",
    ),
    _mode(
        "phalanx", flags=("--gang-scheduling=phalanx",),
        switch_on="Start the operator with `--gang-scheduling=phalanx`: it makes Coscheduling's groups for every scheduler but "
        "Volcano, and writes the name into all pods.",
    ),
    _mode(
        "schedulerName", "phalanx",
        switch_on="Write `schedulerName: phalanx` into the templates of the launcher and the workers; the operator needs no flag. "
        "Phalanx makes the group.",
    ),
)  # fmt: skip
