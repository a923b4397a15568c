"""Kueue in front of us, for three kinds of workloads: Kueue admits them by quota, and Phalanx starts what it has admitted.

The quota is more than the nodes have, so that Kueue admits what does not fit.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import Process
from tests.operators.torch_modes import alone as pytorch_job
from tests.support.operator_mode import GPU, Hands, OperatorMode, Order, Sample, job_spec, template
from tests.support.real_operators import training_operator
from tests.support.webhook_operators import kueue

MODULE = "sigs.k8s.io/kueue"
API = "kueue.x-k8s.io"
EXAMPLES = "cmd/experimental/kueue-viz/examples"
LOCAL, CLUSTER, FLAVOR = "user-queue", "lanes", "lanes"
"""The LocalQueue in each namespace, of whose name there is no Queue of Volcano's, and what is behind it."""
QUOTA = {"cpu": "100", "memory": "100Gi", GPU: "100"}
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
WORKLOADS = f"workloads.{API}"


def _made(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{API}/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def cluster_queue(quota: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the queue that every LocalQueue leads to."""
    flavor = {"name": FLAVOR, "resources": [{"name": name, "nominalQuota": amount} for name, amount in quota.items()]}
    group = {"coveredResources": list(quota), "flavors": [flavor]}
    queue = _made("ClusterQueue", CLUSTER, {"namespaceSelector": {}, "resourceGroups": [group]})
    return [_made("ResourceFlavor", FLAVOR, {}), queue]


@contextmanager
def start(plane: ControlPlane, folder: Path, *flags: str, kinds: Sequence[str] = ("batch/job", "pod")) -> Iterator[Process]:
    """Run Kueue with a queue of more than the nodes have."""
    with kueue(plane, folder, *flags, kinds=kinds) as process:
        plane.apply(cluster_queue(QUOTA))
        yield process


@contextmanager
def with_training_operator(plane: ControlPlane, folder: Path, *flags: str) -> Iterator[Process]:
    """Run Kueue in front of the training operator."""
    with training_operator(plane, folder), start(plane, folder, *flags, kinds=("kubeflow.org/pytorchjob",)) as process:
        yield process


def queued(document: dict[str, Any]) -> dict[str, Any]:
    """Return a workload that waits at the LocalQueue."""
    meta = document["metadata"]
    return {**document, "metadata": {**meta, "labels": {**meta.get("labels", {}), f"{API}/queue-name": LOCAL}}}


def job(order: Order) -> dict[str, Any]:
    """Return a Job whose pods start together."""
    pod = template("main", order, schedulerName="phalanx", priorityClassName=order.priority, restartPolicy="Never")
    meta = {"name": order.name, "annotations": {MIN_MEMBER: str(order.pods)}}
    spec = job_spec(order.pods, pod)
    return queued({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})


def pod_group(order: Order) -> dict[str, Any]:
    """Return plain pods that Kueue admits together."""
    spec = template("main", order, schedulerName="phalanx", priorityClassName=order.priority, restartPolicy="Never")["spec"]
    meta = {
        "labels": {f"{API}/pod-group-name": order.name}, "annotations": {f"{API}/pod-group-total-count": str(order.pods)},
    }  # fmt: skip
    pods = [
        queued({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{order.name}-{number}", **meta}, "spec": spec})
        for number in range(order.pods)
    ]
    return {"apiVersion": "v1", "kind": "List", "items": pods}


def delete_group(hands: Hands, address: str) -> None:
    """Delete the pods of a group, and its Workload: Kueue holds the pods as long as that is there."""
    name = address.rpartition("/")[2]
    hands.kubectl("delete", "pods", "-l", f"{API}/pod-group-name={name}", "--wait=false")
    hands.kubectl("delete", WORKLOADS, name, "--ignore-not-found")


def leave_groups(hands: Hands) -> None:
    """Delete all pods and their Workloads: in a namespace that ends, Kueue tries to make a Workload anew and lets no pod go."""
    hands.kubectl("delete", "pods", "--all", "--wait=false")
    hands.kubectl("delete", WORKLOADS, "--all")


def stop(hands: Hands, address: str, is_suspended: bool) -> None:
    """Stop a workload or resume it as Kueue's plugin of kubectl does."""
    kind, _, name = address.partition("/")
    found = json.loads(hands.kubectl("get", WORKLOADS, "-o", "json"))["items"]
    (workload,) = [item["metadata"]["name"] for item in found if item["metadata"]["name"].startswith(f"{kind}-{name}-")]
    hands.patch(f"{WORKLOADS}/{workload}", {"spec": {"active": not is_suspended}})


def _mode(name: str, **fields: Any) -> OperatorMode:
    local = _made("LocalQueue", LOCAL, {"clusterQueue": CLUSTER})
    return OperatorMode("kueue", "Kueue", name, module=MODULE, surroundings=(local,), suspend=stop, **fields)


ALONE = "Write `schedulerName: phalanx` into"
STOPPED = "Kueue stops a workload that changes, and admits it anew"
MODES = (
    _mode(
        "job", kind="Job", start=start, write=job, is_replaced_late=True,
        switch_on=f"{ALONE} the template of a Job, and the annotation `{MIN_MEMBER}` into its metadata: without it every pod of a "
        "Job starts alone.",
        not_applicable={"scale": STOPPED},
        samples=(
            Sample(
                tuple(f"{EXAMPLES}/{file}.yaml" for file in (
                    "00-resource-flavor", "01-cluster-queues", "02-local-queues", "07-workload-priority-classes", "03-agi-job",
                    "04-llm-job", "05-cancer-cure-research",
                )), 9,
            ),
        ),
    ),
    _mode(
        "pod-group", kind="Pod", start=start, write=pod_group, delete=delete_group, leave=leave_groups,
        switch_on=f"{ALONE} the pods. The labels and the annotation of Kueue's pod groups say which pods start together: Phalanx "
        "reads them, and needs no other group.",
        not_applicable={
            "scale": "the number of pods in a group of Kueue does not change",
            "suspend": "Kueue deletes the pods of a group that is stopped, and nobody creates them again",
            "failure": "pods without an owner are not replaced",
            "priority": "pods without an owner that were evicted are not created again; that an urgent group takes the place of "
            "another one is tested",
            "samples": "Kueue's module has no sample of a pod group",
        },
    ),
    _mode(
        "pytorchjob", kind="PyTorchJob", start=with_training_operator, write=lambda order: queued(pytorch_job(order)),
        needs=("training-operator",),
        switch_on=f"{ALONE} the templates of a PyTorchJob; the training operator needs no flag. Phalanx makes the group once Kueue "
        "has admitted the job.",
        not_applicable={"scale": STOPPED, "samples": "Kueue's module has no sample of a PyTorchJob"},
    ),
)  # fmt: skip
