"""Topology-aware preemption: dry runs on several nodes, and the node whose victims matter least."""

import pytest

from phalanx.actions.preempt_candidates import CandidateLimits
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import crowded_clusters as crowds

FIRST = ("priority", {"name": "gang", "enablePreemptable": False}, "conformance")
AWARE = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
POLICY = build.policy(
    [FIRST, ("predicates", "proportion", "nodeorder")],
    "allocate, preempt",
    configurations=[{"name": "preempt", "arguments": AWARE}],
)


@pytest.mark.parametrize(
    ("limits", "nodes", "enough"),
    [
        (CandidateLimits(), 5, 1),
        (CandidateLimits(), 50, 5),
        (CandidateLimits(), 5000, 100),
        (CandidateLimits(percentage=10, fewest=20), 50, 20),
        (CandidateLimits(percentage=10, fewest=20), 7, 7),
        (CandidateLimits(percentage=0, fewest=0), 7, 0),
    ],
)
def test_a_part_of_the_nodes_is_enough(limits: CandidateLimits, nodes: int, enough: int) -> None:
    assert limits.enough(nodes) == enough


def task(name: str, node: str, *, priority: int = 1, cpu: int = 4, started: str = "") -> list[Document]:
    """Return a running task, a gang of its own."""
    pod = build.pod(name, group=name, on=node, cpu=cpu, spec={"priority": priority})
    if started:
        pod["status"]["startTime"] = f"2026-01-01T{started}:00Z"
    return [build.pod_group(name, min_member=1, phase="Running", queue="blue", priorityClassName="low"), pod]


def victims(
    *running: list[Document], nodes: int = 2, cpu: int = 4, new: Document | None = None, policy: Policy = POLICY
) -> list[str]:
    cluster = Cluster(policy).submit(*(build.node(f"node-{n}", cpu=4) for n in range(nodes)))
    cluster.submit(crowds.classes(), build.queue("blue"), *running)
    group = build.pod_group("new", min_member=1, phase="Inqueue", queue="blue", priorityClassName="high")
    pod = build.in_group("new", new or build.pod("new-0", cpu=cpu))
    pod["spec"]["priority"] = 100
    return sorted(key.removeprefix("default/") for key in cluster.submit(group, pod).run_cycle().decisions.evictions)


def test_the_node_whose_most_important_victim_matters_least() -> None:
    assert victims(task("a", "node-0", priority=5), task("b", "node-1", priority=3)) == ["b"]


def test_then_the_smallest_sum_of_priorities() -> None:
    many = [task("a", "node-0", priority=3, cpu=2), task("b", "node-0", priority=2, cpu=2)]
    assert victims(*many, task("c", "node-1", priority=3)) == ["c"]


def test_then_the_node_whose_important_victim_started_last() -> None:
    assert victims(task("a", "node-0", started="08:00"), task("b", "node-1", started="09:00")) == ["b"]


def test_then_the_first_node() -> None:
    assert victims(task("a", "node-0"), task("b", "node-1")) == ["a"]


def test_victims_that_need_not_go_are_put_back_the_most_important_first() -> None:
    small, large = task("a", "node-0", priority=1, cpu=1), task("b", "node-0", priority=2, cpu=3)
    assert victims(small, large, nodes=1, cpu=3) == ["b"]


def test_nobody_goes_when_all_together_are_not_enough() -> None:
    assert victims(task("a", "node-0"), nodes=1, cpu=5) == []


DEAF = {"name": "predicates", "enablePreemptable": False, "enabledAllocatable": False}
"""Predicates that is not told who is evicted on trial."""


@pytest.mark.parametrize(
    ("predicates", "is_aware", "wanted"), [("predicates", True, ["a"]), (DEAF, True, []), ("predicates", False, [])]
)
def test_affinity_to_a_victim_is_counted_anew_only_by_plugins_that_are_told_of_trials(
    predicates: str | dict[str, object], is_aware: bool, wanted: list[str]
) -> None:
    settings = [{"name": "preempt", "arguments": {**AWARE, "enableTopologyAwarePreemption": is_aware}}]
    policy = build.policy([FIRST, (predicates, "proportion", "nodeorder")], "allocate, preempt", configurations=settings)
    old = task("a", "node-0", cpu=1)
    old[1]["metadata"]["labels"] = {"app": "web"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    new = build.pod("new-0", cpu=1, spec={"affinity": apart})
    assert victims(old, nodes=1, new=new, policy=policy) == wanted
