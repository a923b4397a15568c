"""What groups and pods are told in KAI's words, and why a job waits in ours."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.dialects.kai_status import UNSCHEDULABLE, task_error
from phalanx.explain.gang_rows import GangRow, gang_rows
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import FitError
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai
from tests.support import same_gang as speech
from tests.support import sim_worlds as worlds

A = kai.queue("a", quota=4, limit=8)


def cycle_of(*parts: Any, nodes: int = 2, gpus: int = 2, actions: str = "allocate") -> Cycle:
    return kai.cluster(nodes=nodes, gpus=gpus, actions=actions).submit(A, *parts).run_cycle()


def condition(cycle: Cycle, gang: str = "train") -> tuple[str, str]:
    (entry,) = cycle.answer["groups"][f"default/{gang}"]["conditions"]
    assert (entry["type"], entry["status"]) == (UNSCHEDULABLE, "True")
    return entry["reason"], entry["message"]


NO_GPUS = "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs."


def test_a_gang_is_told_how_many_pods_would_fit() -> None:
    cycle = cycle_of(kai.gang("train", tasks=5, gpus=1))
    assert condition(cycle) == (
        "PodSchedulingErrors",
        "Resources were found for 4 pods while 5 are required for gang scheduling. "
        f"Additional pods cannot be scheduled due to: {NO_GPUS}",
    )
    assert cycle.phase("train") == "Pending"
    assert cycle.why("train") == (
        "4 of 5 tasks fit; no place for 1 nvidia.com/gpu, 1 cpu (2 nodes: 2 lack nvidia.com/gpu (4 of 4 are free, 5 needed))"
    )


def test_a_single_pod_is_named() -> None:
    assert condition(cycle_of(kai.gang("train", gpus=3))) == (
        "PodSchedulingErrors", f"Resources were not found for pod default/train-0 due to: {NO_GPUS}",
    )  # fmt: skip


def test_a_sub_group_is_named() -> None:
    group = kai.pod_group("train", subGroups=[{"name": "leader", "minMember": 1}, {"name": "worker", "minMember": 4}])
    pods = [kai.pod("l", "train", part="leader", gpus=1), *(kai.pod(f"w-{n}", "train", part="worker", gpus=1) for n in range(4))]
    cycle = cycle_of(group, pods)
    assert condition(cycle)[1] == (
        "Resources were found for 4 pods from all sub-groups while sub-group worker requires 4 pods for gang scheduling. "
        f"Additional pods cannot be scheduled in this sub-group due to: {NO_GPUS}"
    )
    assert cycle.why("train").startswith("4 of 5 tasks fit (worker: 3 of 4); no place for")


def test_a_job_without_enough_pods_is_not_ready() -> None:
    group, first, second = kai.gang("train", tasks=2, min_member=4, gpus=1)
    cycle = cycle_of(group, first, kai.gated(second))
    text = "Job is not ready for scheduling. Waiting for 4 pods, currently 2 exist, 1 are gated"
    assert condition(cycle) == ("NotReady", text)
    assert cycle.why("train") == "waiting for pods: 4 needed, 2 exist, 1 held back by the scheduling gate 'wait'"


def test_sub_groups_without_enough_pods_are_named() -> None:
    group = kai.pod_group("train", subGroups=[{"name": "leader", "minMember": 1}, {"name": "worker", "minMember": 2}])
    cycle = cycle_of(group, kai.pod("w-0", "train", part="worker", gpus=1))
    assert condition(cycle)[1] == (
        "Job is not ready for scheduling. Waiting for 1 pods for SubGroup leader, currently 0 exist, 0 are gated."
        " Waiting for 2 pods for SubGroup worker, currently 1 exist, 0 are gated."
    )
    assert cycle.why("train") == ("waiting for pods: sub-group leader: 1 needed, none exists; sub-group worker: 2 needed, 1 exists")


def test_a_full_queue_is_told_with_its_numbers() -> None:
    assert condition(cycle_of(kai.gang("train", tasks=9, gpus=1))) == (
        "OverLimit",
        "a quota has reached the allowable limit of GPUs. "
        "Limit is 8 GPUs, currently 0 GPUs allocated and workload requested 9 GPUs",
    )
    reason, message = condition(cycle_of(kai.gang("train", tasks=5, gpus=1, preemptibility="non-preemptible")))
    assert reason == "NonPreemptibleOverQuota"
    assert message.startswith("Non-preemptible workload is over quota. Workload requested 5 GPUs, but a quota is 4 GPUs")


def test_a_missing_queue_is_told() -> None:
    cycle = cycle_of(kai.gang("train", queue="nobody", gpus=1))
    assert condition(cycle) == ("QueueDoesNotExist", "Queue nobody does not exist")
    assert cycle.why("train") == "queue 'nobody' does not exist; create a Queue of scheduling.run.ai"


def test_a_job_of_which_some_pods_run_has_no_condition() -> None:
    cycle = cycle_of(kai.gang("train", tasks=9, min_member=1, on=["node-0"], gpus=1))
    assert cycle.condition("train", UNSCHEDULABLE) is None
    assert cycle.phase("train") == "Running"
    assert "runs with 4 of 9 tasks, its minimum is 1; 5 more tasks wait: no place for 1 nvidia.com/gpu" in cycle.why("train")


def test_a_broken_gang_is_neither_running_nor_pending() -> None:
    cycle = cycle_of(kai.gang("train", tasks=9, on=["node-0"], gpus=1))
    assert cycle.phase("train") == "Unknown"


def test_a_finished_job_is_completed_and_waits_for_nothing() -> None:
    group, pod = kai.gang("train", on="node-0", gpus=1)
    pod["status"] = {"phase": "Succeeded"}
    cycle = cycle_of(group, pod)
    assert (cycle.phase("train"), cycle.why("train")) == ("Completed", "")


def test_a_pod_without_a_node_carries_the_message_of_its_own_search() -> None:
    cycle = cycle_of(kai.gang("train", tasks=5, gpus=1))
    task = cycle.answer["tasks"]["default/train-4"]
    assert (task["reason"], task["message"]) == ("Unschedulable", NO_GPUS)
    assert cycle.answer["tasks"]["default/train-0"]["message"].startswith("Resources were found for 4 pods")


def test_a_pipelined_pod_names_its_node() -> None:
    group, pod = kai.gang("old", on="node-0", gpus=2)
    cycle = cycle_of(group, kai.leaving(pod), kai.gang("train", gpus=2), nodes=1)
    task = cycle.answer["tasks"]["default/train-0"]
    assert task["reason"] == "Pipelined"
    assert task["message"] == "Pod default/train-0 is nominated for node node-0 once resources are released"
    assert cycle.condition("train", UNSCHEDULABLE) is None


def test_reasons_of_nodes_are_counted_and_sorted() -> None:
    tainted = build.node("hot", gpus=8, spec={"taints": [{"key": "team", "effect": "NoSchedule"}]})
    cycle = cycle_of(tainted, kai.gang("train", gpus=3))
    assert cycle.answer["tasks"]["default/train-0"]["message"] == (
        "no nodes with enough resources were found: 1 node(s) had untolerated taint(s). \n"
        "2 node(s) didn't have enough resources: GPUs."
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cpu", "node(s) didn't have enough resources: CPU cores"),
        ("memory", "node(s) didn't have enough resources: memory"),
        ("pods", "node(s) pod number exceeded"),
        ("example.com/fpga", "node(s) didn't have enough resources: example.com/fpga"),
        ("nvidia.com/mig-1g.5gb", "node(s) didn't have enough of mig profile: nvidia.com/mig-1g.5gb"),
    ],
)
def test_resources_have_names_of_their_own(name: str, words: str) -> None:
    cluster = kai.cluster().submit(A, kai.gang("train"))
    snapshot = cluster.objects.snapshot(0.0)
    ((key, gang),) = snapshot.gangs.items()
    task = GangState(gang, [(member, -1) for member in snapshot.members_of(key).values()]).tasks[0]
    task.error = FitError(2, {f"Insufficient {name}": 2})
    assert task_error(task) == f"no nodes with enough resources were found: 2 {words}."
    task.error = None
    assert task_error(task) == "Unable to schedule pod"


def test_no_sentence_speaks_of_admission() -> None:
    jobs = [
        kai.gang("one", tasks=9, gpus=1),
        kai.gang("two", gpus=3),
        kai.gang("three", tasks=1, min_member=2),
        kai.pod_group("four"),
    ]
    cycle = cycle_of(*jobs, actions="allocate, consolidation, reclaim, preempt, stalegangeviction")
    sentences = [cycle.why(name) for name in ("one", "two", "three", "four")]
    assert all(sentences)
    assert not any("admitted" in sentence for sentence in sentences)
    assert sentences[3] == "waiting for pods: 1 needed, none exists"


@pytest.mark.parametrize(
    ("queues", "sentence"),
    [
        ([kai.queue("q", parent="gone")], "queue 'q' names the parent 'gone', which does not exist"),
        (
            [kai.queue("q", parent="p"), kai.queue("p", parent="q")],
            "queue 'q' has queues below it and takes no jobs; use one of them",
        ),
        ([kai.queue("q", parent="p"), kai.queue("p", parent="o"), kai.queue("o", parent="p")], "queue 'p' is its own ancestor"),
    ],
)
def test_what_is_wrong_with_a_queue_is_said(queues: list[build.Document], sentence: str) -> None:
    cycle = cycle_of(*queues, kai.gang("train", queue="q", gpus=1), kai.gang("fine", gpus=1))
    assert cycle.why("train").startswith(sentence)
    assert [name for name, _ in cycle.binds] == ["fine-0"]


def test_a_queue_that_only_volcano_has_is_none_of_kais() -> None:
    cycle = cycle_of(kai.gang("train", queue="root", gpus=1), kai.gang("fine", gpus=1))
    assert cycle.why("train") == "queue 'root' does not exist; create a Queue of scheduling.run.ai"
    assert cycle.answer["groups"]["default/train"]["conditions"][0]["reason"] == "QueueDoesNotExist"
    assert [name for name, _ in cycle.binds] == ["fine-0"]


def test_under_another_profile_every_queue_may_have_groups_of_kai() -> None:
    cluster = build.cluster(nodes=1, gpus=2, policy=policy_of_profile("phalanx"))
    cluster.submit(kai.pod_group("ray", min_member=3, queue="default"), [kai.pod(f"ray-{i}", "ray", gpus=1) for i in range(3)])
    assert cluster.run_cycle().why("ray").startswith("2 of 3 tasks fit; ")


def row(cluster: Cluster) -> GangRow:
    (found,) = gang_rows(cluster.objects.snapshot(0.0), cluster.run_cycle().decisions)
    return found


def test_the_table_counts_the_minima_of_the_leaves() -> None:
    parts = [{"name": "top"}, {"name": "left", "parent": "top", "minMember": 2}, {"name": "right", "parent": "top", "minMember": 1}]
    group = kai.pod_group("serve", min_member=1, subGroups=parts)
    pods = [kai.pod(f"p-{number}", "serve", part=part, gpus=1) for number, part in enumerate(("left", "left", "right"))]
    found = row(kai.cluster().submit(A, group, pods))
    assert (found.status, found.minimum, found.placed) == ("Starts", 3, 3)


def test_under_another_profile_a_group_is_told_that_its_queue_has_all_it_may_use() -> None:
    world = speech.cluster(nodes=3, cpu=4)
    for name in ("first", "second"):
        worlds.submit(world, speech.gang("kai", name, tasks=2, cpu=4))
        worlds.run(world, 10)
    (condition,) = world.store.get(GROUP_BY_DIALECT["kai"], "default", "second")["status"]["schedulingConditions"]
    assert condition["message"] == "queue default has 12 of 12 cpu it may use; 4 more do not fit"
