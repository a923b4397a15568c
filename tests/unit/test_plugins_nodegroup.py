"""Node groups: where the tasks of a queue may go, where they go first, and how much of a group they get."""

import json
from typing import Any

import pytest

from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

LABEL = "volcano.sh/nodegroup-name"


def groups(required: list[str] | None = None, preferred: list[str] | None = None) -> Document:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": required or [],
        "preferredDuringSchedulingIgnoredDuringExecution": preferred or [],
    }


def queue(name: str, near: Document | None = None, far: Document | None = None, **more: Any) -> Document:
    affinity = {"nodeGroupAffinity": near, "nodeGroupAntiAffinity": far}
    return build.queue(name, affinity=affinity if near or far else None, **more)


def cluster(*queues: Document, actions: str = "enqueue, allocate, backfill", **plugin: Any) -> Cluster:
    """Two nodes in group a, one in group b, one in none; every node has room for two tasks of four cpu."""
    policy = build.policy([["gang", "predicates", {"name": "nodegroup", **plugin}]], actions=actions)
    found = build.cluster(nodes=0, policy=policy).submit(*queues)
    for name, group in (("a-0", "a"), ("a-1", "a"), ("b-0", "b"), ("plain", "")):
        found.submit(build.node(name, labels={LABEL: group} if group else {}))
    return found


def nodes_of(found: Cluster, queue: str, tasks: int = 1) -> list[str]:
    found.submit(build.gang("train", tasks=tasks, min_member=1, queue=queue, cpu=4))
    return sorted(node for _, node in found.run_cycle().binds)


def test_tasks_stay_on_the_groups_that_their_queue_requires() -> None:
    assert nodes_of(cluster(queue("q", groups(["a"]))), "q", tasks=5) == ["a-0", "a-0", "a-1", "a-1"]


def test_a_preferred_group_is_used_after_a_required_one() -> None:
    assert nodes_of(cluster(queue("q", groups(["b"], ["a"]))), "q", tasks=3) == ["a-0", "b-0", "b-0"]


def test_the_first_of_several_preferred_groups_wins_when_their_order_counts() -> None:
    found = cluster(queue("q", groups(preferred=["b", "a"])), arguments={"enablePreferredOrder": True})
    assert nodes_of(found, "q", tasks=3) == ["a-0", "b-0", "b-0"]


def test_a_forbidden_group_is_not_used() -> None:
    assert nodes_of(cluster(queue("q", groups(["a", "b"]), groups(["a"]))), "q", tasks=5) == ["b-0", "b-0"]


def test_an_avoided_group_is_used_last() -> None:
    found = cluster(queue("q", groups(preferred=["a"]), groups(preferred=["b"])))
    assert nodes_of(found, "q", tasks=5) == ["a-0", "a-0", "a-1", "a-1", "b-0"]


def test_a_queue_that_names_no_group_gets_no_node_in_strict_mode() -> None:
    found = cluster(queue("q"))
    assert nodes_of(found, "q") == []
    assert found.why("train").endswith(
        "(4 nodes: 3 are in node groups a and b, which queue 'q' may not use, 1 is in no node group)"
    )


def test_a_queue_that_names_no_group_gets_the_plain_nodes_when_not_strict() -> None:
    assert nodes_of(cluster(queue("q"), arguments={"strict": False}), "q", tasks=3) == ["plain", "plain"]


def test_a_queue_inherits_the_groups_of_its_nearest_ancestor_with_hierarchy() -> None:
    family = (queue("top", groups(["b"])), queue("middle", parent="top"), queue("leaf", parent="middle"))
    assert nodes_of(cluster(*family, enableHierarchy=True), "leaf") == ["b-0"]
    assert nodes_of(cluster(*family), "leaf") == []


def test_queues_that_are_their_own_ancestors_do_no_harm() -> None:
    found = cluster(queue("x", parent="y"), queue("y", parent="x"), enableHierarchy=True)
    assert nodes_of(found, "x") == []


def limited(limits: object) -> Document:
    found = queue("q", groups(["a", "b"]))
    text = limits if isinstance(limits, str) else json.dumps(limits)
    found["metadata"]["annotations"] = {"volcano.sh/nodegroup-resource-limits": text}
    return found


def test_a_queue_gets_no_more_of_a_group_than_its_limit() -> None:
    found = cluster(limited({"a": {"cpu": "4"}}))
    assert nodes_of(found, "q", tasks=6) == ["a-0", "b-0", "b-0"]
    assert "of which its queue has all it may have" in found.why("train")


def test_running_tasks_count_against_the_limit() -> None:
    found = cluster(limited({"a": {"cpu": 8}, "b": {"cpu": 0}}))
    found.submit(build.pod_group("old", phase="Running", queue="q"), build.pod("old-0", group="old", on="a-1", cpu=4))
    assert nodes_of(found, "q", tasks=3) == ["a-0"]


def test_a_limit_that_cannot_be_read_closes_every_node_with_a_reason() -> None:
    found = cluster(limited("{broken"))
    assert nodes_of(found, "q") == []
    assert "cannot be read" in found.why("train")


def test_best_effort_tasks_stay_on_the_groups_of_their_queue() -> None:
    found = cluster(queue("q", groups(["b"])))
    found.submit(build.gang("light", tasks=2, queue="q"))
    assert [node for _, node in found.run_cycle().binds] == ["b-0", "b-0"]


def with_victims(action: str) -> Cluster:
    """Every node is full, and a more important gang of the same queue needs one; the queue may use group b."""
    found = cluster(queue("q", groups(["b"])), actions=f"enqueue, allocate, {action}")
    for node in ("a-0", "a-1", "b-0", "plain"):
        found.submit(build.pod_group(f"old-{node}", min_member=0, phase="Running", queue="q"))
        found.submit(build.pod(f"victim-{node}", group=f"old-{node}", on=node, cpu=8))
    found.submit({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10})
    found.submit(
        build.pod_group("urgent", queue="q", phase="Inqueue", priorityClassName="high"), build.pod("u", group="urgent", cpu=8)
    )
    return found


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_room_is_made_on_a_node_that_the_queue_may_use(action: str) -> None:
    assert with_victims(action).run_cycle().pipelined == [("u", "b-0")]


def test_preempt_evicts_nobody_from_a_group_that_the_queue_may_not_use() -> None:
    assert list(with_victims("preempt").run_cycle().answer["evictions"]) == ["default/victim-b-0"]


def test_a_nominated_node_in_a_wrong_group_is_not_used() -> None:
    found = cluster(queue("q", groups(["b"])))
    pod = build.pod("train-0", group="train", cpu=4)
    pod["status"]["nominatedNodeName"] = "a-0"
    found.submit(build.pod_group("train", queue="q"), pod)
    assert found.run_cycle().binds == [("train-0", "b-0")]
