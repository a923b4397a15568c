"""Which pods have the reason Unschedulable, by which autoscalers bring nodes: those of gangs that nodes would help, as a whole."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.explain.more_nodes import ASIDE, GROWING, PAUSES, lacking_nodes
from phalanx.explain.verdict_reasons import VERDICTS
from phalanx.model.conditions import CONSUMES, NODES_REQUESTED, UNDETERMINED, UNSCHEDULABLE
from phalanx.model.task import GangKey
from phalanx.plugins.coscheduling import LAST_FAILURE
from phalanx.session.cycle import run_cycle
from phalanx.testing import build
from tests.support import kai_objects as kai

GPUS = "nvidia.com/gpu"


def reasons(cycle: build.Cycle, gang: str) -> dict[str, int]:
    """Count the reasons of the pods of a gang that wait."""
    found: dict[str, int] = {}
    for task in cycle.answer["tasks"].values():
        if task["group"] == f"default/{gang}" and "reason" in task:
            found[task["reason"]] = found.get(task["reason"], 0) + 1
    return found


def cycle_of(*parts: Any, nodes: int = 2, profile: str = "phalanx", **offers: int) -> build.Cycle:
    cluster = build.cluster(nodes=nodes, policy=policy_of_profile(profile), **({"gpus": 1} | offers))
    return cluster.submit(build.queue("default"), *parts).run_cycle()


def limited(gpus: int, name: str = "default", **spec: Any) -> dict[str, Any]:
    return build.queue(name, capability={GPUS: gpus}, **spec)


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "coscheduling", "default-scheduler"])
def test_all_pods_of_a_gang_lack_nodes_though_some_of_them_would_fit(profile: str) -> None:
    assert reasons(cycle_of(build.gang("train", tasks=3, gpus=1), profile=profile), "train").keys() == {UNSCHEDULABLE}


def test_nodes_help_where_there_are_none() -> None:
    assert reasons(cycle_of(build.gang("train", tasks=3, gpus=1), nodes=0), "train") == {UNSCHEDULABLE: 3}


def test_pods_whose_nodes_a_request_brings_have_a_reason_of_their_own() -> None:
    group, *pods = build.gang("train", tasks=3, gpus=1)
    for pod in pods:
        pod["metadata"]["annotations"][CONSUMES] = "train-1"
    assert reasons(cycle_of(group, *pods), "train") == {NODES_REQUESTED: 3}


def test_pods_of_a_request_that_wait_for_their_queue_lack_no_nodes() -> None:
    group, *pods = build.gang("train", tasks=3, gpus=1)
    for pod in pods:
        pod["metadata"]["annotations"][CONSUMES] = "train-1"
    assert not {NODES_REQUESTED, UNSCHEDULABLE} & reasons(cycle_of(limited(2), group, *pods), "train").keys()


def test_a_gang_that_its_queue_may_not_have_lacks_no_nodes() -> None:
    assert reasons(cycle_of(limited(2), build.gang("train", tasks=3, gpus=1), nodes=4), "train").keys() <= {
        UNDETERMINED,
        "Schedulable",
    }


def test_the_limit_of_the_queue_decides_where_room_lacks_too() -> None:
    assert reasons(cycle_of(limited(2), build.gang("train", tasks=3, gpus=1), nodes=0), "train") == {UNDETERMINED: 3}


def test_a_limit_above_the_queue_decides_too() -> None:
    queues = [limited(2, "lab", parent="root"), build.queue("vision", parent="lab"), build.queue("root")]
    assert reasons(cycle_of(*queues, build.gang("train", tasks=3, queue="vision", gpus=1), nodes=0), "train") == {UNDETERMINED: 3}


def test_a_capability_as_large_as_the_cluster_is_a_limit_all_the_same() -> None:
    taken = [
        build.pod_group("old", phase="Running"),
        *(build.pod(f"old-{n}", group="old", on=f"node-{n}", gpus=1) for n in range(2)),
    ]
    assert reasons(cycle_of(limited(2), taken, build.gang("train", tasks=2, gpus=1)), "train") == {UNDETERMINED: 2}
    assert reasons(cycle_of(taken, build.gang("train", tasks=2, gpus=1)), "train") == {UNSCHEDULABLE: 2}


@pytest.mark.parametrize("profile", ["phalanx", "volcano"])
def test_gangs_of_one_queue_use_up_its_limit_in_turn(profile: str) -> None:
    gangs = [build.gang(name, tasks=2, gpus=1) for name in ("a", "b", "c")]
    cycle = cycle_of(limited(4), *gangs, nodes=0, profile=profile)
    found = {name: reasons(cycle, name) for name in ("a", "b", "c")}
    assert found == {"a": {UNSCHEDULABLE: 2}, "b": {UNSCHEDULABLE: 2}, "c": {UNDETERMINED: 2}}


def test_queues_below_one_limit_use_it_up_together() -> None:
    queues = [build.queue("root"), limited(3, "lab", parent="root"), *(build.queue(name, parent="lab") for name in ("x", "y"))]
    cycle = cycle_of(*queues, build.gang("a", tasks=2, queue="x", gpus=1), build.gang("b", tasks=2, queue="y", gpus=1), nodes=0)
    assert (reasons(cycle, "a"), reasons(cycle, "b")) == ({UNSCHEDULABLE: 2}, {UNDETERMINED: 2})


def test_pods_beyond_the_minimum_lack_nodes_as_far_as_the_queue_may_have_them() -> None:
    cycle = cycle_of(limited(3), build.gang("train", tasks=5, min_member=1, gpus=1), nodes=1)
    assert reasons(cycle, "train") == {UNSCHEDULABLE: 2, UNDETERMINED: 2}


def test_a_gang_that_lacks_pods_lacks_no_nodes() -> None:
    assert reasons(cycle_of(build.gang("train", tasks=3, min_member=4, gpus=1), nodes=0), "train") == {UNDETERMINED: 3}


def test_a_gang_that_waits_for_leaving_pods_lacks_no_nodes() -> None:
    leaving = build.pod("old-0", group="old", on="node-0", gpus=1)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cycle = cycle_of(build.pod_group("old", phase="Running"), leaving, build.gang("train", gpus=1), nodes=1)
    assert cycle.pipelined == [("train-0", "node-0")]
    assert reasons(cycle, "train") == {UNDETERMINED: 1}


def test_pods_that_enqueue_does_not_admit_because_the_cluster_is_full_lack_nodes() -> None:
    group, *pods = build.gang("train", tasks=3, gpus=1)
    group["spec"]["minResources"] = {GPUS: 3}
    cycle = cycle_of([group, *pods], profile="volcano")
    assert cycle.phase("train") == "Pending"
    assert reasons(cycle, "train") == {UNSCHEDULABLE: 3}


def test_pods_that_enqueue_does_not_admit_because_of_the_queue_lack_none() -> None:
    group, *pods = build.gang("train", tasks=3, gpus=1)
    group["spec"]["minResources"] = {GPUS: 3}
    cycle = cycle_of(limited(2), [group, *pods], nodes=8, profile="volcano")
    assert (cycle.phase("train"), reasons(cycle, "train")) == ("Pending", {UNDETERMINED: 3})


def test_a_queue_that_has_its_part_of_the_cluster_lacks_nodes_because_its_part_grows() -> None:
    queues = [build.queue("a"), build.queue("b")]
    held = [build.pod_group("old", phase="Running", queue="a"), build.pod("old-0", group="old", on="node-0", gpus=1)]
    cycle = cycle_of(
        *queues, held, build.gang("x", queue="a", gpus=1), build.gang("y", tasks=1, queue="b", gpus=1), profile="volcano"
    )
    assert "deserve" in cycle.why("x")
    assert reasons(cycle, "x") == {UNSCHEDULABLE: 1}


@pytest.mark.parametrize(("limit", "expected"), [(8, UNSCHEDULABLE), (-1, UNSCHEDULABLE), (4, UNDETERMINED)])
def test_jobs_of_kai_lack_nodes_up_to_the_limit_of_their_queue(limit: int, expected: str) -> None:
    cluster = kai.cluster(nodes=1, gpus=2).submit(kai.queue("a", quota=1, limit=limit), kai.gang("train", tasks=5, gpus=1))
    assert reasons(cluster.run_cycle(), "train") == {expected: 5}


def test_jobs_of_one_queue_of_kai_use_up_its_limit_in_turn() -> None:
    gangs = [kai.gang(name, tasks=2, gpus=1) for name in ("one", "two")]
    cycle = kai.cluster(nodes=1, gpus=1).submit(kai.queue("a", quota=1, limit=3), *gangs).run_cycle()
    assert (reasons(cycle, "one"), reasons(cycle, "two")) == ({UNSCHEDULABLE: 2}, {UNDETERMINED: 2})


def test_a_job_of_kai_whose_pods_are_not_to_be_marked_is_not() -> None:
    group, *pods = kai.gang("train", tasks=5, gpus=1)
    group["spec"]["markUnschedulable"] = False
    cluster = kai.cluster(nodes=1, gpus=2).submit(kai.queue("a", quota=1, limit=8), group, *pods)
    snapshot = cluster.objects.snapshot(0.0)
    assert lacking_nodes(snapshot, cluster.run_cycle().decisions) == {}


def test_a_gang_that_was_left_out_keeps_its_claim_on_the_limit() -> None:
    cluster = build.cluster(nodes=0, policy=policy_of_profile("phalanx")).submit(limited(3), build.gang("old", tasks=2, gpus=1))
    snapshot = cluster.objects.snapshot(0.0)
    before = lacking_nodes(snapshot, cluster.run_cycle().decisions)
    cluster.submit(build.gang("young", tasks=2, gpus=1))
    later = cluster.run_cycle()
    later.decisions.outcomes = [outcome for outcome in later.decisions.outcomes if outcome.state.key != "default/old"]
    after = lacking_nodes(cluster.objects.snapshot(0.0), later.decisions, before)
    assert after.keys() == {GangKey("default/old")}
    alone = lacking_nodes(cluster.objects.snapshot(0.0), later.decisions)
    assert alone.keys() == {GangKey("default/young")}


def test_a_gang_that_pauses_lacks_what_it_lacked_before() -> None:
    policy = build.policy(
        [["gang", {"name": "coscheduling", "arguments": {"podGroupBackoffSeconds": 60}}], ["predicates"]], "allocate"
    )
    cluster = build.cluster(nodes=1, policy=policy).submit(build.queue("default"), build.gang("train", tasks=9, cpu=1))
    before = lacking_nodes(cluster.objects.snapshot(100.0), cluster.run_cycle(now=100.0).decisions)
    group = cluster.document("PodGroup", "default/train")
    group["metadata"]["annotations"] = {LAST_FAILURE: "1970-01-01T00:01:40Z"}
    cluster.submit(group)
    snapshot = cluster.objects.snapshot(110.0)
    paused = run_cycle(snapshot, policy, CATALOGUE)
    assert [verdict.reason for outcome in paused.outcomes for verdict in outcome.state.verdicts] == ["GroupBackoff"]
    assert lacking_nodes(snapshot, paused, before) == before
    assert lacking_nodes(snapshot, paused) == {}


def test_the_rule_names_only_codes_that_there_are() -> None:
    known = {entry.code for entry in VERDICTS}
    assert {*GROWING, *PAUSES, *ASIDE} <= known
