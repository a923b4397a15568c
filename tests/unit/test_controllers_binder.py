"""The binder: what becomes of requests, and of the gangs that they are for."""

from typing import Any

from phalanx.controllers.objects import PROBLEM
from phalanx.dialects.bind_requests import LAST_ATTEMPT, ROLLED_BACK
from phalanx.model.kinds import BIND_REQUEST, BUDGET, POD, PRIORITY, RESOURCE_CLAIM, VOLUME, VOLUME_CLAIM, Document
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support.binder_cluster import BindStage
from tests.support.volume_objects import storage_class, volume_claim, with_volume

HERE, THERE = "node-0", "node-1"
PAIR = ["train-0", "train-1"]


def conditions(stage: BindStage, pod: str) -> dict[str, tuple[str, str]]:
    found = stage.find(POD, pod)["status"].get("conditions", ())
    return {item["type"]: (item["status"], item.get("reason", "")) for item in found}


def reasons_told(stage: BindStage) -> list[str]:
    return [event.reason for event in stage.told]


# --- one by one ----------------------------------------------------------------------------------------------------------


def test_a_request_binds_its_pod_and_says_so_on_both() -> None:
    stage = BindStage()
    stage.ask([kai.pod("solo", "", gpus=1)], on=[THERE])
    stage.run(5)
    assert (stage.places(), stage.phases()) == ({"solo": THERE}, {"solo": "Succeeded"})
    assert conditions(stage, "solo") == {"PodScheduled": ("True", ""), "PodBound": ("True", "Bound"), "Ready": ("True", "")}
    assert stage.find(POD, "solo")["metadata"]["annotations"]["received-resource-type"] == "Regular"
    assert [(event.reason, event.message) for event in stage.told] == [("Bound", "Pod default/solo is bound to node node-1")]
    assert (stage.unsettled(), stage.problems) == ([], [])


def test_a_pod_that_is_bound_already_is_left_alone() -> None:
    stage = BindStage()
    pod = stage.store.create(kai.pod("solo", ""))
    stage.store.bind("default", "solo", HERE)
    stage.request(pod, THERE)
    stage.run(5)
    assert (stage.binds, stage.places(), stage.phases()) == (["solo"], {"solo": HERE}, {"solo": "Succeeded"})


def test_a_request_that_has_succeeded_and_whose_pod_has_no_node_is_carried_out_again() -> None:
    """What an etcd shows that was restored to a state before the bind."""
    stage = BindStage()
    stage.ask(kai.gang("train", tasks=1), on=["node-0"])
    (request,) = stage.store.items(BIND_REQUEST)
    stage.store.patch(BIND_REQUEST, "default", request["metadata"]["name"], {"status": {"phase": "Succeeded"}}, is_status=True)
    stage.run(29)
    assert stage.binds == []
    stage.run(35)
    assert stage.binds == ["train-0"]
    assert stage.phases() == {"train-0": "Succeeded"}


def test_a_refused_bind_is_tried_again_after_two_and_four_seconds() -> None:
    stage = BindStage()
    stage.faults.refuse_binds(HERE, 2)
    stage.ask([kai.pod("solo", "")], on=[HERE])
    stage.run(5.9)
    request = stage.find(BIND_REQUEST, "solo")
    assert request["status"]["failedAttempts"] == 2
    assert request["metadata"]["annotations"][LAST_ATTEMPT] == "2026-01-01T00:00:02Z"
    assert "was refused: pods/binding" in request["status"]["reason"]
    stage.run(6)
    assert (stage.places(), stage.phases()) == ({"solo": HERE}, {"solo": "Succeeded"})
    assert reasons_told(stage) == ["BindingError", "BindingError", "Bound"]
    assert "reason" not in stage.find(BIND_REQUEST, "solo")["status"]


def test_a_request_fails_for_good_after_three_attempts_or_as_many_as_it_names() -> None:
    cases: list[tuple[int, dict[str, Any]]] = [
        (3, {}),
        (1, {"backoffLimit": 1}),
        (5, {"backoffLimit": 5}),
        (1, {"backoffLimit": 0}),
    ]
    for limit, spec in cases:
        stage = BindStage()
        stage.faults.refuse_binds("default/solo", 99)
        stage.ask([kai.pod("solo", "")], on=[HERE], **spec)
        stage.run(100)
        assert stage.find(BIND_REQUEST, "solo")["status"]["failedAttempts"] == limit
        assert (stage.phases(), stage.places()) == ({"solo": "Failed"}, {})
        assert conditions(stage, "solo") == {"PodBound": ("False", "BindingError")}
        assert stage.unsettled() == []


def test_a_request_for_a_node_that_is_gone_fails_at_once() -> None:
    stage = BindStage()
    stage.ask([kai.pod("solo", "")], on=["nowhere"])
    stage.run(0)
    assert stage.reasons() == {"solo": "node nowhere is gone"}


def test_a_request_of_an_earlier_pod_of_that_name_is_not_worked_off() -> None:
    stage = BindStage()
    stage.request({"metadata": {"namespace": "default", "name": "solo", "uid": "old"}}, HERE)
    stage.store.create(kai.pod("solo", ""))
    stage.run(200)
    assert (stage.phases(), stage.places()) == ({"solo": "Pending"}, {})


def test_a_request_that_cannot_be_read_is_set_aside_alone_until_it_is_mended() -> None:
    stage = BindStage()
    stage.ask([kai.pod("solo", "")], on=[HERE])
    broken = kai.bind_request("other", "")
    stage.make(broken)
    stage.store.create(kai.pod("other", ""))
    stage.run(5)
    where = "BindRequest default/other: spec.selectedNode: missing; write the name of the node to bind it to"
    assert stage.find(BIND_REQUEST, "other")["metadata"]["annotations"][PROBLEM] == where
    assert stage.places() == {"solo": HERE}
    assert stage.unsettled() == []
    stage.store.patch(BIND_REQUEST, "default", "other", {"spec": {"selectedNode": THERE}})
    stage.run(10)
    assert stage.places() == {"solo": HERE, "other": THERE}
    assert PROBLEM not in stage.find(BIND_REQUEST, "other")["metadata"].get("annotations", {})


# --- gangs ---------------------------------------------------------------------------------------------------------------


def test_nobody_is_bound_before_the_requests_of_the_whole_gang_are_there() -> None:
    stage = BindStage()
    stage.ask(kai.gang("train", tasks=2), on=[HERE])
    stage.run(30)
    assert stage.places() == {}
    stage.request(stage.find(POD, "train-1"), THERE)
    stage.run(31)
    assert stage.places() == {"train-0": HERE, "train-1": THERE}


def test_requests_that_wait_for_the_others_for_a_minute_fail() -> None:
    stage = BindStage()
    stage.ask(kai.gang("train", tasks=2), on=[HERE])
    stage.run(60)
    assert stage.reasons() == {"train-0": "rolled back: the other pods of train were not given nodes within 60 s"}
    assert (stage.places(), stage.unsettled()) == ({}, [])


def test_if_the_first_is_refused_nobody_else_is_bound_meanwhile() -> None:
    stage = BindStage()
    stage.faults.refuse_binds("default/train-0", 2)
    stage.ask(kai.gang("train", tasks=2), on=[HERE, THERE])
    stage.run(5)
    assert (stage.places(), stage.phases()) == ({}, dict.fromkeys(PAIR, "Pending"))
    stage.run(6)
    assert (stage.binds, stage.phases()) == (PAIR, dict.fromkeys(PAIR, "Succeeded"))


def test_if_one_is_refused_for_good_those_who_landed_leave_and_all_requests_fail() -> None:
    stage = BindStage()
    stage.faults.refuse_binds(THERE, 99)
    stage.ask(kai.gang("train", tasks=2), on=[HERE, THERE])
    stage.run(5)
    assert stage.places() == {"train-0": HERE}
    assert stage.phases() == dict.fromkeys(PAIR, "Pending")
    stage.run(6)
    assert (stage.places(), stage.phases()) == ({}, dict.fromkeys(PAIR, "Failed"))
    told = [event.message for event in stage.told if event.about["metadata"]["name"] == "train-0"]
    assert told[-1].startswith("rolled back: binding to node node-1 was refused: ")
    stage.run(8)
    assert (stage.names(POD), stage.phases()) == (["train-1"], {"train-1": "Failed"})
    assert stage.unsettled() == []


def test_a_request_that_was_rolled_back_says_whose_fault_it_was_and_blames_no_node() -> None:
    stage = BindStage(nodes=3)
    stage.faults.refuse_binds("default/train-0", 99)
    stage.ask(kai.gang("train", tasks=3), on=[HERE, THERE, "node-2"], backoffLimit=2)
    stage.run(10)
    requests = {name: stage.find(BIND_REQUEST, name) for name in ("train-0", "train-1", "train-2")}
    marked = [name for name, item in requests.items() if ROLLED_BACK in item["metadata"].get("annotations", {})]
    assert marked == ["train-1", "train-2"]
    assert stage.reasons()["train-1"].startswith(
        'rolled back: binding to node node-0 was refused: pods/binding "train-0" is forbidden'
    )
    assert {item["status"]["failedAttempts"] for item in requests.values()} == {2}


def test_a_gang_that_is_whole_without_the_one_who_is_refused_goes_on() -> None:
    stage = BindStage()
    stage.faults.refuse_binds("default/train-1", 99)
    stage.ask(kai.gang("train", tasks=3, min_member=2), on=[HERE, HERE, THERE])
    stage.run(20)
    assert stage.places() == {"train-0": HERE, "train-2": THERE}
    assert stage.phases() == {"train-0": "Succeeded", "train-1": "Failed", "train-2": "Succeeded"}


def test_sub_groups_have_minima_of_their_own() -> None:
    stage = BindStage()
    group, *pods = kai.gang(
        "train", tasks=2, min_member=2, subGroups=[{"name": "a", "minMember": 1}, {"name": "b", "minMember": 1}]
    )
    for pod, part in zip(pods, "ab", strict=True):
        pod["metadata"]["labels"] = {kai.SUBGROUP: part}
    stage.ask([group, *pods], on=[HERE])
    stage.run(10)
    assert stage.places() == {}
    stage.request(stage.find(POD, "train-1"), THERE)
    stage.run(11)
    assert stage.places() == {"train-0": HERE, "train-1": THERE}


def test_a_gang_of_volcanos_is_bound_together_too() -> None:
    stage = BindStage()
    stage.faults.refuse_binds(THERE, 99)
    stage.ask(build.gang("train", tasks=2, cpu=1), on=[HERE, THERE])
    stage.run(20)
    assert (stage.places(), stage.names(POD)) == ({}, ["train-1"])


def test_a_node_that_goes_away_meanwhile_fails_the_gang() -> None:
    stage = BindStage()
    stage.faults.refuse_binds(THERE, 1)
    stage.ask(kai.gang("train", tasks=2), on=[HERE, THERE])
    stage.run(1)
    assert stage.places() == {"train-0": HERE}
    stage.remove_node(THERE)
    stage.run(3)
    assert (stage.places(), stage.phases()) == ({}, {"train-1": "Failed"})


def test_a_pod_that_is_deleted_meanwhile_fails_the_gang() -> None:
    stage = BindStage()
    stage.faults.refuse_binds(THERE, 1)
    stage.ask(kai.gang("train", tasks=2), on=[HERE, THERE])
    stage.run(1)
    stage.store.delete(POD, "default", "train-1")
    stage.run(70)
    assert (stage.places(), stage.names(POD)) == ({}, [])


def test_where_a_budget_keeps_those_who_landed_the_gang_can_still_become_whole() -> None:
    stage = BindStage(nodes=3)
    budget = {"selector": {"matchLabels": {"app": "train"}}, "minAvailable": 1}
    stage.make({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget})
    group, *pods = kai.gang("train", tasks=2)
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "train"}
    stage.faults.refuse_binds(THERE, 99)
    stage.ask([group, *pods], on=[HERE, THERE])
    stage.run(20)
    assert stage.places() == {"train-0": HERE}
    assert stage.phases() == {"train-0": "Pending", "train-1": "Failed"}
    stage.store.delete(BIND_REQUEST, "default", "train-1")
    stage.request(stage.find(POD, "train-1"), "node-2")
    stage.run(400)
    assert stage.places() == {"train-0": HERE, "train-1": "node-2"}
    assert stage.phases() == dict.fromkeys(PAIR, "Succeeded")
    assert stage.names(BUDGET) == ["b"]


# --- shared GPUs ---------------------------------------------------------------------------------------------------------


def test_a_shared_gpu_is_reserved_before_its_pods_are_bound() -> None:
    stage = BindStage()
    stage.ask(kai.gang("train", tasks=2, share=0.5), on=[HERE, HERE], devices=["g1"])
    stage.run(0)
    assert (stage.reservations(), stage.places()) == (["gpu-reservation-g1"], {})
    stage.run(5)
    reserving = stage.find(POD, "gpu-reservation-g1", namespace="kai-resource-reservation")
    assert reserving["spec"]["nodeName"] == HERE
    assert reserving["metadata"]["annotations"] == {"run.ai/reserve_for_gpu_index": "0"}
    assert stage.places() == dict.fromkeys(PAIR, HERE)
    assert stage.find(POD, "train-0")["metadata"]["labels"]["runai-gpu-group"] == "g1"
    assert stage.find(POD, "train-0")["metadata"]["annotations"]["phalanx.dev/visible-devices"] == "0"
    assert stage.unsettled() == []


def test_a_pod_on_two_shared_gpus_has_a_label_for_each() -> None:
    stage = BindStage()
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1", "g2"])
    stage.run(5)
    assert stage.find(POD, "solo")["metadata"]["labels"] == {"runai-gpu-group/g1": "g1", "runai-gpu-group/g2": "g2"}
    indices = [pod["metadata"]["annotations"]["run.ai/reserve_for_gpu_index"] for pod in stage.store.within(POD, kai.RESERVATION)]
    assert indices == ["0", "1"]
    assert stage.find(POD, "solo")["metadata"]["annotations"]["phalanx.dev/visible-devices"] == "0,1"
    stage.run(60)
    assert (stage.places(), stage.unsettled()) == ({"solo": HERE}, [])


def test_a_reservation_that_is_there_already_is_used_and_a_second_one_removed() -> None:
    stage = BindStage()
    stage.make(build.node("n", cpu=1))
    for name in ("first", "second"):
        found = kai.reservation("g1", on=HERE)
        meta = {**found["metadata"], "name": name, "annotations": {"run.ai/reserve_for_gpu_index": "3"}}
        stage.make({**found, "metadata": meta, "status": {"phase": "Running"}})
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(5)
    assert (stage.places(), stage.reservations()) == ({"solo": HERE}, ["first"])


def test_a_reservation_goes_when_the_last_pod_has_left() -> None:
    stage = BindStage()
    stage.ask([kai.pod("one", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.ask([kai.pod("two", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(5)
    stage.store.delete(POD, "default", "one")
    stage.run(10)
    assert stage.reservations() == ["gpu-reservation-g1"]
    stage.store.delete(POD, "default", "two")
    stage.run(15)
    assert (stage.reservations(), stage.store.within(POD)) == ([], [])


def test_a_group_that_is_asked_for_while_its_reservation_leaves_gets_another() -> None:
    stage = BindStage()
    stage.ask([kai.pod("one", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(5)
    stage.store.delete(POD, "default", "one", grace=0)
    stage.run(5.5)
    assert stage.reservations() == []
    stage.ask([kai.pod("two", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(10)
    assert (stage.places(), stage.reservations()) == ({"two": HERE}, ["gpu-reservation-g1"])


def test_a_round_that_fails_takes_marks_and_reservations_back() -> None:
    stage = BindStage()
    stage.faults.refuse_binds("default/train-0", 99)
    stage.ask(kai.gang("train", tasks=2, share=0.5), on=[HERE, HERE], devices=["g1"])
    stage.run(5)
    assert stage.find(POD, "train-1")["metadata"]["labels"] == {"runai-gpu-group": "g1"}
    stage.run(20)
    assert stage.find(POD, "train-1")["metadata"].get("labels", {}) == {}
    assert set(stage.find(POD, "train-1")["metadata"]["annotations"]) == {"pod-group-name", "gpu-fraction"}
    assert (stage.reservations(), stage.unsettled()) == ([], [])


def test_a_reservation_that_never_runs_uses_the_attempts_up() -> None:
    stage = BindStage()
    found = kai.reservation("g1", on=HERE)
    stage.make({**found, "status": {"phase": "Running"}, "spec": {**found["spec"], "nodeName": THERE}})
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1"], backoffLimit=2)
    stage.run(119)
    assert stage.phases() == {"solo": "Pending"}
    stage.run(400)
    assert stage.reasons() == {"solo": "reservation pod g1 is on node node-1, not on node-0"}
    assert stage.phases() == {"solo": "Failed"}


def test_pods_go_with_the_reservation_of_their_gpu_and_are_told_why() -> None:
    stage = BindStage()
    stage.ask(kai.gang("train", tasks=2, share=0.5), on=[HERE, HERE], devices=["g1"])
    stage.ask([kai.pod("other", "", share=0.5)], on=[HERE], devices=["g2"])
    stage.run(5)
    stage.store.delete(POD, kai.RESERVATION, "gpu-reservation-g1")
    stage.run(10)
    assert (stage.places(), stage.reservations()) == ({"other": HERE}, ["gpu-reservation-g2"])
    told = [event.message for event in stage.told if event.reason == "ReservationGone"]
    assert told == ["the reservation pod of GPU group g1 is gone, and with it the GPU; the pod is deleted"] * 2


def test_a_reservation_that_was_evicted_holds_no_gpu_any_more() -> None:
    stage = BindStage()
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(5)
    stage.store.patch(POD, kai.RESERVATION, "gpu-reservation-g1", {"status": {"phase": "Failed"}}, is_status=True)
    stage.run(10)
    assert (stage.places(), stage.reservations()) == ({}, [])


def test_a_pod_whose_group_has_another_gpu_by_now_goes() -> None:
    stage = BindStage()
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(5)
    another = {"metadata": {"annotations": {"run.ai/reserve_for_gpu_index": "GPU-7"}}}
    stage.store.patch(POD, kai.RESERVATION, "gpu-reservation-g1", another)
    stage.run(10)
    assert stage.places() == {}


def test_a_reservation_that_names_no_gpu_in_time_is_deleted() -> None:
    stage = BindStage()
    stage.faults.die(HERE)
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1"], backoffLimit=2)
    stage.run(119)
    assert (stage.reservations(), stage.phases(), stage.reasons()) == (["gpu-reservation-g1"], {"solo": "Pending"}, {"solo": ""})
    stage.run(121)
    assert (stage.reservations(), stage.phases()) == ([], {"solo": "Pending"})
    assert stage.reasons() == {"solo": "reservation pod gpu-reservation-g1 has not said which GPU it got"}


def test_a_reservation_that_is_refused_is_an_attempt_that_failed_and_says_what_to_install() -> None:
    stage = BindStage()
    stage.store.delete(PRIORITY, "", "gpu-reservation")
    stage.ask([kai.pod("solo", "", share=0.5)], on=[HERE], devices=["g1"])
    stage.run(1)
    assert stage.phases() == {"solo": "Pending"}
    stage.run(20)
    assert stage.phases() == {"solo": "Failed"}
    assert stage.reasons()["solo"].endswith("name gpu-reservation was found; install what 'phalanx manifests rbac' prints")


# --- volumes and claims --------------------------------------------------------------------------------------------------


def test_a_claim_that_waits_for_its_pod_learns_the_node_and_the_pod_waits_for_the_volume() -> None:
    stage = BindStage()
    stage.make(storage_class("late"), volume_claim("data", "late"))
    stage.ask([with_volume(kai.pod("solo", ""), "data")], on=[THERE])
    stage.run(0)
    assert stage.find(VOLUME_CLAIM, "data")["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": THERE}
    assert stage.places() == {}
    stage.run(5)
    assert stage.find(VOLUME_CLAIM, "data")["status"] == {"phase": "Bound"}
    assert stage.places() == {"solo": THERE}


def local_volume(name: str, node: str, *, storage: str = "10Gi") -> Document:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "status": {"phase": "Available"},
        "spec": {
            "capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }  # fmt: skip


def test_a_volume_that_is_there_already_is_promised_to_the_claim_the_smallest_that_its_node_reaches() -> None:
    stage = BindStage()
    stage.make(storage_class("late"), volume_claim("data", "late"))
    stage.make(local_volume("far", HERE, storage="2Gi"), local_volume("big", THERE), local_volume("small", THERE, storage="5Gi"))
    stage.ask([with_volume(kai.pod("solo", ""), "data")], on=[THERE])
    stage.run(5)
    assert stage.store.get(VOLUME, "", "small")["spec"]["claimRef"]["name"] == "data"
    assert stage.find(VOLUME_CLAIM, "data")["spec"]["volumeName"] == "small"
    assert "claimRef" not in stage.store.get(VOLUME, "", "big")["spec"]
    assert stage.places() == {"solo": THERE}


def test_a_node_that_was_chosen_for_a_claim_is_taken_back_when_the_gang_fails() -> None:
    stage = BindStage()
    stage.make(storage_class("late"), volume_claim("data", "late"))
    group, first, second = kai.gang("train", tasks=2)
    stage.ask([group, with_volume(first, "data"), second], on=[HERE, THERE])
    stage.run(0)
    stage.remove_node(THERE)
    stage.run(20)
    assert stage.find(VOLUME_CLAIM, "data")["metadata"]["annotations"] == {}
    assert stage.phases() == dict.fromkeys(PAIR, "Failed")


def test_a_pod_whose_claim_never_comes_fails_with_that_reason() -> None:
    stage = BindStage()
    stage.ask([with_volume(kai.pod("solo", ""), "data")], on=[HERE], backoffLimit=1)
    stage.run(120)
    assert stage.reasons() == {"solo": "volume claim data is not there; create it"}


RESULTS = [{"request": "gpu", "driver": "gpu.example", "pool": "p", "device": "gpu-3"}]
ALLOCATION = {"devices": {"results": RESULTS}}
CLAIMS = [{"name": "gpu", "resourceClaimName": "mine"}]


def with_device(stage: BindStage, pod: Document) -> dict[str, Any]:
    stage.make({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "mine", "namespace": "default"}})
    return {**pod, "spec": {**pod["spec"], "resourceClaims": CLAIMS}}


def test_a_claim_gets_its_devices_and_its_user_before_the_pod_is_bound() -> None:
    stage = BindStage()
    pod = with_device(stage, kai.pod("solo", ""))
    stage.ask([pod], on=[HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}])
    stage.run(5)
    user = {"resource": "pods", "name": "solo", "uid": stage.find(POD, "solo")["metadata"]["uid"]}
    assert stage.find(RESOURCE_CLAIM, "mine")["status"] == {"allocation": ALLOCATION, "reservedFor": [user]}
    assert stage.places() == {"solo": HERE}


SLICE = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "here"},
    "spec": {"driver": RESULTS[0]["driver"], "pool": {"name": RESULTS[0]["pool"]}, "nodeName": HERE},
}  # fmt: skip


def test_a_claim_says_from_which_node_its_devices_are_reached() -> None:
    stage = BindStage()
    stage.make(SLICE)
    pod = with_device(stage, kai.pod("solo", ""))
    stage.ask([pod], on=[HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}])
    stage.run(5)
    fields = [{"key": "metadata.name", "operator": "In", "values": [HERE]}]
    expected = {"nodeSelectorTerms": [{"matchFields": fields}]}
    assert stage.find(RESOURCE_CLAIM, "mine")["status"]["allocation"]["nodeSelector"] == expected


def test_pods_that_share_a_claim_are_all_written_on_it_and_the_last_one_leaves_it_free() -> None:
    stage = BindStage()
    group, *pods = kai.gang("train", tasks=2)
    shared = [with_device(stage, pods[0]), {**pods[1], "spec": {**pods[1]["spec"], "resourceClaims": CLAIMS}}]
    stage.ask([group, *shared], on=[HERE, HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}])
    stage.ask([{**kai.pod("late", ""), "spec": {**pods[0]["spec"], "resourceClaims": CLAIMS}}], on=[HERE])
    stage.run(5)
    users = stage.find(RESOURCE_CLAIM, "mine")["status"]["reservedFor"]
    assert sorted(user["name"] for user in users) == ["late", *PAIR]
    assert (stage.problems, sorted(stage.places())) == ([], ["late", *PAIR])
    stage.store.delete(RESOURCE_CLAIM, "default", "mine")
    for name in (*PAIR, "late"):
        assert "deletionTimestamp" in stage.find(RESOURCE_CLAIM, "mine")["metadata"]
        stage.store.delete(POD, "default", name, grace=0)
        stage.run(6)
    assert stage.names(RESOURCE_CLAIM) == []


def test_a_claim_that_stays_has_no_devices_when_nobody_uses_it() -> None:
    stage = BindStage()
    pod = with_device(stage, kai.pod("solo", ""))
    stage.ask([pod], on=[HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}])
    stage.run(5)
    stage.set_status(POD, "solo", {"phase": "Succeeded"})
    stage.run(6)
    found = stage.find(RESOURCE_CLAIM, "mine")
    assert (found["status"], found["metadata"]["finalizers"]) == ({}, [])


def test_a_pod_whose_claim_is_being_deleted_waits_and_says_so() -> None:
    stage = BindStage()
    pod = with_device(stage, kai.pod("solo", ""))
    stage.store.patch(RESOURCE_CLAIM, "default", "mine", {"metadata": {"finalizers": ["example.com/keep"]}})
    stage.store.delete(RESOURCE_CLAIM, "default", "mine")
    stage.ask([pod], on=[HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}], backoffLimit=1)
    stage.run(200)
    assert stage.reasons() == {"solo": "resource claim mine is being deleted"}


def test_devices_are_given_back_when_the_bind_fails() -> None:
    stage = BindStage()
    stage.faults.refuse_binds(HERE, 99)
    pod = with_device(stage, kai.pod("solo", ""))
    stage.ask([pod], on=[HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}], backoffLimit=1)
    stage.run(5)
    assert stage.find(RESOURCE_CLAIM, "mine")["status"] == {}
    assert stage.phases() == {"solo": "Failed"}


def test_a_claim_with_other_devices_is_not_overwritten() -> None:
    stage = BindStage()
    pod = with_device(stage, kai.pod("solo", ""))
    other = {"devices": {"results": [{**RESULTS[0], "device": "gpu-5"}]}}
    stage.set_status(RESOURCE_CLAIM, "mine", {"allocation": other})
    stage.ask([pod], on=[HERE], resourceClaimAllocations=[{"name": "gpu", "allocation": ALLOCATION}], backoffLimit=1)
    stage.run(200)
    assert stage.find(RESOURCE_CLAIM, "mine")["status"] == {"allocation": other}
    assert stage.reasons() == {"solo": "resource claim mine has other devices than the request; delete the request"}
