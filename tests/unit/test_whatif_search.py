"""What would start a gang: each family of changes, and the least of each."""

from itertools import count
from typing import Any

import pytest

from phalanx.testing import build
from phalanx.testing.build import Document
from phalanx.whatif.search import search
from phalanx.whatif.trial_cluster import TrialCluster
from tests.support import gated_gangs as gated
from tests.support import kai_objects as kai
from tests.support.trial_clusters import found, remedies, running_gang, trial_cluster

TAINT = {"taints": [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]}


def nodes(number: int, **offers: Any) -> list[Document]:
    return [build.node(f"n{index}", **offers) for index in range(number)]


def selecting(zone: str) -> list[Document]:
    group, *pods = build.gang("train", tasks=2, gpus=1)
    for pod in pods:
        pod["spec"]["nodeSelector"] = {"zone": zone}
    return [group, *pods]


def test_a_full_cluster_names_a_smaller_minimum_the_smallest_gang_and_one_more_node() -> None:
    cluster = trial_cluster(
        nodes(2, gpus=4), running_gang("small", "n0", "n0", gpus=2), running_gang("other", "n1", gpus=2),
        build.gang("train", tasks=3, gpus=2),
    )  # fmt: skip
    assert remedies(cluster) == ["gang/default/train.minMember=1", "gang/default/small=gone", "node/+1=n0"]


def test_two_gangs_that_end_are_named_where_one_is_not_enough() -> None:
    cluster = trial_cluster(
        nodes(2, gpus=2), running_gang("a", "n0", gpus=2), running_gang("b", "n1", gpus=2), build.gang("train", tasks=2, gpus=2)
    )
    assert "gang/default/a=gone gang/default/b=gone" in remedies(cluster)


def test_a_taint_is_tolerated_or_removed() -> None:
    cluster = trial_cluster(build.node("n0", gpus=4, spec=TAINT), build.gang("train", tasks=2, gpus=2))
    assert remedies(cluster) == ["gang/default/train.tolerations=dedicated=research:NoSchedule", "node/n0.taints.dedicated=none"]


def test_a_label_is_changed_dropped_or_put_on_nodes() -> None:
    cluster = trial_cluster(build.node("n0", gpus=4, labels={"zone": "east"}), selecting("nowhere"))
    assert remedies(cluster) == [
        "gang/default/train.nodeSelector.zone=east", "gang/default/train.nodeSelector.zone=none", "node/n0.labels.zone=nowhere",
    ]  # fmt: skip


def test_a_label_of_which_pods_ask_for_several_values_is_named_without_one() -> None:
    pods = [build.pod(f"train-{zone}", group="train", gpus=1, spec={"nodeSelector": {"zone": zone}}) for zone in ("x", "y")]
    cluster = trial_cluster(nodes(1, gpus=4, labels={"zone": "east"}), build.pod_group("train", min_member=2), pods)
    assert "would start without the node selector zone" in [remedy.sentence for remedy in found(cluster, "default/train").remedies]


def test_a_request_that_no_node_can_meet_is_lowered_to_the_largest_that_fits() -> None:
    assert remedies(trial_cluster(nodes(2, gpus=4), build.gang("train", tasks=2, gpus=6))) == [
        "gang/default/train.requests.nvidia.com/gpu=4"
    ]
    assert remedies(trial_cluster(nodes(1, cpu=8), build.gang("train", tasks=3, cpu=5))) == [
        "gang/default/train.minMember=1", "gang/default/train.requests.cpu=2666m", "node/+2=n0",
    ]  # fmt: skip


def test_memory_is_counted_in_mebibytes() -> None:
    cluster = trial_cluster(build.node("n0", memory="10Gi"), build.gang("train", tasks=3, memory="5Gi"))
    (remedy,) = [remedy for remedy in found(cluster).remedies if "requests" in remedy.text]
    assert remedy.text == "would start if each pod asked for 3413Mi memory (--if 'gang/default/train.requests.memory=3413Mi')"
    assert [change.text for change in remedy.smaller[0]] == ["gang/default/train.requests.memory=3414Mi"]


def test_a_job_of_kai_over_its_quota_starts_if_it_can_be_preempted_or_the_quota_grows() -> None:
    group, *pods = kai.gang("train", tasks=2, gpus=1, queue="a")
    group["spec"]["priorityClassName"] = "build"
    cluster = trial_cluster(
        build.node("n0", gpus=4, cpu=64), kai.queue("default", parent="", quota=-1), kai.queue("a", quota=1), group, pods,
        *map(kai.priority_class, kai.CLASSES), policy=kai.policy(),
    )  # fmt: skip
    assert remedies(cluster) == [
        "gang/default/train.minMember=1", "gang/default/train.preemptable=true", "queue/a.quota.nvidia.com/gpu=+1",
    ]  # fmt: skip


def test_gangs_behind_our_gate_are_searched_behind_it() -> None:
    cluster = trial_cluster(nodes(1, gpus=4), gated.gang("train", 3, gpus=2))
    assert remedies(cluster) == [
        "gang/default/train.minMember=2", "gang/default/train.requests.nvidia.com/gpu=1", "node/+1=n0",
    ]  # fmt: skip


def test_a_queue_is_raised_by_exactly_what_is_missing() -> None:
    queue = build.queue("research", capability={"nvidia.com/gpu": 3})
    cluster = trial_cluster(nodes(2, gpus=8), queue, build.gang("train", tasks=4, gpus=2, queue="research"))
    (remedy,) = [remedy for remedy in found(cluster).remedies if "capability" in remedy.text]
    assert remedy.text == (
        "would start if the capability of queue research were 5 nvidia.com/gpu larger "
        "(--if 'queue/research.capability.nvidia.com/gpu=+5')"
    )
    assert [change.text for change in remedy.smaller[0]] == ["queue/research.capability.nvidia.com/gpu=+4"]


def test_both_bounds_of_a_queue_are_raised_where_both_are_too_small() -> None:
    queue = build.queue("research", capability={"nvidia.com/gpu": 3, "cpu": "1"})
    cluster = trial_cluster(nodes(2, gpus=8), queue, build.gang("train", tasks=2, gpus=2, cpu=1, queue="research"))
    assert "queue/research.capability.cpu=+1 queue/research.capability.nvidia.com/gpu=+1" in remedies(cluster)


@pytest.mark.parametrize(("queue", "remedy"), [
    ([], "queue/research=new"), ([{**build.queue("research"), "status": {"state": "Closed"}}], "queue/research.state=Open"),
])  # fmt: skip
def test_a_queue_that_is_missing_or_closed(queue: list[Document], remedy: str) -> None:
    cluster = trial_cluster(nodes(1, gpus=4), queue, build.gang("train", tasks=2, gpus=1, queue="research"))
    assert remedies(cluster) == ["gang/default/train.queue=default", remedy]


def test_missing_pods_are_added() -> None:
    cluster = trial_cluster(nodes(1, gpus=4), build.gang("train", tasks=2, min_member=4, gpus=1))
    assert remedies(cluster) == ["gang/default/train.pods=+2", "gang/default/train.minMember=2"]


def test_nodes_that_are_cordoned_are_opened_as_many_as_are_needed() -> None:
    closed = [build.node(f"n{index}", gpus=1, spec={"unschedulable": True}) for index in range(4)]
    assert "node/n0=uncordoned node/n1=uncordoned" in remedies(trial_cluster(closed, build.gang("train", tasks=2, gpus=1)))


def test_gates_are_lifted() -> None:
    group, *pods = build.gang("train", tasks=2, gpus=1)
    for pod in pods:
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    assert remedies(trial_cluster(nodes(1, gpus=4), group, pods)) == ["gang/default/train.gates=none"]


def test_the_lowest_priority_with_which_others_are_preempted() -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in (("usual", 50), ("high", 1000))
    ]
    victim = running_gang("victim", "n0", gpus=4)
    victim[0]["spec"]["priorityClassName"] = "usual"
    victim[1]["spec"] |= {"priority": 50, "priorityClassName": "usual"}
    cluster = trial_cluster(classes, nodes(1, gpus=4), victim, build.gang("train", tasks=1, gpus=2))
    (remedy,) = [remedy for remedy in found(cluster).remedies if "priority" in remedy.text]
    assert remedy.sentence == "would start with priority 51 (PriorityClass high has 1000)"


def test_pairs_are_tried_where_no_single_change_is_enough() -> None:
    cluster = trial_cluster(build.node("n0", gpus=2, spec=TAINT), build.gang("train", tasks=2, gpus=2))
    assert "gang/default/train.tolerations=dedicated=research:NoSchedule node/+1=n0" in remedies(cluster)


def test_what_was_tried_in_vain_is_said() -> None:
    findings = found(trial_cluster(build.gang("train", tasks=2, gpus=2)))
    assert not findings.remedies
    assert findings.summary == f"none of the {findings.tried} changes tried starts it"


def test_what_no_time_was_left_for_is_said() -> None:
    cluster = trial_cluster(nodes(1, gpus=4), build.gang("train", tasks=2, min_member=4, gpus=1))
    ticks = count()
    findings = search(cluster, "default/train", cluster.decide(), clock=lambda: float(next(ticks)), budget_seconds=4.0)
    assert findings.untried[0] in ("more pods of the gang", "a smaller minMember")
    assert "no time was left to try" in findings.summary


def test_nothing_is_looked_for_where_the_gang_starts() -> None:
    assert found(trial_cluster(nodes(1, gpus=4), build.gang("train", tasks=2, gpus=1))).tried == 0


def undone(cluster: TrialCluster) -> object:
    trial = cluster.decide()
    return [(dict(part.decisions.binds), dict(part.decisions.evictions)) for part in trial.parts]


def test_a_search_leaves_the_cluster_as_it_was() -> None:
    cluster = trial_cluster(
        nodes(2, gpus=4), running_gang("small", "n0", "n0", gpus=2), build.gang("other", tasks=1, gpus=1),
        build.gang("train", tasks=4, gpus=2),
    )  # fmt: skip
    before = undone(cluster)
    found(cluster)
    assert undone(cluster) == before
