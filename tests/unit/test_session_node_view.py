"""How nodes look to one class of tasks: which fit, in which order they are taken, and why none does."""

import gc
from collections.abc import Iterable
from weakref import ref

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.model.shape import Shape
from phalanx.placement import Mask, Scores
from phalanx.session.cycle import Catalogue
from phalanx.session.node_answers import Site, Term
from phalanx.session.node_view import NodeView
from phalanx.session.session import Session
from phalanx.state.verdict import SearchScope
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.open_sessions import gang_in, session_of, two_nodes


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


def stubbed(stub: Stub, *parts: Document | Iterable[Document]) -> tuple[Session, NodeView]:
    """Return a session where only the stub scores, and how nodes look to the gang `train`."""
    catalogue = Catalogue(CATALOGUE.actions, {**CATALOGUE.plugins, "binpack": lambda policy: stub})
    policy = build.policy([["gang", "predicates", "binpack"]], "allocate")
    session = session_of(*parts, policy=policy, catalogue=catalogue)
    return session, session.node_view(gang_in(session).tasks[0].task.shape)


def test_a_run_follows_the_scores_as_they_change() -> None:
    _, node_view = stubbed(Stub([2.5, 1.0]), two_nodes(), build.gang("train", tasks=5, cpu=1))
    assert node_view.place(5) == ([0, 0, 1, 0, 1], [])


def test_a_view_that_is_not_kept_any_more_leaves_memory_without_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.session.session.MOST_NODE_VIEWS", 1)
    parts = build.gang("train", tasks=2, cpu=1), build.gang("other", tasks=2, cpu=2)
    session = session_of(two_nodes(), *parts, policy=build.policy([["gang", "predicates", "binpack"]], "allocate"))
    shapes = [gang.tasks[0].task.shape for gang in session.gangs.values()]
    gc.disable()
    try:
        first = ref(session.node_view(shapes[0]))
        assert session.node_view(shapes[0]).place_next(1)[0]
        assert session.node_view(shapes[1]).place_next(1)[0]
        assert first() is None
    finally:
        gc.enable()


def test_a_relative_score_is_taken_anew_when_a_node_drops_out_in_the_middle_of_a_run() -> None:
    nodes = [build.node("n0", cpu=1), build.node("n1"), build.node("n2")]
    # While n0 is a candidate, n1 counts 50 and n2 48, so n2 with its 4.5 more would lead by 2.5 and take three tasks. Once n0
    # is full n1 counts 100 and n2 96, so n2 leads by half a point only, and they take turns.
    stub = Stub([60.0, 0.0, 4.5], relative=[100, 50, 48])
    _, node_view = stubbed(stub, nodes, build.gang("train", tasks=4, cpu=1))
    assert node_view.place(4) == ([0, 2, 1, 2], [])
    session, _ = stubbed(stub, nodes, build.gang("train", tasks=4, cpu=1))
    statement, one_by_one = session.statement(), list[int]()
    for task in gang_in(session).tasks:
        one_by_one += session.node_view(task.task.shape).place(1)[0]
        statement.allocate([task], one_by_one[-1:])
    assert one_by_one == [0, 2, 1, 2]


def test_room_that_is_being_released_comes_after_room_that_is_free() -> None:
    leaving = build.pod("old", on="n1", cpu=4)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    _, node_view = stubbed(Stub([0.0, 50.0]), two_nodes(), leaving, build.gang("train", tasks=7, cpu=1))
    assert node_view.place(7) == ([0, 0, 0, 0], [1, 1, 1])
    assert [(now, mask.tolist()) for now, mask in node_view.groups()] == [(True, [True, False]), (False, [True, True])]


def test_a_single_candidate_is_taken_unscored() -> None:
    nodes = [build.node("n0", cpu=1), build.node("n1", cpu=4)]
    _, node_view = stubbed(Stub([9.0, 0.0]), nodes, build.gang("train", tasks=2, cpu=2))
    assert node_view.place(3) == ([1, 1], [])


def test_the_best_node_is_the_first_among_equals_and_extra_scores_count() -> None:
    _, node_view = stubbed(Stub([1.0, 1.0]), two_nodes(), build.gang("train", tasks=2, cpu=1))
    everywhere: Mask = np.array([True, True])
    assert node_view.best(everywhere) == 0
    assert node_view.best(everywhere, extra=np.array([0.0, 0.5])) == 1


class Uneven(Stub):
    """Both nodes have the same total; what is relative to the candidates and what is not differ."""

    def batch_scores(self, session: Session, shape: Shape, site: Site) -> list[Term]:
        fixed, relative = np.array([100, 300]), np.array([300, 100])
        return [Term(1, values=fixed[site.nodes]), Term(1, among=lambda candidates: relative[candidates])]


def test_equal_totals_are_equal_to_the_last_bit() -> None:
    third = 63.736263736263744
    _, node_view = stubbed(Uneven([third, third]), two_nodes(), build.gang("train", tasks=2, cpu=1))
    found = node_view.scores(np.array([True, True]))
    assert found is not None
    assert found[0] == found[1]


def test_an_invalid_wish_about_nodes_makes_scoring_fail_and_nobody_is_chosen() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["-1"]}]}
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}}
    policy = build.policy([["gang", "predicates", "nodeorder"]], "allocate")
    pods = [build.pod(f"train-{number}", group="train", spec={"affinity": wish}) for number in range(2)]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 1}}
    session = session_of(two_nodes(), build.pod_group("train", min_member=2), pods, policy=policy)
    node_view = session.node_view(gang_in(session).tasks[0].task.shape)
    assert node_view.scores(np.array([True, True])) is None
    assert node_view.best(np.array([True, True])) is None
    assert node_view.place(2) == ([], [])
    assert node_view.scoring_failed


def test_a_fit_error_names_what_is_short_before_what_the_filters_say() -> None:
    nodes = [build.node("n0", cpu=1), build.node("n1", spec={"unschedulable": True}), build.node("n2", cpu=1)]
    session = session_of(nodes, build.gang("train", tasks=1, cpu=2))
    node_view = session.node_view(gang_in(session).tasks[0].task.shape)
    assert node_view.error().text == "0/3 nodes are unavailable: 1 node(s) were unschedulable, 2 Insufficient cpu."
    within: Mask = np.array([True, True, False])
    assert node_view.error(within=within, scope=SearchScope(hypernode="s")).text == (
        "In hyperNode s: 0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) were unschedulable."
    )
    final = node_view.error().final
    assert final is not None
    assert final.tolist() == [False, True, False]
    assert node_view.error(ignores_room=True).counts == {"node(s) were unschedulable": 1}


@pytest.mark.parametrize(
    ("mode", "parts"), [("none", [[True, True]]), ("hard", [[True, False]]), ("soft", [[True, False], [False, True]])]
)
def test_shards_divide_the_nodes(mode: str, parts: list[list[bool]]) -> None:
    shard: Document = {"apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard", "metadata": {"name": "mine"}}
    shard["spec"] = {"nodesDesired": ["n0"]}
    policy = build.policy([["gang", "predicates"]], "allocate", flags={"shardingMode": mode, "shardName": "mine"})
    session = session_of(two_nodes(), shard, build.gang("train", tasks=1, cpu=1), policy=policy)
    assert [part.tolist() for part in session.shard_parts] == parts
    node_view = session.node_view(gang_in(session).tasks[0].task.shape)
    assert node_view.feasible.tolist() == ([True, False] if mode == "hard" else [True, True])


@pytest.mark.parametrize("load", [0, 4, 8])
def test_a_node_that_the_task_may_never_have_counts_as_such_whether_or_not_it_is_full(load: int) -> None:
    cluster = build.cluster(nodes=0).submit(
        build.node("right", gpus=4, labels={"kind": "h100"}), build.node("wrong", gpus=8, labels={"kind": "t4"}),
        build.node("tainted", gpus=8, spec={"taints": [{"key": "own", "effect": "NoSchedule"}]}, labels={"kind": "h100"}),
    )  # fmt: skip
    for place in ("wrong", "tainted"):
        cluster.submit([build.pod(f"{place}-load", on=place, gpus=load)] if load else [])
    chosen = {"nodeSelector": {"kind": "h100"}}
    cluster.submit(build.pod_group("train", min_member=2))
    cluster.submit(build.pod(f"train-{number}", group="train", gpus=4, spec=chosen) for number in range(2))
    assert cluster.run_cycle().why("train") == (
        "1 of 2 tasks fit; 1 more place for 4 nvidia.com/gpu needed (3 nodes: 1 does not match the nodeSelector kind=h100"
        " (1 has kind=t4), 1 has the untolerated taint own:NoSchedule, 1 lacks nvidia.com/gpu)"
    )
