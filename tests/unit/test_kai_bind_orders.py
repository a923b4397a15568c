"""BindRequests: what they do to pods, what becomes of them, and those that a session makes."""

from typing import Any

import pytest

from phalanx.errors import SnapshotError
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle, Document
from tests.support import kai_objects as kai

A = kai.queue("a", quota=4)


def cluster_of(*parts: Any, nodes: int = 1, gpus: int = 2, options: Any = None) -> Cluster:
    return kai.cluster(nodes=nodes, gpus=gpus, options=options).submit(A, *parts)


def requests(cycle: Cycle) -> dict[str, Document]:
    return {document["metadata"]["name"]: document for document in cycle.answer["bindRequests"]}


# --- reading -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["", "Pending", "Succeeded"])
def test_a_request_holds_room_on_its_node(phase: str) -> None:
    cluster = cluster_of(kai.gang("train", gpus=2), kai.bind_request("train-0", "node-0", phase=phase), kai.gang("late", gpus=1))
    cycle = cluster.run_cycle()
    assert (cycle.binds, cycle.status("train-0")) == ([], "Binding")
    assert cycle.answer["tasks"]["default/train-0"]["node"] == "node-0"
    assert cycle.answer["deleteBindRequests"] == {}


def test_a_request_holds_its_part_of_a_shared_gpu() -> None:
    parts = [kai.gang("one", share=0.6), kai.bind_request("one-0", "node-0", groups=["g"]), kai.gang("two", share=0.6)]
    assert cluster_of(*parts, gpus=1).run_cycle().binds == []
    parts[2] = kai.gang("two", share=0.4)
    cycle = cluster_of(*parts, gpus=1).run_cycle()
    assert requests(cycle)["two-0"]["spec"]["selectedGPUGroups"] == ["g"]


def test_a_request_may_come_before_its_pod_and_its_node() -> None:
    cluster = cluster_of(kai.bind_request("train-0", "late-node"), kai.gang("train", gpus=2), kai.gang("other", gpus=2))
    assert [name for name, _ in cluster.run_cycle().binds] == ["other-0"]
    cluster.submit(build.node("late-node", gpus=2))
    assert cluster.run_cycle().status("train-0") == "Binding"
    cluster.remove("Node", "late-node")
    assert cluster.run_cycle().status("train-0") == "Pending"


def test_without_its_request_a_pod_waits_again() -> None:
    cluster = cluster_of(kai.gang("train", gpus=3), kai.bind_request("train-0", "node-0"))
    assert cluster.run_cycle().status("train-0") == "Binding"
    assert cluster.remove("BindRequest", "train-0").run_cycle().status("train-0") == "Pending"


def test_a_pod_that_has_its_node_is_past_its_request() -> None:
    cluster = cluster_of(kai.gang("train", on="node-0", gpus=2), kai.bind_request("train-0", "gone"))
    assert cluster.run_cycle().status("train-0") == "Running"


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (kai.bind_request("train-0", "node-0", phase="Failed", failedAttempts=1), "it failed for good"),
        (kai.bind_request("train-0", "gone"), "node gone is gone"),
        (kai.bind_request("nobody", "node-0"), "pod default/nobody is gone"),
    ],
)
def test_a_request_that_leads_nowhere_is_deleted(request_: Document, reason: str) -> None:
    cycle = cluster_of(kai.gang("train", gpus=2), request_).run_cycle()
    assert cycle.answer["deleteBindRequests"] == {f"default/{request_['metadata']['name']}": reason}
    assert cycle.binds == [("train-0", "node-0")]


def test_a_request_that_is_tried_again_is_alive() -> None:
    request_ = kai.bind_request("train-0", "node-0", phase="Failed", failedAttempts=2)
    request_["spec"]["backoffLimit"] = 3
    cycle = cluster_of(kai.gang("train", gpus=2), request_).run_cycle()
    assert (cycle.status("train-0"), cycle.answer["deleteBindRequests"]) == ("Binding", {})


def test_a_request_for_an_earlier_pod_of_the_same_name_is_none_for_this_one() -> None:
    group, pod = kai.gang("train", gpus=2)
    pod["metadata"]["uid"] = "second"
    request_ = kai.bind_request("train-0", "node-0")
    request_["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "first"}]
    cycle = cluster_of(group, pod, request_).run_cycle()
    assert cycle.binds == [("train-0", "node-0")]
    assert cycle.answer["deleteBindRequests"] == {"default/train-0": "pod default/train-0 is gone"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"selectedNode": "n"}}, "spec.podName: missing; write the name of the pod to bind"),
        ({"spec": {"podName": "p"}}, "spec.selectedNode: missing; write the name of the node to bind it to"),
        ({"status": {"phase": "Lost"}}, "status.phase: 'Lost' is unknown; write one of Pending, Succeeded, Failed"),
        ({"status": {"failedAttempts": -1}}, "status.failedAttempts: -1 is negative; write 0 or more"),
        ({"spec": {"podName": 3}}, "spec.podName: expected `str`, got `int`"),
    ],
)
def test_a_broken_request_is_refused_alone(change: Document, reason: str) -> None:
    cluster = cluster_of(kai.gang("train", gpus=2))
    with pytest.raises(SnapshotError) as problem:
        cluster.submit({**kai.bind_request("train-0", "node-0"), **change})
    assert str(problem.value) == f"BindRequest default/train-0: {reason}"
    assert cluster.run_cycle().binds == [("train-0", "node-0")]


# --- writing -------------------------------------------------------------------------------------------------------------


def test_every_pod_that_gets_a_node_has_a_request() -> None:
    cycle = cluster_of(kai.gang("train", tasks=2, gpus=1)).run_cycle()
    assert requests(cycle)["train-0"] == {
        "apiVersion": "scheduling.run.ai/v1alpha2",
        "kind": "BindRequest",
        "metadata": {
            "name": "train-0",
            "namespace": "default",
            "labels": {"selected-node": "node-0"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "train-0"}],
        },
        "spec": {
            "podName": "train-0",
            "selectedNode": "node-0",
            "receivedResourceType": "Regular",
            "receivedGPU": {"count": 1, "portion": "1.00"},
        },
    }
    assert list(requests(cycle)) == ["train-0", "train-1"]


def test_a_request_says_how_much_of_a_gpu_the_pod_gets() -> None:
    group, pod = kai.gang("train")
    pod["metadata"]["annotations"]["gpu-memory"] = "30"
    memory = requests(cluster_of(group, pod).run_cycle())["train-0"]["spec"]
    assert memory["receivedResourceType"] == "Fraction"
    assert memory["receivedGPU"] == {"count": 1, "portion": "0.30"}
    shared = requests(cluster_of(kai.gang("train", share=0.25)).run_cycle())["train-0"]["spec"]
    assert (shared["receivedGPU"]["portion"], len(shared["selectedGPUGroups"])) == ("0.25", 1)
    plain = requests(cluster_of(kai.gang("train")).run_cycle())["train-0"]["spec"]
    assert (plain["receivedResourceType"], plain["receivedGPU"]) == ("Regular", {"count": 0, "portion": "0.00"})


def test_a_request_names_mig_instances() -> None:
    offers: dict[str, Any] = {"nvidia.com/mig-1g.5gb": 2}
    node = build.node("mig", labels={"nvidia.com/mig.strategy": "mixed"}, **offers)
    group, pod = kai.gang("train")
    pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/mig-1g.5gb"] = 1
    assert requests(cluster_of(node, group, pod).run_cycle())["train-0"]["spec"]["receivedResourceType"] == "MigInstance"


def test_how_often_a_bind_is_tried_is_an_option() -> None:
    found = requests(cluster_of(kai.gang("train"), options={"bindBackoffLimit": 3}).run_cycle())
    assert found["train-0"]["spec"]["backoffLimit"] == 3


def test_nothing_is_decided_twice_while_requests_are_worked_off() -> None:
    cluster = cluster_of(kai.gang("train", tasks=2, share=0.5), kai.gang("whole", gpus=1), nodes=2)
    first = cluster.run_cycle()
    second = cluster.submit(first.answer["bindRequests"]).run_cycle()
    assert (len(first.binds), second.binds) == (3, [])
    for name, node in first.binds:
        assert (second.status(name), second.answer["tasks"][f"default/{name}"]["node"]) == ("Binding", node)
    assert cluster.submit(kai.gang("big", gpus=2), kai.gang("small", gpus=1)).run_cycle().binds == [("big-0", "node-1")]


def test_other_profiles_answer_as_before() -> None:
    cycle = build.cluster().submit(build.gang("train")).run_cycle()
    assert set(cycle.answer) == {"binds", "pipelined", "evictions", "tasks", "groups", "claims", "queues"}
    assert set(cycle.answer["groups"]["default/train"]) == {"phase", "conditions", "why"}


# --- reservations --------------------------------------------------------------------------------------------------------


def reservations(cycle: Cycle) -> Document:
    found: Document = cycle.answer["gpuReservations"]
    return found


def test_a_new_shared_gpu_needs_a_reservation() -> None:
    cycle = cluster_of(kai.gang("train", tasks=2, share=0.5)).run_cycle()
    (group,) = {*requests(cycle)["train-0"]["spec"]["selectedGPUGroups"], *requests(cycle)["train-1"]["spec"]["selectedGPUGroups"]}
    assert reservations(cycle) == {"create": [{"group": group, "node": "node-0"}], "delete": [], "unreserved": []}


def test_a_pod_that_joins_a_reserved_gpu_needs_none() -> None:
    running = kai.gang("old", on="node-0", share=0.5, device="g")
    cycle = cluster_of(running, kai.reservation("g", on="node-0"), kai.gang("train", share=0.5), gpus=1).run_cycle()
    assert requests(cycle)["train-0"]["spec"]["selectedGPUGroups"] == ["g"]
    assert reservations(cycle) == {"create": [], "delete": [], "unreserved": []}


def test_a_reservation_takes_no_second_device() -> None:
    running = kai.gang("old", on="node-0", share=0.5, device="g")
    cycle = cluster_of(running, kai.reservation("g", on="node-0"), kai.gang("whole", gpus=1)).run_cycle()
    assert cycle.binds == [("whole-0", "node-0")]


def test_a_reservation_that_nobody_uses_goes_and_its_gpu_is_free() -> None:
    cycle = cluster_of(kai.reservation("g", on="node-0"), kai.gang("whole", gpus=2)).run_cycle()
    assert reservations(cycle)["delete"] == [f"{kai.RESERVATION}/g"]
    assert cycle.binds == [("whole-0", "node-0")]


def test_a_request_keeps_the_reservation_of_its_gpu() -> None:
    waiting = [kai.gang("train", share=0.5), kai.bind_request("train-0", "node-0", groups=["g"])]
    assert reservations(cluster_of(*waiting, kai.reservation("g", on="node-0")).run_cycle())["delete"] == []
    assert reservations(cluster_of(*waiting).run_cycle())["create"] == [{"group": "g", "node": "node-0"}]


def test_a_pod_that_runs_without_a_reservation_is_named() -> None:
    cycle = cluster_of(kai.gang("old", on="node-0", share=0.5, device="g")).run_cycle()
    assert reservations(cycle)["unreserved"] == ["default/old-0"]


def test_a_reservation_on_its_way_out_gives_its_gpu_back_once() -> None:
    leaving = kai.leaving(kai.reservation("g", on="node-0"))
    cycle = cluster_of(leaving, kai.gang("whole", gpus=2), kai.gang("more", gpus=1)).run_cycle()
    assert (len(cycle.binds), cycle.pipelined) == (1, [])


# --- devices -------------------------------------------------------------------------------------------------------------

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def devices(*names: str) -> Document:
    spec = {"driver": "d", "pool": {"name": "p"}, "nodeName": "node-0", "devices": [{"name": name} for name in names]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def claimant(name: str) -> list[Document]:
    wanted = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}
    meta = {"name": f"{name}-claim", "namespace": "default", "labels": {"kai.scheduler/queue": "a"}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": wanted}
    group, pod = kai.gang(name)
    pod["spec"]["resourceClaims"] = [{"name": "mine", "resourceClaimName": f"{name}-claim"}]
    return [claim, group, pod]


def test_a_request_names_the_devices_of_claims() -> None:
    cluster = kai.cluster(gpus=0).submit(A, CLASS, devices("x", "y"), claimant("train"))
    assert requests(cluster.run_cycle())["train-0"]["spec"]["resourceClaimAllocations"] == [
        {"name": "mine", "allocation": {"devices": {"results": [{"request": "one", "driver": "d", "pool": "p", "device": "x"}]}}}
    ]


def test_devices_of_a_request_are_taken_until_the_claim_says_so() -> None:
    cluster = kai.cluster(gpus=0).submit(A, CLASS, devices("x"), claimant("train"))
    cluster.submit(cluster.run_cycle().answer["bindRequests"], claimant("late"))
    assert cluster.run_cycle().binds == []
    cluster.remove("BindRequest", "train-0")
    assert len(cluster.run_cycle().binds) == 1
