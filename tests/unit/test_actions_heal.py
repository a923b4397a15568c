"""Healing: gangs below a minimum are completed, or evicted after their grace; pods, condition and `why` say the reason."""

from collections.abc import Iterable
from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.duration import grace_of
from phalanx.state.quorum import MINIMA
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import coscheduling_gangs as sigs
from tests.support import crowded_clusters as crowds
from tests.support import kai_objects as kai
from tests.support.broken_gangs import GRACE, NOW, stamp

POLICY = policy_of_profile("phalanx")


def failed(pod: Document, *, ago: float) -> Document:
    ended = {"name": "main", "state": {"terminated": {"finishedAt": stamp(ago)}}}
    pod["status"] = {"phase": "Failed", "containerStatuses": [ended]}
    return pod


def broken(*, ago: float = 35, min_member: int = 3, grace: str = "", **spec: Any) -> list[Document]:
    """Return a gang of four of which two run, one failed and one waits."""
    group = build.pod_group("train", min_member=min_member, phase="Running", **spec)
    group["metadata"]["annotations"] = {GRACE: grace} if grace else {}
    pods = [build.pod(f"train-{number}", group="train", on="node-0" if number < 3 else "", cpu=2) for number in range(4)]
    pods[3]["metadata"]["creationTimestamp"] = stamp(ago)
    failed(pods[2], ago=ago)
    return [group, *pods]


def full(*parts: Any, cpu: int = 4) -> Cluster:
    return build.cluster(nodes=1, policy=POLICY, cpu=cpu).submit(*parts)


def test_a_stale_gang_is_told_how_long_it_has_and_what_it_needs() -> None:
    cycle = full(broken(ago=35)).run_cycle(now=NOW)
    assert cycle.why("train") == (
        "2 of 4 tasks run, below the minimum of 3 for 35 s; evicted in 25 s unless 1 more finds a place; "
        "2 of 3 tasks fit; 1 more place for 2 cpu needed (0 of 4 cpu are free, 2 needed)"
    )
    assert cycle.decisions.evictions == {}


@pytest.mark.parametrize(("grace", "again"), [("", NOW + 25), ("40s", NOW + 5), ("never", None)])
def test_another_session_is_due_when_the_grace_ends(grace: str, again: float | None) -> None:
    assert full(broken(ago=35, grace=grace)).run_cycle(now=NOW).decisions.again == again


def test_after_the_grace_the_rest_goes_and_each_pod_hears_why() -> None:
    cycle = full(broken(ago=61)).run_cycle(now=NOW)
    assert sorted(cycle.answer["evictions"]) == ["default/train-0", "default/train-1"]
    assert cycle.answer["evictions"]["default/train-0"] == {
        "action": "heal", "for": "",
        "message": "evicted with what is left of gang default/train (2 of 4 tasks run, below the minimum of 3 for 61 s), "
        "so that it starts again as a whole",
    }  # fmt: skip
    assert cycle.why("train") == "2 of 4 tasks run, below the minimum of 3 for 61 s; evicted, so that it starts again as a whole"
    assert cycle.condition("train", "Stale") is None


def test_the_condition_carries_the_time_from_session_to_session_and_goes_when_the_gang_is_whole() -> None:
    cluster = full(broken(ago=35))
    first = cluster.run_cycle(now=NOW)
    (stale,) = [entry for entry in first.answer["groups"]["default/train"]["conditions"] if entry["type"] == "Stale"]
    assert (stale["status"], stale["reason"], stale["lastTransitionTime"]) == ("True", "BelowMinimum", stamp(35))
    second = cluster.carry_out(first).submit(build.node("node-1", cpu=2)).run_cycle(now=NOW + 5)
    assert second.binds == [("train-3", "node-1")]
    assert second.condition("train", "Stale") is None


def test_a_loss_dated_by_a_clock_that_is_ahead_counts_from_when_it_was_first_seen() -> None:
    cluster = full(broken(ago=-600))
    first = cluster.run_cycle(now=NOW)
    assert first.why("train").startswith("2 of 4 tasks run, below the minimum of 3 for 0 s; evicted in 60 s")
    assert cluster.carry_out(first).run_cycle(now=NOW + 61).decisions.evictions


@pytest.mark.parametrize(("grace", "is_evicted"), [("30", True), ("30s", True), ("2m", False), ("-1", False), ("never", False)])
def test_a_group_says_its_own_grace(grace: str, is_evicted: bool) -> None:
    assert bool(full(broken(ago=61, grace=grace)).run_cycle(now=NOW).decisions.evictions) is is_evicted


def test_a_gang_without_end_of_grace_says_so() -> None:
    why = full(broken(ago=300, grace="never")).run_cycle(now=NOW).why("train")
    assert why.startswith("2 of 4 tasks run, below the minimum of 3 for 300 s; it is left alone, because its grace never ends; ")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("1.5", 1.5), ("1m30s", 90.0), ("-1", float("inf")), ("-5s", float("inf")), ("never", float("inf")), ("0", 0.0)],
)
def test_a_grace_is_a_duration_or_seconds(text: str, seconds: float) -> None:
    assert grace_of(text) == seconds


@pytest.mark.parametrize("text", ["soon", "", "nan", "-"])
def test_a_grace_that_is_none_refuses_its_group_alone(text: str) -> None:
    assert grace_of(text) is None
    group = broken()[0]
    group["metadata"]["annotations"] = {GRACE: text}
    with pytest.raises(SnapshotError) as problem:
        full().submit(group)
    assert str(problem.value) == (
        f"PodGroup default/train: metadata.annotations['{GRACE}']: {text!r} is not a period; "
        "write seconds, a duration such as '90s', or 'never'"
    )


def test_the_default_grace_is_a_setting() -> None:
    entry = {"name": "heal", "arguments": {"grace": "10s"}}
    policy = build.policy([["gang"], ["predicates"]], "allocate, heal", configurations=[entry])
    assert build.cluster(nodes=1, policy=policy, cpu=4).submit(broken(ago=11)).run_cycle(now=NOW).decisions.evictions
    wrong = {"name": "heal", "arguments": {"grace": "soon"}}
    cluster = build.cluster(nodes=1, policy=build.policy([["gang"]], "heal", configurations=[wrong]))
    with pytest.raises(ConfigError, match="argument 'grace': 'soon' is not a period"):
        cluster.run_cycle()


def test_a_gang_is_completed_before_a_more_important_one_starts() -> None:
    rival = build.gang("rival", cpu=2)
    rival[0]["spec"]["priorityClassName"] = "high"
    cycle = full(crowds.classes(), broken(ago=300), rival, cpu=6).run_cycle(now=NOW)
    assert cycle.binds == [("train-3", "node-0")]


def test_a_member_that_succeeded_is_present_and_a_gang_that_finishes_is_left_alone() -> None:
    group, *pods = broken(ago=300)
    pods[2]["status"] = {"phase": "Succeeded"}
    cycle = full(group, *pods).run_cycle(now=NOW)
    assert cycle.decisions.evictions == {}
    assert "minimum of 3 for" not in cycle.why("train")


def test_a_role_below_its_minimum_breaks_a_gang_that_has_enough_members() -> None:
    group = build.pod_group("train", min_member=2, phase="Running", minTaskMember={"chief": 1, "worker": 1})
    pods = [build.pod(f"train-{number}", on="node-0", cpu=1) for number in range(3)]
    members = [build.in_group("train", pod, role="worker" if number else "chief") for number, pod in enumerate(pods)]
    failed(members[0], ago=61)
    group["status"]["conditions"] = [{"type": "Scheduled", "status": "True"}]
    cycle = full(group, *members).run_cycle(now=NOW)
    assert sorted(cycle.answer["evictions"]) == ["default/train-1", "default/train-2"]
    assert cycle.why("train").startswith("role chief: 0 of 1 tasks run, below the minimum of 1 for 61 s; evicted")


def rings(*states: str, needed: int, min_member: int) -> list[Document]:
    """Return a gang of rings of two; a word of letters for each ring: (r)uns or (f)ailed 61 seconds ago."""
    policy = {"name": "ring", "subGroupSize": 2, "minSubGroups": needed, "matchLabelKeys": ["ring"]}
    pods = []
    for ring, letters in enumerate(states):
        for number, letter in enumerate(letters):
            pod = build.pod(f"train-{ring}-{number}", group="train", on="node-0", cpu=1)
            pod["metadata"]["labels"] = {"ring": str(ring)}
            pods.append(failed(pod, ago=61) if letter == "f" else pod)
    return build.bound_for(build.pod_group("train", min_member=min_member, phase="Running", subGroupPolicy=[policy]), *pods)


def test_a_broken_sub_group_that_the_gang_can_do_without_goes_alone() -> None:
    cycle = full(rings("rr", "rf", needed=1, min_member=2)).run_cycle(now=NOW)
    assert list(cycle.answer["evictions"]) == ["default/train-1-0"]
    assert cycle.why("train").startswith("sub-group ring-1: 1 of 2 tasks runs, below the minimum of 2 for 61 s; evicted")


@pytest.mark.parametrize(("needed", "min_member"), [(2, 2), (0, 3)])
def test_without_a_sub_group_that_it_needs_the_whole_gang_goes(needed: int, min_member: int) -> None:
    cycle = full(rings("rr", "rf", needed=needed, min_member=min_member)).run_cycle(now=NOW)
    assert list(cycle.answer["evictions"]) == ["default/train-0-0", "default/train-0-1", "default/train-1-0"]


def test_a_gang_that_lacks_a_whole_sub_group_is_stale_from_when_it_was_first_seen() -> None:
    cycle = full(rings("rr", needed=2, min_member=2)).run_cycle(now=NOW)
    assert cycle.why("train").startswith("sub-groups ring: 1 whole, below the minimum of 2 for 0 s; evicted in 60 s")


def test_a_leaf_of_kai_below_its_minimum_breaks_the_group() -> None:
    leaves = [{"name": "decode", "minMember": 1}, {"name": "prefill", "minMember": 2}]
    pods = [kai.pod(f"train-{number}", "train", on="node-0", part="prefill" if number else "decode") for number in range(4)]
    failed(pods[1], ago=61)
    failed(pods[2], ago=70)
    group = kai.pod_group("train", min_member=2, queue="default", subGroups=leaves)
    cycle = full(group, *pods).run_cycle(now=NOW)
    assert sorted(cycle.answer["evictions"]) == ["default/train-0", "default/train-3"]


def test_the_stamp_of_kai_tells_since_when() -> None:
    group = kai.pod_group("train", min_member=2, queue="default", annotations={kai.STALE_SINCE: stamp(59)})
    cluster = full(group, kai.pod("train-0", "train", on="node-0"))
    assert cluster.run_cycle(now=NOW).why("train").startswith("1 of 1 tasks runs, below the minimum of 2 for 59 s; evicted in 1 s")
    assert list(cluster.run_cycle(now=NOW + 1).answer["evictions"]) == ["default/train-0"]


@pytest.mark.parametrize("kind", ["pod", "gang", "budget", "system"])
def test_a_gang_with_a_protected_pod_is_left_alone(kind: str) -> None:
    group, *pods = broken(ago=300)
    if kind in ("pod", "gang"):
        (group if kind == "gang" else pods[1])["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    if kind == "system":
        pods[1]["spec"]["priorityClassName"] = "system-cluster-critical"
    cluster = full(group, *pods)
    if kind == "budget":
        pods[1]["metadata"]["labels"] = {"app": "train"}
        cluster.submit(pods[1], {
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "train", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "train"}}}, "status": {"disruptionsAllowed": 0, "observedGeneration": 1},
        })  # fmt: skip
    cycle = cluster.run_cycle(now=NOW)
    assert cycle.decisions.evictions == {}
    assert f"it is left alone, because default/train-{0 if kind == 'gang' else 1} is protected" in cycle.why("train")


def test_a_failed_pod_that_was_replaced_long_ago_does_not_date_a_new_loss() -> None:
    cycle = full(broken(ago=5), failed(build.pod("train-4", group="train", on="node-0", cpu=2), ago=900)).run_cycle(now=NOW)
    assert "below the minimum of 3 for 5 s" in cycle.why("train")


def test_a_leaf_of_which_nothing_runs_any_more_breaks_the_group_since_its_loss() -> None:
    leaves = [{"name": "decode", "minMember": 1}, {"name": "prefill", "minMember": 1}]
    pods = [kai.pod(f"train-{number}", "train", on="node-0", part="prefill" if number else "decode") for number in range(2)]
    group = kai.pod_group("train", min_member=1, queue="default", subGroups=leaves)
    cycle = full(group, pods[0], failed(pods[1], ago=61)).run_cycle(now=NOW)
    assert list(cycle.answer["evictions"]) == ["default/train-0"]


# --- what the owner does to a gang that runs -----------------------------------------------------------------------------


def started(count: int, *, owner: str = "") -> Cluster:
    """Return a cluster with room for `count` tasks and a gang that has started there, whole."""
    cluster = full(build.pod_group("train", min_member=count), members(range(count), owner=owner), cpu=2 * count)
    for _ in range(2):
        cluster.carry_out(cluster.run_cycle(now=NOW - 1000))
    return cluster


def members(numbers: Iterable[int], *, ago: float = 2000, owner: str = "") -> list[Document]:
    pods = [build.pod(f"train-{number}", group="train", cpu=2) for number in numbers]
    for pod in pods:
        pod["metadata"]["creationTimestamp"] = stamp(ago)
        if owner:
            reference = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": owner, "uid": owner, "controller": True}
            pod["metadata"]["ownerReferences"] = [reference]
    return pods


def asked_for(cluster: Cluster, min_member: int) -> Cluster:
    group = cluster.document("PodGroup", "default/train")
    return cluster.submit({**group, "spec": {**group["spec"], "minMember": min_member}})


def healed(cluster: Cluster) -> list[str]:
    """Return who is evicted in sessions of the next ten minutes."""
    gone: list[str] = []
    for seconds in (0, 61, 300, 600):
        cycle = cluster.run_cycle(now=NOW + seconds)
        gone += cycle.answer["evictions"]
        cluster.carry_out(cycle)
    return sorted(gone)


@pytest.mark.parametrize("owner", ["", "ray"])
def test_a_gang_whose_owner_raises_the_minimum_and_adds_pods_runs_on_and_the_new_ones_wait(owner: str) -> None:
    cluster = asked_for(started(3, owner=owner), 7).submit(members(range(3, 7), ago=300, owner=owner))
    assert healed(cluster) == []
    cycle = cluster.run_cycle(now=NOW + 700)
    assert cycle.condition("train", "Stale") is None
    assert "evicted" not in cycle.why("train")


def test_a_gang_that_grew_as_a_whole_and_then_lost_a_member_is_stale_by_what_it_grew_to() -> None:
    cluster = asked_for(started(3), 5).submit(members((3, 4), ago=300), build.node("node-1", cpu=4))
    cluster.carry_out(cluster.run_cycle(now=NOW - 100)).remove("Pod", "default/train-4")
    assert "below the minimum of 5" in cluster.run_cycle(now=NOW).why("train")


def test_what_was_whole_stays_when_its_growth_breaks() -> None:
    cluster = asked_for(started(3), 5).submit(members((3, 4), ago=300), build.node("node-1", cpu=4))
    cluster.carry_out(cluster.run_cycle(now=NOW - 100)).remove("Pod", "default/train-4")
    assert healed(cluster) == ["default/train-3"]


def test_a_gang_whose_controller_takes_pods_away_and_leaves_the_minimum_runs_on() -> None:
    cluster = started(4, owner="ray").remove("Pod", "default/train-2").remove("Pod", "default/train-3")
    assert healed(cluster) == []


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_pods_that_a_controller_takes_away_slowly_do_not_break_their_gang(phase: str) -> None:
    cluster = started(4, owner="ray")
    pod = cluster.document("Pod", "default/train-3")
    leaving = {**pod["metadata"], "deletionTimestamp": stamp(-3600), "deletionGracePeriodSeconds": 3600}
    cluster.submit({**pod, "metadata": leaving, "status": {**pod["status"], "phase": phase}})
    assert "evicted" not in cluster.run_cycle(now=NOW).why("train")
    assert healed(cluster) == []


def test_a_lost_pod_that_its_controller_makes_anew_and_that_finds_no_place_breaks_its_gang() -> None:
    cluster = started(4, owner="ray").remove("Pod", "default/train-3").submit(members((4,), ago=5, owner="ray"))
    cluster.submit(build.gang("rival", cpu=2)[0], build.pod("rival-0", group="rival", on="node-0", cpu=2))
    assert healed(cluster) == ["default/train-0", "default/train-1", "default/train-2"]


def test_pods_that_nobody_replaces_break_their_gang_when_they_go() -> None:
    assert healed(started(4).remove("Pod", "default/train-3")) == ["default/train-0", "default/train-1", "default/train-2"]


def test_a_gang_that_another_scheduler_started_is_left_running_when_nobody_knows_what_it_lost() -> None:
    running = [build.pod(f"train-{number}", group="train", on="node-0", cpu=2) for number in range(3)]
    group = build.pod_group("train", min_member=7, phase="Running")
    assert healed(full(group, running, members(range(3, 7), ago=300), cpu=6)) == []


def test_a_gang_of_which_some_members_were_never_bound_is_taken_back() -> None:
    group, pods = build.pod_group("train", min_member=7, phase="Inqueue"), members(range(7), ago=300)
    for pod in pods[:3]:
        pod["spec"]["nodeName"], pod["status"] = "node-0", {"phase": "Running"}
    assert len(healed(full(build.bound_for(group, *pods), cpu=6))) == 3


@pytest.mark.parametrize("text", ["", "3", "[]", '{"gang": "three"}'])
def test_a_mark_that_nobody_can_read_says_nothing(text: str) -> None:
    cluster = asked_for(started(3), 7).submit(members(range(3, 7), ago=300))
    for number in range(3):
        pod = cluster.document("Pod", f"default/train-{number}")
        cluster.submit({**pod, "metadata": {**pod["metadata"], "annotations": {**pod["metadata"]["annotations"], MINIMA: text}}})
    assert healed(cluster) == []


# --- places that are kept, and nothing that runs --------------------------------------------------------------------------------


def keeping(tasks: int) -> list[Document]:
    """Return a gang of Koordinator's that keeps its places while it waits for three."""
    return sigs.koordinator_gang("train", tasks=tasks, mode="NonStrict", cpu=2, min_member=3)


def test_a_gang_that_only_keeps_places_has_not_started_and_is_not_stale() -> None:
    cycle = full(keeping(3)).run_cycle(now=NOW)
    assert cycle.why("train").startswith("2 of 3 tasks fit; 1 more place for 2 cpu needed")


def test_nor_is_it_stale_when_a_member_of_an_earlier_start_failed() -> None:
    group, first, *pods = keeping(4)
    cycle = full(group, failed(first, ago=10), *pods).run_cycle(now=NOW)
    assert "run, below the minimum" not in cycle.why("train")
    assert cycle.why("train").startswith("2 of 3 tasks fit")
