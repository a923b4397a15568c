"""JobSet's mode: it knows no gang schedulers, and Phalanx makes its groups."""

from typing import Any

from tests.support.operator_mode import OperatorMode, Order, Sample, job_spec, template
from tests.support.webhook_operators import jobset

MODULE = "sigs.k8s.io/jobset"
EXAMPLES = "site/static/examples"


def replicated(name: str, order: Order, **more: Any) -> dict[str, Any]:
    """Return a replicated job whose pods name Phalanx."""
    pod = template("main", order, schedulerName="phalanx", priorityClassName=order.priority, restartPolicy="Never")
    return {"name": name, "template": {"spec": job_spec(order.pods, pod)}, **more}


def job_set(name: str, *jobs: dict[str, Any]) -> dict[str, Any]:
    """Return a JobSet."""
    spec = {"replicatedJobs": list(jobs)}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name}, "spec": spec}


def alone(order: Order) -> dict[str, Any]:
    """Return a JobSet of a driver and workers, all alike."""
    driver, workers = (Order(order.name, pods, order.gpus, order.priority) for pods in (1, order.pods - 1))
    return job_set(order.name, replicated("driver", driver), replicated("workers", workers))


MODES = (
    OperatorMode(
        "jobset", "JobSet", "schedulerName", "JobSet", jobset, alone, module=MODULE,
        switch_on="Write `schedulerName: phalanx` into the templates of all replicated jobs. Phalanx makes one group of all their "
        "pods; jobs that start one after the other, by `dependsOn` or `startupPolicyOrder: InOrder`, get one group each.",
        samples=(
            Sample((f"{EXAMPLES}/simple/paralleljobs.yaml",), 5),
            Sample((f"{EXAMPLES}/simple/jobset-with-network.yaml",), 3),
            Sample((f"{EXAMPLES}/startup-policy/startup-driver-ready.yaml",), 5),
        ),
        not_applicable={"scale": "JobSet's webhook refuses every change of the replicated jobs of a JobSet that is not suspended"},
        is_replaced_late=True,
    ),
)  # fmt: skip
