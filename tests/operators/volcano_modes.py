"""Volcano's own controllers and definitions, with our scheduler in the place of Volcano's: with our profile and with Volcano's."""

from typing import Any

from tests.support.operator_mode import OperatorMode, Order, Patch, Sample, scale_by, template
from tests.support.real_operators import volcano_controllers

MODULE = "volcano.sh/volcano"
QUEUE = "default"


def volcano_job(order: Order, **spec: Any) -> dict[str, Any]:
    """Return a Job of Volcano's, with what Volcano's webhook would write: its queue, and how often it may start again."""
    task = {"name": "worker", "replicas": order.pods, "template": template("main", order, restartPolicy="Never")}
    more = {"priorityClassName": order.priority} if order.priority else {}
    wanted = {
        "schedulerName": "volcano",
        "queue": QUEUE,
        "maxRetry": 3,
        "minAvailable": order.pods,
        "tasks": [task],
        **more,
        **spec,
    }
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": order.name}, "spec": wanted}


def scale(pods: int) -> Patch:
    """Change the number of pods, and the fewest that it may be."""
    return [{"op": "replace", "path": path, "value": pods} for path in ("/spec/minAvailable", "/spec/tasks/0/replicas")]


def _mode(name: str, profile: str, **fields: Any) -> OperatorMode:
    return OperatorMode(
        "vc-controller-manager", "Volcano's controllers", name, "Job", volcano_controllers, volcano_job, module=MODULE,
        has_own_definitions=True, profile=profile, scheduler_flags=("--controllers=-volcano",), resource="vcjob",
        scale=scale_by(scale), **fields,
    )  # fmt: skip


RESTARTED = "Volcano 1.10 restarts a whole Job or leaves it alone: its action RestartTask does nothing"
SAMPLES = (
    Sample(("example/job.yaml",), 6), Sample(("example/job-plugin.yaml",), 3),
    Sample(("example/task-start-dependency/job.yaml",), 11),
)  # fmt: skip
"""Those that name their queue: for others Volcano's webhook does, which does not run here."""
MODES = (
    _mode(
        "profile-phalanx", "phalanx", samples=SAMPLES, not_applicable={"failure": RESTARTED},
        switch_on="Stop Volcano's scheduler and start Phalanx with `--scheduler-name=volcano --controllers=-volcano`. Volcano's "
        "controllers and webhooks go on as before, with Volcano's definitions.",
    ),
    _mode(
        "profile-volcano", "volcano", samples=SAMPLES, makes_pods_when_admitted=True,
        not_applicable={"failure": RESTARTED, "priority": "Volcano's default configuration evicts nothing"},
        switch_on="The same with `--profile=volcano` or with `--config` and a configuration of Volcano's.",
    ),
)  # fmt: skip
