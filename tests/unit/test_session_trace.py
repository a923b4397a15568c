"""The trace: every kind of line is shown by every family that has it, levels are kept, and tracing decides nothing."""

from collections.abc import Callable, Iterator

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.session import trace_events, trace_operations, trace_searches
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.session.shards import seen_by
from phalanx.session.trace import TraceEvent, TrialEvent
from phalanx.session.trace_searches import DomainLeft
from phalanx.testing import build
from phalanx.testing.build import Cluster
from tests.support import kai_objects as kai
from tests.support import traced_clusters as clusters
from tests.support.traced_clusters import FAMILIES, events, kinds, lines, traced

STATEMENTS = (
    "TaskAllocated", "TaskUnallocated", "TaskPipelined", "TaskUnpipelined", "TaskBound", "EvictionTried", "EvictionUndone",
    "TaskEvicted", "NodeRoom", "StatementCommitted", "StatementDiscarded",
)  # fmt: skip
EVERYWHERE = (
    *STATEMENTS, "ActionEntered", "ActionLeft", "NodeScores", "NodesFitting", "NodesRefused", "DomainTried", "TaskWithoutNode",
    "QueueLine",
)  # fmt: skip
GANGS = (
    "QueuesOrdered", "QueueNext", "GangAdded", "GangsAhead", "GangSkipped", "GangTried", "GangStarving", "GangReady",
    "GangPipelined", "GangNotReady", "StatementKept", "TasksTried", "HyperNodesSeen", "HyperNodeSeen", "DomainsOrdered",
    "DomainWorks", "DomainChosen", "MayNotEvict", "NodeConsidered", "VictimsVoted", "NoVictimsFound",
)  # fmt: skip
KINDS = {
    "volcano": (
        *EVERYWHERE, *GANGS, "QueueFigures", "QueueOverused", "NoPreemptors", "GangAdmitted", "GangNotAdmitted", "TaskRefused",
        "TaskSkipped", "TaskWithoutQuota", "NoTaskLeft", "RoomMade", "RoomNotMade", "VictimsRefused", "NoDomain", "DomainLeft",
        "DomainSpared", "PluginNote",
    ),
    "phalanx": (
        *EVERYWHERE, *GANGS, "QueueFigures", "TaskWithoutQuota", "GangNominated", "GangStale", "GangRolledBack", "VictimsRefused",
        "NoDomain", "DomainLeft", "DomainSpared", "StartReserved", "GangHeldBack", "GangOverdue",
    ),
    "coscheduling": (*EVERYWHERE, *GANGS, "GangNominated"),
    "kai": (
        *EVERYWHERE, "QueueFigures", "JobTried", "JobNotTried", "JobLeft", "JobAlike", "JobSpared", "VictimsProposed",
        "ScenarioTried", "ScenarioRefused", "ScenarioWorks", "StatementRolledBack", "DomainLeft", "DomainRefused", "DomainChosen",
        "NoVictimsFound", "GangsAhead",
    ),
}  # fmt: skip


def all_kinds() -> Iterator[type[TraceEvent]]:
    for module in (trace_events, trace_operations, trace_searches):
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, TraceEvent) and value.__module__ == module.__name__:
                yield from () if value.__name__.startswith("_") else (value,)


def texts(cluster: Cluster, *words: str, level: int = 5, gangs: tuple[str, ...] = ()) -> list[str]:
    found = (event.text for event in traced(cluster, level=level, gangs=gangs))
    return [text for text in found if any(word in text for word in words)]


@pytest.mark.parametrize(("family", "kind"), [(family, kind) for family, names in KINDS.items() for kind in names])
def test_a_family_shows_a_kind_of_line(family: str, kind: str) -> None:
    assert kind in kinds(family)


def test_every_kind_of_line_is_shown_by_some_family() -> None:
    assert {kind.__name__ for kind in all_kinds()} == {name for names in KINDS.values() for name in names}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_lower_level_shows_a_part_of_the_lines_in_the_same_order(family: str) -> None:
    for make in FAMILIES[family]:
        everything = traced(make())
        for level in (3, 4):
            assert traced(make(), level=level) == [event for event in everything if event.level <= level]


@pytest.mark.parametrize("family", FAMILIES)
def test_tracing_decides_nothing(family: str) -> None:
    for make in FAMILIES[family]:
        cluster = make()
        snapshot, catalogue = seen_by(cluster.policy, cluster.objects.snapshot(0.0)), catalogue_of(cluster.policy.catalogue)
        silent, told = (run_cycle(snapshot, cluster.policy, catalogue, trace_level=level) for level in (0, 5))
        assert silent.trace == []
        assert (silent.binds, silent.pipelined, silent.evictions) == (told.binds, told.pipelined, told.evictions)


def test_a_silent_session_makes_no_entry_and_asks_no_plugin_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("made for nobody")

    for kind in all_kinds():
        monkeypatch.setattr(kind, "__init__", refuse)
    for name in ("_answers", "scores_by_plugin", "placement_scores_by_plugin", "enqueue_votes", "gang_order_by_plugin"):
        monkeypatch.setattr(f"phalanx.session.questions.Questions.{name}", refuse)
    monkeypatch.setattr("phalanx.actions.gang_eviction.why_hopeless", refuse)
    monkeypatch.setattr("phalanx.actions.victim_survey.VictimSurvey.note", refuse)
    monkeypatch.setattr("phalanx.actions.kai.no_victims.FailedSearch.note", refuse)
    for name in ("name", "refused"):
        monkeypatch.setattr(f"phalanx.plugins.kai.topology._Search.{name}", refuse)
    for make in (make for makers in FAMILIES.values() for make in makers):
        make().run_cycle()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trace_of_a_gang_has_its_lines_and_those_of_the_session(family: str) -> None:
    for make in FAMILIES[family]:
        everything = traced(make())
        for gang in {gang for event in everything for gang in event.gangs}:
            about = [event for event in everything if not event.gangs or gang in event.gangs]
            wanted = [event for event in about if not isinstance(event, trace_events.QueueLine) or set(event.gangs) == {gang}]
            assert traced(make(), gangs=(gang,)) == wanted


@pytest.mark.parametrize("family", FAMILIES)
def test_every_line_about_a_dry_run_is_marked_and_comes_after_level_3(family: str) -> None:
    found = [event for event in events(family) if isinstance(event, TrialEvent)]
    assert any(event.is_trial for event in found)
    for event in found:
        assert event.text.startswith("trial: ") == event.is_trial, event
        assert event.level > 3 or not event.is_trial, event


# --- placements and what is undone -------------------------------------------------------------------------------------------


def test_the_room_of_a_node_follows_a_placement_and_its_end() -> None:
    found = texts(clusters.starts_and_waits(clusters.BREAKS_GANGS), "node node-2 now", "second-0", level=3)
    now = "node node-2 now: "
    assert found[found.index("allocated task default/second-0 on node node-2") + 1] == (
        f"{now}idle cpu 0, memory 32Gi; used cpu 4, memory 0; releasing nothing"
    )
    assert found[found.index("unallocated task default/second-0 from node node-2") + 1] == (
        f"{now}idle cpu 4, memory 32Gi; used cpu 0, memory 0; releasing nothing"
    )


def test_a_discarded_statement_names_its_tasks_and_what_stopped_the_gang() -> None:
    found = texts(clusters.starts_and_waits(clusters.BREAKS_GANGS), "discard", "gets nothing", level=3)
    assert found[:2] == [
        "discard of tasks: 1 to allocate (default/second-0)",
        "gang default/second gets nothing: 1 of 2 tasks have a node;"
        " task default/second-1: 0/3 nodes are unavailable: 3 Insufficient cpu.",
    ]


def test_a_pipelined_task_is_told_and_its_end_too() -> None:
    found = texts(clusters.makes_room_in_vain(clusters.BREAKS_GANGS), "new-0", level=3)
    assert "pipelined task default/new-0 on node node-0" in found
    assert "unpipelined task default/new-0 from node node-0" in found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_room_of_a_node_follows_every_placement_of_level_3(family: str) -> None:
    for make in FAMILIES[family]:
        placed: set[tuple[object, object]] = set()
        for event in traced(make(), level=3):
            if isinstance(event, trace_operations.TaskAllocated | trace_operations.TaskPipelined):
                placed.add((event.gang, event.node))
            elif isinstance(event, trace_operations.NodeRoom):
                placed.discard((event.gang, event.node))
        assert placed == set()


@pytest.mark.parametrize("family", ["volcano", "phalanx", "coscheduling"])
def test_tasks_that_are_tried_and_find_no_node_are_told_at_level_3(family: str) -> None:
    shown = [text for level, text in lines(family) if level == 3]
    assert "try 2 task(s) like default/first-0 on 3 node(s)" in shown
    assert any(text.startswith("task default/picky-0: 0/1 nodes are unavailable: ") for text in shown)


# --- evictions ---------------------------------------------------------------------------------------------------------------


def test_an_eviction_is_a_try_until_the_commit() -> None:
    assert texts(clusters.makes_room(clusters.BREAKS_GANGS), "old-0", "commit", level=3) == [
        "try to evict task default/old-0 from node node-0 (preempt for default/new)",
        "commit of tasks: 1 to evict, 1 to pipeline (default/old-0, default/new-0)",
        "evicted task default/old-0 from node node-0 (preempt for default/new)",
    ]


def test_an_eviction_in_vain_is_never_told_as_one() -> None:
    found = texts(clusters.makes_room_in_vain(clusters.BREAKS_GANGS), "old-0")
    assert "eviction undone, task default/old-0 stays on node node-0 (preempt for default/new)" in found
    assert not [text for text in found if text.startswith("evicted")]


def test_gangpreempt_commits_every_victim_once_and_the_places_of_the_gang() -> None:
    assert texts(clusters.makes_room(policy_of_profile("phalanx")), "commit", level=3) == [
        "commit of tasks: 1 to evict (default/old-0)", "commit of tasks: 1 to pipeline (default/new-0)",
    ]  # fmt: skip


@pytest.mark.parametrize("family", ["phalanx", "coscheduling"])
def test_gangpreempt_tells_trials_as_such(family: str) -> None:
    found = [text for level, text in lines(family) if "old-0" in text and "evict" in text]
    assert "trial: try to evict task default/old-0 from node node-0 (gangpreempt for default/new)" in found
    assert not [text for level, text in lines(family) if level == 3 and "try to evict" in text and "gangpreempt" in text]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (clusters.is_protected, "gang refuses 1 victim(s) for default/new-0, its gang would fall below its minimum: default/old-0"),
        (clusters.is_of_equal_rank, "priority refuses 1 victim(s) for default/new-0, it is not less important: default/old-0"),
        (clusters.is_protected, "task default/meek-0 cannot preempt: its preemptionPolicy is Never"),
        (
            clusters.has_a_poor_queue,
            "proportion refuses 3 victim(s) for default/poor-0, its queue has no more than it deserves:"
            " default/rich-1, default/rich-2, default/rich-3",
        ),
    ],
)
def test_who_refuses_a_victim_and_why(make: Callable[..., Cluster], says: str) -> None:
    assert says in texts(make(clusters.VOLCANO), "refuses", "cannot", level=4)


def test_drf_refuses_a_victim_whose_gang_would_have_less_than_the_preemptor() -> None:
    policy = build.policy([["gang", "drf"], ["predicates", "nodeorder"]], "allocate, preempt")
    cluster = clusters.nodes(policy, 2, clusters.humble("old", ["node-0"]), clusters.important("new", ["node-1", ""], minimum=2))
    says = "drf refuses 1 victim(s) for default/new-1, its gang, or its queue, would have less than the share of the preemptor"
    assert f"{says}: default/old-0" in texts(cluster, "refuses", level=4)


def is_not_preemptable(policy: Policy) -> Cluster:
    group, *pods = clusters.humble("old", ["node-0"])
    group["metadata"]["annotations"] = {"volcano.sh/preemptable": "false"}
    return clusters.nodes(policy, 1, group, *pods, clusters.important("new", [""], minimum=1))


def has_a_queue_that_keeps_its_gang(policy: Policy) -> Cluster:
    rich = clusters.humble("rich", ["node-0"] * 4, minimum=4, cpu=1)
    return clusters.nodes(policy, 1, rich, clusters.gang("poor", [""], minimum=1, cpu=1, queue="green"))


def has_a_queue_that_gives_too_little(policy: Policy) -> Cluster:
    rich = clusters.humble("rich", ["node-0"] * 4 + ["node-1"] * 4, cpu=1)
    return clusters.nodes(policy, 2, rich, clusters.gang("poor", [""] * 6, minimum=6, cpu=1, queue="green"))


def is_empty(policy: Policy) -> Cluster:
    return clusters.nodes(policy, 1, clusters.gang("new", ["", ""], minimum=2))


@pytest.mark.parametrize("family", ["phalanx", "coscheduling"])
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (is_not_preemptable, "nobody may go for it: task default/old-0 on node node-0 is not preemptable"),
        (clusters.is_of_equal_rank, "nobody may go for it: task default/old-0 on node node-0 is not of lower priority"),
        (clusters.makes_room_in_vain, "1 of 2 task(s) would have room if all left that may: default/old-0"),
        (is_empty, "no task runs that could go"),
    ],
)
def test_gangpreempt_skips_a_gang_for_one_cause_and_names_the_victim(
    family: str, make: Callable[[Policy], Cluster], says: str
) -> None:
    assert texts(make(policy_of_profile(family)), "skipped by gangpreempt", level=4) == [
        f"gang default/new skipped by gangpreempt: {says}"
    ]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            has_a_queue_that_keeps_its_gang,
            "task default/rich-0 on node node-0 could go only with its whole gang, and queue blue has too little to give for that",
        ),
        (has_a_queue_that_gives_too_little, "the queues that give have too little cpu beyond what they keep: blue"),
        (clusters.is_of_equal_rank, "task default/new-0: queue blue has 4 of 4 cpu it may use; 4 more do not fit"),
    ],
)
def test_gangreclaim_skips_a_gang_for_one_cause_and_names_who_gives(make: Callable[[Policy], Cluster], says: str) -> None:
    found = texts(make(policy_of_profile("phalanx")), "skipped by gangreclaim", level=4)
    assert [text.partition(" skipped by gangreclaim: ")[2] for text in found] == [says]


def test_candidates_that_an_action_spares_are_counted_by_reason() -> None:
    old = clusters.humble("old", ["node-0"], queue="green")
    cluster = clusters.nodes(clusters.VOLCANO, 1, old, clusters.important("new", [""], minimum=1))
    head = "consider task default/new-0 on node node-0: 0 of 1 running task(s) are candidates"
    assert f"{head}; not: 1 of another queue" in texts(cluster, "consider", level=3)


# --- domains -----------------------------------------------------------------------------------------------------------------


def test_a_domain_that_works_is_tried_told_and_taken() -> None:
    found = texts(clusters.has_domains(clusters.TOPOLOGY), "leaf-1", level=3)
    assert found == [
        "try gang default/near in HyperNode leaf-1 (allocate)", "gang default/near fits into HyperNode leaf-1, score 100",
        "gang default/near goes to HyperNode leaf-1",
    ]  # fmt: skip


def test_a_domain_that_does_not_work_says_how_far_the_gang_got() -> None:
    pinned = clusters.gang("near", ["", ""], minimum=2, **clusters.close_together(1))
    for pod in pinned[1:]:
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-0"}
    cluster = clusters.nodes(clusters.TOPOLOGY, 4, clusters.hypernodes(), pinned)
    found = texts(cluster, "gets nothing in HyperNode leaf-0", "leaves HyperNode leaf-0", level=3)
    assert found[0].startswith("gang default/near gets nothing in HyperNode leaf-0: ")
    assert "gang default/near leaves HyperNode leaf-0: 0 of 2 tasks have a node" in found


# --- the profile kai ---------------------------------------------------------------------------------------------------------


def test_a_job_that_gets_a_part_gives_it_back_and_says_why() -> None:
    assert texts(clusters.jobs_wait(), "default/part", level=3) == [
        "try job default/part of queue a in allocate: 3 task(s)", "allocated task default/part-0 on node node-0",
        "allocated task default/part-1 on node node-0",
        "task default/part-2: 0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu.",
        "roll-back of tasks: 2 to allocate (default/part-0, default/part-1)",
        "unallocated task default/part-1 from node node-0", "unallocated task default/part-0 from node node-0",
        "job default/part gets nothing from allocate: task default/part-2: 0/1 nodes are unavailable:"
        " 1 Insufficient nvidia.com/gpu.",
    ]  # fmt: skip


def test_a_scenario_is_told_with_its_victims_and_what_refuses_it() -> None:
    found = texts(clusters.is_lopsided(), "scenario", "proposes", level=4)
    assert found[0] == "reclaim proposes victims for default/train: default/old-3-0"
    assert found[1] == "trial: try scenario for 1 task(s) of default/train in reclaim, victims: default/old-3-0"
    assert any(text.startswith("trial: scenario for default/train refused in reclaim: the job finds no place") for text in found)
    assert found[-1].startswith("scenario for 2 task(s) of default/train works in reclaim, evicted or moved: ")


def test_a_scenario_that_works_for_a_part_of_a_job_is_a_trial() -> None:
    found = texts(clusters.is_lopsided(), "works")
    assert [text.partition(" of ")[0] for text in found] == ["trial: scenario for 1 task(s)", "scenario for 2 task(s)"]


def test_a_job_that_no_scenario_places_shows_no_scenario_and_no_domain_of_one_at_level_3() -> None:
    cluster = clusters.cannot_move_together()
    tried = texts(cluster, "works in", "rack=", level=4)
    assert {text.partition(":")[0] for text in tried[2:]} == {"trial"}  # the first two are of allocate
    assert any("works in" in text for text in tried)
    found = texts(cluster, "default/near", level=3)
    assert found[found.index("try job default/near of queue a in consolidation: 5 task(s)") + 1 :] == [
        "job default/near gets nothing from consolidation: no scenario works"
    ]


def test_a_job_is_told_the_domains_of_its_topology_by_name() -> None:
    fits, near = "does not fit into", "gang default/near"
    assert texts(clusters.has_racks(), "rack=", level=3) == [
        f"{near} {fits} rack=r0 of topology racks: it has room for 0 of 2 task(s)",
        "try gang default/near in rack=r1 of topology racks (topology)",
        f"{near} goes to rack=r1 of topology racks",
    ]
    assert f"gang default/mixed {fits} rack=r1 of topology racks: nvidia.com/gpu 2 is free in all, and 3 requested" in texts(
        clusters.has_racks_of_small_nodes(), fits, level=3
    )
    assert texts(clusters.cannot_move_together(), fits, "from allocate", level=3) == [
        f"{near} {fits} rack=r0 of topology racks: it has room for 1 of 5 task(s)",
        f"{near} {fits} rack=r1 of topology racks: it has room for 4 of 5 task(s)",
        "job default/near gets nothing from allocate: no domain of its topology has room for all of it",
    ]


def test_a_domain_of_several_levels_has_the_labels_of_all_and_says_where_the_others_are() -> None:
    cluster = kai.cluster(nodes=0, actions="allocate").submit(kai.queue("a", quota=8), kai.topology("racks", "block", "rack"))
    cluster.submit(
        *(build.node(f"node-{n}", labels={"block": f"b{n}", "rack": "r0"}, cpu=64, memory="256Gi", gpus=2) for n in range(2))
    )
    constraint = {"topology": "racks", "requiredTopologyLevel": "rack"}
    cluster.submit(kai.gang("near", tasks=3, min_member=1, on=["node-1"], gpus=1, topologyConstraint=constraint))
    assert texts(cluster, "rack=", level=3)[:2] == [
        "gang default/near does not fit into rack=r0 in block=b0 of topology racks: other tasks of it are in another domain",
        "try gang default/near in rack=r0 in block=b1 of topology racks (topology)",
    ]


def test_a_job_whose_topology_does_not_exist_is_told_so() -> None:
    cluster = kai.cluster(actions="allocate").submit(kai.queue("a", quota=8))
    cluster.submit(kai.gang("near", gpus=1, topologyConstraint={"topology": "nowhere", "requiredTopologyLevel": "rack"}))
    assert texts(cluster, "gets nothing", level=3) == [
        "job default/near gets nothing from allocate: Requested topology nowhere does not exist"
    ]


def test_consolidation_says_whom_it_moves_or_why_it_does_not_try() -> None:
    assert "scenario for 1 task(s) of default/train works in consolidation, evicted or moved: default/old-1-0" in texts(
        clusters.is_scattered(), "scenario", level=3
    )
    assert texts(clusters.is_too_full_to_move(), "not tried", level=4) == [
        "job default/train is not tried by consolidation: 3 GPU(s) are free in all, and it needs 4"
    ]


# --- orders, scores, admission ----------------------------------------------------------------------------------------------


def test_scores_have_a_part_for_each_plugin_that_add_up() -> None:
    event = next(event for event in traced(clusters.starts_and_waits(clusters.VOLCANO)) if event.event == "scores")
    assert isinstance(event, trace_events.NodeScores)
    assert set(event.plugins["node-0"]) == {"nodeorder", "binpack"}
    assert {node: sum(parts.values()) for node, parts in event.plugins.items()} == dict(event.scores)


def test_admission_has_numbers_and_votes() -> None:
    assert texts(clusters.asks_for_admission(), "admitted", level=4)[:3] == [
        "gang default/huge is not admitted: resource in cluster is overused: overused cpu"
        " (asks for cpu 100, factor 1.2, limit 4.8, taken 0, wanted 100); votes: overcommit against, proportion against",
        "gang default/small is admitted; votes: overcommit for, proportion for",
        "gang default/huge skipped by allocate: not admitted yet",
    ]


def test_the_order_of_a_gang_has_a_part_for_each_plugin() -> None:
    found = texts(clusters.makes_room(clusters.VOLCANO), "default/new added", level=4)
    assert found[0] == "gang default/new added to queue blue, order: priority -10, gang 0, drf 0.0"


def test_a_step_about_a_domain_has_the_part_of_the_gang_in_a_field_and_in_its_sentence() -> None:
    step = DomainLeft("ml/bert", "rack=r1", "1 of 2 task(s) fit", 1, 2, part="workers")
    assert (step.fields["domain"], step.fields["part"]) == ("rack=r1", "workers")
    assert step.text == "gang ml/bert leaves rack=r1 with its part workers: 1 of 2 task(s) fit"
    assert DomainLeft("ml/bert", "rack=r1", "no room", is_trial=True).text == "trial: gang ml/bert leaves rack=r1: no room"
