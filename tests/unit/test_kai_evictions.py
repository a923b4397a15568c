"""Consolidation, reclaim, preempt and stale gangs in the profile kai."""

from typing import Any

import pytest

from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

NOW = 1_767_268_800.0  # 2026-01-01T12:00:00Z
A_MINUTE_AGO, TEN_SECONDS_AGO = "2026-01-01T11:59:00Z", "2026-01-01T11:59:50Z"


def evicted(cycle: Cycle) -> list[str]:
    return [key.removeprefix("default/") for key in cycle.answer["evictions"]]


def pipelined(cycle: Cycle) -> list[str]:
    return [name for name, _ in cycle.pipelined]


# --- consolidation -------------------------------------------------------------------------------------------------------


def scattered(**more: Any) -> Cluster:
    """Two nodes of 4 GPUs with 2 in use on each; a job of 4 waits."""
    found = kai.cluster(nodes=2, actions="allocate, consolidation", **more).submit(kai.queue("a", quota=8))
    old = [kai.gang(f"old-{number}", on=f"node-{number}", gpus=2) for number in range(2)]
    return found.submit(*old, kai.gang("train", gpus=4))


def test_consolidation_moves_a_job_and_nobody_loses_its_place() -> None:
    cycle = scattered().run_cycle()
    assert len(evicted(cycle)) == 1
    assert set(pipelined(cycle)) == {*evicted(cycle), "train-0"}
    (entry,) = cycle.answer["evictions"].values()
    assert (entry["action"], entry["for"]) == ("consolidation", "default/train")
    assert "resource consolidation" in entry["message"]


def test_consolidation_leaves_everybody_alone_when_somebody_would_lose_its_place() -> None:
    cycle = scattered().submit(kai.gang("third", on="node-0", gpus=1)).run_cycle()
    assert evicted(cycle) == []
    assert cycle.why("train").startswith("0 of 1 tasks fit; no place for 4 nvidia.com/gpu, 1 cpu (2 nodes: 2 lack nvidia.com/gpu (")


def test_consolidation_moves_no_job_that_cannot_be_preempted() -> None:
    found = kai.cluster(nodes=2, actions="allocate, consolidation").submit(kai.queue("a", quota=8))
    old = [kai.gang(f"old-{number}", on=f"node-{number}", gpus=2, preemptibility="non-preemptible") for number in range(2)]
    assert evicted(found.submit(*old, kai.gang("train", gpus=4)).run_cycle()) == []


@pytest.mark.parametrize(("most", "count"), [(-1, 1), (16, 1), (0, 0)])
def test_consolidation_moves_as_many_jobs_as_it_may(most: int, count: int) -> None:
    assert len(evicted(scattered(options={"maxConsolidationPreemptees": most}).run_cycle())) == count


def test_a_victim_that_could_stay_for_one_task_moves_for_two_of_them() -> None:
    """With one task the core of `moved` stays on node-0 in part; its node is not offered again when two are placed, as in KAI."""
    found = kai.cluster(nodes=3, gpus=8, actions="reclaim").submit(kai.queue("a", quota=8), kai.queue("b", quota=2))
    fixed = [kai.gang(f"fixed-{at}", gpus=count, on=f"node-{at}", queue="b", preemptibility="non-preemptible")
             for at, count in enumerate((6, 3, 3))]  # fmt: skip
    moved = kai.gang("moved", tasks=3, gpus=2, queue="b", on=["node-1", "node-1", "node-0"])
    cycle = found.submit(*fixed, moved, kai.gang("taker", tasks=2, gpus=1)).run_cycle()
    assert dict(cycle.pipelined) == {
        "taker-0": "node-1", "taker-1": "node-1", "moved-0": "node-2", "moved-1": "node-2", "moved-2": "node-1",
    }  # fmt: skip


# --- reclaim -------------------------------------------------------------------------------------------------------------


def lopsided(*, quota: float = 2, tasks: int = 2, holder: dict[str, Any] | None = None, **more: Any) -> Cluster:
    """4 GPUs, all used by 4 jobs of queue rich; queue poor, which has a quota, wants some."""
    found = kai.cluster(actions="allocate, reclaim", **more).submit(kai.queue("rich", quota=2), kai.queue("poor", quota=quota))
    for number in range(4):
        found.submit(kai.gang(f"old-{number}", queue="rich", on="node-0", gpus=1, **(holder or {})))
    return found.submit(kai.gang("train", tasks=tasks, queue="poor", gpus=1))


def test_reclaim_gives_a_queue_its_quota_back() -> None:
    cycle = lopsided().run_cycle()
    assert len(evicted(cycle)) == 2
    assert pipelined(cycle) == ["train-0", "train-1"]
    message = next(iter(cycle.answer["evictions"].values()))["message"]
    assert message.endswith("was preempted by workload default/train.")


def test_reclaim_takes_the_youngest_first() -> None:
    found = lopsided(tasks=1)
    for number in range(4):
        group = kai.pod_group(f"old-{number}", queue="rich")
        group["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{9 - number}Z"
        found.submit(group)
    assert evicted(found.run_cycle()) == ["old-0-0"]


def test_nobody_is_evicted_for_half_a_gang() -> None:
    cycle = lopsided(quota=4, tasks=5).run_cycle()
    assert (evicted(cycle), pipelined(cycle)) == ([], [])


def test_a_queue_does_not_reclaim_beyond_its_fair_share() -> None:
    cycle = lopsided(quota=2, tasks=3).run_cycle()
    assert evicted(cycle) == []
    assert "may not reclaim: queue 'poor' would have more than its fair share" in cycle.why("train")


def test_a_queue_within_its_quota_gives_nothing() -> None:
    found = kai.cluster(actions="allocate, reclaim").submit(kai.queue("rich", quota=4), kai.queue("poor", quota=4))
    found.submit(kai.gang("old", tasks=4, queue="rich", on="node-0", gpus=1), kai.gang("train", queue="poor", gpus=1))
    cycle = found.run_cycle()
    assert evicted(cycle) == []
    assert cycle.why("train").endswith("no victims (reclaim: queue rich holds no more than it can count on (4 of 4 GPUs))")


def test_reclaim_spares_jobs_that_cannot_be_preempted() -> None:
    assert evicted(lopsided(holder={"preemptibility": "non-preemptible"}).run_cycle()) == []


def test_reclaim_peels_extras_off_an_elastic_job() -> None:
    found = kai.cluster(actions="allocate, reclaim").submit(kai.queue("rich", quota=2), kai.queue("poor", quota=2))
    found.submit(kai.gang("old", tasks=4, min_member=2, queue="rich", on="node-0", gpus=1))
    cycle = found.submit(kai.gang("train", queue="poor", gpus=1)).run_cycle()
    assert evicted(cycle) == ["old-3"]


def test_a_gang_without_extras_goes_as_a_whole() -> None:
    found = kai.cluster(actions="allocate, reclaim").submit(kai.queue("rich", quota=2), kai.queue("poor", quota=2))
    found.submit(kai.gang("old", tasks=4, queue="rich", on="node-0", gpus=1))
    cycle = found.submit(kai.gang("train", queue="poor", gpus=1)).run_cycle()
    assert len(evicted(cycle)) == 4
    assert cycle.why("old") == "4 of 4 tasks are evicted"


# --- preempt -------------------------------------------------------------------------------------------------------------


def busy(**more: Any) -> Cluster:
    """A queue whose 4 GPUs are used by two jobs of the class train."""
    found = kai.cluster(actions="allocate, preempt", **more).submit(kai.queue("a", quota=4))
    return found.submit(*(kai.gang(f"old-{number}", on="node-0", gpus=2) for number in range(2)))


def test_a_more_important_job_preempts_inside_its_queue() -> None:
    cycle = busy().submit(kai.gang("urgent", gpus=2, priorityClassName="build-preemptible")).run_cycle()
    (victim,) = evicted(cycle)
    assert pipelined(cycle) == ["urgent-0"]
    message = cycle.answer["evictions"][f"default/{victim}"]["message"]
    assert message == f"Pod default/{victim} was preempted by higher priority workload default/urgent"


def test_equals_do_not_preempt_each_other() -> None:
    cycle = busy().submit(kai.gang("equal", gpus=2)).run_cycle()
    assert evicted(cycle) == []
    assert cycle.why("equal").endswith("no victims (preempt: default/old-1 has priority 50, not lower than 50)")


def test_priority_does_not_act_across_queues() -> None:
    urgent = kai.gang("urgent", queue="b", gpus=2, priorityClassName="build-preemptible")
    assert evicted(busy().submit(kai.queue("b", quota=4), urgent).run_cycle()) == []


def test_a_job_that_cannot_be_preempted_takes_nothing_beyond_the_quota() -> None:
    urgent = kai.gang("urgent", tasks=3, gpus=2, priorityClassName="inference")
    cycle = busy().submit(urgent).run_cycle()
    assert evicted(cycle) == []
    assert cycle.why("urgent").startswith("over quota: ")


def test_a_search_that_fails_leaves_the_message_of_the_nodes_as_it_was() -> None:
    found = kai.cluster(nodes=3, actions="allocate, preempt").submit(kai.queue("a", quota=12))
    found.submit(kai.gang("old", on="node-0", gpus=2), kai.gang("other", tasks=2, on=["node-1", "node-2"], gpus=4))
    cycle = found.submit(kai.gang("urgent", tasks=4, gpus=4, priorityClassName="build-preemptible")).run_cycle()
    assert evicted(cycle) == []
    assert cycle.condition("urgent", "UnschedulableOnNodePool") == (
        "Resources were found for 0 pods while 4 are required for gang scheduling. Additional pods cannot be scheduled due to: "
        "no nodes with enough resources were found: 3 node(s) didn't have enough resources: GPUs."
    )


def test_a_job_that_not_even_all_who_may_give_make_room_for_is_told_so_and_nothing_of_a_trial() -> None:
    found = kai.cluster(nodes=2, gpus=4).submit(kai.queue("a", quota=20))
    found.submit(kai.gang("small", tasks=2, gpus=2, on="node-0"))
    found.submit(kai.gang("keeps", gpus=4, on="node-1", priorityClassName="build"))
    large = kai.gang("large", tasks=6, gpus=1, priorityClassName="build", preemptibility="preemptible")
    cycle = found.submit(large).run_cycle()
    assert evicted(cycle) == []
    assert cycle.why("large").count("no place for") == 1
    assert "preempt: even without those that may go the cluster has too few GPUs" in cycle.why("large")


def test_a_job_for_which_all_who_may_give_make_just_enough_room_gets_it() -> None:
    found = kai.cluster(nodes=2, gpus=4).submit(kai.queue("a", quota=20))
    found.submit(kai.gang("small", tasks=2, gpus=2, on="node-0"), kai.gang("other", tasks=2, gpus=2, on="node-1"))
    cycle = found.submit(kai.gang("large", tasks=8, gpus=1, priorityClassName="build")).run_cycle()
    assert sorted(evicted(cycle)) == ["other-0", "other-1", "small-0", "small-1"]


# --- minimum run time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("started", "count"), [(TEN_SECONDS_AGO, 0), (A_MINUTE_AGO, 1)])
def test_a_job_that_has_just_started_is_not_preempted(started: str, count: int) -> None:
    found = kai.cluster(actions="allocate, preempt").submit(kai.queue("a", quota=4, preemptMinRuntime="30s"))
    found.submit(kai.gang("old", on="node-0", gpus=4, annotations={kai.LAST_START: started}))
    cycle = found.submit(kai.gang("urgent", gpus=2, priorityClassName="build-preemptible")).run_cycle(now=NOW)
    assert len(evicted(cycle)) == count


@pytest.mark.parametrize(("started", "count"), [(TEN_SECONDS_AGO, 0), (A_MINUTE_AGO, 1)])
def test_a_job_that_has_just_started_is_not_reclaimed(started: str, count: int) -> None:
    young = {"minruntime": {"arguments": {"defaultReclaimMinRuntime": "30s"}}}
    cycle = lopsided(tasks=1, holder={"annotations": {kai.LAST_START: started}}, plugins=young).run_cycle(now=NOW)
    assert len(evicted(cycle)) == count


def test_an_elastic_job_that_has_just_started_may_lose_its_extras() -> None:
    found = kai.cluster(actions="allocate, preempt").submit(kai.queue("a", quota=4, preemptMinRuntime="30s"))
    young = {kai.LAST_START: TEN_SECONDS_AGO}
    found.submit(kai.gang("old", tasks=4, min_member=2, on="node-0", gpus=1, annotations=young))
    urgent = kai.gang("urgent", gpus=2, priorityClassName="build-preemptible")
    assert evicted(found.submit(urgent).run_cycle(now=NOW)) == ["old-2", "old-3"]


def test_an_elastic_job_that_has_just_started_keeps_its_core() -> None:
    found = kai.cluster(actions="allocate, preempt").submit(kai.queue("a", quota=4, preemptMinRuntime="30s"))
    young = {kai.LAST_START: TEN_SECONDS_AGO}
    found.submit(kai.gang("old", tasks=4, min_member=2, on="node-0", gpus=1, annotations=young))
    urgent = kai.gang("urgent", gpus=3, priorityClassName="build-preemptible")
    assert evicted(found.submit(urgent).run_cycle(now=NOW)) == []


# --- stale gangs ---------------------------------------------------------------------------------------------------------


def broken(since: str | None, *, running: int = 2, **options: Any) -> Cluster:
    """A gang of three of which some run."""
    found = kai.cluster(actions="stalegangeviction", options=options).submit(kai.queue("a", quota=4))
    stamps = {kai.STALE_SINCE: since} if since else {}
    group, *pods = kai.gang("train", tasks=3, on=["node-0"] * running, gpus=1, annotations=stamps)
    return found.submit(group, pods[:running])


@pytest.mark.parametrize(("since", "count"), [(None, 0), (TEN_SECONDS_AGO, 0), (A_MINUTE_AGO, 2)])
def test_a_broken_gang_is_evicted_after_its_grace(since: str | None, count: int) -> None:
    assert len(evicted(broken(since).run_cycle(now=NOW))) == count


def test_a_negative_grace_never_ends() -> None:
    assert evicted(broken(A_MINUTE_AGO, stalenessGracePeriodSeconds=-1).run_cycle(now=NOW)) == []


def test_another_session_is_due_when_the_grace_of_a_gang_ends() -> None:
    assert broken("", stalenessGracePeriodSeconds=90).run_cycle(now=NOW).decisions.again == NOW + 90
    assert broken(A_MINUTE_AGO, stalenessGracePeriodSeconds=90).run_cycle(now=NOW).decisions.again == NOW + 30


def test_a_whole_gang_is_not_stale() -> None:
    assert evicted(broken(A_MINUTE_AGO, running=3).run_cycle(now=NOW)) == []


def test_a_gang_that_is_finishing_is_never_evicted() -> None:
    done = kai.pod("train-2", "train", on="node-0", gpus=1)
    done["status"] = {"phase": "Succeeded"}
    assert evicted(broken(A_MINUTE_AGO).submit(done).run_cycle(now=NOW)) == []


def test_a_leaving_pod_still_counts_towards_the_minimum() -> None:
    pod = kai.leaving(kai.pod("train-2", "train", on="node-0", gpus=1))
    assert evicted(broken(A_MINUTE_AGO).submit(pod).run_cycle(now=NOW)) == []


def test_one_broken_sub_group_makes_the_whole_gang_stale() -> None:
    parts = [{"name": "leader", "minMember": 1}, {"name": "worker", "minMember": 2}]
    group = kai.pod_group("serve", min_member=3, subGroups=parts, annotations={kai.STALE_SINCE: A_MINUTE_AGO})
    pods = [
        kai.pod("l-0", "serve", part="leader", on="node-0", gpus=1),
        kai.pod("w-0", "serve", part="worker", on="node-0", gpus=1),
    ]
    found = kai.cluster(actions="stalegangeviction").submit(kai.queue("a", quota=4), group, pods)
    assert evicted(found.run_cycle(now=NOW)) == ["l-0", "w-0"]


def test_nobody_reclaims_what_the_next_session_would_give_to_another_queue() -> None:
    cluster = kai.cluster(gpus=4).submit(kai.queue("a", quota=2, weight=2), kai.queue("b", quota=2, weight=2))
    cluster.submit(kai.gang("big", gpus=2, on="node-0", queue="a"), kai.gang("old", gpus=1, on="node-0", queue="a"))
    cluster.submit(kai.gang("mine", gpus=1, on="node-0", queue="b"), kai.gang("small", gpus=1, queue="b"))
    assert cluster.run_cycle().pipelined == [("small-0", "node-0")]
    # With a large job before it, queue b comes after queue a: the room would go back to the victim.
    first = kai.gang("large", gpus=3, queue="b")
    first[0]["spec"]["priorityClassName"] = "build-preemptible"
    cycle = cluster.submit(first).run_cycle()
    assert (cycle.pipelined, cycle.decisions.evictions) == ([], {})


def test_a_victim_gets_its_minimum_back_and_no_more() -> None:
    cluster = kai.cluster(nodes=3, gpus=2, actions="preempt").submit(kai.queue("a", quota=6))
    elastic = kai.gang("elastic", tasks=3, min_member=1, gpus=1, on=["node-0", "node-0", "node-1"])
    other = kai.gang("other", gpus=1, on="node-1", priorityClassName="inference")
    urgent = kai.gang("urgent", gpus=2, priorityClassName="build")
    blocked = kai.gang("blocked", gpus=1, on="node-2", priorityClassName="inference")
    cycle = cluster.submit(elastic, other, urgent, blocked).run_cycle()
    assert cycle.pipelined == [("elastic-0", "node-2"), ("urgent-0", "node-0")]
    assert sorted(cycle.answer["evictions"]) == ["default/elastic-0", "default/elastic-1", "default/elastic-2"]


def test_a_gang_that_grows_task_by_task_is_judged_by_the_tasks_so_far() -> None:
    """Its first task stays within the quota of its queue, so it may take a gang's core; for both the order of queues decides."""
    queues = [
        kai.queue("a", quota=1, weight=2),
        kai.queue("b", quota=1, weight=3, priority=50),
        kai.queue("c", quota=1, weight=0, priority=150),
    ]
    cluster = kai.cluster(nodes=3, gpus=2, actions="reclaim").submit(queues, kai.queue("spare", quota=1, weight=3))
    core = kai.gang("core", tasks=2, gpus=1, on="node-0", queue="a", priorityClassName="build-preemptible")
    elastic = kai.gang("elastic", tasks=2, min_member=1, gpus=2, on=["node-2", "node-1"], queue="c")
    cycle = cluster.submit(core, elastic, kai.gang("new", tasks=2, gpus=1, queue="b")).run_cycle()
    assert cycle.pipelined == [
        ("core-0", "node-1"), ("core-1", "node-1"), ("elastic-0", "node-0"), ("new-0", "node-2"), ("new-1", "node-2"),
    ]  # fmt: skip
    assert "default/elastic-1" in cycle.answer["evictions"]
