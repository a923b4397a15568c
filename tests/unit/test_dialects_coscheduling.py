"""Coscheduling's PodGroups: what they mean, what is written on them, and where the sane rule differs from the known one."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.dialects.groups import MOST_GONE
from phalanx.errors import SnapshotError
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document
from phalanx.model.task import GangKey
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import sim_worlds as worlds

COSCHEDULING, PHALANX = policy_of_profile("coscheduling"), policy_of_profile("phalanx")
KIND = GROUP_BY_DIALECT["coscheduling"]


def world(nodes: int = 3, **more: Any) -> World:
    return worlds.world(nodes=nodes, policy=more.pop("policy", COSCHEDULING), **{"cpu": 2, **more})


def status(world: World, name: str = "train", namespace: str = "default") -> Document:
    found: Document = world.store.get(KIND, namespace, name).get("status", {})
    return found


def set_phase(world: World, pod: str, phase: str) -> None:
    world.store.patch(POD, "default", pod, {"status": {"phase": phase}}, is_status=True)


# --- the group -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [COSCHEDULING, PHALANX], ids=["coscheduling", "phalanx"])
def test_a_gang_starts_whole_or_not_at_all(policy: Any) -> None:
    cluster = build.cluster(nodes=2, policy=policy, cpu=2).submit(sigs.gang("train", tasks=3, cpu=2))
    assert cluster.run_cycle().binds == []
    assert cluster.why("train").startswith("2 of 3 tasks fit; 1 more place for 2 cpu needed (")
    assert len(cluster.submit(build.node("node-2", cpu=2)).run_cycle().binds) == 3


def test_without_min_member_every_pod_starts_for_itself() -> None:
    group, *pods = sigs.gang("train", tasks=3, cpu=2)
    del group["spec"]["minMember"]
    assert len(build.cluster(nodes=2, policy=COSCHEDULING, cpu=2).submit(group, pods).run_cycle().binds) == 2


def test_pods_wait_for_a_missing_group_and_start_when_it_comes() -> None:
    there = world()
    group, *pods = sigs.gang("train", tasks=3, cpu=2)
    worlds.submit(there, pods)
    worlds.run(there, 100)
    assert set(worlds.phases(there.store).values()) == {"Pending"}
    worlds.submit(there, [group], at=100)
    worlds.run(there, 103)
    assert set(worlds.phases(there.store).values()) == {"Running"}


def test_the_priority_of_a_gang_is_that_of_its_most_important_pod() -> None:
    cluster = build.cluster(nodes=1, policy=COSCHEDULING, cpu=2)
    cluster.submit(sigs.gang("a", tasks=1, cpu=2), sigs.gang("z", tasks=1, cpu=2, pod_spec={"priority": 5}))
    assert cluster.run_cycle().binds == [("z-0", "node-0")]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"minMember": -1},
            "PodGroup default/train: spec.minMember: -1 is negative; write 1 or more, or leave it out for pods that",
        ),
        (
            {"scheduleTimeoutSeconds": -5},
            "spec.scheduleTimeoutSeconds: -5 is negative; write seconds, or leave it out for the default",
        ),
        ({"minMember": "three"}, "spec.minMember: expected `int | null`, got `str`"),
        ({"minResources": {"cpu": "x"}}, "spec.minResources"),
    ],
)
def test_a_broken_group_is_set_aside_alone_and_says_what_to_write(spec: Document, message: str) -> None:
    cluster = build.cluster(nodes=1, policy=COSCHEDULING, cpu=2).submit(sigs.gang("good", cpu=2))
    with pytest.raises(SnapshotError) as problem:
        cluster.submit(sigs.pod_group(sigs.COSCHEDULING, "train", spec))
    assert message in str(problem.value)
    assert cluster.run_cycle().binds == [("good-0", "node-0")]


# --- its status --------------------------------------------------------------------------------------------------------------


def test_the_status_goes_from_pending_to_finished_and_counts() -> None:
    there = world()
    group, *pods = sigs.gang("train", tasks=3, cpu=2)
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j"}]
    worlds.submit(there, [group])
    worlds.run(there, 1)
    assert status(there) == {"phase": "Pending", "running": 0, "succeeded": 0, "failed": 0}
    worlds.submit(there, pods[:2], at=1)
    worlds.run(there, 10)
    assert status(there)["phase"] == "Pending"
    worlds.submit(there, pods[2:], at=10)
    worlds.run(there, 20)
    assert status(there) == {"phase": "Running", "running": 3, "succeeded": 0, "failed": 0, "occupiedBy": "default/train"}
    for number in range(3):
        set_phase(there, f"train-{number}", "Succeeded")
    worlds.run(there, 30)
    assert (status(there)["phase"], status(there)["succeeded"]) == ("Finished", 3)


def test_the_counts_follow_members_that_start_beyond_the_minimum() -> None:
    there = world(nodes=2)
    worlds.submit(there, sigs.gang("train", tasks=3, min_member=2, cpu=2))
    worlds.run(there, 10)
    assert (status(there)["phase"], status(there)["running"]) == ("Running", 2)
    there.plan(10, lambda: there.store.create(build.node("node-2", cpu=2)))
    worlds.run(there, 20)
    assert status(there)["running"] == 3


def test_a_settled_gang_is_in_no_session_and_nothing_is_written_on_it() -> None:
    there = world()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    worlds.run(there, 20)
    version = there.store.get(KIND, "default", "train")["metadata"]["resourceVersion"]
    assert there.cluster.snapshot(there.now).active == ()
    there.plan(20, lambda: there.store.create(build.node("another", cpu=2)))
    worlds.run(there, 200)
    assert there.store.get(KIND, "default", "train")["metadata"]["resourceVersion"] == version


def test_a_gang_that_waits_is_scheduling_and_its_pods_are_told_why() -> None:
    there = world(nodes=2)
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    worlds.run(there, 5)
    assert status(there)["phase"] == "Scheduling"
    cluster = build.cluster(nodes=2, policy=COSCHEDULING, cpu=2).submit(sigs.gang("train", tasks=3, cpu=2))
    tasks = cluster.run_cycle().answer["tasks"]
    assert tasks["default/train-0"]["message"] == (
        "there is room on node-0; PodGroup default/train needs room for 3 members at once and has it for 2; "
        "train-2: 0/2 nodes are available: 2 Insufficient cpu"
    )
    assert tasks["default/train-2"]["message"] == (
        "0/2 nodes are available: 2 Insufficient cpu; PodGroup default/train needs room for 3 members at once and has it for 2"
    )


def test_failed_is_no_end_a_replacement_makes_the_gang_go_on() -> None:
    there = world(nodes=3)
    group, *pods = sigs.gang("train", tasks=3, cpu=2)
    worlds.submit(there, [group, *pods])
    worlds.run(there, 10)
    there.store.patch(POD, "default", "train-0", {"status": {"phase": "Failed"}}, is_status=True)
    worlds.run(there, 12)
    assert (status(there)["phase"], status(there)["failed"]) == ("Failed", 1)
    worlds.submit(there, [sigs.member(sigs.COSCHEDULING, "train", "train-3", cpu=2)], at=12)
    worlds.run(there, 20)
    assert (status(there)["phase"], status(there)["running"]) == ("Running", 3)


def test_since_when_a_gang_is_stale_stands_in_an_annotation_until_it_is_whole_again() -> None:
    there = world(nodes=2, policy=PHALANX)
    worlds.submit(there, sigs.gang("train", tasks=2, cpu=2, annotations={"phalanx.dev/staleness-grace": "never"}))
    there.plan(100, lambda: there.faults.die("node-1"))
    worlds.run(there, 200)
    stamp = there.store.get(KIND, "default", "train")["metadata"]["annotations"]["phalanx.dev/stale-since"]
    worlds.run(there, 300)
    assert there.store.get(KIND, "default", "train")["metadata"]["annotations"]["phalanx.dev/stale-since"] == stamp
    there.plan(300, lambda: there.store.create(build.node("node-2", cpu=2)))
    worlds.run(there, 320)
    assert "phalanx.dev/stale-since" not in there.store.get(KIND, "default", "train")["metadata"]["annotations"]


# --- surprises of others, by number ------------------------------------------------------------------------------------------


def test_surprise_1_finished_members_stay_in_the_quorum() -> None:
    there = world()
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2))
    worlds.run(there, 10)
    set_phase(there, "train-0", "Succeeded")
    there.plan(11, lambda: there.store.delete(POD, "default", "train-1", grace=0))
    worlds.submit(there, [sigs.member(sigs.COSCHEDULING, "train", "replacement", cpu=2)], at=12)
    worlds.run(there, 20)
    assert worlds.phases(there.store)["replacement"] == "Running"


def test_surprise_2_gated_members_do_not_count() -> None:
    group, *pods = sigs.gang("train", tasks=3, cpu=2)
    pods[2]["spec"]["schedulingGates"] = [{"name": "later"}]
    cluster = build.cluster(policy=COSCHEDULING, cpu=2).submit(group, pods)
    assert cluster.run_cycle().binds == []
    assert cluster.why("train") == "2 of 3 tasks fit; 1 of 3 tasks is held back by the scheduling gate 'later'"
    del pods[2]["spec"]["schedulingGates"]
    assert len(cluster.submit(pods[2]).run_cycle().binds) == 3


def test_surprise_6_groups_of_one_name_in_several_dialects_stay_apart() -> None:
    cluster = build.cluster(policy=PHALANX, cpu=2)
    volcano, *pods = build.gang("train", tasks=2, cpu=2)
    group, *others = sigs.gang("train", tasks=4, cpu=2)
    for number, pod in enumerate(others):
        pod["metadata"]["name"] = f"other-{number}"
    cluster.submit(volcano, pods, group, others)
    assert [pod for pod, _ in cluster.run_cycle().binds] == ["train-0", "train-1"]
    waiting = cluster.objects.state.gang(GangKey("default/train@coscheduling"))
    assert waiting is not None
    assert waiting.min_member == 4


def test_names_of_groups_that_are_gone_are_forgotten_and_those_of_their_pods_are_not() -> None:
    objects = ObjectCluster()
    first, (second, member) = build.pod_group("train", min_member=1), sigs.gang("train", tasks=1)
    for document in (first, second, member):
        objects.put(document)
    for document in (first, second):
        objects.remove(document)
    for number in range(5 * MOST_GONE):
        objects.put(build.pod_group(f"other-{number}", min_member=1))
        objects.remove(build.pod_group(f"other-{number}", min_member=1))
    assert len(objects.groups._dialect_by_name) <= MOST_GONE + 4
    assert objects.groups._dialect_by_name["default/train"] == "volcano"


def test_surprise_8_room_that_was_cleared_is_kept_and_no_sibling_holds_any_before() -> None:
    there = world(nodes=2)
    worlds.submit(there, sigs.gang("low", tasks=2, min_member=1, cpu=2))
    worlds.submit(there, sigs.gang("high", tasks=2, cpu=2, pod_spec={"priority": 10}), at=10)
    worlds.run(there, 11)
    assert len(there.recorder.evictions) == 2
    worlds.run(there, 30)
    phases = worlds.phases(there.store)
    assert (phases["high-0"], phases["high-1"]) == ("Running", "Running")
    assert all("nominatedNodeName" not in pod["status"] for pod in there.store.items(POD) if pod["metadata"]["name"] == "high-0")


def test_surprise_16_a_group_of_the_same_name_in_another_namespace_is_another_group() -> None:
    there = world(nodes=4)
    worlds.submit(there, sigs.gang("train", tasks=2, min_member=3, cpu=2), sigs.gang("other/train", tasks=2, cpu=2))
    worlds.run(there, 10)
    assert (status(there)["phase"], status(there)["running"]) == ("Pending", 0)
    assert (status(there, namespace="other")["phase"], status(there, namespace="other")["running"]) == ("Running", 2)


def test_surprise_17_min_resources_are_a_total_and_fragments_are_told_by_the_search() -> None:
    cluster = build.cluster(nodes=3, policy=COSCHEDULING, cpu=2)
    cluster.submit(sigs.gang("train", tasks=2, cpu=3, spec={"minResources": {"cpu": "6"}}))
    assert cluster.run_cycle().binds == []
    assert cluster.why("train") == "0 of 2 tasks fit; 2 more places for 3 cpu needed (no node is that large: the largest has 2 cpu)"


@pytest.mark.parametrize("dialect", ["coscheduling", "koordinator"])
def test_a_group_whose_time_was_up_says_so_until_it_starts(dialect: str) -> None:
    there, kind = world(nodes=2), GROUP_BY_DIALECT[dialect]
    worlds.submit(there, sigs.gang("train", tasks=3, cpu=2, api=kind.api_version, spec={"scheduleTimeoutSeconds": 30}))
    worlds.submit(there, [build.node("node-2", cpu=2)], at=55)
    phases = {}
    for moment in (10, 35, 50, 70):
        worlds.run(there, moment)
        phases[moment] = there.store.get(kind, "default", "train")["status"]["phase"]
    assert phases == {10: "Scheduling", 35: "ScheduleFailed", 50: "ScheduleFailed", 70: "Running"}
