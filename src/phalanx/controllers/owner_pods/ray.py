"""Ray's operator: a head and groups of workers for each RayCluster; RayJobs and RayServices have a RayCluster."""

from typing import Any

from msgspec import field

from phalanx.controllers.grouper.owners import read
from phalanx.controllers.grouper.ray import GROUP_LABEL, HEAD_PART, NODE_TYPE, WorkerGroup
from phalanx.controllers.objects import annotations_of, inside, labels_of, meta_of
from phalanx.controllers.owner_pods.children import Children, Template, asking, child_of, numbers, pod_of, with_init_container
from phalanx.dialects.schema import Read
from phalanx.model.kinds import Document

HEAD, WORKER = "head", "worker"
LONGEST_CLUSTER = 50
"""Of what stands before "-head-" or "-worker-" in the name of a pod."""
WAITS_FOR_HEAD = {"name": "wait-gcs-ready", "resources": asking(cpu="200m", memory="256Mi")}
"""The init container of workers, by the operator's default."""
AUTOSCALER = {"name": "autoscaler", "resources": asking(cpu="500m", memory="512Mi")}
"""The container beside the head of a cluster that scales itself; its options may name other resources."""
SCHEDULER_LABELS = ("ray.io/scheduler-name", "ray.io/gang-scheduling-enabled")
"""What asks the operator for groups of its own, if it runs with a batch scheduler."""


class MadeHead(Read):
    """The head, with the whole template of its pod."""

    template: Template = field(default_factory=Template)


class MadeWorkers(WorkerGroup):
    """Workers, with the whole template of their pods."""

    template: Template = field(default_factory=Template)


class AutoscalerOptions(Read):
    """What is said of the autoscaler."""

    resources: dict[str, Any] | None = None


class RaySpec(Read):
    """What a RayCluster asks for."""

    head_group_spec: MadeHead = field(default_factory=MadeHead)
    worker_group_specs: list[MadeWorkers] | None = None
    enable_in_tree_autoscaling: bool | None = None
    autoscaler_options: AutoscalerOptions | None = None


class Cluster(Read):
    """A RayCluster."""

    spec: RaySpec = field(default_factory=RaySpec)


def ray_cluster(owner: Document) -> Children:
    """Return the head and the workers of a RayCluster."""
    spec, name = read(owner, Cluster).spec, str(meta_of(owner)["name"])
    pods = [_pod(owner, name, HEAD, HEAD_PART, spec.head_group_spec.template, _head_spec(spec))]
    for group in spec.worker_group_specs or ():
        made = with_init_container(group.template.spec, WAITS_FOR_HEAD)
        group_name = group.group_name or ""
        stem = f"{name}-{group_name}"
        pods += [_pod(owner, stem, WORKER, group_name, group.template, made) for _ in numbers(owner, group.pods)]
    return Children(pods, _notes(owner))


def _head_spec(spec: RaySpec) -> dict[str, Any]:
    own = spec.head_group_spec.template.spec
    if not spec.enable_in_tree_autoscaling:
        return own
    options = spec.autoscaler_options or AutoscalerOptions()
    chosen = {} if options.resources is None else {"resources": options.resources}
    return {**own, "containers": [*(own.get("containers") or ()), {**AUTOSCALER, **chosen}]}


def _pod(owner: Document, stem: str, node_type: str, group: str, template: Template, spec: Document) -> Document:
    cluster = str(meta_of(owner)["name"])
    fixed = {NODE_TYPE: node_type, GROUP_LABEL: group, "ray.io/cluster": cluster}
    usual = {
        "ray.io/is-ray-node": "yes", "ray.io/identifier": f"{cluster}-{node_type}",
        "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
    }  # fmt: skip
    labels = {**usual, **(template.metadata.labels or {}), **fixed}
    return pod_of(owner, f"{stem[:LONGEST_CLUSTER]}-{node_type}-".lower(), template, labels=labels, spec=spec)


def _notes(owner: Document) -> list[str]:
    asked = [name for name in SCHEDULER_LABELS if name in labels_of(owner)]
    text = "without effect here, where it is assumed that Ray's operator runs without a batch scheduler and makes no groups"
    return [f"label {name}: {text}" for name in asked]


def ray_job(owner: Document) -> Children:
    """Return the RayCluster of a RayJob; what submits the work to it is made when the cluster is ready."""
    if inside(owner, "spec", "clusterSelector"):
        return Children(notes=["runs on a RayCluster that exists, and makes no pods of Ray"])
    later = "the pod that submits its work is made once the cluster is ready"
    has_submitter = inside(owner, "spec", "submissionMode") in (None, "", "K8sJobMode")
    return Children([_cluster(owner, "rayClusterSpec")], [later] if has_submitter else [])


def ray_service(owner: Document) -> Children:
    """Return the RayCluster of a RayService."""
    return Children([_cluster(owner, "rayClusterConfig")])


def _cluster(owner: Document, field_name: str) -> Document:
    origin = {"ray.io/originated-from-cr-name": str(meta_of(owner)["name"]), "ray.io/originated-from-crd": str(owner["kind"])}
    meta = {"labels": {**labels_of(owner), **origin}, "annotations": annotations_of(owner)}
    spec = inside(owner, "spec", field_name) or {}
    return child_of(owner, "ray.io/v1", "RayCluster", f"{meta_of(owner)['name']}-", spec=spec, meta=meta)
