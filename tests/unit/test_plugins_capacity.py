"""Capacity in a tree: what bounds it, which queue comes first, who may reclaim from whom, and queues that are broken."""

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import open_session, run_cycle
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support.open_sessions import gang_in

POLICY = policy_of_profile("phalanx")


def queue(name: str, parent: str = "root", weight: int = 1) -> Document:
    return build.queue(name, parent=parent, weight=weight)


def running(name: str, queue: str) -> list[Document]:
    return [build.pod_group(name, queue=queue, phase="Running"), build.pod(f"{name}-0", group=name, on="node-0", cpu=4)]


def cluster(*parts: Document | list[Document]) -> Cluster:
    return build.cluster(nodes=1, policy=POLICY, cpu=4).submit(*parts)


# --- limits, order and shares in a tree --------------------------------------------------------------------------------


def session_of(parts: list[Document], is_tree: bool = True, **arguments: str | int) -> Session:
    policy = build.policy([[{"name": "capacity", "enableHierarchy": is_tree, "arguments": arguments}]], "allocate")
    return open_session(Cluster(policy).submit(parts).objects.snapshot(0.0), policy, CATALOGUE)


def room(session: Session, queue: str) -> int:
    return session.queue_room(session.queues[queue], gang_in(session, "train").tasks[0].task.shape).tasks


@pytest.mark.parametrize(("limit", "wanted"), [("capability", [20, 40]), ("cluster", [5, 8])])
def test_the_size_of_the_cluster_bounds_a_tree_only_if_it_is_told_to(limit: str, wanted: list[int]) -> None:
    queues = [
        build.queue("open", capability={"cpu": 20}),
        build.queue("safe", guarantee={"resource": {"cpu": 3}}, capability={"cpu": 40}),
    ]
    session = session_of([build.node("n", cpu=8), *queues, *build.gang("train", tasks=1, queue="open", cpu=1)], treeLimit=limit)
    assert [room(session, "open"), room(session, "safe")] == wanted


def test_what_no_node_has_is_refused_in_an_unlimited_tree_too() -> None:
    gang = build.gang("train", tasks=1, queue="team", gpus=1)
    assert room(session_of([build.node("n"), build.queue("team"), *gang]), "team") == 0


def test_a_queue_may_always_use_what_is_guaranteed_to_it() -> None:
    queues = [build.queue(name, guarantee={"resource": {"cpu": 6}}) for name in ("a", "b")]
    session = session_of([build.node("n", cpu=8), *queues, *build.gang("train", tasks=1, queue="a", cpu=1)], is_tree=False)
    assert room(session, "a") == 6


DEPARTMENTS = [
    build.queue("east", priority=5, deserved={"cpu": 4}), build.queue("west", deserved={"cpu": 4}),
    build.queue("east-slow", parent="east", deserved={"cpu": 2}),
    build.queue("west-fast", parent="west", priority=9, deserved={"cpu": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "first"), [("leaves-first", "west-fast"), ("by-level", "east-slow")])
def test_the_priority_of_a_leaf_or_that_of_its_department_comes_first(rule: str, first: str) -> None:
    session = session_of([build.node("n"), *DEPARTMENTS], queuePriority=rule)
    slow, fast = session.queues["east-slow"], session.queues["west-fast"]
    assert (first == "west-fast") == session.queue_comes_first(fast, slow) == (not session.queue_comes_first(slow, fast))


@pytest.mark.parametrize(("rule", "first"), [("at-open", "a-leaf"), ("live", "b-leaf")])
def test_the_share_of_a_department_stays_as_it_was_or_follows_the_session(rule: str, first: str) -> None:
    queues = [build.queue("a", deserved={"cpu": 4}), build.queue("b", deserved={"cpu": 4})]
    queues += [build.queue(f"{name}-leaf", parent=name, deserved={"cpu": 4}) for name in ("a", "b")]
    session = session_of([build.node("n"), *queues, *build.gang("train", tasks=1, queue="a-leaf", cpu=2)], ancestorShares=rule)
    session.statement().allocate(gang_in(session, "train").tasks, [0])
    assert session.queue_comes_first(session.queues["a-leaf"], session.queues["b-leaf"]) == (first == "a-leaf")


def test_what_a_queue_deserves_must_cover_all_tasks_that_it_reclaims_for_together() -> None:
    queues = [build.queue("team", deserved={"cpu": 4})]
    session = session_of([build.node("n"), *queues, *build.gang("train", tasks=3, queue="team", cpu=2)])
    tasks, team = gang_in(session, "train").tasks, session.queues["team"]
    assert session.queue_preemptive(team, tasks[:1]).ok
    assert session.queue_preemptive(team, tasks[:2]).ok
    assert not session.queue_preemptive(team, tasks).ok


def test_proportion_too_asks_for_all_tasks_together() -> None:
    policy = build.policy([["proportion"]], "allocate")
    queues = [build.queue("team", capability={"cpu": 4}), build.queue("other")]
    parts = [build.node("n"), *queues, *build.gang("train", tasks=3, queue="team", cpu=2)]
    session = open_session(Cluster(policy).submit(parts).objects.snapshot(0.0), policy, CATALOGUE)
    tasks, team = gang_in(session, "train").tasks, session.queues["team"]
    assert [session.queue_preemptive(team, tasks[:count]).ok for count in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(("deserved", "level", "victims"), [({}, 1, []), ({"cpu": 1}, 1, ["old-0"]), ({}, 0, ["old-0"])])
def test_siblings_that_deserve_nothing_do_not_take_from_each_other(
    deserved: dict[str, int], level: int, victims: list[str]
) -> None:
    top = build.queue("top", deserved={"cpu": 8})
    leaves = [build.queue("mine", parent="top", deserved=deserved), build.queue("theirs", parent="top")]
    old = [build.pod_group("old", queue="theirs", phase="Running"), build.pod("old-0", group="old", on="n", cpu=4)]
    session = session_of(
        [build.node("n", cpu=4), top, *leaves, *old, *build.gang("train", tasks=1, queue="mine", cpu=1)], ancestorReclaimLevel=level
    )
    found = session.reclaimable(gang_in(session, "train").tasks[0], gang_in(session, "old").tasks)
    assert [task.task.name for task in found] == victims


# --- broken queues -----------------------------------------------------------------------------------------------------


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
