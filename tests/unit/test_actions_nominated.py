"""Room that was cleared for a gang is the gang's: nominated nodes are kept, or the gang goes back in line."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

POLICY = policy_of_profile("phalanx")
VOLCANO = build.policy([["priority", "gang"], ["predicates", "nodeorder"]], "allocate")


def nominated(name: str, nodes: Iterable[str], *, min_member: int = 0, **spec: Any) -> list[Document]:
    """Return a gang whose pods have these nodes nominated; no node means none."""
    pods = [build.pod(f"{name}-{number}", cpu=4) for number, _ in enumerate(nodes)]
    for pod, node in zip(pods, nodes, strict=True):
        pod["status"] = {"phase": "Pending", **({"nominatedNodeName": node} if node else {})}
    group = build.pod_group(name, min_member=min_member or len(pods), phase="Inqueue", **spec)
    return dated([group, *(build.in_group(name, pod) for pod in pods)], 2021)


def dated(documents: list[Document], year: int) -> list[Document]:
    for item in documents:
        item["metadata"]["creationTimestamp"] = f"{year}-01-01T00:00:00Z"
    return documents


def older(documents: list[Document]) -> list[Document]:
    return dated(documents, 2020)


def leaving(name: str, node: str) -> list[Document]:
    pod = build.pod(f"{name}-0", cpu=4, on=node)
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return [build.pod_group(name, min_member=1, phase="Running"), build.in_group(name, pod)]


def crowd(*parts: Document | Iterable[Document], nodes: int = 2, policy: Policy = POLICY) -> Cluster:
    return build.cluster(nodes=nodes, policy=policy, cpu=4).submit(*parts)


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ({}, "old"),
        ({"nominatedFirst": True}, "new"),
        ({"promisedFirst": True}, "new"),
        ({"nominatedFirst": False, "promisedFirst": True}, "new"),
    ],
)
def test_the_argument_may_have_its_former_name(arguments: dict[str, object], first: str) -> None:
    policy = replace(VOLCANO, arguments_by_action={"allocate": arguments})
    (bind, _) = crowd(older(nominated("old", ["", ""])), nominated("new", ["node-1", "node-0"]), policy=policy).run_cycle().binds
    assert bind[0] == f"{first}-0"


def test_a_gang_with_nominated_nodes_starts_before_those_that_come_first_in_order() -> None:
    rival = older(nominated("old", ["", ""]))
    gang = nominated("new", ["node-1", "node-0"])
    assert crowd(rival, gang).run_cycle().binds == [("new-0", "node-1"), ("new-1", "node-0")]
    assert crowd(rival, gang, policy=VOLCANO).run_cycle().binds == [("old-0", "node-0"), ("old-1", "node-1")]


def test_while_the_victims_leave_nobody_else_gets_the_room() -> None:
    cycle = crowd(leaving("victim", "node-1"), older(nominated("old", [""])), nominated("new", ["node-0", "node-1"])).run_cycle()
    assert (cycle.binds, cycle.pipelined) == ([], [("new-1", "node-1")])


def test_tasks_without_a_nominated_node_do_not_take_the_room_of_those_that_have_one() -> None:
    gang = nominated("new", ["", "node-0"], min_member=1)
    assert crowd(gang, nodes=1).run_cycle().binds == [("new-1", "node-0")]


def test_a_nominated_node_that_cannot_be_kept_leaves_the_gang_in_line() -> None:
    gone = nominated("new", ["node-7", "node-0"])
    assert len(crowd(gone).run_cycle().binds) == 2
    assert crowd(older(nominated("old", [""])), gone).run_cycle().binds == [("old-0", "node-0")]


def test_further_tasks_of_the_gang_wait_for_their_turn() -> None:
    cycle = crowd(older(nominated("old", [""])), nominated("new", ["node-0", ""], min_member=1)).run_cycle()
    assert sorted(cycle.binds) == [("new-0", "node-0"), ("old-0", "node-1")]


def test_nominated_nodes_too_far_apart_are_not_kept() -> None:
    racks = [build.hypernode(f"rack{rack}", tier=1, members=[f"node-{2 * rack}", f"node-{2 * rack + 1}"]) for rack in (0, 1)]
    spine = build.hypernode("spine", tier=2, members=["rack0", "rack1"], of="HyperNode")
    near: dict[str, Any] = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    apart = crowd(racks, spine, nominated("new", ["node-0", "node-2"], **near), nodes=4).run_cycle()
    assert {node for _, node in apart.binds} in ({"node-0", "node-1"}, {"node-2", "node-3"})
    together = crowd(
        racks, spine, older(nominated("old", ["", ""], **near)), nominated("new", ["node-2", "node-3"], **near), nodes=4
    )
    assert sorted(together.run_cycle().binds) == [
        ("new-0", "node-2"),
        ("new-1", "node-3"),
        ("old-0", "node-0"),
        ("old-1", "node-1"),
    ]
