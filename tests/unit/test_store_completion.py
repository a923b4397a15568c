"""Objects are completed once for all commands: as the API server would, from files as well as in the store in memory."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.cli.schedule_batch import answer_line
from phalanx.errors import Forbidden
from phalanx.store.completion import ManifestObjects
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.build import Document

NOW = "2026-01-01T12:00:00Z"


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "train"}]
    meta = {"name": name, "namespace": "default", "annotations": {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def container(**resources: Any) -> list[Document]:
    return [{"name": "main", "image": "train", "resources": resources}]


def priority_class(name: str, value: int, **more: Any) -> Document:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}


def limit_range(**item: Any) -> Document:
    meta = {"name": "limits", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [{"type": "Container", **item}]}}


def from_file(document: Document, *others: Document) -> Document:
    return ManifestObjects([document, *others]).complete(document)


def from_store(document: Document, *others: Document) -> Document:
    store = MemoryStore(lambda: 0.0)
    for other in others:
        store.create(other)
    return dict(store.create(document))


WAYS = pytest.mark.parametrize("complete", [from_file, from_store])


def test_a_file_and_the_store_agree() -> None:
    objects = priority_class("high", 1000), limit_range(default={"cpu": "2"})
    whole = pod(priorityClassName="high", containers=container(limits={"nvidia.com/gpu": 1}))
    assert from_file(whole, *objects)["spec"] == from_store(whole, *objects)["spec"]


@WAYS
def test_a_limit_without_a_request_is_the_request_too(complete: Any) -> None:
    found = complete(pod(containers=container(limits={"nvidia.com/gpu": 1, "cpu": 4}, requests={"cpu": 2})))
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": 1, "cpu": 2}


@WAYS
def test_limits_of_a_whole_pod_are_requests_unless_its_containers_ask_for_something(complete: Any) -> None:
    found = complete(pod(resources={"limits": {"cpu": "4", "memory": "8Gi"}}, containers=container(requests={"cpu": "500m"})))
    assert found["spec"]["resources"]["requests"] == {"cpu": "500m", "memory": "8Gi"}


@WAYS
def test_a_pod_in_the_network_of_its_node_takes_the_ports_of_its_containers_there(complete: Any) -> None:
    ports = [{"name": "main", "image": "train", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]}]
    found = complete(pod(hostNetwork=True, containers=ports))["spec"]["containers"][0]["ports"]
    assert found == [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 81}]
    assert complete(pod(containers=ports))["spec"]["containers"][0]["ports"] == ports[0]["ports"]


@WAYS
def test_a_priority_class_gives_its_value_and_says_who_may_be_preempted(complete: Any) -> None:
    found = complete(pod(priorityClassName="polite"), priority_class("polite", 50, preemptionPolicy="Never"))
    assert (found["spec"]["priority"], found["spec"]["preemptionPolicy"]) == (50, "Never")


@WAYS
def test_the_default_class_counts_for_pods_that_name_none(complete: Any) -> None:
    found = complete(pod(), priority_class("usual", 7, globalDefault=True))
    assert (found["spec"]["priority"], found["spec"]["priorityClassName"]) == (7, "usual")


@WAYS
def test_the_classes_of_every_cluster_need_no_object(complete: Any) -> None:
    assert complete(pod(priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000


@WAYS
def test_a_limit_range_fills_in_what_containers_do_not_say(complete: Any) -> None:
    defaults = limit_range(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"})
    found = complete(pod(containers=container(requests={"memory": "2Gi"})), defaults)
    assert found["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "1Gi"},
    }  # fmt: skip


@WAYS
def test_a_runtime_class_adds_its_overhead_and_its_nodes(complete: Any) -> None:
    runtime = {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": {"nodeSelector": {"kata": "yes"}},
    }  # fmt: skip
    spec = complete(pod(runtimeClassName="kata"), runtime)["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"kata": "yes"})


@WAYS
def test_fields_have_the_defaults_of_the_api_server(complete: Any) -> None:
    spec = complete(pod())["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"], spec["priority"]) == ("default-scheduler", "Always", 0)
    assert {item["key"] for item in spec["tolerations"]} == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


@WAYS
def test_a_group_goes_to_the_queue_of_its_namespace(complete: Any) -> None:
    meta = {"name": "research", "annotations": {"scheduling.volcano.sh/queue-name": "fast"}}
    group = build.pod_group("train")
    group = {**group, "metadata": {"name": "train", "namespace": "research"}}
    assert complete(group, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})["spec"]["queue"] == "fast"


def test_to_complete_a_pod_twice_changes_nothing() -> None:
    objects = priority_class("high", 1000), limit_range(default={"cpu": "2"}, min={"memory": "1Gi"})
    once = from_file(pod(priorityClassName="high", resources={"limits": {"cpu": "9"}}), *objects)
    assert from_file(once, *objects) == once


def test_a_pod_that_an_api_server_has_stored_stays_as_it_is() -> None:
    stored = pod(containers=container(limits={"cpu": "2"}))
    stored = {**stored, "metadata": {**stored["metadata"], "uid": "1"}}
    assert from_file(stored, limit_range(default={"memory": "1Gi"})) is not None
    assert from_file(stored, limit_range(default={"memory": "1Gi"})) == stored


def test_a_class_that_does_not_exist_refuses_a_new_pod_and_is_noted_for_a_manifest() -> None:
    with pytest.raises(Forbidden, match="no PriorityClass with name urgent was found"):
        from_store(pod(priorityClassName="urgent"))
    objects = ManifestObjects([])
    assert objects.complete(dict(pod(priorityClassName="urgent")))["spec"]["priority"] == 0
    (missing,) = objects.missing()
    text = "PriorityClass 'urgent' is not in the input; it is named by Pod default/a, whose priority is 0"
    assert missing.sentence() == text


# --- commands ------------------------------------------------------------------------------------------------------------


def ten_of_a_gpu() -> list[Document]:
    limited = container(limits={"nvidia.com/gpu": 1})
    pods = [build.in_group("train", pod(f"train-{number}", containers=limited)) for number in range(10)]
    return [build.node("node-0", cpu=8, gpus=4), build.pod_group("train", min_member=4), *pods]


def run(*arguments: str, objects: list[Document]) -> Any:
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return json.loads(CliRunner().invoke(main, [*arguments, "-o", "json"], input=given).stdout)


def test_every_command_counts_gpus_that_are_only_limited() -> None:
    assert len(run("schedule", "-f", "-", objects=ten_of_a_gpu())["binds"]) == 4
    request = {"id": 1, "now": NOW, "config": {"profile": "phalanx"}, "objects": ten_of_a_gpu()}
    assert len(answer_line(json.dumps(request).encode())["binds"]) == 4
    (gang,) = run("simulate", "-", "--until", "1m", objects=ten_of_a_gpu())["gangs"]
    assert gang["started"] is not None


def test_a_gang_has_the_priority_of_its_pods_class_and_does_not_preempt_if_the_class_says_so() -> None:
    def held(policy: str) -> Any:
        asks = container(requests={"cpu": 8})
        low = build.in_group("low", pod("low-0", priorityClassName="low", nodeName="node-0", containers=asks))
        high = build.in_group("high", pod("high-0", priorityClassName="high", containers=asks))
        groups = [build.pod_group(name, min_member=1, priorityClassName=name) for name in ("low", "high")]
        low["status"] = {"phase": "Running"}
        classes = [priority_class("low", 1), priority_class("high", 100, preemptionPolicy=policy)]
        return run("schedule", "-f", "-", objects=[build.node("node-0", cpu=8), *classes, *groups, low, high])["evictions"]

    assert list(held("PreemptLowerPriority")) == ["default/low-0"]
    assert held("Never") == {}


# --- volume claims -------------------------------------------------------------------------------------------------------


def storage_class(name: str, *, is_default: bool = True, made: str = NOW) -> Document:
    notes = {"storageclass.kubernetes.io/is-default-class": str(is_default).lower()}
    meta = {"name": name, "annotations": notes, "creationTimestamp": made}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": "csi.example.com"}


def claim(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": spec}


@WAYS
@pytest.mark.parametrize(("named", "found"), [({}, "fast"), ({"storageClassName": "slow"}, "slow"), ({"storageClassName": ""}, "")])
def test_a_claim_that_names_no_class_has_the_default_one(complete: Any, named: Document, found: str) -> None:
    classes = storage_class("fast"), storage_class("slow", is_default=False)
    assert complete(claim(**named), *classes)["spec"]["storageClassName"] == found


def test_of_several_default_classes_the_newest_counts() -> None:
    classes = storage_class("a", made="2026-02-01T00:00:00Z"), storage_class("b", made="2026-01-01T00:00:00Z")
    assert from_file(claim(), *classes)["spec"]["storageClassName"] == "a"


def test_a_claim_stays_without_a_class_where_none_is_the_default() -> None:
    assert "storageClassName" not in from_file(claim(), storage_class("slow", is_default=False))["spec"]
