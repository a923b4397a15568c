"""A session that left gangs out and evicts is not finished: one with all of them replaces it."""

from dataclasses import replace

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from phalanx.testing.build import Document


def gang(name: str, priority: str, node: str = "") -> list[Document]:
    group, pod = build.gang(name, tasks=1, cpu=4)
    for item in (group, pod):
        item["spec"]["priorityClassName"] = priority
    if node:
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
    return [group, pod]


def full_cluster() -> Snapshot:
    """Return two full nodes and two gangs, each of which may take the room of one that is less important."""
    found: list[Document] = [build.queue("default")]
    for name, value in (("high", 100), ("low", 1)):
        found.append({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    for number in range(2):
        found += [build.node(f"n{number}", cpu=4), *gang(f"runs-{number}", "low", f"n{number}"), *gang(f"waits-{number}", "high")]
    cluster = ObjectCluster()
    for item in found:
        assert cluster.put(item)
    return cluster.snapshot(0.0)


def decide(snapshot: Snapshot) -> Decisions:
    return run_cycle(snapshot, policy_of_profile("phalanx"), CATALOGUE)


def test_a_session_on_all_gangs_makes_room_for_each() -> None:
    assert len(decide(full_cluster()).evictions) == 2


def test_a_session_that_left_gangs_out_ends_with_its_first_victims() -> None:
    assert len(decide(replace(full_cluster(), is_partial=True)).evictions) == 1
