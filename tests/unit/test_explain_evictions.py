"""Why an urgent gang does not preempt: the clause of the sentence, and the stage with the gangs that stay."""

from dataclasses import replace
from typing import Any

import pytest

from phalanx.actions.victim_survey import VictimSurvey
from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.explain.tree import Line, Stage
from phalanx.explain.why import why
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.policy import Policy
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict
from phalanx.testing import build
from phalanx.testing.build import Cluster
from tests.support import kai_objects as kai
from tests.support import traced_clusters as traced
from tests.support import urgent_gangs as urgent
from tests.support.explained import explained, stage_of, texts

POLICIES = {
    "phalanx": policy_of_profile("phalanx"),
    "coscheduling": policy_of_profile("coscheduling"),
    "volcano": traced.VOLCANO,
    "bundles": build.policy([traced.FIRST, [*traced.SECOND]], "enqueue, allocate, gangpreempt, gangreclaim"),
}
PREEMPT = {"phalanx": "gangpreempt", "coscheduling": "gangpreempt", "volcano": "preempt", "bundles": "gangpreempt"}
INSIDE = {
    "NotPreemptable": "default/old is not preemptable",
    "NotLowerPriority": "default/old has priority 10, not lower than 10",
    "PreemptionNever": "its preemptionPolicy is Never",
    "NoNodeSuits": "no node suits it, whoever leaves: node(s) didn't match Pod's node affinity/selector",
    "StillNoRoom": "too few nodes have room for it even without those that may go, such as default/old",
    "SystemPod": "default/old has class system-node-critical and belongs to the system",
}
"""What is said of a gang that hopes for victims in its own queue."""
BETWEEN = {
    "QueueNotReclaimable": "for example default/old is in queue green, which is not reclaimable",
    "QueueQuotaExceeded": "queue blue has 2 of 2 cpu it deserves; 1 more do not fit",
}


def clause(cluster: Cluster, gang: str = "new") -> str:
    """Return what the sentence says about victims."""
    return cluster.run_cycle().why(gang).partition("no victims ")[2]


def line_of(cluster: Cluster, action: str, gang: str = "new") -> Line:
    """Return the line of an action in the stage."""
    lines = stage_of(explained(cluster, gang), Stage.EVICTIONS).lines
    return next(line for line in lines if line.text.startswith(action))


@pytest.mark.parametrize("profile", POLICIES)
@pytest.mark.parametrize("cause", INSIDE)
def test_the_sentence_and_the_stage_name_the_cause(profile: str, cause: str) -> None:
    make, action = urgent.CLUSTERS[cause], PREEMPT[profile]
    assert clause(make(POLICIES[profile])) == f"({action}: {INSIDE[cause]})"
    line = line_of(make(POLICIES[profile]), action)
    assert line.text == f"{action} (inside queue blue): {INSIDE[cause]}"
    assert line.code == cause
    assert stage_of(explained(make(POLICIES[profile]), "new"), Stage.EVICTIONS).ok is False


@pytest.mark.parametrize("profile", ["phalanx", "coscheduling"])
def test_the_budget_is_named_with_what_it_allows(profile: str) -> None:
    line = line_of(urgent.has_a_budget(POLICIES[profile]), "gangpreempt")
    assert "default/old is protected by PodDisruptionBudget default/keep, which allows 0 disruptions" in line.text
    assert (line.code, line.things["budget"], line.things["allowed"]) == ("DisruptionBudget", "default/keep", 0)
    assert "PodDisruptionBudget default/keep" in clause(urgent.has_a_budget(POLICIES[profile]))


def test_a_budget_that_is_too_small_for_a_whole_gang_is_named() -> None:
    group, *pods = urgent.old("node-0", "node-1", minimum=2)
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "old"}
    cluster = urgent.crowd(POLICIES["phalanx"], group, *pods, urgent.budget(1), urgent.new(), nodes=2)
    assert "PodDisruptionBudget default/keep, which allows 1 disruption)" in clause(cluster)


def test_a_gang_that_would_break_is_told_with_its_minimum() -> None:
    line = line_of(urgent.would_break(POLICIES["volcano"]), "preempt")
    assert line.text == "preempt (inside queue blue): default/old would fall below its minimum of 2: it has 2"
    assert (line.code, line.things["minimum"], line.things["ready"]) == ("GangWouldBreak", 2, 2)


def test_a_gang_of_which_one_pod_may_not_go_breaks_without_the_others() -> None:
    group, first, second = urgent.old("node-0", "node-1", minimum=2)
    first["metadata"].setdefault("annotations", {})[urgent.PREEMPTABLE] = "false"
    cluster = urgent.crowd(POLICIES["phalanx"], group, first, second, urgent.new(), nodes=2)
    assert clause(cluster) == "(gangpreempt: default/old would fall below its minimum of 2, and not all of it may go)"


@pytest.mark.parametrize(("profile", "action"), [("phalanx", "gangreclaim"), ("volcano", "reclaim")])
@pytest.mark.parametrize("cause", BETWEEN)
def test_the_cause_between_queues_is_named(profile: str, action: str, cause: str) -> None:
    line = line_of(urgent.CLUSTERS[cause](POLICIES[profile]), action)
    assert line.text == f"{action} (from queues other than blue): {BETWEEN[cause]}"
    assert line.code == cause


def test_a_sentence_that_has_the_share_of_the_queue_already_does_not_repeat_it() -> None:
    assert "gangreclaim: queue blue has 2 of 2 cpu it deserves" in clause(urgent.queue_has_its_share(POLICIES["phalanx"]))
    assert "reclaim" not in clause(urgent.queue_has_its_share(POLICIES["volcano"]))


def test_a_queue_within_its_share_is_told_with_its_figures() -> None:
    below = line_of(urgent.queue_has_its_share(POLICIES["phalanx"]), "gangreclaim").lines
    assert texts(below)[0] == "default/old is in queue green, which has 2 of the 2 cpu that it deserves"
    assert (below[0].code, below[0].things["allocated"], below[0].things["deserved"]) == ("QueueWithinShare", 2000, 2000)


def test_a_gang_in_another_queue_is_out_of_reach_of_preempt() -> None:
    line = line_of(urgent.is_in_another_queue(POLICIES["phalanx"]), "gangpreempt")
    assert line.text == "gangpreempt (inside queue blue): nobody else runs there"
    assert texts(line.lines) == ["default/old, default/older: each is in another queue, green"]


def test_a_node_that_is_too_small_is_named_with_what_it_lacks() -> None:
    line = line_of(urgent.is_too_large(POLICIES["phalanx"]), "gangpreempt")
    assert texts(line.lines) == [
        "default/old may go, and that is not enough",
        "even without its 1 candidate node node-0 lacks 4 cpu",
    ]
    assert line.lines[1].things == {"node": "node-0", "cpu": 4000, "places": 0, "needed": 1}


def test_a_gang_for_which_too_few_nodes_can_be_cleared_is_told_how_many() -> None:
    cluster = urgent.crowd(POLICIES["phalanx"], urgent.old(minimum=0), urgent.new(tasks=2))
    assert texts(line_of(cluster, "gangpreempt").lines)[1] == "1 of 2 tasks would have room if all of them left"


def test_plugins_are_asked_about_no_more_gangs_once_one_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    why_stays = VictimSurvey._why_stays

    def noted(survey: VictimSurvey, gang: GangState) -> Verdict:
        asked.append(gang.key)
        return why_stays(survey, gang)

    monkeypatch.setattr(VictimSurvey, "_why_stays", noted)
    others = [traced.humble(f"old-{number}", ["node-0"], minimum=0, cpu=1) for number in range(4)]
    assert clause(urgent.crowd(POLICIES["phalanx"], *others, urgent.new(cpu=8), nodes=4)).endswith("such as default/old-0)")
    assert asked == ["default/old-0"]


def test_at_most_five_reasons_are_listed_and_the_rest_is_counted() -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"p{value}"}, "value": value}
        for value in range(20, 28)
    ]
    others = [traced.gang(f"old-{n}", ["node-0"], minimum=1, cpu=1, priorityClassName=f"p{20 + n}") for n in range(8)]
    cluster = urgent.crowd(POLICIES["phalanx"], *classes, *others, urgent.new(cpu=1), cpu=8)
    below = texts(line_of(cluster, "gangpreempt").lines)
    assert below[0] == "default/old-0 has priority 20, not lower than 10"
    assert len(below) == 6
    assert below[-1] == "3 more gangs stay for other reasons"


def test_the_gang_nearest_to_being_a_victim_is_named_first() -> None:
    covered, equal = urgent.old(minimum=0, cpu=2), traced.important("equal", ["node-0"], minimum=1, cpu=2)
    covered[1]["metadata"]["labels"] = {"app": "old"}
    cluster = urgent.crowd(POLICIES["phalanx"], equal, covered, urgent.budget(0), urgent.new())
    assert clause(cluster).startswith("(gangpreempt: for example default/old is protected by PodDisruptionBudget")
    codes = [line.code for line in line_of(cluster, "gangpreempt").lines]
    assert codes == ["DisruptionBudget", "NotLowerPriority"]


@pytest.mark.parametrize("profile", ["phalanx", "coscheduling", "volcano"])
def test_a_gang_that_could_not_hope_for_victims_hears_nothing_of_them(profile: str) -> None:
    policy = POLICIES[profile]
    ordinary = urgent.crowd(policy, traced.gang("old", ["node-0"], minimum=1), traced.gang("new", [""], minimum=1))
    assert clause(ordinary) == ""
    assert clause(urgent.crowd(policy, urgent.new(cpu=8))) == ""
    assert stage_of(explained(ordinary, "new"), Stage.EVICTIONS).ok is None


@pytest.mark.parametrize("profile", ["phalanx", "coscheduling"])
def test_a_gang_for_which_pods_leave_is_told_whose(profile: str) -> None:
    result = stage_of(explained(traced.makes_room(POLICIES[profile]), "new"), Stage.EVICTIONS)
    assert result.ok is True
    assert texts(result.lines) == ["gangpreempt evicts 1 pod of default/old for it"]


@pytest.mark.parametrize("profile", ["volcano", "default-scheduler"])
def test_a_profile_without_an_action_that_evicts_says_so(profile: str) -> None:
    policy = policy_of_profile(profile)
    result = stage_of(explained(urgent.is_as_important(policy), "new"), Stage.EVICTIONS)
    assert "no action that evicts for a gang (actions: " in texts(result.lines)[0]
    assert result.lines[0].code == "NoEvictingAction"


def test_a_gang_that_is_not_tried_is_told_why() -> None:
    topology = build.policy([traced.FIRST, ["predicates", "network-topology-aware", "nodeorder"]], "allocate, preempt")
    near = urgent.new(networkTopology={"mode": "soft"})
    cluster = urgent.crowd(topology, urgent.old(minimum=0), near)
    assert line_of(cluster, "preempt").text == "preempt (inside queue blue): not tried, it has a network topology"


# --- plugins that protect ------------------------------------------------------------------------------------------------


def with_plugin(name: str, actions: str = "allocate, preempt") -> Policy:
    """Return a policy in which one plugin has a say about victims besides conformance."""
    return build.policy([["gang", "conformance"], [name, "predicates", "nodeorder"]], actions, victimRule="all-agree")


def test_a_cooldown_is_told_with_its_end() -> None:
    group, pod = urgent.old(minimum=0)
    pod["metadata"].setdefault("annotations", {})[urgent.COOLDOWN] = "10m"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}
    pod["status"] = {"phase": "Running", "conditions": [scheduled]}
    cluster = urgent.crowd(with_plugin("cdp"), group, pod, urgent.new())
    found = stage_of(explained(cluster, "new", now=120.0), Stage.EVICTIONS)
    assert "default/old is in its cooldown time of 600 s until 1970-01-01T00:11:00Z" in found.lines[0].text


def test_a_smaller_share_is_told_in_percent() -> None:
    cluster = urgent.crowd(with_plugin("drf"), urgent.old(minimum=0), urgent.new())
    assert clause(cluster) == "(preempt: default/old would keep 0% of the cluster, less than the 100% of the preemptor)"


def test_a_plugin_that_gives_no_reason_is_named() -> None:
    class Guard:
        name = "pdb"  # in place of a plugin that the policy names

        def __init__(self, policy: Any) -> None:
            pass

        def preemptable(self, session: Any, preemptor: Any, candidates: Any) -> list[Any]:
            return []

    policy = with_plugin("pdb")
    cluster = urgent.crowd(policy, urgent.old(minimum=0), urgent.new())
    catalogue = Catalogue(CATALOGUE.actions, {**CATALOGUE.plugins, "pdb": Guard})
    decisions = run_cycle(cluster.objects.snapshot(0.0), policy, catalogue)
    state = next(outcome.state for outcome in decisions.outcomes if outcome.state.key == "default/new")
    assert [verdict.message for verdict in state.no_victims] == ["default/old is protected by plugin pdb"]


def test_a_gang_that_rests_keeps_its_cause() -> None:
    cluster = urgent.is_not_preemptable(POLICIES["phalanx"])
    snapshot = cluster.objects.snapshot(0.0)
    calm = replace(snapshot, calm=frozenset(key for key in snapshot.gangs if key == "default/new"))
    outcomes = run_cycle(calm, POLICIES["phalanx"], CATALOGUE).outcomes
    outcome = next(each for each in outcomes if each.state.key == "default/new")
    assert why(outcome, calm).endswith("no victims (gangpreempt: default/old is not preemptable)")


# --- the profile kai -----------------------------------------------------------------------------------------------------


def test_a_job_of_equal_priority_is_told_with_both_numbers() -> None:
    cluster = kai.cluster(actions="allocate, preempt").submit(
        kai.queue("a", quota=8), kai.gang("old", on="node-0", gpus=4), kai.gang("new", gpus=4)
    )
    assert clause(cluster) == "(preempt: default/old has priority 50, not lower than 50)"
    line = line_of(cluster, "preempt")
    assert (line.code, line.things["priority"], line.things["preemptor"]) == ("NotLowerPriority", 50, 50)


def test_a_job_that_cannot_be_preempted_is_named() -> None:
    cluster = kai.cluster(actions="allocate, preempt").submit(
        kai.queue("a", quota=8),
        kai.gang("old", on="node-0", gpus=4, priorityClassName="build"),
        kai.gang("new", gpus=4, priorityClassName="inference"),
    )
    assert clause(cluster) == "(preempt: default/old is not preemptable)"


def test_a_reclaimer_over_its_fair_share_is_told_with_the_numbers() -> None:
    line = line_of(traced.is_fair_already(), "reclaim", "train")
    assert "not tried" in line.text
    assert "2 of its fair share of 2 GPUs, 1 more wanted" in line.text
    assert "2 of its fair share of 2 GPUs, 1 more wanted" in traced.is_fair_already().run_cycle().why("train")


def test_consolidation_says_how_many_gpus_are_free() -> None:
    line = line_of(traced.is_too_full_to_move(), "consolidation", "train")
    assert line.text == (
        "consolidation (moves running jobs together): not tried, 3 GPU(s) are free in all, and it needs 4"
    )  # fmt: skip


def test_a_young_job_is_protected_by_its_minimum_runtime() -> None:
    plugins = {"minruntime": {"arguments": {"defaultPreemptMinRuntime": "10m"}}}
    old = kai.gang("old", on="node-0", gpus=4, annotations={kai.LAST_START: "1970-01-01T00:00:00Z"})
    cluster = kai.cluster(actions="allocate, preempt", plugins=plugins).submit(kai.queue("a", quota=8), old)
    cluster.submit(kai.gang("new", gpus=4, priorityClassName="build-preemptible"))
    found = explained(cluster, "new", now=60.0)
    assert "default/old has not run for its minimum runtime" in stage_of(found, Stage.EVICTIONS).lines[0].text


def test_a_job_like_one_that_failed_names_it() -> None:
    cluster = kai.cluster(actions="allocate, preempt").submit(kai.queue("a", quota=8), kai.gang("old", on="node-0", gpus=4))
    cluster.submit(kai.gang("first", gpus=4), kai.gang("second", gpus=4))
    line = line_of(cluster, "preempt", "second")
    assert line.code == "NotLowerPriority"


def test_a_gang_of_which_a_part_runs_is_not_named_to_itself() -> None:
    parts = traced.important("half", ["node-0", ""], minimum=2), traced.important("aware", ["", ""], minimum=2)
    outcomes = urgent.crowd(POLICIES["coscheduling"], *parts).run_cycle().decisions.outcomes
    causes = {each.state.key: [verdict.message for verdict in each.state.no_victims] for each in outcomes}
    assert causes == {
        "default/aware": ["default/half has priority 10, not lower than 10"],
        "default/half": ["nobody else runs there"],
    }
