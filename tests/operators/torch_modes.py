"""The training operator's modes: groups of Volcano, groups of Coscheduling, and none."""

from typing import Any

from tests.support.operator_mode import OperatorMode, Order, Patch, Sample, scale_by, template
from tests.support.real_operators import training_operator

MODULE = "github.com/kubeflow/training-operator"


def pytorch_job(order: Order, *, scheduler: str = "", priority: str = "", group_priority: str = "") -> dict[str, Any]:
    """Return a PyTorchJob of a master and workers, all alike; pods that fail are made anew."""
    more = {"schedulerName": scheduler, "priorityClassName": priority}
    counts = {"Master": 1, "Worker": order.pods - 1}
    replicas = {
        role: {"replicas": count, "restartPolicy": "OnFailure", "template": template("pytorch", order, **more)}
        for role, count in counts.items()
    }
    policy = {"schedulingPolicy": {"priorityClass": group_priority}} if group_priority else {}
    spec = {"runPolicy": policy, "pytorchReplicaSpecs": replicas}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": order.name}, "spec": spec}


def for_volcano(order: Order) -> dict[str, Any]:
    """Return a PyTorchJob for an operator that makes Volcano's groups, with the priority of the group."""
    return pytorch_job(order, group_priority=order.priority)


def for_phalanx(order: Order) -> dict[str, Any]:
    """Return a PyTorchJob for an operator that makes Coscheduling's groups, which have no priority of their own."""
    return pytorch_job(order, priority=order.priority)


def alone(order: Order) -> dict[str, Any]:
    """Return a PyTorchJob whose templates name Phalanx, for an operator as it is installed."""
    return pytorch_job(order, scheduler="phalanx", priority=order.priority)


def scale(pods: int) -> Patch:
    """Change the number of workers."""
    return {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": pods - 1}}}}


def _mode(name: str, **fields: Any) -> OperatorMode:
    samples = (Sample(("examples/pytorch/simple.yaml",), 2), Sample(("examples/pytorch/elastic/echo/echo.yaml",), 2))
    return OperatorMode(
        "training-operator", "Kubeflow training operator", name, "PyTorchJob", training_operator, scale=scale_by(scale),
        module=MODULE, samples=samples, **fields,
    )  # fmt: skip


MODES = (
    _mode(
        "volcano", write=for_volcano, flags=("--gang-scheduler-name=volcano",), in_make_test=frozenset({"idle"}),
        switch_on="Start the operator with `--gang-scheduler-name=volcano` and Phalanx with `--scheduler-name=volcano`: the "
        "operator writes this name into pods that name no scheduler. `runPolicy.schedulingPolicy` has the queue, the priority "
        "class and the minimum.",
    ),
    _mode(
        "phalanx", write=for_phalanx, flags=("--gang-scheduler-name=phalanx",),
        switch_on="Start the operator with `--gang-scheduler-name=phalanx`: it makes Coscheduling's groups for every scheduler "
        "but Volcano, and writes the name into pods that name no scheduler. `runPolicy.schedulingPolicy.minAvailable` is the "
        "minimum; a priority class belongs into the templates.",
    ),
    _mode(
        "schedulerName", write=alone,
        switch_on="Write `schedulerName: phalanx` into the templates of all replicas; the operator needs no flag. Phalanx makes "
        "the group.",
    ),
)  # fmt: skip
