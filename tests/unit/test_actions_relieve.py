"""Relief: of gangs that share a node without room for all, the one that came last is rolled back as a whole, and told why."""

from dataclasses import replace
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.session.cycle import Decider, run_cycle
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support.broken_gangs import NOW, stamp

POLICY = policy_of_profile("phalanx")


def bound(pod: Document, *, ago: float) -> Document:
    """Say when a pod was bound."""
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(ago)}]
    return pod


def running(name: str, nodes: str, *, ago: float, cpu: int = 2, min_member: int | None = None, **spec: Any) -> list[Document]:
    """Return a gang with one pod on each of these nodes, all bound at once."""
    pods = [
        bound(build.pod(f"{name}-{number}", group=name, on=f"node-{node}", cpu=cpu), ago=ago)
        for number, node in enumerate(nodes.split())
    ]
    group = build.pod_group(name, min_member=len(pods) if min_member is None else min_member, phase="Running", **spec)
    group["status"]["conditions"] = [{"type": "Scheduled", "status": "True"}]
    return build.bound_for(group, *pods)


def cluster(*parts: Any, nodes: int = 2, cpu: int = 4) -> Cluster:
    return build.cluster(nodes=nodes, policy=POLICY, cpu=cpu).submit(*parts)


def evicted(*parts: Any, **more: Any) -> list[str]:
    return sorted(cluster(*parts, **more).run_cycle(now=NOW).answer["evictions"])


def test_the_gang_that_came_last_goes_as_a_whole_and_each_pod_hears_why() -> None:
    cycle = cluster(running("older", "0 0", ago=300), running("younger", "0 1", ago=5)).run_cycle(now=NOW)
    text = "rolled back: node node-0 holds 6 of 4 cpu, and gang default/younger came last"
    assert cycle.answer["evictions"] == {
        f"default/younger-{number}": {"action": "relieve", "for": "", "message": text} for number in range(2)
    }
    assert cycle.why("younger") == text


def test_nothing_goes_where_everything_fits() -> None:
    assert evicted(running("older", "0", ago=300), running("younger", "0 1", ago=5)) == []


def test_a_gang_loses_only_pods_that_it_can_do_without() -> None:
    older, younger = running("older", "0", ago=300), running("younger", "1 1 0 0", ago=5, min_member=3)
    assert evicted(older, younger) == ["default/younger-3"]


def test_a_gang_that_needs_them_goes_though_it_has_others() -> None:
    older, younger = running("older", "0 0", ago=300), running("younger", "1 0 0", ago=5, min_member=2)
    assert evicted(older, younger) == ["default/younger-0", "default/younger-1", "default/younger-2"]


def test_a_sub_group_below_its_minimum_is_no_whole_gang() -> None:
    older = running("older", "0 0", ago=300)
    policy = {"name": "ring", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["ring"]}
    group, *pods = running("younger", "1 0", ago=5, min_member=1, subGroupPolicy=[policy])
    for pod in pods:
        pod["metadata"]["labels"] = {"ring": "0"}
    assert evicted(older, [group, *pods]) == ["default/younger-0", "default/younger-1"]


def test_no_more_gangs_go_than_must() -> None:
    parts = [running(name, "0", ago=ago, cpu=cpu) for name, ago, cpu in (("old", 300, 2), ("big", 20, 3), ("small", 5, 1))]
    assert evicted(*parts) == ["default/big-0"]  # the small one came last, but without it the node is still too full


def test_a_gang_that_goes_relieves_other_nodes_too() -> None:
    parts = [running("a", "0 0", ago=300), running("b", "1 1", ago=300), running("c", "0 1", ago=5)]
    assert evicted(*parts) == ["default/c-0", "default/c-1"]


def test_of_two_gangs_of_the_same_second_the_less_important_one_goes() -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    first = running("a", "0 0", ago=5)
    second = running("b", "0 0", ago=5, priorityClassName="high")
    assert evicted(classes, first, second) == ["default/a-0", "default/a-1"]


# --- where it is not ours to do ------------------------------------------------------------------------------------------


def test_a_node_that_shrank_long_after_the_last_bind_keeps_what_runs() -> None:
    assert evicted(running("older", "0", ago=900), running("younger", "0", ago=121), cpu=3) == []


def test_a_node_that_offers_less_than_the_last_gang_alone_takes_has_shrunk() -> None:
    assert evicted(running("older", "1", ago=900), running("younger", "0 0", ago=5), cpu=3) == []


def test_a_node_that_would_still_be_too_full_has_shrunk() -> None:
    assert evicted(running("older", "0 0", ago=900), running("younger", "0", ago=5), cpu=3) == []


@pytest.mark.parametrize(("scheduler", "is_evicted"), [("volcano", True), ("default-scheduler", False)])
def test_a_pod_of_another_scheduler_that_came_last_is_not_the_fault_of_our_gangs(scheduler: str, is_evicted: bool) -> None:
    group, daemon = running("daemon", "0", ago=2, cpu=1)
    daemon["spec"]["schedulerName"] = scheduler
    older = running("older", "0 0", ago=30)
    for pod in older[1:]:
        pod["spec"]["schedulerName"] = "volcano"
    objects = ObjectCluster(schedulers=frozenset({"volcano"}))
    for document in (build.node("node-0", cpu=4), *older, group, daemon):
        objects.put(document)
    evictions = run_cycle(objects.snapshot(NOW), POLICY, CATALOGUE).evictions
    assert list(evictions) == (["default/daemon-0"] if is_evicted else [])


def test_a_gang_whose_binds_are_not_answered_is_looked_at_when_they_are() -> None:
    held = cluster(running("older", "0 0", ago=300), running("younger", "0", ago=5))
    state = held.objects.state
    task = state.task(TaskKey("default/younger-0"))
    assert task is not None
    state.put_task(replace(task, status=Status.BINDING))
    assert list(held.run_cycle(now=NOW).answer["evictions"]) == []


def test_a_clock_that_is_behind_does_not_make_a_bind_old() -> None:
    assert evicted(running("older", "0 0", ago=300), running("younger", "0", ago=-400)) == ["default/younger-0"]


def test_a_gang_that_does_not_say_when_it_was_bound_stays() -> None:
    older, younger = running("older", "0 0", ago=300), running("younger", "0", ago=5)
    for pod in younger[1:]:
        del pod["status"]["conditions"]
    assert evicted(older, younger) == []


# --- when ----------------------------------------------------------------------------------------------------------------


def test_a_cluster_at_rest_is_looked_at_too() -> None:
    held = cluster(running("older", "0 0", ago=300))
    decider = Decider()
    assert decider.decide(held.objects.snapshot(NOW), POLICY, CATALOGUE).evictions == {}
    held.submit(running("younger", "0 0", ago=5))
    assert len(decider.decide(held.objects.snapshot(NOW), POLICY, CATALOGUE).evictions) == 2


def test_profiles_that_imitate_others_roll_nothing_back() -> None:
    for name in ("volcano", "kai", "coscheduling", "default-scheduler"):
        assert not policy_of_profile(name).relieves


@pytest.mark.parametrize(("window", "is_evicted"), [("10s", False), ("never", True)])
def test_how_long_ago_is_a_setting(window: str, is_evicted: bool) -> None:
    entry = {"name": "relieve", "arguments": {"window": window}}
    policy = build.policy([["gang"], ["predicates"]], "allocate, relieve", configurations=[entry])
    held = build.cluster(nodes=1, policy=policy, cpu=4).submit(running("older", "0 0", ago=900), running("younger", "0", ago=400))
    assert bool(held.run_cycle(now=NOW).answer["evictions"]) is is_evicted
