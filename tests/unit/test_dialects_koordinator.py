"""Koordinator's gangs: by PodGroup or by their pods, in bundles, with their match policies; and where the sane rule differs."""

from itertools import permutations
from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.dialects.group_references import SIGS_GROUP_NAME
from phalanx.dialects.koordinator import PREFIX
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document
from phalanx.model.task import GangKey
from phalanx.sim.world import World
from phalanx.state.staleness import lacks
from phalanx.testing import build
from phalanx.testing.build import Cluster
from tests.support import coscheduling_gangs as sigs
from tests.support import sim_worlds as worlds

COSCHEDULING, PHALANX = policy_of_profile("coscheduling"), policy_of_profile("phalanx")
KIND = GROUP_BY_DIALECT["koordinator"]
BUNDLE = '["a/prefill","b/decode"]'


def world(nodes: int = 3, **more: Any) -> World:
    return worlds.world(nodes=nodes, policy=more.pop("policy", COSCHEDULING), **{"cpu": 2, **more})


def cluster(nodes: int = 3, **more: Any) -> Cluster:
    return build.cluster(nodes=nodes, policy=more.pop("policy", COSCHEDULING), **{"cpu": 2, **more})


def status(world: World, key: str = "default/train") -> Document:
    found: Document = world.store.get(KIND, *key.split("/")).get("status", {})
    return found


def gang(cluster: Cluster, key: str) -> Gang:
    found = cluster.objects.state.gang(GangKey(key))
    assert found is not None
    return found


def running(world: World) -> list[str]:
    return sorted(name for name, phase in worlds.phases(world.store).items() if phase == "Running")


def bundle() -> tuple[list[Any], list[Any]]:
    return part("a/prefill"), part("b/decode")


def part(name: str) -> list[Any]:
    return [*sigs.koordinator_gang(name, tasks=2, cpu=2, groups=BUNDLE)]


# --- gangs that pods make --------------------------------------------------------------------------------------------------


def test_the_first_pod_says_what_the_gang_is_and_later_ones_cannot_change_it() -> None:
    there = cluster().submit(sigs.describing_pod("train-0", "train", min_available="2", cpu=2))
    there.submit(sigs.describing_pod("train-1", "train", min_available="7", cpu=2))
    assert gang(there, "default/train").min_member == 2
    assert len(there.run_cycle().binds) == 2


def test_a_gang_of_pods_goes_with_the_last_of_them() -> None:
    there = cluster().submit(*(sigs.describing_pod(f"train-{number}", "train", min_available="2") for number in range(2)))
    there.remove("Pod", "train-0")
    assert gang(there, "default/train").min_member == 2
    there.remove("Pod", "train-1")
    assert there.objects.state.gang(GangKey("default/train")) is None


def test_the_older_labels_make_a_gang_too() -> None:
    pods = [build.pod(f"train-{number}", cpu=2) for number in range(2)]
    for pod in pods:
        pod["metadata"]["labels"] = {SIGS_GROUP_NAME: "train", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}
    assert len(cluster(nodes=1).submit(*pods).run_cycle().binds) == 0
    assert len(cluster(nodes=2).submit(*pods).run_cycle().binds) == 2


def test_a_pod_group_comes_before_what_pods_say() -> None:
    there = cluster().submit(sigs.describing_pod("train-0", "train", min_available="5"))
    there.submit(sigs.pod_group(sigs.KOORDINATOR, "train", {"minMember": 1}))
    assert gang(there, "default/train").min_member == 1


@pytest.mark.parametrize("order", [*permutations(range(2))])
def test_the_oldest_pod_says_what_the_gang_is_in_whatever_order_they_become_known(order: tuple[int, ...]) -> None:
    pods = [sigs.describing_pod(f"train-{number}", "train", min_available=str(number + 1)) for number in range(2)]
    for number, pod in enumerate(pods):
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{5 - number}Z"
    there = cluster().submit(*(pods[number] for number in order))
    assert gang(there, "default/train").min_member == 2
    there.remove("Pod", "train-1")
    assert gang(there, "default/train").min_member == 1


def test_what_pods_say_counts_again_when_the_pod_group_goes() -> None:
    group = sigs.pod_group(sigs.KOORDINATOR, "train", {"minMember": 1})
    there = cluster().submit(group, sigs.describing_pod("train-0", "train", min_available="5"))
    there.remove("PodGroup", "train")
    found = gang(there, "default/train")
    assert (found.min_member, found.has_object) == (5, False)


def test_a_pod_that_says_nonsense_is_a_member_while_there_is_a_pod_group() -> None:
    group = sigs.pod_group(sigs.KOORDINATOR, "train", {"minMember": 1})
    there = cluster().submit(group, sigs.describing_pod("train-0", "train", min_available="two", cpu=2))
    there.remove("PodGroup", "train")
    assert there.run_cycle().binds == []
    there.submit(group)
    assert [pod for pod, _ in there.run_cycle().binds] == ["train-0"]


def test_a_settled_gang_of_pods_is_in_no_session() -> None:
    there = world()
    worlds.submit(there, [sigs.describing_pod(f"train-{number}", "train", min_available="2", cpu=2) for number in range(2)])
    worlds.run(there, 20)
    assert len(running(there)) == 2
    assert there.cluster.snapshot(there.now).active == ()


# --- what is broken --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("waiting-time", "soon", "'soon' is not a duration above 0; write for example '90s' or '1h30m'"),
        ("groups", "a/b", "'a/b' is not a JSON list of texts; write for example '[\"default/train\",\"team/other\"]'"),
        ("groups", '["default/train", "other"]', "'other' is not a namespace and a name; write for example"),
        ("groups", '["team/other"]', "the gang itself is not in the list; add 'default/train'"),
    ],
)
def test_a_broken_group_is_set_aside_alone_and_says_what_to_write(key: str, text: str, message: str) -> None:
    there = cluster().submit(sigs.koordinator_gang("good", cpu=2))
    with pytest.raises(SnapshotError) as problem:
        there.submit(sigs.pod_group(sigs.KOORDINATOR, "train", {"minMember": 1}, {PREFIX + key: text}))
    assert f"PodGroup default/train: metadata.annotations['{PREFIX}{key}']: {message}" in str(problem.value)
    assert len(there.run_cycle().binds) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing; write how many pods of the gang start together, or make a PodGroup of that name"),
        ("two", "'two' is not a whole number"),
        ("0", "'0' is too small; write 1 or more"),
    ],
)
def test_a_broken_pod_is_set_aside_and_joins_when_a_good_one_made_the_gang(text: str, message: str) -> None:
    there = cluster()
    with pytest.raises(SnapshotError) as problem:
        there.submit(sigs.describing_pod("train-0", "train", min_available=text, cpu=2))
    assert message in str(problem.value)
    assert there.run_cycle().binds == []
    there.submit(sigs.describing_pod("train-1", "train", min_available="2", cpu=2))
    assert [pod for pod, _ in there.run_cycle().binds] == ["train-0", "train-1"]


# --- bundles ---------------------------------------------------------------------------------------------------------------


def test_the_gangs_of_a_bundle_start_together_or_not_at_all() -> None:
    first, second = bundle()
    there = cluster(nodes=3).submit(first, second)
    assert there.run_cycle().binds == []
    assert there.why("a/prefill").startswith("3 of 4 tasks fit (b/decode: 1 of 2); 1 more place for 2 cpu needed")
    assert len(there.submit(build.node("node-3", cpu=2)).run_cycle().binds) == 4


def test_a_bundle_waits_for_a_gang_that_is_not_there() -> None:
    first, second = bundle()
    there = cluster(nodes=4).submit(first, second[1:])
    assert there.run_cycle().binds == []
    assert "b/decode: 0 of 1" in there.why("a/prefill")
    assert len(there.submit(second[0]).run_cycle().binds) == 4


@pytest.mark.parametrize("order", [*permutations(range(4))])
def test_a_bundle_is_the_same_whatever_comes_first(order: tuple[int, ...]) -> None:
    first, second = bundle()
    parts = [first[:1], first[1:], second[:1], second[1:]]
    there = cluster(nodes=4).submit(*(parts[number] for number in order))
    found = gang(there, "a/prefill")
    assert (found.min_member, found.role_minima) == (4, {"a/prefill": 2, "b/decode": 2})
    assert len(there.run_cycle().binds) == 4


def test_a_bundle_comes_apart_when_a_list_goes() -> None:
    first, second = bundle()
    there = cluster(nodes=2).submit(first, second)
    assert there.run_cycle().binds == []
    for group in (first[0], second[0]):
        there.submit({**group, "metadata": {**group["metadata"], "annotations": {}}})
    assert [pod for pod, _ in there.run_cycle().binds] == ["a/prefill-0", "a/prefill-1"]
    assert gang(there, "b/decode").min_member == 2


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_a_gang_that_names_one_of_another_bundle_is_set_aside_alone(order: tuple[int, ...]) -> None:
    first, second = bundle()
    stranger = sigs.koordinator_gang("c/odd", tasks=1, cpu=2, groups='["a/prefill","c/odd"]')
    parts = [first, second, stranger]
    there = cluster(nodes=5).submit(*(parts[number] for number in order))
    assert len(there.run_cycle().binds) == 4
    assert there.why("c/odd") == (
        "quarantined: it lists a/prefill, c/odd as its gang group, but a/prefill lists a/prefill, b/decode; "
        "write the same list on all of them"
    )


def test_pods_alone_can_make_a_bundle() -> None:
    pods = [
        sigs.describing_pod(f"{name}-{number}", name.partition("/")[2], min_available="2", groups=BUNDLE, cpu=2)
        for name in ("a/prefill", "b/decode")
        for number in range(2)
    ]
    assert cluster(nodes=3).submit(*pods).run_cycle().binds == []
    there = cluster(nodes=4).submit(*pods)
    assert len(there.run_cycle().binds) == 4
    for pod in pods:
        there.remove("Pod", f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    assert there.objects.state.gang(GangKey("a/prefill")) is None


def test_every_group_of_a_bundle_has_a_status_of_its_own() -> None:
    there = world(nodes=4)
    first, second = bundle()
    worlds.submit(there, first, second[:2])
    worlds.run(there, 5)
    assert (status(there, "a/prefill")["phase"], status(there, "b/decode")["phase"]) == ("PreScheduling", "Pending")
    worlds.submit(there, second[2:], at=5)
    worlds.run(there, 15)
    assert status(there, "a/prefill") == {"phase": "Running", "scheduled": 2, "running": 2, "succeeded": 0, "failed": 0}
    assert status(there, "b/decode")["phase"] == "Running"
    assert there.cluster.snapshot(there.now).active == ()


def test_the_status_of_a_group_ends_with_finished() -> None:
    there = world()
    worlds.submit(there, sigs.koordinator_gang("train", tasks=2, cpu=2))
    worlds.run(there, 10)
    for name in ("train-0", "train-1"):
        there.store.patch(POD, "default", name, {"status": {"phase": "Succeeded"}}, is_status=True)
    worlds.run(there, 20)
    assert (status(there)["phase"], status(there)["succeeded"]) == ("Finished", 2)


# --- match policies ----------------------------------------------------------------------------------------------------------


def replaced(policy: str) -> World:
    """Return a world in which two of three members are replaced by one after ten seconds."""
    there = world(policy=COSCHEDULING)
    worlds.submit(there, sigs.koordinator_gang("train", tasks=3, cpu=2, match_policy=policy))
    for name in ("train-1", "train-2"):
        there.plan(10, lambda name=name: there.store.delete(POD, "default", name, grace=0))  # type: ignore[misc]
    worlds.submit(there, [sigs.member(sigs.KOORDINATOR, "train", "new", cpu=2)], at=20)
    worlds.run(there, 30)
    return there


def test_once_satisfied_a_replacement_starts_below_the_minimum_and_the_group_runs() -> None:
    there = replaced("once-satisfied")
    assert running(there) == ["new", "train-0"]
    assert status(there)["phase"] == "Running"


@pytest.mark.parametrize("policy", ["waiting-and-running", "only-waiting"])
def test_under_the_other_policies_it_waits_for_the_minimum(policy: str) -> None:
    assert running(replaced(policy)) == ["train-0"]


def test_running_members_complete_the_minimum_unless_only_waiting_ones_count() -> None:
    for policy, count in (("waiting-and-running", 3), ("only-waiting", 2)):
        there = world(nodes=3)
        worlds.submit(there, sigs.koordinator_gang("train", tasks=2, cpu=2, match_policy=policy))
        worlds.submit(there, [sigs.member(sigs.KOORDINATOR, "train", "more", cpu=2)], at=10)
        worlds.run(there, 20)
        assert len(running(there)) == count, policy


def test_only_waiting_says_how_many_must_start_together() -> None:
    there = cluster().submit(sigs.koordinator_gang("train", tasks=2, cpu=2, match_policy="only-waiting"))
    there.carry_out(there.run_cycle()).submit(sigs.member(sigs.KOORDINATOR, "train", "more", cpu=2))
    assert there.run_cycle().binds == []
    assert there.why("train").endswith("1 of the 2 members that must start together are there; those that run do not count")


def test_an_only_waiting_gang_that_runs_is_not_stale() -> None:
    there = world(nodes=3, policy=PHALANX)
    worlds.submit(there, sigs.koordinator_gang("train", tasks=2, cpu=2, match_policy="only-waiting"))
    worlds.submit(there, [sigs.member(sigs.KOORDINATOR, "train", "more", cpu=2)], at=10)
    worlds.run(there, 600)
    assert running(there) == ["train-0", "train-1"]


# --- surprises of others, by number ------------------------------------------------------------------------------------------


def test_surprise_1_finished_members_stay_in_the_quorum() -> None:
    there = world()
    worlds.submit(there, sigs.koordinator_gang("train", tasks=3, cpu=2, match_policy="waiting-and-running"))
    worlds.run(there, 10)
    there.store.patch(POD, "default", "train-0", {"status": {"phase": "Succeeded"}}, is_status=True)
    there.plan(11, lambda: there.store.delete(POD, "default", "train-1", grace=0))
    worlds.submit(there, [sigs.member(sigs.KOORDINATOR, "train", "new", cpu=2)], at=12)
    worlds.run(there, 20)
    assert running(there) == ["new", "train-2"]


def test_surprise_3_one_bound_member_does_not_satisfy_a_gang_that_was_never_whole() -> None:
    group, *pods = sigs.koordinator_gang("train", tasks=3, cpu=2)
    pods[0]["spec"]["nodeName"] = "node-0"
    there = cluster(nodes=2).submit(group, pods)
    assert there.run_cycle().binds == []
    group["status"] = {"phase": "Running"}
    assert len(there.submit(group).run_cycle().binds) == 1


@pytest.mark.parametrize(("made", "is_short"), [("2026-01-01T00:00:01Z", True), ("2026-01-01T00:00:09Z", False)])
def test_surprise_3_who_waits_since_before_the_first_bind_shows_that_a_gang_of_pods_was_never_whole(
    made: str, is_short: bool
) -> None:
    """A leader died while it bound them; whoever was created later replaces a member that was lost."""
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    there = cluster(nodes=1)
    for number in range(3):
        pod = build.pod(f"train-{number}", on="node-0" if number else "", cpu=1)
        pod["metadata"]["annotations"] = {f"{PREFIX}name": "train", f"{PREFIX}min-available": "3"}
        pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z" if number else made
        if number:
            pod["status"]["conditions"] = [bound]
        there.submit(pod)
    (gang,) = there.run_cycle().decisions.outcomes
    assert bool(lacks(gang.state)) is is_short


def test_surprise_5_a_pod_with_the_label_waits_for_its_group() -> None:
    group, *pods = sigs.koordinator_gang("train", tasks=2, cpu=2)
    there = cluster().submit(pods)
    assert there.run_cycle().binds == []
    assert len(there.submit(group).run_cycle().binds) == 2


def test_surprise_17_min_resources_are_a_total_as_in_coscheduling_which_had_this_group_too() -> None:
    there = cluster().submit(sigs.koordinator_gang("train", tasks=2, cpu=2, spec={"minResources": {"cpu": "1000"}}))
    assert there.run_cycle().binds == []
    assert there.why("train") == "its minResources ask for 1000 cpu in all, there are 6"
    assert (
        len(there.submit(sigs.koordinator_gang("train", tasks=2, cpu=2, spec={"minResources": {"cpu": "4"}})).run_cycle().binds)
        == 2
    )


def test_the_gangs_of_a_bundle_need_their_min_resources_together() -> None:
    groups = '["default/decode", "default/prefill"]'
    parts = [
        sigs.koordinator_gang(name, groups=groups, cpu=1, spec={"minResources": {"cpu": "4"}}) for name in ("decode", "prefill")
    ]
    there = cluster().submit(*parts)
    assert there.run_cycle().binds == []
    assert there.why("decode") == "its minResources ask for 8 cpu in all, there are 6"


def test_a_group_of_the_older_coscheduling_is_whole_in_time_or_gives_up() -> None:
    group, *pods = sigs.gang("train", tasks=3, cpu=2, api=sigs.KOORDINATOR, spec={"scheduleTimeoutSeconds": 300})
    for pod in pods:
        pod["metadata"]["labels"] = {SIGS_GROUP_NAME: "train"}
    assert gang(cluster().submit([group, *pods]), "default/train").schedule_timeout_seconds == 300
