"""What an apply changes: between the manifest of last time, the one of now, and the object."""

from typing import Any

import pytest

from phalanx.errors import Invalid
from phalanx.model.kinds import kind_at
from phalanx.model.merging import merged
from phalanx.store.apply import LAST_APPLIED, change, rank, wanted, with_last_applied

CONFIG, NODE, QUEUE = kind_at("", "configmaps"), kind_at("", "nodes"), kind_at("scheduling.volcano.sh", "queues")


def manifest(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data}


def test_what_is_as_wanted_is_not_changed() -> None:
    assert change(manifest(colour="red"), with_last_applied(manifest(colour="red"))) == {}


def test_what_a_manifest_says_no_longer_goes_and_what_others_said_stays() -> None:
    live = with_last_applied(manifest(colour="red", size="L"))
    live = {**live, "data": {**live["data"], "others": "1"}}
    patch = change(manifest(colour="blue"), live)
    assert patch["data"] == {"colour": "blue", "size": None}
    assert merged(live, patch)["data"] == {"colour": "blue", "others": "1"}


def test_a_patch_signs_the_object_anew() -> None:
    live = with_last_applied(manifest(colour="red"))
    after = merged(live, change(manifest(colour="blue"), live))
    assert change(manifest(colour="blue"), after) == {}
    assert "blue" in after["metadata"]["annotations"][LAST_APPLIED]


def test_an_object_that_nobody_applied_keeps_what_the_manifest_does_not_mention() -> None:
    assert change(manifest(), manifest(colour="red")) == {}


def test_a_signature_that_cannot_be_read_is_none() -> None:
    live = manifest(colour="red")
    live["metadata"]["annotations"] = {LAST_APPLIED: "{"}
    assert change(manifest(), live) == {}


def test_what_the_server_keeps_is_not_asked_for() -> None:
    read = {
        **manifest(),
        "metadata": {"name": "a", "uid": "1", "resourceVersion": "7", "annotations": {LAST_APPLIED: "{}", "b": "c"}},
    }
    assert wanted(CONFIG, read, "team")["metadata"] == {"name": "a", "namespace": "team", "annotations": {"b": "c"}}


def test_statuses_are_left_to_the_server_except_of_nodes() -> None:
    document = {"metadata": {"name": "a", "namespace": "x"}, "status": {"state": "Open"}}
    assert wanted(QUEUE, document, "team") == {"metadata": {"name": "a"}}
    assert "status" in wanted(NODE, document, "team")


def test_what_has_no_name_cannot_be_applied() -> None:
    with pytest.raises(Invalid, match=r"ConfigMap: metadata\.name: missing"):
        wanted(CONFIG, {"metadata": {"generateName": "a-"}}, "team")


def test_groups_come_before_pods() -> None:
    kinds = ["Pod", "PodGroup", "Node", "Namespace"]
    assert sorted(kinds, key=lambda kind: rank({"kind": kind})) == ["Namespace", "Node", "PodGroup", "Pod"]


def pod(**container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-0", "namespace": "ml"},
        "spec": {"containers": [{"name": "main", "image": "a", "ports": [{"containerPort": 80}], **container}]},
    }  # fmt: skip


def stored(document: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as the API server keeps it: with defaults in it, and a container of somebody else."""
    first = {**document["spec"]["containers"][0], "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    return {**with_last_applied(document), "spec": {"containers": [first, {"name": "injected"}], "dnsPolicy": "ClusterFirst"}}


def test_defaults_in_the_items_of_a_list_stay_and_are_no_change() -> None:
    assert change(pod(), stored(pod())) == {}


def test_items_of_a_list_are_merged_by_their_keys() -> None:
    found = change(pod(image="b"), stored(pod(command=["x"])))["spec"]["containers"]
    assert [item["name"] for item in found] == ["main", "injected"]
    assert (found[0]["image"], found[0]["imagePullPolicy"], "command" in found[0]) == ("b", "Always", False)


def test_a_list_of_a_custom_kind_is_one_value() -> None:
    tasks = [{"name": "worker", "replicas": 2}]
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"tasks": tasks}}
    live = {**with_last_applied(job), "spec": {"tasks": [{**tasks[0], "maxRetry": 3}]}}
    assert change(job, live)["spec"] == {"tasks": tasks}
