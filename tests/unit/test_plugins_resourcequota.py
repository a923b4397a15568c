"""Quotas of namespaces and admission."""

import pytest

from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document


def quota(name: str, hard: Document, used: Document | None = None, namespace: str = "default") -> Document:
    meta = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "status": {"hard": hard, "used": used or {}}}


ONCE = {"name": "resourcequota", "arguments": {"existingPods": "once"}}


def cluster_with(*quotas: Document, plugin: str | Document = "resourcequota") -> Cluster:
    return build.cluster(nodes=1, policy=build.policy([[plugin]], actions="enqueue")).submit(quotas)


def admitted(cluster: Cluster, minimum: Document, name: str = "train") -> Cycle:
    cluster.submit(build.pod_group(name, minResources=minimum), build.pod(f"{name}-0", group=name))
    return cluster.run_cycle()


def test_a_gang_within_the_quota_is_admitted() -> None:
    assert admitted(cluster_with(quota("team", {"cpu": 8}, {"cpu": 4})), {"cpu": 4}).phase("train") == "Inqueue"


def test_a_gang_beyond_the_quota_waits_and_is_told_the_quota_and_its_numbers() -> None:
    cycle = admitted(cluster_with(quota("team", {"requests.memory": "8Gi"}, {"requests.memory": "5Gi"})), {"memory": "4Gi"})
    assert cycle.phase("train") == "Pending"
    assert cycle.why("train") == "not admitted: resource quota team has 5Gi of 8Gi requests.memory used; 4Gi more do not fit"
    (outcome,) = cycle.decisions.outcomes
    (verdict,) = outcome.state.verdicts
    assert (verdict.plugin, verdict.reason) == ("resourcequota", "NamespaceQuotaExceeded")
    amounts = {"used": 5 * 2**30, "reserved": 0, "hard": 8 * 2**30, "wanted": 4 * 2**30}
    assert verdict.numbers == {"quota": "default/team", "resource": "requests.memory", **amounts}


@pytest.mark.parametrize(
    ("limit", "minimum"),
    [
        ({"cpu": 3}, {"requests.cpu": 4}),
        ({"requests.cpu": 3}, {"cpu": 4}),
        ({"requests.nvidia.com/gpu": 3}, {"nvidia.com/gpu": 4}),
        ({"requests.memory": "3Gi"}, {"requests.memory": "4Gi"}),
        ({"limits.memory": "3Gi"}, {"limits.memory": "4Gi"}),
        ({"count/pods": 3}, {"count/pods": 4}),
    ],
)
def test_requests_count_under_either_name_and_everything_else_under_its_own(limit: Document, minimum: Document) -> None:
    assert admitted(cluster_with(quota("team", limit)), minimum).phase("train") == "Pending"


@pytest.mark.parametrize("limit", [{"count/pods": 0}, {"limits.cpu": 1}, {"services": 0}, {"requests.storage": "1Gi"}])
def test_a_limit_on_what_the_gang_does_not_name_is_no_obstacle(limit: Document) -> None:
    assert admitted(cluster_with(quota("team", limit)), {"cpu": 4}).phase("train") == "Inqueue"


def test_a_minimum_under_both_names_counts_once() -> None:
    """Volcano's job controller writes what its pods request under both names, what they are limited to, and their number."""
    written = {"cpu": 4, "requests.cpu": 4, "limits.cpu": 8, "pods": 2, "count/pods": 2}
    tight = {"requests.cpu": 4, "limits.cpu": 8, "count/pods": 2}
    assert admitted(cluster_with(quota("team", tight)), written).phase("train") == "Inqueue"
    assert admitted(cluster_with(quota("team", {"cpu": 4, "pods": 2})), written).phase("train") == "Inqueue"


@pytest.mark.parametrize(
    "spec",
    [
        {"scopes": ["NotBestEffort"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
    ],
)
def test_a_quota_with_scopes_is_left_to_the_api_server(spec: Document) -> None:
    document = {**quota("team", {"cpu": 1}), "spec": {"hard": {"cpu": 1}, **spec}}
    assert admitted(cluster_with(document), {"cpu": 4}).phase("train") == "Inqueue"


def test_every_quota_of_the_namespace_must_agree() -> None:
    quotas = [quota("large", {"cpu": 100}), quota("small", {"cpu": 3})]
    assert "resource quota small has 0 of 3 cpu used" in admitted(cluster_with(*quotas), {"cpu": 4}).why("train")


def test_a_quota_of_another_namespace_does_not_matter() -> None:
    assert admitted(cluster_with(quota("team", {"cpu": 1}, namespace="other")), {"cpu": 4}).phase("train") == "Inqueue"


def test_gangs_admitted_in_the_same_session_count() -> None:
    cluster = cluster_with(quota("team", {"cpu": 8}, {"cpu": 1}))
    cluster.submit(build.pod_group("first", minResources={"cpu": 4}), build.pod("first-0", group="first"))
    cycle = admitted(cluster, {"cpu": 4}, "second")
    assert (cycle.phase("first"), cycle.phase("second")) == ("Inqueue", "Pending")
    assert (
        cycle.why("second")
        == "not admitted: resource quota team has 1 of 8 cpu used and 4 reserved for admitted gangs; 4 more do not fit"
    )


def test_a_gang_that_asks_for_nothing_of_a_full_quota_is_admitted() -> None:
    assert admitted(cluster_with(quota("team", {"cpu": 1}, {"cpu": 2})), {"cpu": 0, "memory": "1Gi"}).phase("train") == "Inqueue"


# --- pods that are already there -----------------------------------------------------------------------------------------

WRITTEN = {"cpu": 4, "requests.cpu": 4, "limits.cpu": 8, "pods": 2, "count/pods": 2}
"""Of two pods with 2 cpu each and limits of 4."""


def with_pods(count: int, hard: Document, used: Document, *, plugin: str | Document = ONCE, ended: int = 0) -> Cycle:
    cluster = cluster_with(quota("team", hard, used), plugin=plugin)
    cluster.submit(build.pod_group("train", min_member=2, minResources=WRITTEN))
    for number in range(count + ended):
        pod = build.pod(f"train-{number}", group="train", cpu=2)
        cluster.submit({**pod, "status": {"phase": "Pending" if number < count else "Failed"}})
    return cluster.run_cycle()


@pytest.mark.parametrize("name", WRITTEN)
def test_pods_that_exist_are_among_what_is_used_and_need_not_count_again(name: str) -> None:
    full = {name: WRITTEN[name]}
    assert with_pods(2, full, full).phase("train") == "Inqueue"
    assert with_pods(2, full, full, plugin="resourcequota").phase("train") == "Pending"


def test_a_gang_that_waits_because_its_pods_count_twice_is_told_so() -> None:
    sentence = (
        "4 more do not fit"
        " (its pods that exist are in both amounts, as in Volcano; resourcequota with existingPods: once counts them once)"
    )
    full = {"requests.cpu": 4}
    assert with_pods(2, full, full, plugin="resourcequota").why("train").endswith(sentence)
    assert with_pods(0, full, full, plugin="resourcequota").why("train").endswith("4 more do not fit")


def test_only_what_is_missing_is_asked_for() -> None:
    assert with_pods(1, {"requests.cpu": 4}, {"requests.cpu": 2}).phase("train") == "Inqueue"
    sentence = "not admitted: resource quota team has 2 of 3 requests.cpu used; 2 more do not fit"
    assert with_pods(1, {"requests.cpu": 3}, {"requests.cpu": 2}).why("train") == sentence


def test_pods_that_have_ended_take_nothing_of_a_quota() -> None:
    assert with_pods(1, {"requests.cpu": 3}, {"requests.cpu": 2}, ended=1).phase("train") == "Pending"


def test_what_is_reserved_for_an_admitted_gang_is_without_its_pods() -> None:
    cluster = cluster_with(quota("team", {"cpu": 6}, {"cpu": 2}), plugin=ONCE)
    cluster.submit(build.pod_group("first", minResources={"cpu": 4}), build.pod("first-0", group="first", cpu=2))
    cluster.submit(build.pod_group("second", minResources={"cpu": 2}))
    cycle = cluster.run_cycle()
    assert (cycle.phase("first"), cycle.phase("second")) == ("Inqueue", "Inqueue")
