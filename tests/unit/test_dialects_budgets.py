"""Disruption budgets, quotas, and the times and classes of pods, read from Kubernetes objects."""

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.pods import PodReader
from phalanx.errors import SnapshotError
from phalanx.model.quota import as_quota_counts
from phalanx.model.task import Task
from phalanx.state.snapshot import Surroundings
from phalanx.testing import build
from phalanx.testing.build import Document

NOON = 1767268800.0
"""2026-01-01T12:00:00Z."""


def read(document: Document) -> Surroundings:
    cluster = ObjectCluster()
    assert cluster.put(document)
    return cluster.snapshot(NOON).surroundings


def task_of(pod: Document, reader: PodReader | None = None) -> Task:
    return (reader or PodReader(lambda namespace, claims: {})).read(pod)


def labelled(name: str, **labels: str) -> Task:
    pod = build.pod(name)
    pod["metadata"]["labels"] = labels
    return task_of(pod)


def annotated(name: str, annotations: dict[str, str]) -> Document:
    pod = build.pod(name, cpu=1)
    pod["metadata"]["annotations"] = annotations
    return pod


def budget(selector: Document | None, **status: object) -> Document:
    meta = {"namespace": "default", "name": "web"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": {"selector": selector},
        "status": status,
    }


def quota(spec: Document, **status: object) -> Document:
    meta = {"namespace": "default", "name": "team"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": spec}, "status": status}


def test_a_budget_counts_the_pods_of_its_namespace_that_its_selector_matches() -> None:
    found = read(budget({"matchLabels": {"app": "web"}}, disruptionsAllowed=2)).disruption_budgets["default/web"]
    assert found.allowed == 2
    assert [found.counts(labelled(name, app=app)) for name, app in (("a", "web"), ("a", "db"), ("other/a", "web"))] == [
        True,
        False,
        False,
    ]


def test_a_pod_whose_eviction_is_under_way_is_not_counted_again() -> None:
    status = {"disruptionsAllowed": 1, "disruptedPods": {"web-0": "2026-01-01T12:00:00Z"}}
    found = read(budget({"matchLabels": {"app": "web"}}, **status)).disruption_budgets["default/web"]
    assert [found.counts(labelled(name, app="web")) for name in ("web-0", "web-1")] == [False, True]


@pytest.mark.parametrize("selector", [None, {}])
def test_a_budget_whose_selector_asks_for_nothing_covers_nobody(selector: Document | None) -> None:
    found = read(budget(selector, disruptionsAllowed=0)).disruption_budgets["default/web"]
    assert not found.counts(labelled("a", app="web"))


def test_a_removed_budget_is_gone() -> None:
    cluster = ObjectCluster()
    document = budget({}, disruptionsAllowed=0)
    assert cluster.put(document)
    assert cluster.remove(document)
    assert cluster.snapshot(NOON).surroundings.disruption_budgets == {}


def test_a_quota_counts_requests_and_limits_in_the_unit_of_their_resource() -> None:
    hard = {"requests.cpu": "4", "memory": "1Gi", "limits.memory": "400Ti", "requests.nvidia.com/gpu": 2, "count/pods": 7}
    found = read(quota(hard)).resource_quotas["default/team"]
    assert found.hard == {
        "requests.cpu": 4000, "memory": 2**30, "limits.memory": 400 * 2**40, "requests.nvidia.com/gpu": 2000, "count/pods": 7000,
    }  # fmt: skip


def test_what_the_quota_controller_says_goes_before_the_spec() -> None:
    found = read(quota({"cpu": 4}, hard={"cpu": 8}, used={"cpu": "1500m"})).resource_quotas["default/team"]
    assert (found.hard, found.used) == ({"cpu": 8000}, {"cpu": 1500})


def test_a_quota_for_storage_larger_than_any_machine_is_read_without_it() -> None:
    storage = {"requests.storage": "1Ei", "fast.storageclass.storage.k8s.io/requests.storage": "1Ei"}
    assert read(quota({**storage, "cpu": 1})).resource_quotas["default/team"].hard == {"cpu": 1000}


def test_a_broken_quantity_in_a_quota_names_its_place() -> None:
    with pytest.raises(SnapshotError, match=r"ResourceQuota default/team: status.used.cpu: quantity 'many'"):
        read(quota({}, used={"cpu": "many"}))


def test_amounts_under_two_names_for_one_resource_count_once() -> None:
    read_amounts = {"cpu": 4000, "requests.cpu": 5000, "requests.memory": 2**30 * 1000, "limits.memory": 1001}
    assert as_quota_counts(read_amounts) == {"cpu": 5000, "memory": 2**30, "limits.memory": 2}


def test_a_pod_says_when_it_got_its_node() -> None:
    pod = build.pod("a", on="node-0")
    stamps = [("Ready", "True", 13), ("PodScheduled", "False", 14), ("PodScheduled", "True", 12)]
    pod["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": f"2026-01-01T{hour}:00:00Z"} for kind, status, hour in stamps
    ]
    assert task_of(pod).scheduled == NOON
    assert task_of(build.pod("a")).scheduled == 0.0


def test_a_pod_leaves_since_its_deletion_is_expected_not_since_its_time_is_up() -> None:
    pod = build.pod("a", on="node-0")
    pod["metadata"].update(deletionTimestamp="2026-01-01T12:00:30Z", deletionGracePeriodSeconds=30)
    assert task_of(pod).leaving_since == NOON
    assert task_of(build.pod("a")).leaving_since == 0.0


def test_the_class_of_a_pod_is_what_its_status_says_or_what_its_requests_suggest() -> None:
    guaranteed = build.pod("a", cpu=1)
    guaranteed["status"]["qosClass"] = "Guaranteed"
    assert [task_of(pod).qos for pod in (guaranteed, build.pod("b", cpu=1), build.pod("c"))] == [
        "Guaranteed",
        "Burstable",
        "BestEffort",
    ]


@pytest.mark.parametrize(
    ("annotations", "is_revocable"),
    [
        ({}, False),
        ({"volcano.sh/revocable-zone": "*"}, True),
        ({"volcano.sh/revocable-zone": "rz1", "volcano.sh/preemptable": "true"}, False),
        ({"volcano.sh/preemptable": "true"}, True),
        ({"volcano.sh/preemptable": "false"}, False),
    ],
)
def test_a_pod_is_revocable_if_it_takes_any_zone_or_is_explicitly_preemptable(
    annotations: dict[str, str], is_revocable: bool
) -> None:
    assert task_of(annotated("a", annotations)).shape.is_revocable is is_revocable


@pytest.mark.parametrize("annotation", ["volcano.sh/revocable-zone", "volcano.sh/resource-strategy-weight"])
def test_pods_that_differ_in_an_annotation_that_placement_reads_have_different_shapes(annotation: str) -> None:
    reader = PodReader(lambda namespace, claims: {})
    plain, marked = (task_of(annotated(name, marks), reader) for name, marks in (("a", {}), ("b", {annotation: "*"})))
    assert plain.shape is not marked.shape
    assert plain.shape.placement_key() != marked.shape.placement_key()
