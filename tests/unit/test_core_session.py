"""Sessions, statements, outlooks, and the network tree: asked directly, on clusters of a few nodes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from phalanx.builtin import CATALOGUE
from phalanx.core.cycle import Catalogue, close_session, open_session, run_cycle
from phalanx.core.hooks import Site, Term
from phalanx.core.nodes import NodeTable
from phalanx.core.outlook import Outlook
from phalanx.core.policy import Policy
from phalanx.core.session import Session
from phalanx.core.states import GangState
from phalanx.core.topology import TOP, HyperTree
from phalanx.core.verdict import Verdict
from phalanx.model.node import HyperNode, HyperNodeMember, Node
from phalanx.model.resources import ResourceSpace
from phalanx.model.shape import Shape
from phalanx.model.status import Status
from phalanx.model.task import GangKey
from phalanx.placement import Counts, Mask, Scores
from phalanx.testing import build
from phalanx.testing.build import Document

BARE = build.policy([["gang", "predicates"]], "allocate")


def session_of(*parts: Document | Iterable[Document], policy: Policy = BARE, catalogue: Catalogue = CATALOGUE) -> Session:
    cluster = build.Cluster(policy).submit(*parts)
    return open_session(cluster.objects.snapshot(0.0), policy, catalogue)


def two_nodes(**offers: int) -> list[Document]:
    offered: dict[str, Any] = {"cpu": 4, **offers}
    return [build.node("n0", **offered), build.node("n1", **offered)]


def gang_in(session: Session, name: str = "train") -> GangState:
    found = session.gang(GangKey(f"default/{name}"))
    assert found is not None
    return found


def statuses(gang: GangState) -> list[str]:
    return [task.status.word for task in gang.tasks]


# --- statements ------------------------------------------------------------------------------------------------------


def test_allocating_takes_effect_at_once_and_leaving_the_block_undoes_it() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=3, cpu=1))
    gang, before = gang_in(session), session.ledger.copy()
    with session.statement() as statement:
        statement.allocate(gang.tasks, [0, 1, 1])
        assert statuses(gang) == ["Allocated"] * 3
        assert session.ledger.idle[0].tolist() == [3000, 2000]
        assert session.ledger.pods.tolist() == [1, 2]
    assert statuses(gang) == ["Pending"] * 3
    assert session.ledger.same_as(before)
    assert [(task.attempt, task.attempt_node) for task in gang.tasks] == [(Status.ALLOCATED, node) for node in (0, 1, 1)]
    assert session.decisions.binds == {}


def test_commit_makes_binds_and_forgets_earlier_attempts() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, cpu=1))
    gang = gang_in(session)
    for is_kept in (False, True):
        with session.statement() as statement:
            statement.allocate(gang.tasks, [1])
            if is_kept:
                statement.commit()
    assert session.decisions.binds == {"default/train-0": "n1"}
    assert statuses(gang) == ["Binding"]
    assert gang.tasks[0].attempt is None


def test_a_promise_is_no_bind_and_stays_when_kept() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, cpu=1))
    gang = gang_in(session)
    with session.statement() as statement:
        statement.pipeline(gang.tasks, [0])
        statement.keep()
    assert session.ledger.future[0].tolist() == [3000, 4000]
    assert session.ledger.idle[0].tolist() == [4000, 4000]
    assert close_session(session).pipelined == {"default/train-0": "n0"}
    assert session.decisions.binds == {}


def test_an_eviction_frees_room_for_later_and_names_its_cause() -> None:
    session = session_of(two_nodes(), build.pod_group("train"), build.pod("train-0", group="train", on="n0", cpu=3))
    gang = gang_in(session)
    statement = session.statement()
    statement.evict(gang.tasks[0], action="preempt", preemptor="default/big", reason="it is more important")
    assert statuses(gang) == ["Releasing"]
    assert session.ledger.idle[0, 0] == 1000
    assert session.ledger.future[0, 0] == 4000
    assert session.ledger.pods[0] == 0
    statement.commit()
    eviction = session.decisions.evictions[gang.tasks[0].task.key]
    assert (eviction.action, eviction.preemptor, eviction.message) == ("preempt", "default/big", "it is more important")


def test_an_eviction_that_is_undone_leaves_the_task_where_it_was() -> None:
    session = session_of(two_nodes(), build.pod_group("train"), build.pod("train-0", group="train", on="n1", cpu=3))
    (task,) = gang_in(session).tasks
    statement = session.statement()
    statement.evict(task, action="preempt", preemptor="x", reason="y")
    statement.discard()
    assert (task.status, task.node) == (Status.RUNNING, 1)


def test_rolling_back_to_a_mark_undoes_only_what_came_after() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=3, cpu=1))
    gang = gang_in(session)
    statement = session.statement()
    statement.allocate(gang.tasks[:1], [0])
    mark, version = statement.checkpoint(), session.version
    statement.allocate(gang.tasks[1:2], [0])
    statement.pipeline(gang.tasks[2:], [1])
    statement.rollback(mark)
    assert statuses(gang) == ["Allocated", "Pending", "Pending"]
    assert session.version == version
    assert len(statement.operations) == 1


def test_merging_hands_the_operations_over() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    gang = gang_in(session)
    outer = session.statement()
    outer.allocate(gang.tasks[:1], [0])
    with session.statement() as inner:
        inner.allocate(gang.tasks[1:], [1])
        outer.merge(inner)
    assert statuses(gang) == ["Allocated", "Allocated"]
    outer.discard()
    assert statuses(gang) == ["Pending", "Pending"]


def test_an_operation_on_nobody_is_none() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, cpu=1))
    statement = session.statement()
    statement.allocate([], [])
    assert statement.operations == []


def test_undoing_out_of_order_gives_the_books_a_new_version() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    gang = gang_in(session)
    first, second = session.statement(), session.statement()
    first.allocate(gang.tasks[:1], [0])
    second.allocate(gang.tasks[1:], [0])
    versions = [session.version]
    first.discard()
    versions.append(session.version)
    second.discard()
    versions.append(session.version)
    assert len(set(versions)) == 3


def test_a_course_tells_what_was_placed_and_evicted() -> None:
    cluster = build.cluster(nodes=1, policy=build.policy()).submit(build.gang("train", tasks=1, cpu=1))
    decisions = run_cycle(cluster.objects.snapshot(0.0), cluster.policy, CATALOGUE, course_level=5)
    texts = [event.text for event in decisions.course]
    assert texts[0] == "enter action enqueue"
    assert "allocated task default/train-0 on node node-0" in texts
    assert "gang default/train is ready" in texts
    assert texts[-1] == "leave action backfill"


# --- sessions ----------------------------------------------------------------------------------------------------------


def test_a_gang_without_its_queue_is_left_out_with_the_reason() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, queue="nowhere", cpu=1))
    assert session.gangs == {}
    assert session.left_out[0].verdicts[0].message == "queue 'nowhere' does not exist"
    assert session.gang(GangKey("default/train")) is None
    assert [outcome.state.key for outcome in close_session(session).outcomes] == ["default/train"]


def test_tasks_come_by_number_then_age_then_identity() -> None:
    session = session_of(two_nodes(), build.gang("a-b", tasks=11, cpu=1), build.gang("plain", tasks=11, cpu=1))
    numbered = [task.task.name for task in session.sorted_tasks(reversed(gang_in(session, "a-b").tasks))]
    assert numbered == [f"a-b-{number}" for number in range(11)]
    by_identity = [task.task.name for task in session.sorted_tasks(reversed(gang_in(session, "plain").tasks))]
    assert by_identity == sorted(f"plain-{number}" for number in range(11))


def test_tasks_with_and_without_a_number_have_one_order_wherever_sorting_starts() -> None:
    pods = [build.pod(name, group="g", cpu=1) for name in ("a-b-3", "c", "a-b-1", "b", "a-b-2", "a")]
    for place, pod in enumerate(pods):
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{place % 3}Z"
    session = session_of(two_nodes(), build.pod_group("g"), pods)
    tasks = gang_in(session, "g").tasks
    orders = {tuple(task.task.name for task in session.sorted_tasks(tasks[start:] + tasks[:start])) for start in range(6)}
    assert len(orders) == 1


def test_queues_come_by_age_then_name_when_no_plugin_has_a_say() -> None:
    queues = [build.queue("b"), build.queue("a"), build.queue("old")]
    queues[2]["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    for queue in queues[:2]:
        queue["metadata"]["creationTimestamp"] = "2021-01-01T00:00:00Z"
    session = session_of(two_nodes(), queues)
    assert session.queue_comes_first(session.queues["old"], session.queues["a"])
    assert session.queue_comes_first(session.queues["a"], session.queues["b"])
    assert not session.queue_comes_first(session.queues["b"], session.queues["a"])


def test_a_switch_that_is_off_silences_the_plugin_for_that_question() -> None:
    off = build.policy([[{"name": "gang", "enableJobReady": False, "enableJobPipelined": False, "enableJobStarving": False}]])
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1), policy=off)
    gang = gang_in(session)
    assert session.gang_ready(gang).ok
    assert session.gang_pipelined(gang)
    assert not session.gang_starving(gang).ok
    on = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    assert not on.gang_ready(gang_in(on)).ok
    assert not on.gang_pipelined(gang_in(on))
    assert on.gang_starving(gang_in(on)).ok


def test_a_sub_group_of_a_plain_gang_answers_for_the_gang() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    (subgroup,) = gang_in(session).subgroups.values()
    assert not session.subgroup_ready(subgroup)
    assert not session.subgroup_pipelined(subgroup)


def test_nobody_is_asked_before_the_minimum_can_be_met_only_if_the_plugin_counts_members() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=5, min_member=4, cpu=1))
    (subgroup,) = gang_in(session).subgroups.values()
    assert session.ready_in(subgroup, "") == 4
    without = session_of(two_nodes(), build.gang("train", tasks=5, min_member=4, cpu=1), policy=build.policy([["predicates"]]))
    assert without.ready_in(next(iter(gang_in(without).subgroups.values())), "") == 1


def test_the_settings_of_a_loaded_plugin_can_be_asked_for() -> None:
    session = session_of(two_nodes())
    assert session.plugin("gang") is not None
    assert session.plugin("drf") is None


class CountingBook:
    """Counts placed tasks; made late, it is told what happened before."""

    def __init__(self, session: Session) -> None:
        self.placed = 0

    def changed(self, operation: Any, undone: bool) -> None:
        self.placed += -len(operation.tasks) if undone else len(operation.tasks)


def test_a_book_that_is_made_late_knows_what_happened_before() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    statement = session.statement()
    statement.allocate(gang_in(session).tasks[:1], [0])
    book = session.book(CountingBook)
    assert book.placed == 1
    statement.allocate(gang_in(session).tasks[1:], [0])
    assert session.book(CountingBook) is book
    assert book.placed == 2
    statement.discard()
    assert book.placed == 0


# --- outlooks ----------------------------------------------------------------------------------------------------------


class Stub:
    """A plugin that scores nodes as the test says, a point less for each pod."""

    name = "stub"

    def __init__(self, node_scores: list[float], relative: list[int] | None = None) -> None:
        self._scores, self._relative = np.array(node_scores), relative

    def node_scores(self, session: Session, shape: Shape, site: Site) -> Scores:
        pods = session.ledger.used[session.snapshot.space.row_by_name["pods"], site.nodes] + site.extra
        return np.asarray(self._scores[site.nodes] - pods, dtype=np.float64)

    def batch_scores(self, session: Session, shape: Shape, site: Site) -> list[Term]:
        if self._relative is None:
            return []
        raw = np.array(self._relative)
        return [Term(1, among=lambda candidates: 100 * raw[candidates] // raw[candidates].max())]


def stubbed(stub: Stub, *parts: Document | Iterable[Document]) -> tuple[Session, Outlook]:
    """Return a session where only the stub scores, and how nodes look to the gang `train`."""
    catalogue = Catalogue(CATALOGUE.actions, {**CATALOGUE.plugins, "binpack": lambda policy: stub})
    policy = build.policy([["gang", "predicates", "binpack"]], "allocate")
    session = session_of(*parts, policy=policy, catalogue=catalogue)
    return session, session.outlook(gang_in(session).tasks[0].task.shape)


def test_a_run_follows_the_scores_as_they_change() -> None:
    _, outlook = stubbed(Stub([2.5, 1.0]), two_nodes(), build.gang("train", tasks=5, cpu=1))
    assert outlook.place(5) == ([0, 0, 1, 0, 1], [])


def test_a_relative_score_is_taken_anew_when_a_node_drops_out_in_the_middle_of_a_run() -> None:
    nodes = [build.node("n0", cpu=1), build.node("n1"), build.node("n2")]
    # While n0 is a candidate, n1 counts 50 and n2 48, so n2 with its 4.5 more would lead by 2.5 and take three tasks. Once n0
    # is full n1 counts 100 and n2 96, so n2 leads by half a point only, and they take turns.
    stub = Stub([60.0, 0.0, 4.5], relative=[100, 50, 48])
    _, outlook = stubbed(stub, nodes, build.gang("train", tasks=4, cpu=1))
    assert outlook.place(4) == ([0, 2, 1, 2], [])
    session, _ = stubbed(stub, nodes, build.gang("train", tasks=4, cpu=1))
    statement, one_by_one = session.statement(), list[int]()
    for task in gang_in(session).tasks:
        one_by_one += session.outlook(task.task.shape).place(1)[0]
        statement.allocate([task], one_by_one[-1:])
    assert one_by_one == [0, 2, 1, 2]


def test_room_that_is_being_released_comes_after_room_that_is_free() -> None:
    leaving = build.pod("old", on="n1", cpu=4)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    _, outlook = stubbed(Stub([0.0, 50.0]), two_nodes(), leaving, build.gang("train", tasks=7, cpu=1))
    assert outlook.place(7) == ([0, 0, 0, 0], [1, 1, 1])
    assert [(now, mask.tolist()) for now, mask in outlook.groups()] == [(True, [True, False]), (False, [True, True])]


def test_a_single_candidate_is_taken_unscored() -> None:
    nodes = [build.node("n0", cpu=1), build.node("n1", cpu=4)]
    _, outlook = stubbed(Stub([9.0, 0.0]), nodes, build.gang("train", tasks=2, cpu=2))
    assert outlook.place(3) == ([1, 1], [])


def test_the_best_node_is_the_first_among_equals_and_extra_scores_count() -> None:
    _, outlook = stubbed(Stub([1.0, 1.0]), two_nodes(), build.gang("train", tasks=2, cpu=1))
    everywhere: Mask = np.array([True, True])
    assert outlook.best(everywhere) == 0
    assert outlook.best(everywhere, extra=np.array([0.0, 0.5])) == 1


def test_an_invalid_wish_about_nodes_makes_scoring_fail_and_nobody_is_chosen() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["-1"]}]}
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}}
    policy = build.policy([["gang", "predicates", "nodeorder"]], "allocate")
    pods = [build.pod(f"train-{number}", group="train", spec={"affinity": wish}) for number in range(2)]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 1}}
    session = session_of(two_nodes(), build.pod_group("train", min_member=2), pods, policy=policy)
    outlook = session.outlook(gang_in(session).tasks[0].task.shape)
    assert outlook.scores(np.array([True, True])) is None
    assert outlook.best(np.array([True, True])) is None
    assert outlook.place(2) == ([], [])
    assert outlook.scoring_failed


def test_a_fit_error_names_what_is_short_before_what_the_filters_say() -> None:
    nodes = [build.node("n0", cpu=1), build.node("n1", spec={"unschedulable": True}), build.node("n2", cpu=1)]
    session = session_of(nodes, build.gang("train", tasks=1, cpu=2))
    outlook = session.outlook(gang_in(session).tasks[0].task.shape)
    assert outlook.error().text == "0/3 nodes are unavailable: 1 node(s) were unschedulable, 2 Insufficient cpu."
    within: Mask = np.array([True, True, False])
    assert outlook.error(within=within, prefix="In hyperNode s: ").text == (
        "In hyperNode s: 0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )
    final = outlook.error().final
    assert final is not None
    assert final.tolist() == [False, True, False]
    assert outlook.error(ignores_room=True).counts == {"node(s) were unschedulable": 1}


@pytest.mark.parametrize(
    ("mode", "parts"), [("none", [[True, True]]), ("hard", [[True, False]]), ("soft", [[True, False], [False, True]])]
)
def test_shards_divide_the_nodes(mode: str, parts: list[list[bool]]) -> None:
    shard: Document = {"apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard", "metadata": {"name": "mine"}}
    shard["spec"] = {"nodesDesired": ["n0"]}
    policy = build.policy([["gang", "predicates"]], "allocate", flags={"shardingMode": mode, "shardName": "mine"})
    session = session_of(two_nodes(), shard, build.gang("train", tasks=1, cpu=1), policy=policy)
    assert [part.tolist() for part in session.shard_parts()] == parts
    outlook = session.outlook(gang_in(session).tasks[0].task.shape)
    assert outlook.feasible.tolist() == ([True, False] if mode == "hard" else [True, True])


# --- the network tree --------------------------------------------------------------------------------------------------


def tree_of(*hypernodes: HyperNode) -> HyperTree:
    nodes = [Node(f"n{number}", labels={"rack": f"r{number // 2}"}) for number in range(4)]
    return HyperTree(hypernodes, NodeTable(nodes, ResourceSpace()))


def over(name: str, tier: int, *members: str, is_hypernode: bool = False) -> HyperNode:
    return HyperNode(name, tier, members=tuple(HyperNodeMember(is_hypernode, name=member) for member in members))


def nodes_of(tree: HyperTree, name: str) -> list[int]:
    return [int(number) for number in tree.members[tree.number_by_name[name]]]


TREE = tree_of(
    over("s0", 1, "n0", "n1"), over("s1", 1, "n2", "n9"), over("s2", 2, "s0", "s1", "s9", is_hypernode=True), over("s3", 1, "n3")
)  # fmt: skip


def test_the_tree_nests_domains_under_a_top_that_holds_everything() -> None:
    assert nodes_of(TREE, "s2") == [0, 1, 2]
    assert nodes_of(TREE, "s1") == [2]
    assert nodes_of(TREE, TOP) == [0, 1, 2, 3]
    assert TREE.tiers[TREE.top] == 3
    assert not TREE.is_empty
    assert TREE.covered == {0, 1, 2, 3}


def test_members_may_be_named_by_pattern_or_by_labels() -> None:
    by_pattern = HyperNode("p", 1, members=(HyperNodeMember(pattern="^n[13]$"),))
    by_labels = HyperNode("l", 1, members=(HyperNodeMember(labels=(("rack", "r1"),)),))
    by_nothing = HyperNode("x", 1, members=(HyperNodeMember(), HyperNodeMember(is_hypernode=True, labels=(("rack", "r1"),))))
    above = HyperNode("top", 2, members=(HyperNodeMember(is_hypernode=True, pattern="^[pl]$"),))
    tree = tree_of(by_pattern, by_labels, by_nothing, above)
    assert nodes_of(tree, "p") == [1, 3]
    assert nodes_of(tree, "l") == [2, 3]
    assert nodes_of(tree, "x") == []
    assert nodes_of(tree, "top") == [1, 2, 3]


def test_a_domain_is_never_its_own_ancestor() -> None:
    tree = tree_of(over("a", 1, "b", is_hypernode=True), over("b", 1, "a", is_hypernode=True), over("c", 2, "c", is_hypernode=True))
    for number in range(tree.top):
        assert tree.ancestors(number)[-1] == tree.top


def test_ancestors_descendants_and_common_domains() -> None:
    def names(numbers: Iterable[int]) -> list[str]:
        return [TREE.names[number] for number in numbers]

    number = TREE.number_by_name
    assert names(TREE.ancestors(number["s0"])) == ["s0", "s2", TOP]
    assert names(TREE.descendants(TREE.top)) == [TOP, "s3", "s2", "s0", "s1"]
    assert TREE.names[TREE.common(number["s0"], number["s1"])] == "s2"
    assert TREE.names[TREE.common(number["s0"], number["s3"])] == TOP
    assert TREE.names[TREE.common(number["s2"], number["s0"])] == "s2"


@pytest.mark.parametrize(("nodes", "name"), [([0], "s0"), ([0, 1], "s0"), ([0, 2], "s2"), ([0, 3], TOP), ([3], "s3")])
def test_the_lowest_domain_that_holds_some_nodes(nodes: list[int], name: str) -> None:
    assert TREE.names[TREE.lowest_with(nodes)] == name


def test_without_hypernodes_there_is_only_the_top() -> None:
    tree = tree_of()
    assert tree.is_empty
    assert tree.names == [TOP]
    assert tree.tiers == [1]


NETWORK = [
    build.hypernode("s0", tier=1, members=["n0"]), build.hypernode("s1", tier=1, members=["n1"]),
    build.hypernode("s2", tier=2, members=["s0", "s1"], of="HyperNode", tier_name="spine"),
]  # fmt: skip


def constrained(topology: Document | None, *, on: str = "", **spec: Any) -> GangState:
    group = build.pod_group("train", min_member=1, networkTopology=topology, **spec)
    pods = [build.pod("train-0", group="train", on=on, cpu=1), build.pod("train-1", group="train", cpu=1)]
    pods[1]["metadata"]["labels"] = {"ring": "1"}
    return gang_in(session_of([*two_nodes(), build.node("n2")], NETWORK, group, pods))


@pytest.mark.parametrize(
    ("topology", "tier"),
    [
        (None, None), ({"mode": "hard", "highestTierAllowed": 1}, 1), ({"highestTierAllowed": 2}, 2), ({"mode": "soft"}, 3),
        ({"mode": "hard", "highestTierName": "spine"}, 2), ({"mode": "hard", "highestTierName": "moon"}, 0),
        ({"mode": "hard"}, None),
    ],
)  # fmt: skip
def test_a_constraint_is_read_as_the_widest_allowed_tier(topology: Document | None, tier: int | None) -> None:
    gang = constrained(topology)
    assert gang.allowed_tier == tier
    messages = [verdict.message for verdict in gang.verdicts]
    assert messages == (["no HyperNode has the tier name 'moon'"] if tier == 0 else [])


def test_a_gang_occupies_the_lowest_domain_of_its_running_tasks() -> None:
    assert constrained({"highestTierAllowed": 2}, on="n1").allocated_hypernode == "s1"
    assert constrained({"highestTierAllowed": 2}).allocated_hypernode == ""
    assert constrained({"highestTierAllowed": 2}, on="n2").allocated_hypernode == ""


def test_sub_groups_have_tiers_of_their_own() -> None:
    rings = [{"name": "ring", "matchLabelKeys": ["ring"], "networkTopology": {"mode": "soft"}}]
    gang = constrained({"highestTierAllowed": 2}, on="n0", subGroupPolicy=rings)
    assert {subgroup.id: subgroup.allowed_tier for subgroup in gang.subgroups.values()} == {
        "default/train": 2, "default/train/ring-1": 2,
    }  # fmt: skip
    assert gang.subgroups["default/train"].allocated_hypernode == "s0"
    assert gang.allocated_hypernode == "s0"


def test_a_label_column_answers_once_per_value() -> None:
    table = NodeTable([Node("b", labels={"z": "1"}), Node("a", labels={"z": "1"}), Node("c")], ResourceSpace())
    asked: list[str | None] = []

    def is_one(value: str | None) -> bool:
        asked.append(value)
        return value == "1"

    assert table.names == ["a", "b", "c"]
    assert table.label("z").where(is_one).tolist() == [True, True, False]
    assert asked == ["1", None]
    assert len(table) == 3


def test_an_empty_table_answers_with_nothing() -> None:
    table = NodeTable([], ResourceSpace())
    empty: Counts = table.count_taints(lambda taints: 1)
    assert empty.tolist() == []
    assert table.where_taints(lambda taints: True).tolist() == []


def test_a_refusal_carries_plugin_reason_and_numbers() -> None:
    verdict = Verdict.refuse("gang", "NotEnoughTasks", "2 more", missing=2)
    assert (verdict.ok, verdict.plugin, verdict.reason, verdict.numbers) == (False, "gang", "NotEnoughTasks", {"missing": 2})
