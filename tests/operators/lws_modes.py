"""LeaderWorkerSet's modes: groups of Volcano, and none. A replica is a gang."""

from functools import partial
from typing import Any

from tests.support.operator_mode import Hands, OperatorMode, Order, Patch, Sample, scale_by, template
from tests.support.webhook_operators import leader_worker_set

MODULE = "sigs.k8s.io/lws"
SAMPLES = "docs/examples/sample"
SIZE = 2
"""Of replicas whose number changes."""


def leader_workers(name: str, replicas: int, worker: dict[str, Any], size: int, **more: Any) -> dict[str, Any]:
    """Return a LeaderWorkerSet whose leaders are as its workers."""
    # Without a policy the whole replica is made anew when one of its pods fails.
    parts = {"size": size, "workerTemplate": worker, "restartPolicy": "None"}
    spec = {"replicas": replicas, "leaderWorkerTemplate": parts, **more}
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name}, "spec": spec}


def write(order: Order, scheduler: str) -> dict[str, Any]:
    """Return one replica of all pods; where their number changes, replicas of two."""
    size = SIZE if order.is_scaled else order.pods
    worker = template("main", order, schedulerName=scheduler, priorityClassName=order.priority)
    return leader_workers(order.name, order.pods // size, worker, size)


def scale(pods: int) -> Patch:
    """Change the number of replicas."""
    return {"spec": {"replicas": pods // SIZE}}


def suspend(hands: Hands, address: str, is_suspended: bool) -> None:
    """Let there be no replicas, or one again."""
    hands.patch(address, {"spec": {"replicas": 0 if is_suspended else 1}})


def _mode(name: str, provider: str, scheduler: str, **fields: Any) -> OperatorMode:
    return OperatorMode(
        "lws", "LeaderWorkerSet", name, "LeaderWorkerSet", partial(leader_worker_set, provider=provider),
        partial(write, scheduler=scheduler), module=MODULE, suspend=suspend, scale=scale_by(scale), sizes=(4, 6, 4, 2), **fields,
    )  # fmt: skip


MODES = (
    _mode(
        "volcano", "volcano", "volcano",
        switch_on="Set `gangSchedulingManagement.schedulerProvider: volcano` in the configuration of LeaderWorkerSet, start "
        "Phalanx with `--scheduler-name=volcano`, and write `schedulerName: volcano` into the templates. The annotation "
        "`scheduling.volcano.sh/queue-name` of a LeaderWorkerSet names its queue.",
        known_defects={
            "priority": "LeaderWorkerSet writes no priority class into its groups, and a group of Volcano has the priority of its "
            "own class, whatever its pods have"
        },
        samples=(Sample((f"{SAMPLES}/gang-scheduling/lws-sample-volcano.yaml",), 8),),
    ),
    _mode(
        "schedulerName", "", "phalanx",
        switch_on="Write `schedulerName: phalanx` into the templates. Phalanx makes a group for each replica.",
        samples=(Sample((f"{SAMPLES}/lws.yaml",), 12), Sample((f"{SAMPLES}/lws-multi-template.yaml",), 12)),
    ),
)  # fmt: skip
