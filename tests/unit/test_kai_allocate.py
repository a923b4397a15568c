"""Allocate in the profile kai: gangs, extras one by one, sub-groups, pipelined gangs, the order of queues, limits and quotas."""

from typing import Any

from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

A = kai.queue("a", quota=4)


def cluster(*, nodes: int = 1, gpus: int = 4, **more: Any) -> Cluster:
    return kai.cluster(nodes=nodes, gpus=gpus, actions="allocate", **more)


def bound(cycle: Cycle) -> list[str]:
    return [name for name, _ in cycle.binds]


def parts(*names_and_minima: tuple[str, int], **parents: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "minMember": least, **({"parent": parents[name]} if name in parents else {})}
        for name, least in names_and_minima
    ]


# --- gangs ---------------------------------------------------------------------------------------------------------------


def test_a_gang_that_fits_is_bound_as_a_whole() -> None:
    cycle = cluster(nodes=2, gpus=2).submit(A, kai.gang("train", tasks=4, gpus=1)).run_cycle()
    assert len(cycle.binds) == 4
    assert cycle.phase("train") == "Running"


def test_a_gang_that_lacks_one_place_gets_none() -> None:
    assert cluster(gpus=3).submit(A, kai.gang("train", tasks=4, gpus=1)).run_cycle().binds == []


def test_a_smaller_job_passes_one_that_does_not_fit() -> None:
    cycle = cluster(gpus=3).submit(A, kai.gang("first", tasks=4, gpus=1), kai.gang("second", gpus=1)).run_cycle()
    assert bound(cycle) == ["second-0"]


def test_extras_come_one_by_one_after_the_minimum() -> None:
    cycle = cluster(gpus=3).submit(A, kai.gang("train", tasks=5, min_member=2, gpus=1)).run_cycle()
    assert bound(cycle) == ["train-0", "train-1", "train-2"]


def test_the_minimum_of_another_job_comes_before_extras() -> None:
    elastic, other = kai.gang("elastic", tasks=4, min_member=1, gpus=1), kai.gang("other", tasks=3, gpus=1)
    assert bound(cluster().submit(A, elastic, other).run_cycle()) == ["elastic-0", "other-0", "other-1", "other-2"]


def test_extras_alternate_between_queues() -> None:
    jobs = [kai.gang(f"job-{name}", tasks=4, min_member=1, gpus=1, queue=name) for name in "ab"]
    cycle = cluster().submit(kai.queue("a", quota=2), kai.queue("b", quota=2), *jobs).run_cycle()
    assert bound(cycle) == ["job-a-0", "job-a-1", "job-b-0", "job-b-1"]


def test_a_more_important_job_comes_first() -> None:
    low, high = kai.gang("low", tasks=3, gpus=1), kai.gang("high", tasks=3, gpus=1, priorityClassName="build-preemptible")
    assert bound(cluster().submit(A, low, high).run_cycle()) == ["high-0", "high-1", "high-2"]


def test_the_master_is_placed_before_its_workers() -> None:
    group, first, second = kai.gang("train", tasks=2, min_member=1, gpus=1)
    second["metadata"]["labels"]["training.kubeflow.org/job-role"] = "master"
    assert bound(cluster(gpus=1).submit(A, group, first, second).run_cycle()) == ["train-1"]


def test_tasks_with_a_priority_label_come_first_and_the_larger_number_first() -> None:
    group, *pods = kai.gang("train", tasks=3, min_member=1, gpus=1)
    pods[1]["metadata"]["labels"]["kai.scheduler/task-priority"] = "3"
    pods[2]["metadata"]["labels"]["kai.scheduler/task-priority"] = "7"
    assert bound(cluster(gpus=1).submit(A, group, *pods).run_cycle()) == ["train-2"]
    assert bound(cluster(gpus=2).submit(A, group, *pods).run_cycle()) == ["train-1", "train-2"]


# --- sub-groups ----------------------------------------------------------------------------------------------------------


def serving(leaders: int, workers: int) -> list[dict[str, Any]]:
    group = kai.pod_group("serve", min_member=2, subGroups=parts(("leader", 1), ("worker", 2)))
    pods = [kai.pod(f"leader-{number}", "serve", part="leader", gpus=1) for number in range(leaders)]
    return [group, *pods, *(kai.pod(f"worker-{number}", "serve", part="worker", gpus=1) for number in range(workers))]


def test_every_leaf_gets_its_minimum_or_nobody_gets_anything() -> None:
    assert len(cluster(gpus=3).submit(A, serving(1, 2)).run_cycle().binds) == 3
    assert cluster(gpus=2).submit(A, serving(1, 2)).run_cycle().binds == []


def test_a_leaf_without_enough_pods_keeps_the_whole_job_waiting() -> None:
    cycle = cluster().submit(A, serving(0, 2)).run_cycle()
    assert cycle.binds == []
    assert cycle.why("serve") == "waiting for pods: sub-group leader: 1 needed, none exists"


def test_the_minimum_of_the_group_does_not_count_beside_sub_groups() -> None:
    group, *pods = serving(1, 2)
    group["spec"]["minMember"] = 99
    assert len(cluster().submit(A, group, *pods).run_cycle().binds) == 3


def test_an_extra_goes_to_the_leaf_that_is_least_over_its_minimum() -> None:
    cycle = cluster(gpus=4).submit(A, serving(2, 4)).run_cycle()
    assert bound(cycle) == ["leader-0", "leader-1", "worker-0", "worker-1"]


# --- pipelined gangs -----------------------------------------------------------------------------------------------------


def test_a_gang_that_needs_room_of_leaving_pods_is_pipelined_as_a_whole() -> None:
    group, pod = kai.gang("old", on="node-0", gpus=2)
    cycle = cluster().submit(A, group, kai.leaving(pod), kai.gang("train", tasks=4, gpus=1)).run_cycle()
    assert cycle.binds == []
    assert len(cycle.pipelined) == 4
    assert cycle.why("train") == "4 of 4 tasks are pipelined onto room that leaving pods still hold"


def test_an_elastic_job_starts_with_what_is_free_and_is_pipelined_onto_the_rest() -> None:
    group, pod = kai.gang("old", on="node-0", gpus=2)
    job = kai.gang("train", tasks=4, min_member=2, gpus=1)
    cycle = cluster().submit(A, group, kai.leaving(pod), job).run_cycle()
    assert bound(cycle) == ["train-0", "train-1"]
    assert [name for name, _ in cycle.pipelined] == ["train-2", "train-3"]


def test_room_for_pipelined_tasks_is_not_given_to_the_next_job() -> None:
    group, pod = kai.gang("old", on="node-0", gpus=4)
    jobs = [kai.gang("first", tasks=4, gpus=1), kai.gang("second", gpus=1)]
    cycle = cluster().submit(A, group, kai.leaving(pod), *jobs).run_cycle()
    assert {name for name, _ in cycle.pipelined} == {f"first-{number}" for number in range(4)}


# --- queues --------------------------------------------------------------------------------------------------------------


def test_the_queue_within_its_quota_comes_before_the_one_above() -> None:
    running = kai.gang("old", queue="rich", on="node-0", gpus=1)
    queues = kai.queue("rich", quota=1), kai.queue("poor", quota=1)
    jobs = kai.gang("more", queue="rich", gpus=3), kai.gang("first", queue="poor", gpus=1)
    assert bound(cluster().submit(*queues, running, *jobs).run_cycle()) == ["first-0"]


def test_what_is_over_the_quotas_is_divided_by_weight() -> None:
    queues = kai.queue("heavy", weight=3), kai.queue("light", weight=1)
    jobs = [kai.gang(f"{name}-{number}", queue=name, gpus=1) for name in ("heavy", "light") for number in range(8)]
    cycle = cluster(gpus=8).submit(*queues, *jobs).run_cycle()
    figures = {name: cycle.answer["queues"][name]["fair_share"]["gpu"] for name in ("heavy", "light")}
    assert figures == {"heavy": 6, "light": 2}
    assert sum(name.startswith("heavy") for name in bound(cycle)) == 6


def test_a_queue_of_higher_priority_gets_what_is_over_the_quotas() -> None:
    queues = kai.queue("low"), kai.queue("high", priority=200)
    jobs = [kai.gang(f"{name}-{number}", queue=name, gpus=1) for name in ("low", "high") for number in range(4)]
    assert all(name.startswith("high") for name in bound(cluster().submit(*queues, *jobs).run_cycle()))


def test_a_limit_binds_every_job() -> None:
    cycle = cluster().submit(kai.queue("a", quota=1, limit=2), kai.gang("train", tasks=3, gpus=1)).run_cycle()
    assert cycle.binds == []
    assert cycle.why("train") == "over limit: queue 'a' has 0 of its limit of 2 GPUs, 3 more wanted"


def test_the_limit_of_a_queue_above_binds_too() -> None:
    tree = kai.queue("top", parent="", quota=4, limit=1), kai.queue("a", parent="top", quota=4)
    cycle = cluster().submit(*tree, kai.gang("train", tasks=2, gpus=1)).run_cycle()
    assert cycle.why("train") == "over limit: queue 'top' has 0 of its limit of 1 GPUs, 2 more wanted"


def test_extras_stop_at_the_limit() -> None:
    job = kai.gang("train", tasks=4, min_member=1, gpus=1)
    cycle = cluster().submit(kai.queue("a", quota=1, limit=2), job).run_cycle()
    assert bound(cycle) == ["train-0", "train-1"]
    assert cycle.why("train").startswith(
        "starts with 2 of 4 tasks, its minimum is 1; 2 more tasks wait: over limit: queue 'a' has 2"
    )


def test_a_preemptible_job_may_go_over_the_quota() -> None:
    assert len(cluster().submit(kai.queue("a", quota=1), kai.gang("train", tasks=3, gpus=1)).run_cycle().binds) == 3


def test_a_job_that_cannot_be_preempted_stays_within_the_quota_of_an_empty_cluster() -> None:
    job = kai.gang("train", tasks=3, gpus=1, preemptibility="non-preemptible")
    cycle = cluster().submit(kai.queue("a", quota=2), job).run_cycle()
    assert cycle.binds == []
    assert cycle.why("train").startswith(
        "over quota: in jobs that cannot be preempted queue 'a' has 0 of its quota of 2 GPUs, 3 more"
    )


def test_a_job_of_priority_100_cannot_be_preempted_unless_it_says_so() -> None:
    important = kai.gang("train", tasks=3, gpus=1, priorityClassName="build")
    assert cluster().submit(kai.queue("a", quota=2), important).run_cycle().binds == []
    important[0]["spec"]["preemptibility"] = "preemptible"
    assert len(cluster().submit(kai.queue("a", quota=2), important).run_cycle().binds) == 3


def test_what_is_in_an_inner_queue_is_not_tried() -> None:
    cycle = cluster().submit(A, kai.queue("below", parent="a"), kai.gang("train", gpus=1)).run_cycle()
    assert cycle.binds == []
    assert cycle.why("train") == "queue 'a' has queues below it and takes no jobs; use one of them, such as 'below'"


# --- nodes ---------------------------------------------------------------------------------------------------------------


def test_jobs_are_packed_on_the_fullest_node() -> None:
    running = kai.gang("old", on="node-1", gpus=1)
    assert cluster(nodes=3).submit(A, running, kai.gang("train", gpus=1)).run_cycle().binds == [("train-0", "node-1")]


def test_jobs_are_spread_when_the_plugin_says_so() -> None:
    spread = {"nodeplacement": {"arguments": {"gpu": "spread"}}}
    running = [kai.gang(f"old-{number}", on=f"node-{number}", gpus=1) for number in range(2)]
    cycle = cluster(nodes=3, plugins=spread).submit(A, *running, kai.gang("train", gpus=1)).run_cycle()
    assert cycle.binds == [("train-0", "node-2")]


def test_free_room_comes_before_room_that_is_being_released() -> None:
    group, pod = kai.gang("old", on="node-0", gpus=3)
    cycle = cluster(nodes=2).submit(A, group, kai.leaving(pod), kai.gang("train", gpus=2)).run_cycle()
    assert cycle.binds == [("train-0", "node-1")]


def test_a_nominated_node_comes_before_everything() -> None:
    group, pod = kai.gang("train", gpus=1)
    pod["status"]["nominatedNodeName"] = "node-2"
    assert cluster(nodes=3).submit(A, group, pod).run_cycle().binds == [("train-0", "node-2")]
