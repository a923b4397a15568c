"""Topology in the profile kai: one domain of a level if it is required, or if it can be."""

from typing import Any

import pytest

from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

A = kai.queue("a", quota=16)
TREE = kai.topology("net", "zone", "rack")
RACKS = {"n0": "r0", "n1": "r0", "n2": "r1", "n3": "r1"}


def cluster(*, racks: dict[str, str] = RACKS, gpus: int = 2) -> Cluster:
    nodes = [build.node(name, labels={"zone": "z", "rack": rack}, gpus=gpus, cpu=64) for name, rack in racks.items()]
    return kai.cluster(nodes=0, actions="allocate").submit(A, TREE, nodes)


def wants(level: str, *, required: bool = True, tree: str = "net") -> dict[str, Any]:
    return {"topologyConstraint": {"topology": tree, f"{'required' if required else 'preferred'}TopologyLevel": level}}


def racks_of(cycle: Cycle) -> set[str]:
    return {RACKS[node] for _, node in cycle.binds}


def test_a_required_level_keeps_the_job_in_one_domain() -> None:
    cycle = cluster().submit(kai.gang("train", tasks=4, gpus=1, **wants("rack"))).run_cycle()
    assert len(cycle.binds) == 4
    assert len(racks_of(cycle)) == 1


def test_a_job_that_no_domain_of_the_required_level_takes_waits() -> None:
    cycle = cluster().submit(kai.gang("train", tasks=5, gpus=1, **wants("rack"))).run_cycle()
    assert cycle.binds == []
    assert cycle.why("train") == "no domain of level 'rack' in topology 'net' has room for all of it"
    assert cycle.condition("train", "UnschedulableOnNodePool") == (
        "topology net, requirement rack couldn't be satisfied for job <default/train>: "
        "not enough resources in the cluster to allocate the job"
    )


def test_a_wider_required_level_takes_the_same_job() -> None:
    assert len(cluster().submit(kai.gang("train", tasks=5, gpus=1, **wants("zone"))).run_cycle().binds) == 5


def test_a_preferred_level_is_kept_if_it_can_be() -> None:
    cycle = cluster().submit(kai.gang("train", tasks=4, gpus=1, **wants("rack", required=False))).run_cycle()
    assert len(racks_of(cycle)) == 1
    wide = cluster().submit(kai.gang("train", tasks=6, gpus=1, **wants("rack", required=False))).run_cycle()
    assert len(wide.binds) == 6


def test_the_tightest_domain_that_fits_comes_first() -> None:
    running = kai.gang("old", tasks=2, on=["n2", "n2"], gpus=1)
    cycle = cluster().submit(running, kai.gang("train", tasks=2, gpus=1, **wants("rack"))).run_cycle()
    assert racks_of(cycle) == {"r1"}


def test_a_job_that_runs_grows_only_in_its_own_domain() -> None:
    job = kai.gang("train", tasks=5, min_member=1, on=["n2"], gpus=1, **wants("rack"))
    cycle = cluster().submit(job).run_cycle()
    assert len(cycle.binds) == 3
    assert racks_of(cycle) == {"r1"}


def test_a_required_zone_is_satisfied_although_all_nodes_are_in_one_rack() -> None:
    flat = dict.fromkeys(RACKS, "r0")
    assert len(cluster(racks=flat).submit(kai.gang("train", tasks=4, gpus=1, **wants("zone"))).run_cycle().binds) == 4


def test_sub_groups_have_domains_of_their_own() -> None:
    parts = [{"name": name, "minMember": 4, **wants("rack")} for name in ("left", "right")]
    pods = [kai.pod(f"{part['name']}-{number}", "serve", part=part["name"], gpus=1) for part in parts for number in range(4)]
    cycle = cluster().submit(kai.pod_group("serve", min_member=8, subGroups=parts), pods).run_cycle()
    left = {RACKS[node] for name, node in cycle.binds if name.startswith("left")}
    right = {RACKS[node] for name, node in cycle.binds if name.startswith("right")}
    assert len(cycle.binds) == 8
    assert (len(left), len(right), left & right) == (1, 1, set())


def test_the_sub_group_that_no_domain_takes_is_named() -> None:
    parts = [{"name": "left", "minMember": 2, **wants("rack")}, {"name": "right", "minMember": 5, **wants("rack")}]
    counts = {"left": 2, "right": 5}
    pods = [kai.pod(f"{name}-{number}", "serve", part=name, gpus=1) for name, count in counts.items() for number in range(count)]
    cycle = cluster().submit(kai.pod_group("serve", min_member=7, subGroups=parts), pods).run_cycle()
    assert cycle.why("serve") == (
        "2 of 7 tasks fit (right: 0 of 5); no domain of level 'rack' in topology 'net' has room for all of sub-group right"
    )


def test_nodes_without_a_label_of_the_tree_are_outside() -> None:
    bare = build.node("bare", labels={"zone": "z"}, gpus=8, cpu=64)
    cycle = cluster().submit(bare, kai.gang("train", tasks=5, gpus=1, **wants("zone"))).run_cycle()
    assert "bare" not in {node for _, node in cycle.binds}


@pytest.mark.parametrize("is_required", [True, False])
def test_a_level_that_is_not_there_keeps_only_its_own_job_waiting(is_required: bool) -> None:
    broken = kai.gang("train", tasks=2, gpus=1, **wants("block", required=is_required))
    cycle = cluster().submit(broken, kai.gang("other", gpus=1)).run_cycle()
    assert [name for name, _ in cycle.binds] == ["other-0"]
    assert cycle.why("train") == "topology net has no level 'block'; its levels are: zone, rack"


def test_a_topology_that_is_not_there_is_named() -> None:
    cycle = cluster().submit(kai.gang("train", gpus=1, **wants("rack", tree="ring"))).run_cycle()
    assert cycle.why("train") == "Requested topology ring does not exist"
    assert cycle.condition("train", "UnschedulableOnNodePool") == "Requested topology ring does not exist"


# --- constraints of other dialects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constraint", [{"mode": "hard", "highestTierAllowed": 1}, {"mode": "hard", "highestTierName": "leaf"}, {"mode": "soft"}]
)
@pytest.mark.parametrize("field", ["networkTopology", "subGroupPolicy"])
def test_a_constraint_on_hypernodes_keeps_no_gang_from_starting(constraint: dict[str, Any], field: str) -> None:
    documents = build.gang("train", tasks=4, gpus=1, queue="a")
    part = {"name": "ring", "matchLabelKeys": ["ring"], "subGroupSize": 2, "networkTopology": constraint}
    documents[0]["spec"][field] = constraint if field == "networkTopology" else [part]
    for number, pod in enumerate(documents[1:]):
        pod["metadata"]["labels"] = {"ring": str(number // 2)}
    cycle = cluster().submit(documents).run_cycle()
    assert (len(cycle.binds), cycle.why("train")) == (4, "")


def test_a_gang_with_a_constraint_on_hypernodes_is_told_that_places_are_missing_and_no_domain() -> None:
    documents = build.gang("train", tasks=9, gpus=1, queue="a")
    documents[0]["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    cycle = cluster().submit(documents).run_cycle()
    assert cycle.binds == []
    assert cycle.why("train").startswith("8 of 9 tasks fit; no place for 1 nvidia.com/gpu")
