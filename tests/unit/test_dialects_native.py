"""Kubernetes' own PodGroup: what is read, what is refused, and what a cluster that speaks it does."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.explain.answer import answer
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, NODE, POD, Document
from phalanx.model.task import GangKey
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import native_groups as native
from tests.support import sim_worlds as worlds

GROUP = GROUP_BY_DIALECT["native"]
VERSIONS = {"v1alpha2": "PodGroupScheduled", "v1beta1": "PodGroupInitiallyScheduled"}


def world(**more: Any) -> World:
    return worlds.world(policy=policy_of_profile("phalanx"), **more)


def read(document: Document) -> Gang:
    cluster = ObjectCluster()
    cluster.put(document)
    found = cluster.state.gang(GangKey("default/train"))
    assert found is not None
    return found


def condition(world: World, name: str) -> Document:
    return native.kubernetes_condition(world.store.get(GROUP, "default", name))


def nodes_of(world: World, gang: str) -> set[str]:
    pods = (pod for pod in world.store.items(POD) if pod["metadata"]["name"].startswith(f"{gang}-"))
    return {pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]}


# --- objects -------------------------------------------------------------------------------------------------------------


def test_a_gang_needs_so_many_members_and_a_basic_group_one() -> None:
    assert read(native.group("train", min_count=4)).min_member == 4
    assert read(native.group("train")).min_member == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_the_condition_of_its_version_is_read_into_our_words(version: str) -> None:
    group = native.group("train", min_count=1, version=version)
    said = {"type": VERSIONS[version], "status": "True", "reason": "Scheduled", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    gang = read({**group, "status": {"conditions": [said]}})
    assert [(item.type, item.status, item.since) for item in gang.conditions] == [("Scheduled", "True", 1767225600.0)]


@pytest.mark.parametrize(("mode", "is_whole"), [("Pod", False), ("PodGroup", True), ({"single": {}}, False), ({"all": {}}, True)])
def test_both_versions_say_whether_a_gang_goes_as_a_whole(mode: str | dict[str, Any], is_whole: bool) -> None:
    assert read(native.group("train", min_count=2, disruptionMode=mode)).goes_whole is is_whole


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no policy": ({"schedulingPolicy": {}}, "spec.schedulingPolicy: no policy; write either 'basic: {}' or 'gang: {minCount: 4}'"),
    "two policies": (
        {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}},
        "spec.schedulingPolicy: two policies; write either 'basic: {}' or 'gang: {minCount: 4}'",
    ),
    "no minimum": (
        {"schedulingPolicy": {"gang": {}}},
        "spec.schedulingPolicy.gang.minCount: missing; write how many pods start together, 1 or more",
    ),
    "minimum too small": (
        {"schedulingPolicy": {"gang": {"minCount": 0}}},
        "spec.schedulingPolicy.gang.minCount: 0 is too small; write how many pods start together, 1 or more",
    ),
    "unknown mode": (
        {"disruptionMode": "Gang"},
        "spec.disruptionMode: 'Gang' is unknown; write 'Pod' or 'PodGroup' in v1alpha2, 'single: {}' or 'all: {}' in v1beta1",
    ),
    "two modes": (
        {"disruptionMode": {"all": {}, "single": {}}},
        "spec.disruptionMode: 'all' and 'single' is unknown; write 'Pod' or 'PodGroup' in v1alpha2, "
        "'single: {}' or 'all: {}' in v1beta1",
    ),
    "two labels": (
        {"schedulingConstraints": {"topology": [{"key": "rack"}, {"key": "zone"}]}},
        "spec.schedulingConstraints.topology: 2 entries; keep one of them",
    ),
    "no label": (
        {"schedulingConstraints": {"topology": [{}]}},
        "spec.schedulingConstraints.topology[0].key: missing; write the node label of which all members share a value",
    ),
    "priority too high": (
        {"priority": 2_000_000_000, "priorityClassName": "hi"},
        "spec.priority: 2000000000 is too high; write 1000000000 or less",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_group_is_set_aside_alone_and_told_what_to_write(name: str) -> None:
    spec, text = BROKEN[name]
    found = world(nodes=2, gpus=1)
    group = native.group("bad", min_count=1)
    worlds.submit(found, [{**group, "spec": {**group["spec"], **spec}}, native.pod("bad-0", "bad", gpus=1)])
    worlds.submit(found, native.gang("good", tasks=2, gpus=1))
    worlds.run(found, 10)
    assert f"PodGroup default/bad: {text}" in found.problems
    assert worlds.phases(found.store) == {"bad-0": "Pending", "good-0": "Running", "good-1": "Running"}


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"write scheduling.k8s.io/v1alpha2 or scheduling.k8s.io/v1beta1"):
        ObjectCluster().put(native.group("train", version="v1alpha1"))


# --- starting ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_condition_comes_with_the_version_of_the_object_and_says_why(version: str) -> None:
    found = world(nodes=2, gpus=1)
    worlds.submit(found, [native.group("train", min_count=3, version=version), *native.pods("train", 3, gpus=1)])
    worlds.run(found, 5)
    said = condition(found, "train")
    assert (said["type"], said["status"], said["reason"]) == (VERSIONS[version], "False", "Unschedulable")
    assert said["message"].startswith("2 of 3 tasks fit; 1 more place for 1 nvidia.com/gpu needed")
    found.load([build.node("node-2", gpus=1)])
    worlds.run(found, 40)
    said = condition(found, "train")
    assert (said["type"], said["status"], said["reason"], said["message"]) == (VERSIONS[version], "True", "Scheduled", "")
    assert said["lastTransitionTime"] == "2026-01-01T00:00:07Z"


def test_a_minimum_that_is_lowered_lets_the_gang_start() -> None:
    found = world(nodes=2, gpus=1)
    worlds.submit(found, [native.group("train", min_count=3, version="v1beta1"), *native.pods("train", 3, gpus=1)])
    worlds.run(found, 10)
    assert nodes_of(found, "train") == set()
    found.store.patch(GROUP, "default", "train", {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
    worlds.run(found, 20)
    assert nodes_of(found, "train") == {"node-0", "node-1"}


def test_pods_of_a_basic_group_start_one_by_one() -> None:
    found = world(nodes=2, gpus=1)
    worlds.submit(found, [native.group("train"), *native.pods("train", 3, gpus=1)])
    worlds.run(found, 10)
    assert sorted(worlds.phases(found.store).values()) == ["Pending", "Running", "Running"]
    assert condition(found, "train")["status"] == "True"


def test_too_few_pods_are_told_where_kube_scheduler_is_silent() -> None:
    found = world(nodes=3, gpus=1)
    worlds.submit(found, [native.group("train", min_count=3), *native.pods("train", 2, gpus=1)])
    worlds.run(found, 10)
    assert condition(found, "train")["message"] == "only 2 of the 3 pods it needs are there"


def test_a_missing_group_is_told_where_kube_scheduler_is_silent() -> None:
    found = world(nodes=3, gpus=1)
    worlds.submit(found, native.pods("train", 2, gpus=1))
    worlds.run(found, 10)
    text = "2 pods wait for PodGroup default/train of scheduling.k8s.io, which does not exist; create it"
    assert found.reasons() == {"default/train": text}
    assert answer(*found.look())["groups"]["default/train"]["why"] == text
    worlds.submit(found, [native.group("train", min_count=2)], at=11)
    worlds.run(found, 20)
    assert set(worlds.phases(found.store).values()) == {"Running"}


def test_a_missing_group_is_a_gang_that_waits_in_the_table(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump_all([build.node("n", gpus=1), *native.pods("train", 1, gpus=1)]))
    result = CliRunner().invoke(main, ["schedule", "-f", str(file)], prog_name="phalanx")
    assert result.exit_code == 3
    assert "1 pod waits for PodGroup default/train of scheduling.k8s.io, which does not exist; create it" in result.stdout


def test_several_schedulers_in_one_gang_are_told_and_stop_nobody_else() -> None:
    found = world(nodes=4, gpus=1)
    strange = native.pod("train-1", "train", gpus=1, spec={"schedulerName": "other"})
    worlds.submit(found, [native.group("train", min_count=2), native.pod("train-0", "train", gpus=1), strange])
    worlds.submit(found, native.gang("good", tasks=2, gpus=1))
    worlds.run(found, 10)
    text = "its pods name several schedulers, 'default-scheduler' and 'other'; write the same spec.schedulerName in all of them"
    assert condition(found, "train")["message"] == text
    assert nodes_of(found, "train") == set()
    assert len(nodes_of(found, "good")) == 2


def test_a_group_of_the_name_of_another_dialect_keeps_its_own_pods() -> None:
    found = world(nodes=4, gpus=1)
    worlds.submit(found, worlds.gang("train", tasks=2, gpus=1))
    mine = [native.pod(f"other-{number}", "train", gpus=1) for number in range(2)]
    worlds.submit(found, [native.group("train", min_count=2), *mine], at=1)
    worlds.run(found, 10)
    assert set(worlds.phases(found.store).values()) == {"Running"}
    assert condition(found, "train")["status"] == "True"
    assert sorted(found.cluster.snapshot(0).gangs) == ["default/train", "default/train@native"]


# --- what surprises in Kubernetes ----------------------------------------------------------------------------------------


def test_a_finished_member_counts_and_a_replacement_starts() -> None:
    """Surprise 1: kube-scheduler lets it wait for ever, and says nothing."""
    found = world(nodes=3, gpus=1)
    worlds.submit(found, native.gang("train", tasks=3, gpus=1))
    worlds.run(found, 5)
    found.store.patch(POD, "default", "train-0", {"status": {"phase": "Succeeded"}}, is_status=True)
    found.store.delete(POD, "default", "train-1", grace=0)
    worlds.submit(found, [native.pod("train-1r", "train", gpus=1)], at=6)
    worlds.run(found, 20)
    assert worlds.phases(found.store) == {"train-0": "Succeeded", "train-1r": "Running", "train-2": "Running"}


def test_a_gated_member_counts_but_nobody_is_tried_without_it() -> None:
    """Surprise 2: kube-scheduler tries the others and refuses them."""
    found = world(nodes=3, gpus=1)
    held = native.pod("train-2", "train", gpus=1, spec={"schedulingGates": [{"name": "example.com/wait"}]})
    worlds.submit(found, [native.group("train", min_count=3), *native.pods("train", 2, gpus=1), held])
    worlds.run(found, 5)
    assert (
        condition(found, "train")["message"]
        == "2 of 3 tasks fit; 1 of 3 tasks is held back by the scheduling gate example.com/wait"
    )
    found.store.patch(POD, "default", "train-2", {"spec": {"schedulingGates": None}})
    worlds.run(found, 10)
    assert set(worlds.phases(found.store).values()) == {"Running"}


def test_the_condition_is_true_after_the_last_bind_and_never_false_again() -> None:
    """Surprise 10: kube-scheduler writes it before the first bind."""
    found = world(nodes=3, gpus=1)
    order: list[str] = []
    found.store.listen(lambda event: order.append(_told(event.object)))
    worlds.submit(found, native.gang("train", tasks=3, gpus=1))
    worlds.run(found, 5)
    assert [word for word in dict.fromkeys(order) if word] == ["bound", "True"]
    for number in range(3):
        found.store.delete(POD, "default", f"train-{number}", grace=0)
    found.store.delete(NODE, "", "node-0")
    worlds.submit(found, [native.pod(f"next-{number}", "train", gpus=1) for number in range(3)], at=10)
    worlds.run(found, 30)
    assert nodes_of(found, "next") == set()
    assert condition(found, "train")["status"] == "True"
    assert found.reasons()["default/train"].startswith("2 of 3 tasks fit")


def _told(document: Document) -> str:
    if document["kind"] == "Pod":
        return "bound" if "nodeName" in document["spec"] else ""
    return str(native.kubernetes_condition(document).get("status", ""))


def test_a_group_without_a_class_is_as_important_as_its_pods() -> None:
    """Surprise 11: a group that a Job made has priority 0 whatever its pods have, and preempts nobody in Kubernetes."""
    found = world(nodes=2, gpus=1)
    found.load([native.priority_class("hi", 1000)])
    worlds.submit(found, native.gang("low", tasks=2, gpus=1))
    pods = [native.pod(f"job-{number}", "job", gpus=1, spec={"priorityClassName": "hi"}) for number in range(2)]
    worlds.submit(found, [native.group("job", min_count=2, priority=0), *pods], at=10)
    worlds.run(found, 60)
    assert nodes_of(found, "job") == {"node-0", "node-1"}
    assert [record.pod for record in found.recorder.evictions] == ["default/low-0", "default/low-1"]


def test_the_class_of_a_group_comes_before_those_of_its_pods() -> None:
    cluster = ObjectCluster()
    pod = native.pod("train-0", "train", spec={"priorityClassName": "hi"})
    group = native.group("train", min_count=1, priorityClassName="lo", priority=5)
    for document in (native.priority_class("hi", 1000), native.priority_class("lo", 5), group, pod):
        cluster.put(document)
    assert cluster.snapshot(0).gangs[GangKey("default/train")].priority == 5


def test_pods_may_come_after_their_class_and_go_again() -> None:
    cluster = ObjectCluster()
    pod = native.pod("train-0", "train", spec={"priorityClassName": "hi"})
    for document in (native.group("train", min_count=1), pod, native.priority_class("hi", 1000)):
        cluster.put(document)
    assert cluster.snapshot(0).gangs[GangKey("default/train")].priority == 1000
    cluster.remove(pod)
    assert cluster.snapshot(0).gangs[GangKey("default/train")].priority == 0


def test_nobody_is_evicted_for_a_gang_that_does_not_fit_even_then() -> None:
    """Surprise 12: without workload-aware preemption kube-scheduler evicts pod by pod, in vain."""
    found = world(nodes=2, gpus=1)
    found.load([native.priority_class("hi", 1000)])
    worlds.submit(found, native.gang("low", tasks=2, gpus=1))
    worlds.submit(found, native.gang("big", tasks=3, gpus=1, spec={"priorityClassName": "hi"}), at=10)
    worlds.run(found, 60)
    assert found.recorder.evictions == []
    assert len(nodes_of(found, "low")) == 2


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "coscheduling"])
def test_surprise_13_a_minimum_holds_under_every_profile_that_knows_gangs(profile: str) -> None:
    """Surprise 13: with the gate GenericWorkload and without GangScheduling two of these three would start."""
    found = worlds.world(nodes=2, gpus=1, policy=policy_of_profile(profile))
    worlds.submit(found, native.gang("train", tasks=3, gpus=1))
    worlds.run(found, 60)
    assert set(worlds.phases(found.store).values()) == {"Pending"}
    found.load([build.node("another", gpus=1)])
    worlds.run(found, 120)
    assert set(worlds.phases(found.store).values()) == {"Running"}


# --- disruption and topology ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "evicted"), [("Pod", 1), ("PodGroup", 3)])
def test_a_gang_goes_as_a_whole_or_gives_what_it_can_spare(mode: str, evicted: int) -> None:
    found = world(nodes=3, gpus=1)
    found.load([native.priority_class("hi", 1000)])
    worlds.submit(found, native.gang("low", tasks=3, min_count=2, gpus=1, spec={"disruptionMode": mode}))
    worlds.submit(found, native.gang("high", tasks=1, gpus=1, spec={"priorityClassName": "hi"}), at=10)
    worlds.run(found, 60)
    assert len(found.recorder.evictions) == evicted
    assert len(nodes_of(found, "high")) == 1


def racks(**nodes: str) -> list[Document]:
    return [build.node(name, gpus=1, labels={"rack": rack} if rack else {}) for name, rack in nodes.items()]


TOGETHER: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


@pytest.mark.parametrize("profile", ["phalanx", "volcano"])
def test_members_share_one_value_of_a_label(profile: str) -> None:
    found = worlds.world(nodes=0, policy=policy_of_profile(profile))
    found.load(racks(a="one", b="two", c="one", d="two", e="two", f=""))
    worlds.submit(found, native.gang("train", tasks=3, gpus=1, spec=TOGETHER))
    worlds.run(found, 10)
    assert nodes_of(found, "train") == {"b", "d", "e"}


def test_members_share_one_value_of_a_label_under_the_rules_of_kai_too() -> None:
    found = worlds.world(nodes=0, policy=policy_of_profile("kai"))
    found.load([*racks(a="one", b="two", c="one", d="two", e="two"), kai.queue("team")])
    group, *pods = native.gang("train", tasks=3, gpus=1, spec=TOGETHER)
    group["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "team"}
    worlds.submit(found, [group, *pods])
    worlds.run(found, 10)
    assert nodes_of(found, "train") == {"b", "d", "e"}
    assert condition(found, "train")["status"] == "True"


def test_the_tightest_value_that_holds_all_is_taken() -> None:
    found = world(nodes=0)
    found.load(racks(a="one", b="one", c="one", d="two", e="two"))
    worlds.submit(found, native.gang("train", tasks=2, gpus=1, spec=TOGETHER))
    worlds.run(found, 10)
    assert nodes_of(found, "train") == {"d", "e"}


def test_a_gang_that_could_grow_goes_where_all_of_it_fits() -> None:
    found = world(nodes=0)
    found.load(racks(a="one", b="one", c="one", d="two", e="two"))
    worlds.submit(found, native.gang("train", tasks=3, min_count=2, gpus=1, spec=TOGETHER))
    worlds.run(found, 10)
    assert nodes_of(found, "train") == {"a", "b", "c"}


def test_a_gang_that_no_value_has_room_for_waits_and_says_so() -> None:
    found = world(nodes=0)
    found.load(racks(a="one", b="one", c="two", d="two", e=""))
    worlds.submit(found, native.gang("train", tasks=3, gpus=1, spec=TOGETHER))
    worlds.run(found, 10)
    assert nodes_of(found, "train") == set()
    assert condition(found, "train")["message"].startswith("2 of 3 tasks fit on nodes that share a value of 'rack'; 1 more place")


def test_a_member_that_comes_later_goes_where_the_others_are() -> None:
    found = world(nodes=0)
    found.load(racks(a="one", b="one", c="two", d="two", e="two"))
    worlds.submit(found, native.gang("train", tasks=2, gpus=1, spec=TOGETHER))
    worlds.run(found, 5)
    assert nodes_of(found, "train") == {"a", "b"}
    worlds.submit(found, [native.pod("late-0", "train", gpus=1)], at=6)
    worlds.run(found, 20)
    assert nodes_of(found, "late") == set()
    found.load(racks(z="one"))
    worlds.run(found, 60)
    assert nodes_of(found, "late") == {"z"}


def test_members_that_ask_for_nothing_stay_together_too() -> None:
    found = world(nodes=0)
    found.load(racks(a="one", b="two", c="two"))
    helper = native.pod("late-0", "train")
    worlds.submit(found, [native.group("train", min_count=2, **TOGETHER), *native.pods("train", 2, gpus=1), helper])
    worlds.run(found, 10)
    assert nodes_of(found, "train") == {"b", "c"}
    assert nodes_of(found, "late") <= {"b", "c"}
    assert nodes_of(found, "late")


def test_others_make_room_inside_one_value() -> None:
    found = world(nodes=0)
    found.load([*racks(a="one", b="one", c="two", d="two"), native.priority_class("hi", 1000)])
    for name in ("p", "q", "r", "s"):
        worlds.submit(found, native.gang(name, tasks=1, gpus=1))
    spec = {**TOGETHER, "priorityClassName": "hi"}
    worlds.submit(found, native.gang("train", tasks=2, gpus=1, spec=spec), at=10)
    worlds.run(found, 60)
    assert nodes_of(found, "train") in ({"a", "b"}, {"c", "d"})
    assert len(found.recorder.evictions) == 2
