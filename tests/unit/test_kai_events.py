"""What a session leaves in KAI's words beside conditions: events, and the sums of groups and queues."""

from typing import Any

from phalanx.testing.build import Cycle, Document
from tests.support import kai_objects as kai

A = kai.queue("a", quota=2)
NO_GPUS = "no nodes with enough resources were found: 1 node(s) didn't have enough resources: GPUs."


def cycle_of(*parts: Any, gpus: int = 2, **more: Any) -> Cycle:
    return kai.cluster(gpus=gpus, **more).submit(A, *parts).run_cycle()


def events(cycle: Cycle, reason: str) -> list[Document]:
    return [event for event in cycle.answer["events"] if event["reason"] == reason]


def test_a_pod_that_gets_a_node_is_told() -> None:
    (event,) = cycle_of(kai.gang("train", gpus=1)).answer["events"]
    assert event == {
        "kind": "Pod", "object": "default/train-0", "type": "Normal", "reason": "Scheduled",
        "message": "Successfully assigned pod default/train-0 to node node-0 at node-pool default",
    }  # fmt: skip


def test_a_gang_without_room_and_its_pods_are_told() -> None:
    cycle = cycle_of(kai.gang("train", tasks=2, gpus=3))
    pods = [event for event in events(cycle, "Unschedulable") if event["kind"] == "Pod"]
    (group,) = [event for event in events(cycle, "Unschedulable") if event["kind"] == "PodGroup"]
    assert {(event["object"], event["type"]) for event in pods} == {
        ("default/train-0", "Warning"),
        ("default/train-1", "Warning"),
    }
    assert pods[0]["message"] == NO_GPUS
    assert (group["object"], group["type"]) == ("default/train", "Normal")
    assert group["message"].startswith("Resources were found for 0 pods while 2 are required for gang scheduling.")


def test_a_gang_without_enough_pods_is_not_ready() -> None:
    (event,) = cycle_of(kai.gang("train", tasks=1, min_member=3)).answer["events"]
    assert (event["kind"], event["type"], event["reason"]) == ("PodGroup", "Normal", "NotReady")
    assert event["message"] == "Job is not ready for scheduling. Waiting for 3 pods, currently 1 exist, 0 are gated"


def test_an_eviction_is_told_to_the_group_with_who_and_how_many() -> None:
    urgent = kai.gang("urgent", gpus=2, priorityClassName="build-preemptible")
    cycle = cycle_of(kai.gang("train", tasks=2, on="node-0", gpus=1), urgent)
    found = events(cycle, "Evict")
    assert [event["object"] for event in found] == ["default/train", "default/train"]
    assert found[0]["message"] == "Pod default/train-0 was preempted by higher priority workload default/urgent"
    assert found[0]["annotations"] == {
        "evictor-action-type": "preempt", "num-evicted-pods": "2", "evictor-pod-group-namespace": "default",
        "evictor-pod-group-name": "urgent",
    }  # fmt: skip
    assert [event["object"] for event in events(cycle, "Pipelined")] == ["default/urgent-0"]


def test_a_stale_gang_is_told() -> None:
    gang = kai.gang("train", tasks=3, on=["node-0"], gpus=2)
    cycle = cycle_of(gang, options={"stalenessGracePeriodSeconds": 0})
    (event,) = events(cycle, "StaleJob")
    assert (event["object"], event["message"]) == ("default/train", "Job is stale. 1 pods are active, minMember is 3")
    assert "evictor-pod-group-name" not in events(cycle, "Evict")[0]["annotations"]


def test_a_stale_sub_group_is_named() -> None:
    parts = [{"name": "leader", "minMember": 1}, {"name": "worker", "minMember": 2}]
    pods = [kai.pod("l", "train", part="leader", on="node-0"), kai.pod("w", "train", part="worker", on="node-0")]
    cycle = cycle_of(kai.pod_group("train", subGroups=parts), pods, options={"stalenessGracePeriodSeconds": 0})
    (event,) = events(cycle, "StaleJob")
    assert event["message"] == (
        "Job is stale. 2 pods are active, minMember is 3, subGroup worker minMember is 2 and 1 pods are active"
    )


# --- sums ----------------------------------------------------------------------------------------------------------------


def sums(cycle: Cycle, gang: str) -> Document:
    found: Document = cycle.answer["groups"][f"default/{gang}"]["resourcesStatus"]
    return found


def test_a_group_says_what_it_asks_for_and_has() -> None:
    cycle = cycle_of(kai.gang("train", tasks=3, min_member=2, gpus=1, cpu="500m"))
    assert sums(cycle, "train") == {
        "requested": {"cpu": "1500m", "nvidia.com/gpu": "3"},
        "allocated": {"cpu": "1", "nvidia.com/gpu": "2"},
    }


def test_what_cannot_be_preempted_is_counted_for_itself() -> None:
    cycle = cycle_of(kai.gang("train", gpus=1, preemptibility="non-preemptible", memory="1Gi"))
    has = {"cpu": "1", "memory": "1073741824", "nvidia.com/gpu": "1"}
    assert sums(cycle, "train") == {"requested": has, "allocated": has, "allocatedNonPreemptible": has}


def test_a_part_of_a_gpu_counts_as_that_part() -> None:
    assert sums(cycle_of(kai.gang("train", share=0.25)), "train")["allocated"] == {"cpu": "1", "nvidia.com/gpu": "250m"}


def test_those_who_leave_or_have_ended_count_no_more() -> None:
    group, first, second = kai.gang("train", tasks=2, min_member=1, on="node-0", gpus=1)
    second["status"] = {"phase": "Succeeded"}
    assert sums(cycle_of(group, kai.leaving(first), second), "train") == {}


def test_a_queue_sums_up_its_groups_and_the_queues_below_it() -> None:
    parts = [kai.queue("b", quota=1), kai.gang("one", gpus=1), kai.gang("two", queue="b", gpus=1), kai.gang("big", gpus=3)]
    queues = cycle_of(*parts).answer["queues"]
    assert queues["a"]["status"]["allocated"] == {"cpu": "1", "nvidia.com/gpu": "1"}
    assert queues["a"]["status"]["requested"] == {"cpu": "2", "nvidia.com/gpu": "4"}
    assert "childQueues" not in queues["a"]["status"]
    top = queues["default"]["status"]
    assert (top["childQueues"], top["allocated"]) == (["a", "b"], {"cpu": "2", "nvidia.com/gpu": "2"})
    assert queues["a"]["fair_share"]["gpu"] == 2.0
