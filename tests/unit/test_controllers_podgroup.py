"""Pods without a group get one."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.controllers.builtin import standard_controllers
from phalanx.controllers.podgroup import OwnedGroupController, PodGroupController
from phalanx.dialects.group_references import GROUP as GROUP_NAME
from phalanx.model.kinds import GROUP_BY_DIALECT, NAMESPACE, POD, REPLICA_SET
from phalanx.session.cycle import Profile
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds
from tests.support.controller_store import Stage

GROUP = GROUP_BY_DIALECT["volcano"]
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def stage() -> Stage:
    return Stage(PodGroupController(), OwnedGroupController())


def bare(name: str, *, scheduler: str = "phalanx", spec: dict[str, Any] | None = None, **asks: Any) -> dict[str, Any]:
    return build.pod(name, spec={"schedulerName": scheduler, **(spec or {})}, **asks)


def replica_set(name: str = "web", *, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    meta = {"namespace": "default", "name": name, "uid": f"uid-{name}", "annotations": annotations or {}}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": {"replicas": 2}}


def owned(pod: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    pod["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], "controller": True}]
    return pod


def group_of(found: Stage, pod: str) -> str:
    return str(found.find(POD, pod)["metadata"]["annotations"].get(GROUP_NAME, ""))


@pytest.mark.parametrize("scheduler", ["phalanx", "volcano"])
def test_a_pod_by_itself_gets_a_group_of_its_own(scheduler: str) -> None:
    found = stage()
    found.make(bare("a", scheduler=scheduler, cpu="500m", gpus=1, spec={"priorityClassName": "high"}))
    found.run(1)
    assert group_of(found, "a") == "podgroup-a"
    group = found.find(GROUP, "podgroup-a")
    assert group["spec"] == {
        "minMember": 1, "queue": "default", "minResources": {"cpu": "500m", "nvidia.com/gpu": "1"}, "priorityClassName": "high",
    }  # fmt: skip
    assert [owner["kind"] for owner in group["metadata"]["ownerReferences"]] == ["Pod"]
    assert found.unsettled() == []
    found.store.delete(POD, "default", "a", grace=0)
    assert found.names(GROUP) == []


LINKS: list[dict[str, Any]] = [
    {"annotations": {GROUP_NAME: "nowhere"}}, {"annotations": {"pod-group-name": "x"}},
    {"annotations": {"gang.scheduling.koordinator.sh/name": "x"}}, {"labels": {"scheduling.x-k8s.io/pod-group": "x"}},
    {"labels": {"pod-group.scheduling.sigs.k8s.io": "x"}}, {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "x"}},
]  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_a_pod_that_names_a_group_is_left_alone_also_if_there_is_none(link: dict[str, Any]) -> None:
    found, pod = stage(), bare("a")
    pod["metadata"].update(link)
    found.make(pod)
    found.run(1)
    assert found.names(GROUP) == []


def test_pods_of_others_in_native_groups_leaving_or_finished_are_left_alone() -> None:
    found, leaving, finished = stage(), bare("leaving"), bare("finished")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    finished["status"] = {"phase": "Succeeded"}
    native = bare("native", spec={"schedulingGroup": {"podGroupName": "x"}})
    found.make(bare("other", scheduler="default-scheduler"), build.pod("none"), leaving, finished, native)
    found.run(1)
    assert found.names(GROUP) == []


def test_other_names_of_schedulers_may_be_served() -> None:
    found = Stage(PodGroupController(frozenset({"mine"})))
    found.make(bare("a", scheduler="mine"), bare("b"))
    found.run(1)
    assert found.names(GROUP) == ["podgroup-a"]


def test_pods_of_one_owner_share_a_group_which_goes_with_it() -> None:
    found = stage()
    owner = replica_set(annotations={MIN_MEMBER: "2", "volcano.sh/preemptable": "false", "other": "x"})
    found.make(owner, *(owned(bare(f"web-{number}", cpu=1), owner) for number in range(2)))
    found.run(1)
    assert {group_of(found, "web-0"), group_of(found, "web-1")} == {"podgroup-uid-web"}
    group = found.find(GROUP, "podgroup-uid-web")
    assert (group["spec"]["minMember"], group["spec"]["minResources"]) == (2, {"cpu": "2"})
    assert group["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}
    assert found.unsettled() == []
    found.store.delete(POD, "default", "web-0", grace=0)
    assert found.names(GROUP) == ["podgroup-uid-web"]
    found.store.delete(REPLICA_SET, "default", "web")
    assert found.names(GROUP) == []


def test_an_owner_that_nobody_serves_shares_a_group_too() -> None:
    found = stage()
    owner = {"apiVersion": "example.com/v1", "kind": "Farm", "metadata": {"name": "f", "uid": "uid-f"}}
    found.make(*(owned(bare(f"f-{number}"), owner) for number in range(2)))
    found.run(1)
    assert found.names(GROUP) == ["podgroup-uid-f"]


def test_a_set_that_is_scaled_to_none_loses_its_group_and_gets_it_again() -> None:
    found, owner = stage(), replica_set()
    found.make(owner, owned(bare("web-0"), owner))
    found.run(1)
    found.store.patch(REPLICA_SET, "default", "web", {"spec": {"replicas": 0}})
    found.run(2)
    assert found.names(GROUP) == []
    found.make(owned(bare("web-1"), owner))
    found.run(3)
    assert found.names(GROUP) == []
    found.store.delete(POD, "default", "web-1", grace=0)
    found.store.patch(REPLICA_SET, "default", "web", {"spec": {"replicas": 1}})
    found.make(owned(bare("web-2"), owner))
    found.run(4)
    assert found.names(GROUP) == ["podgroup-uid-web"]
    assert found.unsettled() == []


def test_what_a_set_says_later_is_written_on_its_group_and_other_words_stay() -> None:
    found, owner = stage(), replica_set()
    found.make(owner, owned(bare("web-0", cpu=1), owner))
    found.run(1)
    found.store.patch(GROUP, "default", "podgroup-uid-web", {"metadata": {"annotations": {"seen": "yes"}}})
    found.store.patch(REPLICA_SET, "default", "web", {"metadata": {"annotations": {MIN_MEMBER: "3"}}})
    found.run(2)
    group = found.find(GROUP, "podgroup-uid-web")
    assert (group["spec"]["minMember"], group["spec"]["minResources"]) == (3, {"cpu": "3"})
    assert group["metadata"]["annotations"] == {"seen": "yes"}
    assert found.unsettled() == []


def test_a_minimum_that_is_no_number_is_told() -> None:
    found, owner = stage(), replica_set(annotations={MIN_MEMBER: "many"})
    found.make(owner, owned(bare("web-0"), owner))
    found.run(1)
    assert found.find(GROUP, "podgroup-uid-web")["spec"]["minMember"] == 1
    text = f"metadata.annotations[{MIN_MEMBER!r}]: 'many' is not a number of pods; 1 is used, write for example '4'"
    assert [event.message for event in found.told] == [text]


def test_queue_topology_and_marks_come_from_the_annotations() -> None:
    found, pod = stage(), bare("a")
    pod["metadata"]["annotations"] = {
        "scheduling.volcano.sh/queue-name": "research", "volcano.sh/network-topology-mode": "soft",
        "volcano.sh/network-topology-highest-tier": "2", "volcano.sh/cooldown-time": "60s",
    }  # fmt: skip
    found.make(pod)
    found.run(1)
    group = found.find(GROUP, "podgroup-a")
    assert group["spec"]["queue"] == "research"
    assert group["spec"]["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}
    assert group["metadata"]["annotations"]["volcano.sh/cooldown-time"] == "60s"


def test_a_namespace_may_name_the_queue() -> None:
    found = stage()
    found.store.patch(NAMESPACE, "", "default", {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "team"}}})
    found.make(bare("a"))
    found.run(1)
    assert found.find(GROUP, "podgroup-a")["spec"]["queue"] == "team"


def test_our_own_group_is_made_again_when_somebody_deletes_it() -> None:
    found = stage()
    found.make(bare("a"))
    found.run(1)
    found.store.delete(GROUP, "default", "podgroup-a")
    found.store.patch(POD, "default", "a", {"metadata": {"labels": {"x": "y"}}})
    found.run(2)
    assert found.names(GROUP) == ["podgroup-a"]


def test_a_bare_pod_runs_in_the_embedded_cluster_and_comes_back_when_it_fails() -> None:
    world = World(Profile(build.policy(), CATALOGUE), controllers=standard_controllers(pair_for, has_admission=True))
    world.load([build.node("node-0", gpus=1), bare("a", gpus=1)])
    worlds.run(world, 5)
    assert worlds.phases(world.store) == {"a": "Running"}
    assert worlds.record(world, "podgroup-a").started == 1.0
    world.faults.fail("default", "a")
    worlds.run(world, 30)
    assert worlds.phases(world.store) == {"a": "Running"}
    assert len(world.store.items(GROUP)) == 1
    assert world.problems == []
