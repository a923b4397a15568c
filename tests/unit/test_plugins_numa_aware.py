"""NUMA: where the CPUs of guaranteed pods can lie as their policy asks."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import SnapshotError
from phalanx.model.numa import NumaTopology
from phalanx.session.cycle import open_session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

POLICY = "volcano.sh/numa-topology-policy"


def topology(node: str, free: str = "0-7", *, policy: str = "single-numa-node", cpus: str = "static", **spec: Any) -> Document:
    """Eight CPUs on two NUMA nodes: 0 to 3 and 4 to 7."""
    places = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu % 4} for cpu in range(8)}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": "Numatopology", "metadata": {"name": node},
        "spec": {
            "policies": {"CPUManagerPolicy": cpus, "TopologyManagerPolicy": policy},
            "numares": {"cpu": {"allocatable": free, "capacity": 8}}, "cpuDetail": places, **spec,
        },
    }  # fmt: skip


def pod(name: str, cpu: int | str, *, policy: str = "", limit: int | str | None = None) -> Document:
    found = build.pod(name, group="train")
    limits = {"cpu": cpu if limit is None else limit, "memory": "1Gi"}
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": limits}
    if policy:
        found["metadata"]["annotations"][POLICY] = policy
    return found


def cluster(*topologies: Document, nodes: int = 2) -> Cluster:
    policy = build.policy([["gang", "predicates", "numa-aware"]])
    return build.cluster(nodes=nodes, policy=policy).submit(*topologies, build.pod_group("train", min_member=0, phase="Inqueue"))


def nodes_of(found: Cluster, *pods: Document) -> list[str]:
    return [node for _, node in found.submit(*pods).run_cycle().binds]


def test_a_pod_goes_where_one_numa_node_has_its_cpus() -> None:
    found = cluster(topology("node-0", "0-1,4-5"), topology("node-1", "0-3"))
    assert nodes_of(found, pod("a", 4, policy="single-numa-node")) == ["node-1"]


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (None, "says nothing about its NUMA nodes"),
        (topology("node-0", cpus="none"), "gives no CPUs away"),
        (topology("node-0", policy="restricted"), "has another NUMA policy"),
        (topology("node-0", ""), "has no CPUs left to give away"),
        (topology("node-0", "0-1,4-5"), "cannot align its CPUs"),
    ],
)
def test_every_refusal_says_why(report: Document | None, why: str) -> None:
    found = cluster(*([report] if report else []), nodes=1)
    assert nodes_of(found, pod("a", 4, policy="single-numa-node")) == []
    assert why in found.why("train")


def test_placements_of_a_session_use_up_cpus() -> None:
    found = cluster(topology("node-0", "0-5"), nodes=1)
    pods = [pod(f"pod-{number}", 2, policy="single-numa-node") for number in range(4)]
    assert len(nodes_of(found, *pods)) == 3


def test_restricted_takes_two_numa_nodes_only_for_what_needs_two() -> None:
    found = cluster(topology("node-0", "0-2,4-6", policy="restricted"), nodes=1)
    assert nodes_of(found, pod("wide", 6, policy="restricted")) == ["node-0"]
    other = cluster(topology("node-0", "0-2,4-6", policy="restricted"), nodes=1)
    assert nodes_of(other, pod("narrow", 4, policy="restricted")) == []


def test_best_effort_prefers_the_node_with_fewer_numa_nodes() -> None:
    found = cluster(topology("node-0", "0-1,4-5", policy="best-effort"), topology("node-1", "0-3", policy="best-effort"))
    assert nodes_of(found, pod("a", 4, policy="best-effort")) == ["node-1"]


def test_a_guaranteed_pod_without_a_policy_is_kept_from_a_kubelet_that_would_refuse_it() -> None:
    found = cluster(topology("node-0", "0-1,4-5"), topology("node-1", "0-1,4-5", policy="none"))
    assert nodes_of(found, pod("a", 4)) == ["node-1"]


def test_pods_that_are_not_guaranteed_go_anywhere() -> None:
    assert nodes_of(cluster(topology("node-0", ""), nodes=1), pod("a", 2, policy="single-numa-node", limit=4)) == ["node-0"]


def test_parts_of_a_cpu_need_no_alignment() -> None:
    assert nodes_of(cluster(topology("node-0", "0"), nodes=1), pod("a", "1500m", policy="single-numa-node")) == ["node-0"]


def test_undoing_a_placement_gives_the_cpus_back() -> None:
    found = cluster(topology("node-0", "0-3"), nodes=1)
    found.submit(pod("a", 4, policy="single-numa-node"), pod("b", 4, policy="single-numa-node"))
    session = open_session(found.objects.snapshot(0.0), found.policy, CATALOGUE)
    first, second = next(iter(session.gangs.values())).tasks
    with session.statement() as statement:
        statement.allocate([first], [0])
        assert not session.node_view(second.task.shape).feasible.any()
    assert session.node_view(second.task.shape).feasible.all()


def read(document: Document) -> NumaTopology:
    cluster = ObjectCluster()
    cluster.put(document)
    return cluster.snapshot(0.0).surroundings.numa_topologies["node-0"]


def test_the_kubelet_keeps_the_first_cores() -> None:
    assert read(topology("node-0", resReserved={"cpu": "1500m"})).free == (2, 4)


def test_cpus_are_counted_per_numa_node() -> None:
    expected = NumaTopology("node-0", "static", "single-numa-node", (4, 4), (2, 1))
    assert read(topology("node-0", "1-2, 7")) == expected


@pytest.mark.parametrize("text", ["0-", "5-2", "x", "0-99999999999"])
def test_a_broken_set_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(SnapshotError, match="Numatopology node-0: spec"):
        read(topology("node-0", text))


def test_pods_with_different_policies_are_different_shapes() -> None:
    cluster = ObjectCluster()
    cluster.put(pod("a", 2, policy="restricted"))
    cluster.put(pod("b", 2))
    shapes = [task.shape for task in cluster.snapshot(0.0).members.popitem()[1].values()]  # type: ignore[attr-defined]  # a dict
    assert shapes[0] is not shapes[1]
