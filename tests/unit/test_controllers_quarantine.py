"""The controller that tells broken objects what is wrong: once, on the right object, and not any more when it is mended."""

from typing import Any

import pytest

from phalanx.controllers.quarantine import POD_ALONE, QuarantineController, QuarantineKey
from phalanx.dialects.group_references import COSCHEDULING_GROUP, GROUP
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, kind_of
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import kai_objects as kai
from tests.support import native_groups as native
from tests.support import pod_made_gangs as made
from tests.support import same_gang as speech
from tests.support.controller_store import Stage

BROKEN = {
    "volcano": build.pod_group("train", min_member=-1), "kai": kai.pod_group("train", min_member=-1),
    "coscheduling": sigs.pod_group(sigs.COSCHEDULING, "train", {"minMember": -1}),
    "koordinator": sigs.pod_group(sigs.KOORDINATOR, "train", {"minMember": -1}), "native": native.group("train", min_count=-1),
}  # fmt: skip


def stage(*documents: Document) -> Stage:
    found = Stage(QuarantineController())
    found.make(*documents)
    found.run(1)
    return found


def types(found: Stage) -> list[str]:
    return [item["type"] for item in found.find(GROUP_BY_DIALECT["volcano"], "train")["status"]["conditions"]]


def scheduled(found: Stage, pod: str) -> list[str]:
    conditions = found.find(POD, pod).get("status", {}).get("conditions") or []
    return [item["reason"] for item in conditions if item["type"] == "PodScheduled"]


@pytest.mark.parametrize("dialect", BROKEN)
def test_a_broken_group_is_told_once_and_nothing_more_is_to_be_written(dialect: str) -> None:
    found = stage(BROKEN[dialect])
    found.store.patch(GROUP_BY_DIALECT[dialect], "default", "train", {"metadata": {"labels": {"seen": "yes"}}})
    found.run(2)
    assert [(event.reason, event.is_warning) for event in found.told] == [("Misconfigured", True)]
    assert found.unsettled() == []
    assert found.problems == []


@pytest.mark.parametrize("dialect", speech.DIALECTS)
def test_a_healthy_gang_is_left_alone(dialect: str) -> None:
    found = stage(*speech.gang(dialect, "train", tasks=3, cpu=1))
    versions = {item["metadata"]["resourceVersion"] for item in found.store.everything()}
    found.run(10)
    assert found.told == []
    assert {item["metadata"]["resourceVersion"] for item in found.store.everything()} == versions


def test_conditions_of_others_stay_where_they_are() -> None:
    stale = {"type": "Stale", "status": "True", "reason": "BelowMinimum", "message": "for long"}
    found = stage({**BROKEN["volcano"], "status": {"phase": "Pending", "conditions": [stale]}})
    assert [item["type"] for item in found.find(GROUP_BY_DIALECT["volcano"], "train")["status"]["conditions"]] == [
        "Stale",
        "Refused",
    ]
    found.store.patch(GROUP_BY_DIALECT["volcano"], "default", "train", {"spec": {"minMember": 1}})
    found.run(2)
    assert found.find(GROUP_BY_DIALECT["volcano"], "train")["status"] == {"phase": "Pending", "conditions": [stale]}


def test_kai_keeps_it_among_the_conditions_of_schedulers_and_counts_them_on() -> None:
    old = {"type": "UnschedulableOnNodePool", "status": "True", "nodePool": "default", "transitionID": "7"}
    found = stage({**BROKEN["kai"], "status": {"schedulingConditions": [old]}})
    first, second = found.find(GROUP_BY_DIALECT["kai"], "train")["status"]["schedulingConditions"]
    assert first == old
    assert (second["type"], second["reason"], second["transitionID"]) == ("Refused", "Invalid", "8")


@pytest.mark.parametrize("status", [{"conditions": "nonsense"}, {"conditions": [None, 3]}])
def test_a_status_that_nobody_can_read_is_no_obstacle(status: Any) -> None:
    found = stage({**BROKEN["volcano"], "status": status})
    assert types(found) == ["Refused"]


def twice() -> Document:
    pod = build.pod("train-0", group="train", cpu=1)
    pod["metadata"]["labels"][COSCHEDULING_GROUP] = "other"
    return pod


def test_a_pod_is_told_when_a_second_group_that_it_names_comes_and_not_any_more_when_it_goes() -> None:
    found = stage(twice(), build.pod_group("train"))
    assert scheduled(found, "train-0") == []
    other = sigs.pod_group(sigs.COSCHEDULING, "other", {"minMember": 1})
    found.make(other)
    found.run(2)
    assert scheduled(found, "train-0") == ["Misconfigured"]
    found.store.delete(kind_of(other), "default", "other")
    found.run(3)
    assert scheduled(found, "train-0") == []


def test_a_pod_that_is_mended_gets_its_gate_back_in_its_condition() -> None:
    (pod,) = made.pod_group("train", tasks=1, is_gated=True)
    pod["metadata"]["annotations"] = {}
    found = stage(pod)
    assert scheduled(found, "train-0") == ["Misconfigured"]
    found.store.patch(POD, "default", "train-0", {"metadata": {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "1"}}})
    found.run(2)
    assert scheduled(found, "train-0") == ["SchedulingGated"]


def test_a_pod_without_any_group_that_cannot_be_read_is_told() -> None:
    pod = build.pod("lonely", cpu="plenty")
    found = stage(pod)
    assert scheduled(found, "lonely") == ["Misconfigured"]
    assert "plenty" in found.told[0].message


def test_a_pod_that_has_a_node_is_no_question_any_more() -> None:
    controller, found = QuarantineController(), stage(build.node("node-0"))
    waiting, running = build.pod("waits", group="train"), build.pod("runs", group="train", on="node-0")
    assert list(controller.concerns(found.store, POD, waiting)) == [QuarantineKey("default", "waits", POD_ALONE)]
    assert list(controller.concerns(found.store, POD, running)) == []
    assert GROUP in running["metadata"]["annotations"]


# --- groups that do not exist --------------------------------------------------------------------------------------------


def test_a_pod_of_a_group_that_does_not_exist_is_told_after_a_while() -> None:
    found = stage(build.pod("train-0", group="absent"))
    found.run(9)
    assert found.told == []
    found.run(11)
    text = "Pod default/train-0: PodGroup default/absent of scheduling.volcano.sh does not exist; create it, or name another one"
    assert [(event.reason, event.message) for event in found.told] == [("Misconfigured", text)]
    assert scheduled(found, "train-0") == ["Misconfigured"]
    assert found.unsettled() == []


def test_a_group_that_comes_after_its_pods_is_in_time() -> None:
    found = stage(build.pod("train-0", group="train"))
    found.run(5)
    found.make(build.pod_group("train"))
    found.run(20)
    assert found.told == []


def test_pods_of_other_schedulers_may_name_groups_that_we_do_not_know() -> None:
    found = Stage(QuarantineController(frozenset({"phalanx"})))
    found.make(build.pod("train-0", group="absent", spec={"schedulerName": "volcano"}))
    found.run(20)
    assert found.told == []
