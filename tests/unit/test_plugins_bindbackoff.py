"""A gang whose binds failed waits, and goes elsewhere then if it can."""

import json
from typing import Any

import pytest

from phalanx.config.policies import policy_of, policy_of_profile
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.errors import ConfigError, SnapshotError
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import kai_objects as kai

NOON = 1_767_268_800.0
PHALANX = policy_of_profile("phalanx")


def refused(pod: Document, node: str, attempts: int, latest: str = "2026-01-01T12:00:00Z") -> Document:
    pod["metadata"]["annotations"][FAILED_BINDS] = json.dumps([{"node": node, "attempts": attempts, "latest": latest}])
    return pod


def phalanx_cluster(attempts: int = 1, *, nodes: int = 1, node: str = "node-0") -> Cluster:
    group, *pods = build.gang("train", tasks=2, cpu=2)
    return build.cluster(nodes=nodes, policy=PHALANX, cpu=4).submit(group, refused(pods[0], node, attempts), pods[1])


def kai_cluster(attempts: int = 1, *, nodes: int = 1, plugins: Any = None) -> Cluster:
    group, *pods = kai.gang("train", tasks=2, gpus=1)
    chosen = {"bindbackoff": {"enabled": True}} if plugins is None else plugins
    cluster = kai.cluster(nodes=nodes, gpus=2, plugins=chosen)
    return cluster.submit(kai.queue("a", quota=4), group, refused(pods[0], "node-0", attempts), pods[1])


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (9, 256), (10, 300), (2**31 - 1, 300)])
@pytest.mark.parametrize("make", [phalanx_cluster, kai_cluster])
def test_every_failure_doubles_the_wait_up_to_five_minutes(make: Any, attempts: int, seconds: int) -> None:
    cluster = make(attempts)
    assert cluster.run_cycle(now=NOON + seconds - 0.5).binds == []
    times = "once" if attempts == 1 else f"{attempts} times"
    assert cluster.why("train") == f"bind to node-0 failed {times}, tried again in 1 s"
    assert len(cluster.run_cycle(now=NOON + seconds).binds) == 2


@pytest.mark.parametrize("make", [phalanx_cluster, kai_cluster])
def test_the_node_that_refused_is_left_out_as_long_as_another_will_do(make: Any) -> None:
    binds = make(nodes=3).run_cycle(now=NOON + 60).binds
    assert len(binds) == 2
    assert "node-0" not in {node for _, node in binds}


def test_kai_itself_tries_the_same_node_at_once() -> None:
    assert len(kai_cluster(3, plugins={}).run_cycle(now=NOON).binds) == 2


def test_a_kai_group_is_told_in_its_condition() -> None:
    cycle = kai_cluster(3).run_cycle(now=NOON)
    (condition,) = cycle.answer["groups"]["default/train"]["conditions"]
    assert (condition["reason"], condition["message"]) == (
        "BindBackoff",
        "bind to node-0 failed 3 times, tried again in 4 s",
    )


def test_a_failed_request_counts_as_the_annotation_does() -> None:
    group, *pods = kai.gang("train", tasks=2, gpus=1)
    request = kai.bind_request("train-0", "node-0", phase="Failed", failedAttempts=1)
    cluster = kai.cluster(gpus=2, plugins={"bindbackoff": {"enabled": True}}).submit(kai.queue("a"), group, pods, request)
    cycle = cluster.run_cycle(now=NOON)
    assert cycle.why("train") == "bind to node-0 failed once, tried again in 1 s"
    assert cycle.answer["deleteBindRequests"] == {"default/train-0": "it failed for good"}
    failures = cycle.answer["tasks"]["default/train-0"]["failedBinds"]
    assert failures == [{"node": "node-0", "attempts": 1, "latest": "2026-01-01T12:00:00Z"}]


def test_a_failure_that_the_pod_knows_already_is_not_counted_twice() -> None:
    group, pod = kai.gang("train", gpus=1)
    request = kai.bind_request("train-0", "node-0", phase="Failed", failedAttempts=1)
    known = kai.cluster().submit(kai.queue("a"), group, refused(pod, "node-0", 2), request).run_cycle(now=NOON)
    assert known.answer["tasks"]["default/train-0"]["failedBinds"][0]["attempts"] == 2
    older = refused(pod, "node-0", 2, latest="2026-01-01T11:59:00Z")
    newer = kai.cluster().submit(kai.queue("a"), group, older, request).run_cycle(now=NOON)
    assert newer.answer["tasks"]["default/train-0"]["failedBinds"][0]["attempts"] == 3


def test_others_take_the_room_meanwhile() -> None:
    cluster = phalanx_cluster(3).submit(build.gang("other", tasks=2, cpu=2))
    assert [name for name, _ in cluster.run_cycle(now=NOON).binds] == ["other-0", "other-1"]


def test_nobody_is_evicted_for_a_gang_that_has_to_wait() -> None:
    cluster = build.cluster(nodes=1, policy=PHALANX, cpu=4)
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    group, pod = build.gang("train", cpu=4)
    group["spec"]["priorityClassName"] = "high"
    running = [build.pod_group("old", phase="Running"), build.pod("old-0", group="old", on="node-0", cpu=4)]
    cluster.submit(classes, running, group, refused(pod, "node-0", 3))
    assert cluster.run_cycle(now=NOON).answer["evictions"] == {}
    assert list(cluster.run_cycle(now=NOON + 4).answer["evictions"]) == ["default/old-0"]


def test_a_pod_that_runs_has_forgotten_its_failures() -> None:
    group, pod = build.gang("train", tasks=1, cpu=2)
    running = refused(build.pod("train-1", group="train", on="node-0", cpu=2), "node-0", 9)
    cluster = build.cluster(nodes=1, policy=PHALANX, cpu=4).submit(group, pod, running)
    assert cluster.run_cycle(now=NOON).binds == [("train-0", "node-0")]


@pytest.mark.parametrize("text", ["", "soon", "{}", '[{"node": "n"}]', '[{"node": "n", "attempts": 1, "latest": "soon"}]'])
def test_an_annotation_that_cannot_be_read_is_refused_alone(text: str) -> None:
    group, pod = build.gang("train")
    pod["metadata"]["annotations"][FAILED_BINDS] = text
    cluster = build.cluster(nodes=1, policy=PHALANX).submit(build.gang("good"), group)
    with pytest.raises(SnapshotError, match=r"Pod default/train-0: metadata.annotations\['phalanx.dev/failed-binds'\]"):
        cluster.submit(pod)
    assert [name for name, _ in cluster.run_cycle(now=NOON).binds] == ["good-0"]


def test_the_waits_are_settings() -> None:
    plugins = {"bindbackoff": {"arguments": {"first": "10s", "longest": "15s"}}}
    assert kai_cluster(1, plugins=plugins).run_cycle(now=NOON).why("train").endswith("tried again in 10 s")
    assert kai_cluster(2, plugins=plugins).run_cycle(now=NOON).why("train").endswith("tried again in 15 s")
    with pytest.raises(ConfigError, match="argument 'longest': shorter than 'first'; write at least as much"):
        policy_of({"profile": "kai", "plugins": {"bindbackoff": {"arguments": {"first": "10s", "longest": "5s"}}}})


def racks(cluster: Cluster, *, room_elsewhere: bool) -> Cluster:
    """Put each of two nodes into a rack of its own; without room elsewhere the second one is full."""
    cluster.submit(kai.topology("net", "rack"))
    for number in range(2):
        cluster.submit(build.node(f"node-{number}", labels={"rack": f"r{number}"}, cpu=64, gpus=2))
        cluster.submit(build.hypernode(f"r{number}", tier=1, members=[f"node-{number}"]))
    return cluster if room_elsewhere else cluster.submit(build.pod("full", on="node-1", cpu=64, gpus=2))


@pytest.mark.parametrize(("room_elsewhere", "node"), [(True, "node-1"), (False, "node-0")])
def test_a_rack_without_the_node_that_refused_is_tried_first(room_elsewhere: bool, node: str) -> None:
    cluster = racks(kai_cluster(nodes=2), room_elsewhere=room_elsewhere)
    group, *_ = kai.gang("train", tasks=2, topologyConstraint={"topology": "net", "requiredTopologyLevel": "rack"})
    assert {place for _, place in cluster.submit(group).run_cycle(now=NOON + 60).binds} == {node}
    cluster = racks(phalanx_cluster(nodes=2), room_elsewhere=room_elsewhere)
    group = build.pod_group("train", min_member=2, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    assert {place for _, place in cluster.submit(group).run_cycle(now=NOON + 60).binds} == {node}
