"""Which parts of a pod make it a class of its own, and which do not."""

import gc
import weakref
from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.task import Task, TaskKey
from phalanx.testing import build
from tests.support.real_pods import INDEX, as_made_by_controllers

Document = dict[str, Any]


def pod(name: str, **more: Any) -> Document:
    found = build.pod(name, cpu=1)
    labels = more.pop("labels", None)
    if labels:
        found["metadata"]["labels"] = labels
    found["metadata"]["namespace"] = more.pop("namespace", "default")
    found["spec"] = {**found["spec"], **more}
    return found


def anti_affinity(key: str, value: str, **term: Any) -> Document:
    """Return an affinity that keeps away from pods with a label."""
    found = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {key: value}}, **term}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [found]}}


def service(namespace: str, **selector: str) -> Document:
    meta = {"name": "web", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": selector}}


def cluster_of(*documents: Document) -> ObjectCluster:
    cluster = ObjectCluster()
    for document in documents:
        assert cluster.put(document)
    cluster.snapshot(0.0)
    return cluster


def task_in(cluster: ObjectCluster, name: str) -> Task:
    found = cluster.state.task(TaskKey(f"default/{name}"))
    assert found is not None
    return found


def are_one_class(cluster: ObjectCluster) -> bool:
    return task_in(cluster, "a").shape is task_in(cluster, "b").shape


def test_what_controllers_and_admission_give_each_pod_does_not_count() -> None:
    cluster = cluster_of(*as_made_by_controllers([pod("a"), pod("b")]))
    assert are_one_class(cluster)
    assert task_in(cluster, "a").labels[INDEX] != task_in(cluster, "b").labels[INDEX]


@pytest.mark.parametrize("different", [
    {"nodeSelector": {"zone": "east"}}, {"tolerations": [{"operator": "Exists"}]},
    {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
    {"volumes": [{"name": "tmp", "ephemeral": {}}]},
    {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu-0"}]},
    {"containers": [{"name": "main", "image": "other", "resources": {"requests": {"cpu": "1"}}}]},
    {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}}]},
])  # fmt: skip
def test_what_a_filter_or_a_score_reads_counts(different: Document) -> None:
    assert not are_one_class(cluster_of(pod("a"), pod("b", **different)))


def test_how_an_amount_is_written_does_not_count() -> None:
    cpus = [{"containers": [{"name": "main", "resources": {"requests": {"cpu": text}}}]} for text in ("1", "1000m")]
    assert are_one_class(cluster_of(pod("a", **cpus[0]), pod("b", **cpus[1])))


def test_a_label_counts_where_a_term_of_some_pod_reads_it() -> None:
    pods = pod("a", labels={"index": "0"}), pod("b", labels={"index": "1"})
    assert are_one_class(cluster_of(*pods))
    assert not are_one_class(cluster_of(*pods, pod("c", affinity=anti_affinity("index", "0"))))
    assert not are_one_class(cluster_of(pod("c", affinity=anti_affinity("index", "0")), *pods))
    assert are_one_class(cluster_of(*pods, pod("c", affinity=anti_affinity("app", "web"))))


def test_a_label_counts_no_longer_when_nobody_reads_it() -> None:
    pods = pod("a", labels={"index": "0"}), pod("b", labels={"index": "1"})
    term, reader = pod("c", affinity=anti_affinity("index", "0")), service("default", index="0")
    cluster = cluster_of(*pods, term, reader)
    for document in (term, reader):
        assert not are_one_class(cluster)
        cluster.remove(document)
        cluster.snapshot(0.0)
    assert are_one_class(cluster)


def test_a_term_reads_labels_in_the_namespaces_that_it_is_about() -> None:
    pods = pod("a", labels={"index": "0"}), pod("b", labels={"index": "1"})
    own = pod("c", namespace="other", affinity=anti_affinity("index", "0"))
    named = pod("c", namespace="other", affinity=anti_affinity("index", "0", namespaces=["default"]))
    selected = pod("c", namespace="other", affinity=anti_affinity("index", "0", namespaceSelector={}))
    assert are_one_class(cluster_of(*pods, own))
    assert not are_one_class(cluster_of(*pods, named))
    assert not are_one_class(cluster_of(*pods, selected))


def test_a_label_counts_where_a_service_of_the_namespace_reads_it() -> None:
    pods = pod("a", labels={"index": "0"}), pod("b", labels={"index": "1"})
    assert not are_one_class(cluster_of(*pods, service("default", index="0")))
    assert are_one_class(cluster_of(*pods, service("other", index="0")))


def test_labels_that_a_spread_constraint_takes_from_its_pod_count() -> None:
    spread = [{"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}, "matchLabelKeys": ["pod-template-hash"]}]
    old, new = ({"pod-template-hash": text} for text in ("old", "new"))
    first = pod("a", labels=old, topologySpreadConstraints=spread)
    assert not are_one_class(cluster_of(first, pod("b", labels=new, topologySpreadConstraints=spread)))
    assert are_one_class(cluster_of(first, pod("b", labels=old, topologySpreadConstraints=spread)))


def test_classes_that_nobody_uses_are_forgotten() -> None:
    cluster = ObjectCluster()
    shapes = []
    for number in range(20):
        cpu = {"containers": [{"name": "main", "resources": {"requests": {"cpu": str(number + 1)}}}]}
        document = build.in_group("gang", pod("a", nodeName="n0", **cpu))
        cluster.put({**document, "status": {"phase": "Running"}})
        cluster.snapshot(0.0)
        shapes.append(weakref.ref(task_in(cluster, "a").shape))
        cluster.remove(document)
    cluster.snapshot(0.0)
    gc.collect()
    assert [shape for shape in shapes if shape() is not None] == []
