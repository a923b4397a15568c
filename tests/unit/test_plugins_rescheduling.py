"""Rescheduling: tasks leave nodes that are too full."""

import pytest

from phalanx.errors import ConfigError
from phalanx.plugins.rescheduling import ReschedulingPlugin
from phalanx.session.policy import PluginPolicy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

NOW = 1767268800.0
"""2026-01-01T12:00:00Z."""
HALF_TO_EIGHTY = {"thresholds": {"cpu": 50, "memory": 50}, "targetThresholds": {"cpu": 80, "memory": 80}}


def cluster_of(nodes: int, params: Document | None = None, **arguments: object) -> Cluster:
    strategy = {"name": "lowNodeUtilization", "params": HALF_TO_EIGHTY if params is None else params}
    plugin = {"name": "rescheduling", "arguments": {"strategies": [strategy], **arguments}}
    cluster = build.cluster(nodes=nodes, policy=build.policy([[plugin]], actions="shuffle"), cpu=10, memory="10Gi", pods=10)
    return cluster.submit(build.pod_group("web", min_member=0, phase="Running"))


def pod(name: str, on: int, *, priority: int = 1, qos: str = "Burstable", created: str = "", **asks: int | str) -> Document:
    document = build.pod(name, group="web", on=f"node-{on}", spec={"priority": priority}, **(asks or {"cpu": 1}))
    document["status"]["qosClass"] = qos
    document["metadata"]["creationTimestamp"] = created or None
    return document


def pods(count: int, on: int, prefix: str = "web") -> list[Document]:
    return [pod(f"{prefix}-{number}", on) for number in range(count)]


def evicted(cluster: Cluster) -> list[str]:
    return sorted(key.removeprefix("default/") for key in cluster.run_cycle(now=NOW).decisions.evictions)


def test_a_high_node_gives_up_tasks_until_it_is_at_its_target() -> None:
    assert len(evicted(cluster_of(2).submit(pods(10, on=0)))) == 2


def test_nobody_moves_when_no_node_is_low() -> None:
    assert evicted(cluster_of(2).submit(pods(10, on=0), pods(6, on=1, prefix="busy"))) == []


def test_nobody_moves_when_no_node_is_high() -> None:
    assert evicted(cluster_of(2).submit(pods(8, on=0))) == []


def test_a_node_that_is_low_in_one_resource_only_is_not_low() -> None:
    assert evicted(cluster_of(2).submit(pods(10, on=0), pod("big", 1, memory="6Gi"))) == []


def test_a_cordoned_node_is_no_place_to_go() -> None:
    cluster = cluster_of(1).submit(build.node("node-1", cpu=10, memory="10Gi", pods=10, spec={"unschedulable": True}))
    assert evicted(cluster.submit(pods(10, on=0))) == []


def test_low_nodes_take_no_more_than_their_own_target() -> None:
    cluster = cluster_of(2, {"thresholds": {"cpu": 50}, "targetThresholds": {"cpu": 50}})
    assert len(evicted(cluster.submit(pods(10, on=0), pods(3, on=1, prefix="few")))) == 2


def test_the_fullest_node_is_relieved_first() -> None:
    params = {"thresholds": {"cpu": 90}, "targetThresholds": {"cpu": 90}}
    cluster = cluster_of(3, params).submit(pod("few", 2, cpu=8), pod("a-0", 0, cpu=9), pod("a-1", 0, cpu="500m"))
    assert evicted(cluster.submit(pod("b-0", 1, cpu=9), pod("b-1", 1, cpu=1))) == ["b-1"]


def test_the_least_important_goes_first_by_priority_then_class_then_age() -> None:
    cluster = cluster_of(2).submit(
        pod("top", 0, priority=9, qos="BestEffort", cpu=2),
        pod("old", 0, qos="BestEffort", created="2026-01-01T00:00:00Z", cpu=1),
        pod("young", 0, qos="BestEffort", created="2026-01-01T01:00:00Z", cpu=1),
        pod("some", 0, created="2026-01-01T02:00:00Z", cpu=3),
        pod("sure", 0, qos="Guaranteed", cpu=3),
    )
    assert evicted(cluster) == ["old", "young"]
    cluster.submit(pod("lowest", 0, priority=0, qos="Guaranteed", cpu=0))
    assert evicted(cluster) == ["lowest", "old", "young"]


def test_a_task_that_no_low_nodes_can_take_stays_and_a_smaller_one_goes() -> None:
    assert evicted(cluster_of(2).submit(pod("large", 0, priority=0, cpu=9), pod("small", 0, cpu=1))) == ["small"]


@pytest.mark.parametrize("kind", ["not preemptable", "system", "just placed"])
def test_some_tasks_stay_whatever_their_node_looks_like(kind: str) -> None:
    cluster = cluster_of(2)
    for document in pods(10, on=0):
        if kind == "not preemptable":
            document["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
        elif kind == "system":
            document["spec"]["priority"] = 2_000_000_000
        else:
            stamp = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T11:56:00Z"}
            document["status"]["conditions"] = [stamp]
        cluster.submit(document)
    assert evicted(cluster) == []


def test_the_interval_says_how_long_a_task_stays_where_it_was_put() -> None:
    cluster = cluster_of(2, interval="3m")
    for document in pods(10, on=0):
        stamp = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T11:56:00Z"}
        document["status"]["conditions"] = [stamp]
        cluster.submit(document)
    assert len(evicted(cluster)) == 2


def test_tasks_that_leave_count_as_gone_so_that_the_next_session_moves_nobody_else() -> None:
    cluster = cluster_of(2)
    for number, document in enumerate(pods(10, on=0)):
        if number < 2:
            document["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
        cluster.submit(document)
    assert evicted(cluster) == []


def test_without_settings_nobody_is_moved() -> None:
    cluster = build.cluster(nodes=2, policy=build.policy([["rescheduling"]], actions="shuffle"), cpu=10)
    assert evicted(cluster.submit(build.pod_group("web", min_member=0, phase="Running"), pods(10, on=0))) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"interval": "soon"}, "argument 'interval': 'soon' is not a duration"),
        ({"strategies": "all"}, "argument 'strategies': 'all' is not a list of strategies"),
        ({"strategies": ["all"]}, r"argument 'strategies\[0\]': 'all' is not a mapping"),
        (
            {"strategies": [{"name": "other"}]},
            r"'strategies\[0\].name': 'other' is not a known strategy; known: lowNodeUtilization",
        ),
        ({"strategies": [{"name": "lowNodeUtilization", "params": {"threshold": 1}}]}, "did you mean 'thresholds'?"),
        ({"strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": {"pod": 1}}}]}, "did you mean 'pods'?"),
        ({"strategies": [{"name": "lowNodeUtilization", "params": {"thresholds": {"cpu": "half"}}}]}, "'half' is not a number"),
    ],
)
def test_a_wrong_setting_says_where_it_is(arguments: Document, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ReschedulingPlugin(PluginPolicy("rescheduling", arguments=arguments))
