"""KAI's objects in a few words, for tests and examples; everything else is in `build`.

    cluster = kai.cluster(nodes=2, gpus=4)
    cluster.submit(kai.queue("research", quota=4), kai.gang("train", tasks=4, gpus=1, queue="research"))
    assert len(cluster.run_cycle().binds) == 4

Queues bound GPUs; cpu and memory are free. Pods ask for one cpu unless said otherwise, so that GPUs are what is scarce.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.config.kai import read_kai_policy
from phalanx.model.shard import NODE_POOL
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

GROUP, SUBGROUP = "pod-group-name", "kai.scheduler/subgroup-name"
LAST_START, STALE_SINCE = "kai.scheduler/last-start-timestamp", "kai.scheduler/stale-podgroup-timestamp"
FRACTION, DEVICE = "gpu-fraction", "runai-gpu-group"
RESERVATION = "kai-resource-reservation"
CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def policy(actions: str = ", ".join(KAI_CATALOGUE.actions), **more: Any) -> Policy:
    """Return a policy of the profile kai; `more` are its keys `plugins` and `options`."""
    config = {"profile": "kai", "actions": actions, **more}
    return read_kai_policy(config, actions=list(KAI_CATALOGUE.actions), plugins=list(KAI_CATALOGUE.plugins))


def cluster(*, nodes: int = 1, actions: str = "", gpus: int = 4, plugins: Any = None, options: Any = None) -> Cluster:
    """Return equal nodes ``node-0``, ``node-1`` …, a queue ``default`` without bounds at the top, and KAI's classes."""
    chosen = policy(actions, plugins=plugins, options=options) if actions else policy(plugins=plugins, options=options)
    found = build.cluster(nodes=nodes, policy=chosen, cpu=64, memory="256Gi", gpus=gpus)
    return found.submit(queue("default", parent="", quota=-1), map(priority_class, CLASSES))


def priority_class(name: str) -> Document:
    """Return one of KAI's built-in classes."""
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": CLASSES[name]}


def queue(name: str, *, parent: str = "default", quota: float = 0, limit: float = -1, weight: float = 1, **spec: Any) -> Document:
    """Return a queue that has these bounds on GPUs and none on cpu and memory; it is older than those submitted after it."""
    gpu = {"quota": quota, "limit": limit, "overQuotaWeight": weight}
    fields = {"parentQueue": parent, "resources": {"gpu": gpu, "cpu": FREE, "memory": FREE}, **spec}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name, "uid": name}, "spec": fields}


def pod_group(name: str, *, min_member: int = 1, annotations: Mapping[str, str] | None = None, **spec: Any) -> Document:
    """Return a PodGroup in the class train; `spec` holds further fields by their names in the API."""
    fields = {"minMember": min_member, "queue": "a", "priorityClassName": "train", **spec}
    meta = {"namespace": "default", "name": name, "uid": name, "annotations": dict(annotations or {})}
    return {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta, "spec": fields}


def pod(name: str, group: str, *, on: str = "", part: str = "", share: float = 0, device: str = "", **asks: Any) -> Document:
    """Return a pod: `part` is its sub-group, `share` its part of a GPU, `device` the shared GPU that it is on."""
    asks.setdefault("cpu", 1)
    found = build.pod(name, on=on, **asks)
    meta = found["metadata"]
    meta["annotations"] = {GROUP: group, **({FRACTION: str(share)} if share else {})}
    meta["labels"] = {**({SUBGROUP: part} if part else {}), **({DEVICE: device} if device else {})}
    return found


def gang(
    name: str, *, tasks: int = 1, min_member: int | None = None, queue: str = "a", on: str | Sequence[str] = "", **asks: Any
) -> list[Document]:
    """Return a PodGroup and its pods ``NAME-0`` …, all of them needed unless said otherwise; `on` names where they run.

    A word that begins in lower case and is no resource, such as ``priorityClassName``, belongs to the group.
    """
    resources = {key: asks.pop(key) for key in list(asks) if key in ("cpu", "memory", "gpus", "share", "device")}
    places = [on] * tasks if isinstance(on, str) else [*on, *[""] * (tasks - len(on))]
    pods = [pod(f"{name}-{number}", name, on=place, **resources) for number, place in enumerate(places)]
    return [pod_group(name, min_member=tasks if min_member is None else min_member, queue=queue, **asks), *pods]


def bind_request(pod: str, node: str, *, groups: Sequence[str] = (), **status: Any) -> Document:
    """Return a BindRequest; `status` holds fields by their names in the API, such as ``phase``."""
    meta = {"namespace": "default", "name": pod, "creationTimestamp": "2026-01-01T12:00:00Z"}
    spec = {"podName": pod, "selectedNode": node, "selectedGPUGroups": list(groups)}
    return {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": meta, "spec": spec, "status": status}


def reservation(device: str, *, on: str) -> Document:
    """Return the pod that keeps a shared GPU."""
    found = build.pod(f"{RESERVATION}/{device}", on=on, gpus=1)
    found["metadata"]["labels"] = {"app": RESERVATION, DEVICE: device}
    return found


def topology(name: str, *levels: str) -> Document:
    """Return a Topology of node labels, widest first."""
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": name}, "spec": spec}


def shard(name: str, **spec: Any) -> Document:
    """Return a SchedulingShard; `spec` holds its fields by their names in the API."""
    return {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": name}, "spec": spec}


def in_pool(pool: str, documents: list[Document]) -> list[Document]:
    """Put nodes and PodGroups into a node pool."""
    for document in documents:
        if document["kind"] in ("Node", "PodGroup"):
            document["metadata"].setdefault("labels", {})[NODE_POOL] = pool
    return documents


def leaving(pod: Document) -> Document:
    """Let a running pod be on its way out."""
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def gated(pod: Document) -> Document:
    """Hold a pod back by a scheduling gate."""
    pod["spec"]["schedulingGates"] = [{"name": "wait"}]
    return pod
