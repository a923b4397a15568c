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


def gang(name: str, priority: str, places: list[str], *, minimum: int = 1, cpu: int = 4) -> list[Document]:
    """Return a gang with a task per place; an empty place is a task that waits."""
    group = build.pod_group(name, min_member=minimum, phase="Inqueue", queue="blue", priorityClassName=priority)
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


def test_a_task_waits_while_its_nominated_node_is_being_cleared() -> None:
    leaving = gang("leaving", "low", ["node-0"])
    leaving[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    new = gang("new", "high", ["", ""], minimum=2)
    new[1]["spec"]["priority"], new[1]["status"]["nominatedNodeName"] = 10, "node-0"
    cycle = cluster_of(2).submit(leaving, gang("old", "low", ["node-1"]), new).run_cycle()
    assert "default/leaving-0" not in cycle.decisions.evictions


@pytest.mark.parametrize("key", ["minCandidateNodesPercentage", "enableTopologyAwarePreemption"])
def test_a_wrong_setting_is_named(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        PreemptAction({key: "perhaps"})


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'maxCandidateNodesAbsolute'"):
        PreemptAction({"maxCandidateNodesAbsolut": 3})
