"""KubeRay's modes: three batch schedulers that it knows, and none of them."""

from typing import Any

from tests.support.operator_mode import OperatorMode, Order, Patch, Sample, scale_by, template
from tests.support.real_operators import kuberay

MODULE = "github.com/ray-project/kuberay/ray-operator"
GANG = {"ray.io/gang-scheduling-enabled": "true"}
MOST = 16
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "test"}, "spec": {"weight": 1}}


def ray_cluster(order: Order, *, labels: dict[str, str] | None = None, scheduler: str = "", priority: str = "") -> dict[str, Any]:
    """Return a RayCluster of a head and workers, all alike."""
    more = {"schedulerName": scheduler, "priorityClassName": priority}
    head = {"rayStartParams": {}, "template": template("ray-head", order, **more)}
    workers = order.pods - 1
    counts = {"replicas": workers, "minReplicas": workers, "maxReplicas": MOST}
    group = {"groupName": "gpu", **counts, "rayStartParams": {}, "template": template("ray-worker", order, **more)}
    spec = {"rayVersion": "2.46.0", "headGroupSpec": head, "workerGroupSpecs": [group]}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": order.name, "labels": labels or {}}, "spec": spec}


def for_volcano(order: Order) -> dict[str, Any]:
    """Return a RayCluster for KubeRay with Volcano's groups, which says its priority in a label."""
    return ray_cluster(order, labels={"ray.io/priority-class-name": order.priority} if order.priority else {})


def for_yunikorn(order: Order) -> dict[str, Any]:
    """Return a RayCluster for KubeRay with task groups of YuniKorn."""
    labels = {**GANG, "yunikorn.apache.org/app-id": order.name, "yunikorn.apache.org/queue": "root.default"}
    return ray_cluster(order, labels=labels, priority=order.priority)


def for_plugins(order: Order) -> dict[str, Any]:
    """Return a RayCluster for KubeRay with Coscheduling's groups; KubeRay leaves the scheduler's name to the templates."""
    return ray_cluster(order, labels=GANG, scheduler="phalanx", priority=order.priority)


def alone(order: Order) -> dict[str, Any]:
    """Return a RayCluster whose templates name Phalanx, for KubeRay as it is installed."""
    return ray_cluster(order, scheduler="phalanx", priority=order.priority)


def scale(pods: int) -> Patch:
    """Change the number of workers, and the fewest that it may be."""
    group = "/spec/workerGroupSpecs/0"
    return [{"op": "replace", "path": f"{group}/{name}", "value": pods - 1} for name in ("replicas", "minReplicas")]


def _mode(name: str, **fields: Any) -> OperatorMode:
    return OperatorMode(
        "kuberay", "KubeRay", name, "RayCluster", kuberay, scale=scale_by(scale), module=MODULE, **fields
    )  # fmt: skip


MODES = (
    _mode(
        "volcano", write=for_volcano, flags=("--batch-scheduler=volcano",), in_make_test=frozenset({"deadlock"}),
        switch_on="Start KubeRay with `--batch-scheduler=volcano` and Phalanx with `--scheduler-name=volcano`: KubeRay writes this "
        "name into the pods. The label `ray.io/priority-class-name` of a RayCluster names its priority, "
        "`volcano.sh/queue-name` its queue.",
        samples=(Sample(("config/samples/ray-cluster.volcano-scheduler.yaml",), 1),
                 Sample(("config/samples/ray-cluster.volcano-scheduler-queue.yaml",), 3)),
    ),
    _mode(
        "yunikorn", write=for_yunikorn, flags=("--batch-scheduler=yunikorn",),
        switch_on="Start KubeRay with `--batch-scheduler=yunikorn` and Phalanx with `--scheduler-name=yunikorn`. A RayCluster "
        "needs the labels `ray.io/gang-scheduling-enabled` and `yunikorn.apache.org/app-id`, which is its own name, and may name "
        "its queue in `yunikorn.apache.org/queue`; a Queue of that name, without the root, has to exist.",
        samples=(Sample(("config/samples/ray-cluster.yunikorn-scheduler.yaml",), 3, (QUEUE,)),),
    ),
    _mode(
        "scheduler-plugins", write=for_plugins, flags=("--batch-scheduler=scheduler-plugins",),
        switch_on="Start KubeRay with `--batch-scheduler=scheduler-plugins`. A RayCluster needs the label "
        "`ray.io/gang-scheduling-enabled`, and `schedulerName: phalanx` in all of its templates; KubeRay writes none. Or run "
        "Phalanx in the place of kube-scheduler, with `--scheduler-name=default-scheduler`.",
        samples=(Sample(("config/samples/ray-cluster.scheduler-plugins.yaml",), 3),),
    ),
    _mode(
        "schedulerName", write=alone,
        switch_on="Write `schedulerName: phalanx` into the templates of the head and of all workers; KubeRay needs no flag. "
        "Phalanx makes the group: the head and the `minReplicas` of each group of workers start together.",
        samples=(Sample(("config/samples/ray-cluster.sample.yaml",), 2),),
    ),
)  # fmt: skip
