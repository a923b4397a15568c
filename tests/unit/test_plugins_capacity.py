"""Capacity with `brokenQueues: refuse-alone`: what is wrong with one queue is that queue's matter."""

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import run_cycle
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

POLICY = policy_of_profile("phalanx")


def queue(name: str, parent: str = "root", weight: int = 1) -> Document:
    return build.queue(name, parent=parent, weight=weight)


def running(name: str, queue: str) -> list[Document]:
    return [build.pod_group(name, queue=queue, phase="Running"), build.pod(f"{name}-0", group=name, on="node-0", cpu=4)]


def cluster(*parts: Document | list[Document]) -> Cluster:
    return build.cluster(nodes=1, policy=POLICY, cpu=4).submit(*parts)


@pytest.mark.parametrize("parent", ["nowhere", "lost"], ids=["missing parent", "circle"])
def test_a_gang_in_a_queue_without_a_place_in_the_tree_waits_alone(parent: str) -> None:
    queues = [queue("lost", parent), queue("good")]
    cycle = cluster(queues, build.gang("a", queue="lost", cpu=1), build.gang("b", queue="good", cpu=1)).run_cycle()
    assert cycle.binds == [("b-0", "node-0")]
    assert "lost" in cycle.answer["groups"]["default/a"]["why"]


def test_a_gang_in_a_queue_with_queues_below_it_waits_alone() -> None:
    queues = [queue("inner"), queue("leaf", "inner")]
    cycle = cluster(queues, build.gang("a", queue="inner", cpu=1), build.gang("b", queue="leaf", cpu=1)).run_cycle()
    assert cycle.binds == [("b-0", "node-0")]
    assert "inner" in cycle.answer["groups"]["default/a"]["why"]


@pytest.mark.parametrize(("parent", "victims"), [("root", ["default/old-0"]), ("nowhere", [])])
def test_a_wrong_parent_costs_no_running_pods(parent: str, victims: list[str]) -> None:
    queues = [queue("one", parent, weight=1), queue("two", weight=9)]
    cycle = cluster(queues, running("old", "one"), build.gang("new", queue="two", tasks=1, cpu=3)).run_cycle()
    assert list(cycle.answer["evictions"]) == victims


def test_sessions_go_on_when_the_object_of_the_root_queue_goes() -> None:
    objects = ObjectCluster()
    root, team = queue("root", ""), queue("team")
    for document in (root, team, build.node("n0", cpu=4), *build.gang("train", queue="team", tasks=2, cpu=1)):
        objects.put(document)
    objects.remove(root)
    decisions = run_cycle(objects.snapshot(0.0), POLICY, CATALOGUE)
    assert set(decisions.binds.values()) == {"n0"}
    objects.remove(team)
    assert {"default", "root"} <= set(objects.snapshot(0.0).queues)
