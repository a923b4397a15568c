"""Preempt: room for important gangs of the same queue, and for important tasks of the same gang."""

import pytest

from phalanx.actions.preempt import PreemptAction
from phalanx.errors import ConfigError
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import crowded_clusters as crowds

FIRST = ("priority", {"name": "gang", "enablePreemptable": False}, "conformance")
POLICY = build.policy([FIRST, ("predicates", "proportion", "nodeorder")], "allocate, preempt")
LET_GO = "let go by priority, conformance; number 1 of 1 in the order of victims on node-0"


def cluster_of(nodes: int, *, policy: Policy = POLICY) -> Cluster:
    return build.cluster(nodes=nodes, policy=policy, cpu=4).submit(crowds.classes(), build.queue("blue"))


def gang(name: str, priority: str, places: list[str], *, minimum: int = 1, cpu: int = 4, queue: str = "blue") -> list[Document]:
    """Return a gang with a task per place; an empty place is a task that waits."""
    group = build.pod_group(name, min_member=minimum, phase="Inqueue", queue=queue, priorityClassName=priority)
    return [group, *(build.pod(f"{name}-{n}", group=name, on=place, cpu=cpu) for n, place in enumerate(places))]


def test_a_more_important_gang_takes_the_place_of_another() -> None:
    cycle = cluster_of(1).submit(gang("old", "low", ["node-0"]), gang("new", "high", [""])).run_cycle()
    assert cycle.pipelined == [("new-0", "node-0")]
    entry = cycle.answer["evictions"]["default/old-0"]
    assert entry == {
        "action": "preempt", "for": "default/new",
        "message": f"preempted by gang default/new (priority 10 over 1) of the same queue; {LET_GO}",
    }  # fmt: skip


def test_no_more_victims_than_the_task_needs() -> None:
    old = gang("old", "low", ["node-0"] * 4, cpu=1)
    cycle = cluster_of(1).submit(old, gang("new", "high", [""], cpu=2)).run_cycle()
    assert len(cycle.decisions.evictions) == 2


def test_a_gang_that_cannot_be_whole_takes_nothing() -> None:
    cycle = cluster_of(1).submit(gang("old", "low", ["node-0"]), gang("new", "high", ["", ""], minimum=2)).run_cycle()
    assert (cycle.decisions.evictions, cycle.pipelined) == ({}, [])


@pytest.mark.parametrize("priority", ["low", "middle"])
def test_equal_and_more_important_gangs_stay(priority: str) -> None:
    cycle = cluster_of(1).submit(gang("old", "middle", ["node-0"]), gang("new", priority, [""])).run_cycle()
    assert not cycle.decisions.evictions


def test_a_gang_of_another_queue_stays() -> None:
    old = gang("old", "low", ["node-0"])
    old[0]["spec"]["queue"] = "default"
    cycle = cluster_of(1).submit(build.queue("default"), old, gang("new", "high", [""])).run_cycle()
    assert not cycle.decisions.evictions


def test_a_task_that_must_not_preempt_waits() -> None:
    new = gang("new", "high", [""])
    new[1]["spec"]["preemptionPolicy"] = "Never"
    assert not cluster_of(1).submit(gang("old", "low", ["node-0"]), new).run_cycle().decisions.evictions


def test_a_task_that_is_not_preemptable_stays() -> None:
    old = gang("old", "low", ["node-0"])
    old[1]["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    assert not cluster_of(1).submit(old, gang("new", "high", [""])).run_cycle().decisions.evictions


def test_an_important_task_takes_the_place_of_another_of_its_gang() -> None:
    members = gang("mine", "low", ["node-0", ""], minimum=2)
    members[2]["spec"]["priority"] = 100
    cycle = cluster_of(1).submit(members).run_cycle()
    message = cycle.answer["evictions"]["default/mine-0"]["message"]
    assert message == f"preempted by task default/mine-1 (priority 100 over 1) of the same gang; {LET_GO}"


# --- several queues ----------------------------------------------------------------------------------------------------


def test_queues_take_turns_in_their_order_and_not_by_age() -> None:
    queues = [build.queue("a-first", priority=1), build.queue("b-urgent", priority=9)]
    gangs = [gang(f"{name}-old", "low", ["node-0"], cpu=2, queue=name) for name in ("a-first", "b-urgent")]
    gangs += [gang(f"{name}-new", "high", [""], cpu=2, queue=name) for name in ("a-first", "b-urgent")]
    cycle = build.cluster(nodes=1, policy=POLICY, cpu=4).submit(crowds.classes(), queues, *gangs).run_cycle()
    assert list(cycle.decisions.evictions) == ["default/b-urgent-old-0", "default/a-first-old-0"]


def test_gangs_of_later_queues_keep_their_preemptors() -> None:
    """What happens inside the gangs of the first queue takes no task from the lists of the second."""
    policy = build.policy([FIRST, ("predicates", "nodeorder")], "allocate, preempt")
    late = gang("late", "high", ["", ""], minimum=2, cpu=2, queue="red")
    parts = [
        build.queue("red"),
        *gang("old", "low", ["node-0", "node-0"], cpu=2, queue="red"),
        *late,
        *gang("early", "high", [""], cpu=9),
    ]
    cycle = cluster_of(1, policy=policy).submit(parts).run_cycle()
    assert sorted(name for name, _ in cycle.pipelined) == ["late-0", "late-1"]


# --- nominated nodes ---------------------------------------------------------------------------------------------------


def nominated(new: Document, *, priority: int = 10) -> Document:
    new["spec"]["priority"], new["status"]["nominatedNodeName"] = priority, "node-0"
    return new


def leaving(reason: str) -> list[Document]:
    """A gang whose one pod terminates, with the condition that gives this reason, or with none."""
    found = gang("leaving", "low", ["node-0"])
    found[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if reason:
        found[1]["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
    return found


@pytest.mark.parametrize(
    ("reason", "is_clearing"),
    [("PreemptionByScheduler", True), ("EvictionByEvictionAPI", True), ("DeletionByTaintManager", False), ("", False)],
)
def test_a_task_waits_only_for_pods_that_leave_its_nominated_node_because_they_were_preempted(
    reason: str, is_clearing: bool
) -> None:
    """The nominated node is full: one pod leaves it and another one stays, which leaves too little room."""
    there = [*leaving(reason), *gang("full", "low", ["node-0"], cpu=2), *gang("old", "low", ["node-1"])]
    there[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 2
    new = gang("new", "high", [""], cpu=4)
    nominated(new[1])
    # The pod has a port that the one that stays uses, so that the filters refuse its nominated node.
    for pod in (new[1], there[3]):
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    cycle = cluster_of(2).submit(there, new).run_cycle()
    assert bool(cycle.decisions.evictions) is not is_clearing


@pytest.mark.parametrize(("may_preempt", "pipelined"), [(True, [("new-1", "node-0")]), (False, [])])
def test_a_pod_without_requests_that_no_action_has_tried_may_preempt(may_preempt: bool, pipelined: list[tuple[str, str]]) -> None:
    arguments = [{"name": "preempt", "arguments": {"untriedNomineesMayPreempt": may_preempt}}]
    policy = build.policy([FIRST, ("predicates", "nodeorder")], "allocate, preempt", configurations=arguments)
    new = gang("new", "high", ["node-0", ""], minimum=2)
    del new[2]["spec"]["containers"][0]["resources"]
    nominated(new[2])
    assert cluster_of(1, policy=policy).submit(new).run_cycle().pipelined == pipelined


# --- roles -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("remembers", "victims"), [(True, []), (False, ["default/old-0"])])
def test_a_node_that_refused_a_task_of_a_role_for_good_is_not_tried_for_the_next(remembers: bool, victims: list[str]) -> None:
    settings = {"predicateErrorCacheEnable": remembers}
    arguments = [{"name": name, "arguments": settings} for name in ("allocate", "preempt")]
    policy = build.policy([FIRST, ("predicates", "nodeorder")], "allocate, preempt", configurations=arguments)
    picky, easy = (build.pod(f"new-w-{number}", cpu=4) for number in (0, 1))
    picky["spec"]["nodeSelector"] = {"disk": "ssd"}
    new = [build.pod_group("new", phase="Inqueue", queue="blue", priorityClassName="high")]
    new += [build.in_group("new", pod, role="worker") for pod in (picky, easy)]
    cycle = cluster_of(1, policy=policy).submit(gang("old", "low", ["node-0"]), new).run_cycle()
    assert list(cycle.decisions.evictions) == victims


@pytest.mark.parametrize("key", ["minCandidateNodesPercentage", "enableTopologyAwarePreemption"])
def test_a_wrong_setting_is_named(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        PreemptAction({key: "perhaps"})


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'maxCandidateNodesAbsolute'"):
        PreemptAction({"maxCandidateNodesAbsolut": 3})
