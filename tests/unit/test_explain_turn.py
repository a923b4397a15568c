"""Its turn: who is served before a gang, by which rule, what they took, and whether that is why it waits."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.explain.tree import Stage, StageResult
from phalanx.testing import build
from phalanx.testing.build import Cluster
from tests.support import kai_objects as kai
from tests.support import traced_clusters as traced
from tests.support.explained import explained, stage_of, texts
from tests.support.urgent_gangs import crowd

PROFILES = ("phalanx", "volcano", "coscheduling", "default-scheduler")


def turn_of(cluster: Cluster, gang: str = "second") -> StageResult:
    return stage_of(explained(cluster, gang), Stage.TURN)


def pair(profile: str, **second: Any) -> Cluster:
    """Return a node for one gang, and two that want it, the first one more important."""
    parts = traced.important("first", [""], minimum=1), traced.humble("second", [""], **second)
    return crowd(policy_of_profile(profile), *parts)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_more_important_gang_is_named_with_both_priorities_and_what_it_took(profile: str) -> None:
    result = turn_of(pair(profile))
    plugin = "coscheduling" if profile == "coscheduling" else "priority"
    assert texts(result.lines) == [f"behind default/first in queue blue: priority 1 < 10 ({plugin}); it took 4 cpu in this session"]
    assert result.ok is False


@pytest.mark.parametrize("profile", PROFILES)
def test_those_ahead_are_not_the_cause_where_it_would_not_fit_without_them(profile: str) -> None:
    assert turn_of(pair(profile, cpu=8)).ok is True


@pytest.mark.parametrize("profile", PROFILES)
def test_a_gang_that_others_leave_room_for_has_nothing_to_say(profile: str) -> None:
    full = crowd(policy_of_profile(profile), traced.humble("old", ["node-0"]), traced.gang("second", [""], minimum=1))
    assert (turn_of(full).ok, turn_of(full).lines) == (True, ())
    starts = crowd(policy_of_profile(profile), traced.gang("second", [""], minimum=1))
    assert (turn_of(starts).ok, turn_of(starts).lines) == (True, ())


def test_tasks_that_fit_one_by_one_and_not_together_do_not_blame_those_ahead() -> None:
    """Two nodes of four cpu are free at first; the second gang needs three tasks of three cpu whoever comes first."""
    parts = traced.important("first", [""], minimum=1, cpu=1), traced.humble("second", ["", "", ""], minimum=3, cpu=3)
    assert turn_of(crowd(policy_of_profile("phalanx"), *parts, nodes=2)).ok is True


def test_a_quota_that_others_of_the_queue_used_up_in_this_session_is_their_doing() -> None:
    policy = policy_of_profile("phalanx")
    first, second = traced.important("first", [""], minimum=1, cpu=2), traced.humble("second", [""], cpu=2)
    cluster = crowd(policy, first, second, cpu=8).submit(build.queue("blue", capability={"cpu": 2}))
    assert turn_of(cluster).ok is False
    small = crowd(policy, first, traced.humble("second", [""], cpu=4), cpu=8).submit(build.queue("blue", capability={"cpu": 2}))
    assert turn_of(small).ok is True


def test_the_older_of_equal_gangs_comes_first() -> None:
    first, second = traced.gang("a", [""], minimum=1), traced.gang("second", [""], minimum=1)
    first[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    second[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:05Z"
    found = texts(turn_of(crowd(policy_of_profile("default-scheduler"), first, second)).lines)[0]
    assert "it was created earlier (2026-01-01T00:00:00Z < 2026-01-01T00:00:05Z); it took 4 cpu" in found


def test_a_smaller_share_of_the_cluster_comes_first() -> None:
    policy = build.policy([["gang"], ["drf", "predicates", "nodeorder"]], "allocate")
    second = traced.gang("second", ["node-0", ""], minimum=2, cpu=2)
    cluster = crowd(policy, traced.gang("third", ["", ""], minimum=2, cpu=1), second)
    assert "behind default/third in queue blue: share 0.5 > 0 (drf); it took 2 cpu" in texts(turn_of(cluster).lines)[0]


def test_a_queue_that_is_served_first_is_named_with_both_shares() -> None:
    policy = policy_of_profile("phalanx")
    busy = traced.gang("busy", ["node-0"], minimum=1, cpu=1)
    parts = busy, traced.gang("first", [""], minimum=1, cpu=3, queue="green"), traced.gang("second", [""], minimum=1, cpu=2)
    found = turn_of(crowd(policy, *parts))
    rule = "queue blue is served after green: share 0.5 > 0 (capacity)"
    assert texts(found.lines) == [f"behind default/first in queue green: {rule}; it took 3 cpu in this session"]
    assert found.ok is False


def test_a_queue_of_higher_priority_is_named_with_both_priorities() -> None:
    parts = traced.gang("first", [""], minimum=1, queue="green"), traced.gang("second", [""], minimum=1)
    cluster = crowd(policy_of_profile("phalanx"), *parts).submit(build.queue("green", priority=5))
    assert "queue blue is served after green: priority 0 < 5 (capacity)" in texts(turn_of(cluster).lines)[0]


def test_a_queue_that_has_all_it_deserves_is_passed_over() -> None:
    cluster = crowd(traced.VOLCANO, traced.gang("busy", ["node-0"], minimum=1, cpu=2))
    cluster.submit(build.node("node-0", cpu=4, pods=2))
    cluster.submit(traced.gang("other", [""], minimum=1, cpu=2, queue="green"), traced.gang("second", [""], minimum=1, cpu=2))
    result = turn_of(cluster)
    assert result.ok is False
    assert result.lines[0].code == "QueueOverused"
    assert texts(result.lines)[0] == "queue blue is passed over: it has all it deserves (2 of 2 cpu) (proportion)"


@pytest.mark.parametrize("profile", ["phalanx", "volcano"])
def test_a_gang_ahead_that_waits_for_leaving_pods_keeps_room_from_others(profile: str) -> None:
    leaving = traced.gang("old", ["node-0"], minimum=1)
    leaving[1]["metadata"]["deletionTimestamp"] = traced.LEAVING
    parts = leaving, traced.important("first", ["", ""], minimum=2), traced.humble("second", [""])
    result = turn_of(crowd(policy_of_profile(profile), *parts, nodes=2))
    assert texts(result.lines) == ["behind default/first in queue blue: priority 1 < 10 (priority); it took 8 cpu in this session"]
    assert result.ok is False


# --- the profile kai -----------------------------------------------------------------------------------------------------


def jobs(first: dict[str, Any], **cluster: Any) -> Cluster:
    found = kai.cluster(**cluster).submit(kai.queue("a", quota=4), kai.queue("b", quota=4))
    return found.submit(kai.gang("first", gpus=4, **first), kai.gang("second", gpus=2))


def test_a_more_important_job_is_named() -> None:
    result = turn_of(jobs({"priorityClassName": "build"}))
    assert texts(result.lines) == [
        "behind default/first in queue a: priority 50 < 100 (priority); it took 4 nvidia.com/gpu, 1 cpu in this session"
    ]
    assert result.ok is False


def test_a_job_behind_the_depth_of_its_queue_is_told_who_is_ahead() -> None:
    cluster = jobs({"priorityClassName": "build"}, options={"queueDepthPerAction": {"allocate": 1}})
    result = turn_of(cluster)
    assert (result.ok, result.lines[0].code) == (False, "QueueDepth")
    assert texts(result.lines)[1] == "behind default/first in queue a: priority 50 < 100 (priority)"
