"""What each plugin says, asked through a session on clusters of a few nodes."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.errors import ConfigError
from phalanx.placement import NO_LIMIT
from phalanx.plugins.overcommit import OvercommitPlugin
from phalanx.session.cycle import open_session
from phalanx.session.node_answers import Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support.open_sessions import gang_in

EVERYWHERE = Site(slice(None))
Parts = Document | Iterable[Document]


def session_of(plugins: Iterable[str | Mapping[str, Any]], *parts: Parts) -> Session:
    policy = build.policy([plugins], "allocate")
    return open_session(Cluster(policy).submit(*parts).objects.snapshot(0.0), policy, CATALOGUE)


def scores(session: Session, name: str = "train") -> list[float]:
    """Return the total score of each node for the first task of the gang, all nodes being candidates."""
    node_view = session.node_view(gang_in(session, name).tasks[0].task.shape)
    found = node_view.scores(np.ones(len(session.snapshot.nodes), dtype=np.bool_))
    assert found is not None
    return [float(score) for score in found]


def reason(session: Session, name: str = "train") -> str:
    return session.node_view(gang_in(session, name).tasks[0].task.shape).error().text


def with_spec(spec: Document, **asks: str | int) -> list[Document]:
    documents = build.gang("train", tasks=1, **asks)  # type: ignore[arg-type]  # asks are resources
    documents[1]["spec"].update(spec)
    return documents


@pytest.mark.parametrize("name", sorted(CATALOGUE.plugins))
def test_every_plugin_refuses_a_setting_it_does_not_have(name: str) -> None:
    with pytest.raises(ConfigError, match=f"plugin '{name}', argument 'no such thing': unknown setting"):
        CATALOGUE.plugins[name](PluginPolicy(name, arguments={"no such thing": 1}))


# --- gang and priority -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "count", "why", "message"),
    [
        ({"min_member": 3}, 2, "NotEnoughTasks", "Not enough valid tasks for gang-scheduling, valid: 2, min: 3"),
        (
            {"min_member": 2, "minTaskMember": {"chief": 1}}, 2, "NotEnoughPodsOfTask",
            "Not enough valid pods of each task for gang-scheduling",
        ),
        (
            {"min_member": 1, "subGroupPolicy": [{"name": "s", "minSubGroups": 1, "matchLabelKeys": ["ring"]}]}, 2,
            "NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling",
        ),
    ],
)  # fmt: skip
def test_a_gang_that_cannot_become_whole_is_not_considered(group: Document, count: int, why: str, message: str) -> None:
    pods = [build.pod(f"train-{number}", group="train", cpu=1) for number in range(count)]
    session = session_of(["gang"], build.pod_group("train", **group), pods)
    verdict = session.gang_valid(gang_in(session))
    assert (verdict.reason, verdict.message) == (why, message)


def test_gangs_that_are_not_whole_come_first() -> None:
    running = [build.pod_group("done"), build.pod("done-0", group="done", on="n", cpu=1), build.pod("done-1", group="done", cpu=1)]
    session = session_of(["gang"], build.node("n"), running, build.gang("train", tasks=1, cpu=1))
    assert session.gang_key(gang_in(session)) < session.gang_key(gang_in(session, "done"))


def test_priority_orders_gangs_tasks_and_sub_groups_and_lets_them_starve_while_a_task_waits() -> None:
    group = build.pod_group("train", min_member=1, subGroupPolicy=[{"name": "s", "matchLabelKeys": ["ring"]}])
    pods = [build.pod(f"train-{number}", group="train", cpu=1, spec={"priority": number}) for number in range(2)]
    for number, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"ring": str(number)}
    session = session_of(["priority"], build.node("n"), group, pods)
    gang = gang_in(session)
    assert [task.task.name for task in session.sorted_tasks(gang.tasks)] == ["train-1", "train-0"]
    assert sorted(gang.subgroups.values(), key=session.subgroup_key)[0].id == "default/train/s-1"
    assert session.gang_starving(gang).ok
    with session.statement() as statement:
        for task in gang.tasks:
            statement.pipeline([task], [0])
        assert not session.gang_starving(gang).ok


# --- drf ---------------------------------------------------------------------------------------------------------------


def test_the_gang_with_the_smaller_dominant_share_comes_first_and_shares_follow_placements() -> None:
    gangs = [build.gang("a", tasks=1, cpu=2), build.gang("b", tasks=1, memory="4Gi")]
    session = session_of(["drf"], build.node("n", cpu=8, memory="8Gi"), *gangs)
    first, second = gang_in(session, "a"), gang_in(session, "b")
    assert session.gang_key(first) < session.gang_key(second)
    statement = session.statement()
    statement.allocate(first.tasks, [0])
    assert session.gang_order_key(first) == (0.25,)
    assert session.gang_key(second) < session.gang_key(first)
    statement.allocate(second.tasks, [0])
    assert session.gang_order_key(second) == (0.5,)
    statement.discard()
    assert session.gang_order_key(first) == (0.0,)


def in_tree(name: str, path: str, weights: str) -> Document:
    queue = build.queue(name)
    queue["metadata"]["annotations"] = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return queue


HIERARCHY = [{"name": "drf", "enableHierarchy": True}]


def order(session: Session, left: str, right: str) -> bool:
    return session.queue_comes_first(session.queues[left], session.queues[right])


def test_queues_are_compared_along_their_paths_by_weighted_share() -> None:
    queues = [in_tree("a", "root/sci/a", "1/1/1"), in_tree("b", "root/eng/b", "1/4/1")]
    gangs = [build.gang("x", tasks=3, queue="a", cpu=1), build.gang("y", tasks=3, queue="b", cpu=1)]
    session = session_of(HIERARCHY, build.node("n", cpu=8), queues, *gangs)
    assert order(session, "a", "b")
    statement = session.statement()
    statement.allocate(gang_in(session, "x").tasks[:1], [0])
    statement.allocate(gang_in(session, "y").tasks[:2], [0, 0])
    # The engineers hold twice as much with four times the weight.
    assert order(session, "b", "a")
    statement.discard()
    assert order(session, "a", "b")


def test_a_queue_whose_gangs_have_all_they_ask_for_comes_last() -> None:
    queues = [in_tree("a", "root/a", "1/1"), in_tree("b", "root/b", "1/1")]
    gangs = [build.gang("x", tasks=1, queue="a", cpu=1), build.gang("y", tasks=6, queue="b", cpu=1)]
    session = session_of(HIERARCHY, build.node("n", cpu=8), queues, *gangs)
    statement = session.statement()
    statement.allocate(gang_in(session, "x").tasks, [0])
    statement.allocate(gang_in(session, "y").tasks[:3], [0, 0, 0])
    assert order(session, "b", "a")


@pytest.mark.parametrize(("weights", "victims"), [("1/1", True), ("1/4", True), ("1/20", False)])
def test_a_queue_takes_from_one_that_is_ahead_of_it_along_their_paths(weights: str, victims: bool) -> None:
    queues = [in_tree("a", "root/a", "1/1"), in_tree("b", "root/b", weights)]
    running = [build.in_group("y", build.pod(f"y-{number}", on="n", cpu=1)) for number in range(8)]
    gangs = [build.gang("x", tasks=4, queue="a", cpu=1), [build.pod_group("y", queue="b", phase="Running"), *running]]
    waiting = build.in_group("y", build.pod("y-more", cpu=1))
    session = session_of(HIERARCHY, build.node("n", cpu=10), queues, *gangs, [waiting])
    candidates = [task for task in gang_in(session, "y").tasks if task.node >= 0]
    found = session.reclaimable(gang_in(session, "x").tasks[0], candidates)
    assert found == (candidates if victims else [])


# --- proportion --------------------------------------------------------------------------------------------------------


def deserved(session: Session, queue: str) -> Mapping[str, float]:
    return session.decisions.queues[queue]["deserved"]


def demand(name: str, queue: str, tasks: int) -> list[Document]:
    return build.gang(name, tasks=tasks, queue=queue, cpu=1)


def test_the_cluster_is_divided_by_weight_and_what_nobody_asks_for_goes_round() -> None:
    queues = [build.queue("a", weight=3), build.queue("b"), build.queue("c")]
    gangs = [demand("x", "a", 20), demand("y", "b", 20), demand("z", "c", 1)]
    session = session_of(["proportion"], build.node("n", cpu=10, pods=1000), queues, *gangs)
    assert deserved(session, "a")["cpu"] == pytest.approx(6750)
    assert deserved(session, "b")["cpu"] == pytest.approx(2250)
    assert deserved(session, "c")["cpu"] == 1000
    assert "default" not in session.decisions.queues


def test_a_queue_deserves_no_more_than_its_capability_and_no_less_than_its_guarantee() -> None:
    queues = [build.queue("a", capability={"cpu": 2}), build.queue("b", guarantee={"resource": {"cpu": 6}})]
    session = session_of(["proportion"], build.node("n", cpu=10), queues, demand("x", "a", 20), demand("y", "b", 1))
    assert deserved(session, "a")["cpu"] == 2000
    assert deserved(session, "b")["cpu"] == 6000


def test_queues_come_by_priority_then_by_share_of_what_they_deserve() -> None:
    queues = [build.queue("a"), build.queue("b"), build.queue("c", priority=1)]
    running = [build.pod("x-run", group="x", on="n", cpu=1), build.pod("z-run", group="z", on="n", cpu=1)]
    gangs = [demand("x", "a", 9), demand("y", "b", 9), demand("z", "c", 9)]
    session = session_of(["proportion"], build.node("n", cpu=9), queues, *gangs, running)
    assert order(session, "c", "b")
    assert order(session, "b", "a")
    assert not order(session, "a", "b")


def test_a_queue_with_all_it_deserves_is_overused_and_one_without_requests_too() -> None:
    session = session_of(
        ["proportion"], build.node("n", cpu=4), build.pod_group("train"), build.pod("r", group="train", on="n", cpu=1)
    )
    assert not session.queue_overused(session.queues["default"]).ok
    empty = session_of(["proportion"], build.node("n", cpu=4), build.pod_group("train"))
    verdict = empty.queue_overused(empty.queues["default"])
    assert verdict.message == "queue default has all it deserves"
    waiting = session_of(["proportion"], build.node("n", cpu=4), build.gang("train", tasks=1, cpu=1))
    assert waiting.queue_overused(waiting.queues["default"]).ok


def test_a_queue_is_overused_after_as_many_tasks_as_it_says() -> None:
    waiting = session_of(["proportion"], build.node("n", cpu=4), build.gang("train", tasks=3, cpu=1))
    queue, tasks = waiting.queues["default"], gang_in(waiting).tasks
    assert waiting.tasks_until_overused(queue, tasks[0].task.shape) == 3
    statement = waiting.statement()
    for number, task in enumerate(tasks, start=1):
        statement.allocate([task], [0])
        assert waiting.queue_overused(queue).ok is (number < 3)


def test_who_cannot_say_when_a_queue_is_overused_is_asked_after_each_task() -> None:
    gang = build.gang("train", tasks=3, cpu=1)
    session = session_of(["proportion", "extender"], build.node("n", cpu=4), gang)
    assert session.tasks_until_overused(session.queues["default"], gang_in(session).tasks[0].task.shape) == 1
    nobody = session_of(["gang"], build.node("n", cpu=4), gang)
    assert nobody.tasks_until_overused(nobody.queues["default"], gang_in(nobody).tasks[0].task.shape) == NO_LIMIT


def test_a_closed_queue_takes_nothing() -> None:
    queue = {**build.queue("a"), "status": {"state": "Closing"}}
    group = build.pod_group("train", queue="a", minResources={"cpu": 1})
    for plugin in ("proportion", "capacity"):
        session = session_of([plugin], build.node("n"), queue, group, build.pod("train-0", group="train", cpu=1))
        gang = gang_in(session)
        room = session.queue_room(session.queues["a"], gang.tasks[0].task.shape)
        assert (room.tasks, room.verdict.message) == (0, "queue a is Closing")
        assert session.gang_enqueueable(gang).verdict.message == "queue a is Closing"


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_a_gang_is_admitted_while_the_limit_of_its_queue_allows_its_minimum(plugin: str) -> None:
    groups = [build.pod_group(name, queue="a", minResources={"cpu": 3}) for name in ("x", "y")]
    session = session_of([plugin], build.node("n"), build.queue("a", capability={"cpu": 5}), groups)
    assert session.gang_enqueueable(gang_in(session, "x")).value == 1
    session.gang_enqueued(gang_in(session, "x"))
    vote = session.gang_enqueueable(gang_in(session, "y"))
    assert vote.value == -1
    assert vote.verdict.message == "queue a has 3 of 5 cpu it may use; 3 more do not fit"


# --- capacity ----------------------------------------------------------------------------------------------------------


def test_a_queue_may_use_its_capability_and_the_guarantees_of_others_are_out_of_reach() -> None:
    queues = [build.queue("a"), build.queue("b", guarantee={"resource": {"cpu": 3}})]
    session = session_of(["capacity"], build.node("n", cpu=8), queues, build.gang("train", tasks=1, queue="a", cpu=1))
    shape = gang_in(session).tasks[0].task.shape
    assert session.queue_room(session.queues["a"], shape).tasks == 5
    assert session.queue_room(session.queues["b"], shape).tasks == 8


def test_without_a_say_on_what_they_deserve_queues_come_after_those_with_one() -> None:
    queues = [build.queue("a"), build.queue("b", deserved={"cpu": 4})]
    session = session_of(["capacity"], build.node("n", cpu=8), queues, build.gang("train", tasks=1, queue="b", cpu=4))
    assert order(session, "b", "a")
    session.statement().allocate(gang_in(session).tasks, [0])
    # Now both have a share of 1: the one that deserves something goes first.
    assert order(session, "b", "a")


TREE = [{"name": "capacity", "enableHierarchy": True}]


def test_a_limit_also_bounds_what_is_below_it() -> None:
    queues = [build.queue("top", capability={"cpu": 3}), build.queue("a", parent="top"), build.queue("b", parent="top")]
    gangs = [build.gang("x", tasks=2, queue="a", cpu=1), build.gang("y", tasks=4, queue="b", cpu=1)]
    session = session_of(TREE, build.node("n", cpu=8), queues, *gangs)
    statement = session.statement()
    statement.allocate(gang_in(session, "x").tasks, [0, 0])
    room = session.queue_room(session.queues["b"], gang_in(session, "y").tasks[0].task.shape)
    assert room.tasks == 1
    statement.allocate(gang_in(session, "y").tasks[:1], [0])
    room = session.queue_room(session.queues["b"], gang_in(session, "y").tasks[0].task.shape)
    assert room.tasks == 0
    assert room.verdict.message.endswith("of 3 cpu it may use; 1 more do not fit")


def test_an_inner_queue_takes_no_gangs() -> None:
    queues = [build.queue("top"), build.queue("a", parent="top")]
    session = session_of(TREE, build.node("n"), queues, build.gang("train", tasks=1, queue="a", cpu=1))
    room = session.queue_room(session.queues["top"], gang_in(session).tasks[0].task.shape)
    assert room.verdict.message == "queue top has queues below it; submit to one of them"


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ([build.queue("a", parent="gone")], "queue a .*(does not exist|missing)"),
        ([build.queue("a", parent="b"), build.queue("b", parent="a")], "queue a .*(circle|ancestor)"),
        ([build.queue("a", parent="a")], "queue a .*(circle|ancestor)"),
        (
            [build.queue("a"), build.queue("c", parent="a")],
            "queue a has queues below it",
        ),
    ],
)
def test_a_broken_tree_refuses_everything_and_says_why(queues: list[Document], message: str) -> None:
    group = build.pod_group("train", queue="a", minResources={"cpu": 1})
    session = session_of(TREE, build.node("n"), queues, group, build.pod("train-0", group="train", cpu=1))
    gang = gang_in(session)
    for queue in ("a", "default"):
        room = session.queue_room(session.queues[queue], gang.tasks[0].task.shape)
        assert room.tasks == 0
        assert re.match(message, room.verdict.message)
    assert re.match(message, session.gang_enqueueable(gang).verdict.message)
    assert isinstance(order(session, "a", "default"), bool)


# --- overcommit --------------------------------------------------------------------------------------------------------


def test_gangs_are_admitted_up_to_a_multiple_of_the_cluster() -> None:
    groups = [build.pod_group(name, minResources={"cpu": 5}) for name in ("x", "y")]
    running = build.pod("old", on="n", cpu=1)
    session = session_of(["overcommit"], build.node("n", cpu=10), running, groups)
    session.gang_enqueued(gang_in(session, "x"))
    # 10 * 1.2 - 1 = 11 are there; x took 5.
    assert session.gang_enqueueable(gang_in(session, "y")).value == 1
    session.gang_enqueued(gang_in(session, "y"))
    vote = session.gang_enqueueable(gang_in(session, "x"))
    assert vote.verdict.message == "resource in cluster is overused: overused cpu"


@pytest.mark.parametrize(("factor", "used"), [(None, 1.2), (2, 2.0), ("1.5", 1.5), (0.5, 1.2)])
def test_a_factor_below_one_means_the_usual_one(factor: object, used: float) -> None:
    arguments = {} if factor is None else {"overcommit-factor": factor}
    assert OvercommitPlugin(PluginPolicy("overcommit", arguments=arguments)).factor == used


def test_admitted_gangs_count_in_full_and_running_ones_with_what_they_lack() -> None:
    admitted = build.pod_group("x", minResources={"cpu": 4}, phase="Inqueue")
    running = [build.pod_group("y", minResources={"cpu": 4}, phase="Running"), build.pod("y-0", group="y", on="n", cpu=3)]
    waiting = build.pod_group("z", minResources={"cpu": 5})
    session = session_of(["overcommit"], build.node("n", cpu=10), admitted, running, waiting)
    # 12 - 3 = 9 are there; x counts 4 and y lacks 1.
    assert session.gang_enqueueable(gang_in(session, "z")).value == -1


# --- predicates --------------------------------------------------------------------------------------------------------


def affinity(kind: str, terms: list[Document]) -> Document:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def web(on: str, **labels: str) -> Document:
    pod = build.pod("web", on=on)
    pod["metadata"]["labels"] = labels or {"app": "web"}
    return pod


WEB_ON_HOST = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
SPREAD = {
    "topologyKey": "zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
NAMED = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in "ab"]
PORT = {"containers": [{"name": "main", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": 1}}}]}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        pytest.param([build.node("n", cpu=1), build.gang("train", tasks=1, cpu=2)], "1 Insufficient cpu", id="cpu"),
        pytest.param([build.node("n"), build.gang("train", tasks=1, gpus=1)], "1 Insufficient nvidia.com/gpu", id="gpu"),
        pytest.param([build.node("n", pods=0), build.gang("train", tasks=1, cpu=1)], "1 Insufficient pods", id="pods"),
        pytest.param(
            [build.node("n", spec={"unschedulable": True}), build.gang("train", tasks=1, cpu=1)],
            "1 node(s) were unschedulable", id="cordon",
        ),
        pytest.param(
            [build.node("n"), with_spec({"nodeSelector": {"zone": "moon"}})],
            "1 node(s) didn't match Pod's node affinity/selector", id="node selector",
        ),
        pytest.param(
            [build.node("n"), with_spec({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
             {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}}})],
            "1 node(s) didn't match Pod's node affinity/selector", id="node affinity",
        ),
        pytest.param(
            [build.node("n", spec={"taints": [{"key": "x", "effect": "NoExecute"}]}), build.gang("train", tasks=1, cpu=1)],
            "1 node(s) had untolerated taint(s)", id="taint",
        ),
        pytest.param(
            [build.node("n"), build.pod("old", on="n", spec=PORT), with_spec(PORT)],
            "1 node(s) didn't have free ports for the requested pod ports", id="port",
        ),
        pytest.param(
            [build.node("n"), with_spec(affinity("podAffinity", [WEB_ON_HOST]))],
            "1 node(s) didn't match pod affinity rules", id="affinity",
        ),
        pytest.param(
            [build.node("n"), web("n"), with_spec(affinity("podAntiAffinity", [WEB_ON_HOST]))],
            "1 node(s) didn't match pod anti-affinity rules", id="anti-affinity",
        ),
        pytest.param(
            [build.node("n"), with_spec({"topologySpreadConstraints": [SPREAD]})],
            "1 node(s) didn't match pod topology spread constraints (missing required label)", id="spread without label",
        ),
    ],
)  # fmt: skip
def test_each_filter_says_no_in_its_own_words(parts: list[Parts], text: str) -> None:
    session = session_of(["predicates"], *parts)
    assert reason(session) == f"0/1 nodes are unavailable: {text}."


def test_pods_that_leave_still_count_for_the_number_of_pods() -> None:
    old = build.pod("old", on="n", cpu=1)
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    session = session_of(["predicates"], build.node("n", pods=1), old, build.gang("train", tasks=1, cpu=1))
    assert reason(session) == "0/1 nodes are unavailable: 1 node(s) pod number exceeded."


def test_anti_affinity_of_running_pods_repels_newcomers() -> None:
    lonely = web("n", app="lonely")
    lonely["spec"].update(affinity("podAntiAffinity", [WEB_ON_HOST]))
    documents = build.gang("train", tasks=1, cpu=1)
    documents[1]["metadata"]["labels"] = {"app": "web"}
    session = session_of(["predicates"], build.node("n"), lonely, documents)
    assert reason(session) == "0/1 nodes are unavailable: 1 node(s) didn't satisfy existing pods anti-affinity rules."


def test_an_uneven_spread_closes_the_fuller_zone() -> None:
    nodes = [build.node("n0", labels={"zone": "east"}), build.node("n1", labels={"zone": "west"})]
    documents = with_spec({"topologySpreadConstraints": [SPREAD]}, cpu=1)
    documents[1]["metadata"]["labels"] = {"app": "web"}
    session = session_of(["predicates"], nodes, web("n0"), documents)
    node_view = session.node_view(gang_in(session).tasks[0].task.shape)
    assert node_view.feasible.tolist() == [False, True]
    assert node_view.error().counts["node(s) didn't match pod topology spread constraints"] == 1


def test_the_first_pod_of_an_affine_group_may_go_anywhere() -> None:
    documents = with_spec(affinity("podAffinity", [WEB_ON_HOST]), cpu=1)
    documents[1]["metadata"]["labels"] = {"app": "web"}
    session = session_of(["predicates"], build.node("n"), documents)
    assert session.node_view(gang_in(session).tasks[0].task.shape).feasible.all()


def test_one_node_may_give_several_reasons() -> None:
    old = build.pod("old", on="n", spec=PORT)
    old["metadata"]["labels"] = {"app": "web"}
    documents = with_spec({**PORT, **affinity("podAntiAffinity", [WEB_ON_HOST])})
    text = reason(session_of(["predicates"], build.node("n"), old, documents))
    assert text == (
        "0/1 nodes are unavailable: 1 node(s) didn't have free ports for the requested pod ports,"
        " 1 node(s) didn't match pod anti-affinity rules."
    )


def test_terms_that_name_different_nodes_conflict_before_any_node_is_asked() -> None:
    fields = [part for term in NAMED for part in term["matchFields"]]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    session = session_of(["predicates"], build.node("a"), with_spec({"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": terms}}}))  # fmt: skip
    verdict = session.prefilter(gang_in(session).tasks[0])
    assert verdict.message == "plugin NodeAffinity pre-predicates failed pod affinity terms conflict"


@pytest.mark.parametrize(
    ("switch", "parts"),
    [
        ("NodeAffinity", [build.node("n"), with_spec({"nodeSelector": {"zone": "moon"}}, cpu=1)]),
        ("TaintToleration", [build.node("n", spec={"taints": [{"key": "x"}]}), build.gang("train", tasks=1, cpu=1)]),
        ("NodePorts", [build.node("n"), build.pod("old", on="n", spec=PORT), with_spec(PORT)]),
        ("PodAffinity", [build.node("n"), with_spec(affinity("podAffinity", [WEB_ON_HOST]), cpu=1)]),
        ("PodTopologySpread", [build.node("n"), with_spec({"topologySpreadConstraints": [SPREAD]}, cpu=1)]),
    ],
)
def test_a_filter_can_be_turned_off(switch: str, parts: list[Parts]) -> None:
    for is_on in (True, False):
        plugin = {"name": "predicates", "arguments": {f"predicate.{switch}Enable": is_on}}
        session = session_of([plugin], *parts)
        assert session.node_view(gang_in(session).tasks[0].task.shape).feasible.any() is np.bool_(not is_on)


@pytest.mark.parametrize(
    ("toleration", "is_open"),
    [
        ({"key": "x", "operator": "Exists"}, True), ({"operator": "Exists"}, True), ({"key": "x", "value": "1"}, True),
        ({"key": "x", "value": "2"}, False), ({"key": "y", "operator": "Exists"}, False),
        ({"key": "x", "operator": "Gt", "value": "0"}, False),
        ({"key": "x", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "x", "value": "1", "effect": "NoSchedule"}, True),
    ],
)  # fmt: skip
def test_a_toleration_opens_the_nodes_whose_taint_it_covers(toleration: Document, is_open: bool) -> None:
    node = build.node("n", spec={"taints": [{"key": "x", "value": "1", "effect": "NoSchedule"}]})
    session = session_of(["predicates"], node, with_spec({"tolerations": [toleration]}, cpu=1))
    assert bool(session.node_view(gang_in(session).tasks[0].task.shape).feasible[0]) is is_open
