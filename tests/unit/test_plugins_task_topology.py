"""Task topology: roles of a gang that share nodes, keep apart, and come in order."""

from collections import defaultdict

import numpy as np

from phalanx.config.builtin import CATALOGUE
from phalanx.session.cycle import open_session
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle

PREFIX = "volcano.sh/task-topology-"


def cluster(roles: dict[str, int], *, nodes: int = 4, cpu: int = 8, min_member: int | None = None, **wishes: str) -> Cluster:
    """A gang with so many tasks of each role, of two cpu each."""
    policy = build.policy([["gang", "predicates", "task-topology"]])
    total = sum(roles.values())
    group = build.pod_group("train", min_member=total if min_member is None else min_member)
    group["metadata"]["annotations"] = {PREFIX + key.replace("_", "-"): text for key, text in wishes.items()}
    found = build.cluster(nodes=nodes, policy=policy, cpu=cpu).submit(group)
    for role, count in roles.items():
        for number in range(count):
            found.submit(build.in_group("train", build.pod(f"train-{role}-{number}", cpu=2), role=role))
    return found


def roles_by_node(cycle: Cycle) -> list[list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for pod, node in cycle.binds:
        found[node].append(pod.split("-")[1])
    return sorted(sorted(roles) for roles in found.values())


def test_roles_with_affinity_share_nodes() -> None:
    cycle = cluster({"ps": 2, "worker": 2}, affinity="ps,worker", anti_affinity="ps").run_cycle()
    assert roles_by_node(cycle) == [["ps", "worker"], ["ps", "worker"]]


def test_tasks_of_a_role_with_affinity_to_itself_share_a_node() -> None:
    assert roles_by_node(cluster({"worker": 4}, affinity="worker").run_cycle()) == [["worker"] * 4]


def test_tasks_of_a_role_with_anti_affinity_to_itself_keep_apart() -> None:
    assert roles_by_node(cluster({"worker": 4}, anti_affinity="worker").run_cycle()) == [["worker"]] * 4


def test_roles_with_anti_affinity_keep_apart() -> None:
    cycle = cluster({"a": 2, "b": 2}, affinity="a;b", anti_affinity="a,b").run_cycle()
    assert roles_by_node(cycle) == [["a", "a"], ["b", "b"]]


def test_tasks_keep_apart_from_running_members() -> None:
    found = cluster({"worker": 2}, anti_affinity="worker", nodes=2)
    first = found.run_cycle()
    found.carry_out(first)
    found.remove("Pod", "train-worker-1")
    found.submit(build.in_group("train", build.pod("train-worker-2", cpu=2), role="worker"))
    taken = dict(first.binds)["train-worker-0"]
    assert [node for _, node in found.run_cycle().binds] == [name for name in ("node-0", "node-1") if name != taken]


def test_what_does_not_fit_goes_elsewhere() -> None:
    assert roles_by_node(cluster({"worker": 4}, affinity="worker", cpu=6).run_cycle()) == [["worker"], ["worker"] * 3]


def session_of(found: Cluster) -> Session:
    return open_session(found.objects.snapshot(0.0), found.policy, CATALOGUE)


def order_of(found: Cluster) -> list[str]:
    session = session_of(found)
    tasks = next(iter(session.gangs.values())).tasks
    return [task.task.name.removeprefix("train-") for task in session.sorted_tasks(tasks)]


def test_tasks_in_the_bigger_bucket_come_first_and_those_in_none_last() -> None:
    found = cluster({"b": 2, "a": 1, "free": 1}, affinity="b", anti_affinity="a,b")
    assert order_of(found) == ["b-0", "b-1", "a-0", "free-0"]


def test_inside_a_bucket_the_given_order_of_roles_counts() -> None:
    assert order_of(cluster({"a": 1, "b": 1, "c": 1}, affinity="a,b,c", task_order="c,a,b")) == ["c-0", "a-0", "b-0"]


def test_a_node_scores_what_it_could_take_of_the_bucket() -> None:
    found = cluster({"worker": 4}, affinity="worker", nodes=0)
    found.submit(build.node("big", cpu=8), build.node("middle", cpu=4), build.node("tiny", cpu=1))
    session = session_of(found)
    scores = session.task_scores(next(iter(session.gangs.values())).tasks[0])
    assert scores is not None
    assert dict(zip(session.snapshot.nodes.names, scores.tolist(), strict=True)) == {"big": 100.0, "middle": 50.0, "tiny": 0.0}


def test_undoing_a_placement_restores_the_scores() -> None:
    session = session_of(cluster({"worker": 4}, affinity="worker"))
    tasks = next(iter(session.gangs.values())).tasks
    before = session.task_scores(tasks[1])
    with session.statement() as statement:
        statement.allocate([tasks[0]], [2])
        during = session.task_scores(tasks[1])
    after = session.task_scores(tasks[1])
    assert before is not None
    assert after is not None
    assert during is not None
    assert np.array_equal(before, after)
    assert int(during.argmax()) == 2


def test_a_role_that_nobody_has_makes_the_wishes_void() -> None:
    found = cluster({"worker": 4}, anti_affinity="worker;driver")
    assert session_of(found).task_scores(next(iter(session_of(found).gangs.values())).tasks[0]) is None


def test_a_gang_without_annotations_is_left_alone() -> None:
    assert len(cluster({"worker": 4}).run_cycle().binds) == 4
