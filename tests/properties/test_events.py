"""The state of a cluster depends on what there is, not on how it came about: any history equals a fresh start."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.placement import Amounts
from phalanx.session.cycle import run_cycle
from phalanx.state.snapshot import Snapshot
from phalanx.testing.build import Document
from tests.support import random_clusters as chance

SEEDS = st.integers(0, 2**40)
Identity = tuple[str, str]
Present = dict[Identity, Document]


def identity(document: Document) -> Identity:
    return document["kind"], f"{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"


def rows(snapshot: Snapshot, amounts: Amounts) -> dict[str, list[int]]:
    return {name: amounts[row].tolist() for row, name in enumerate(snapshot.space.names) if amounts[row].any()}


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """Return all that a snapshot says, in a form that compares; resources that nothing has or wants are left out."""
    tree = snapshot.hypernodes
    return {
        "nodes": [repr(node) for node in snapshot.nodes.nodes],
        "allocatable": rows(snapshot, snapshot.nodes.allocatable), "reported": rows(snapshot, snapshot.nodes.reported),
        "used": rows(snapshot, snapshot.used), "releasing": rows(snapshot, snapshot.releasing),
        "scored": snapshot.scored.tolist(), "pods": snapshot.pods.tolist(),
        "gangs": {key: repr(gang) for key, gang in snapshot.gangs.items()},
        "members": {key: {name: repr(task) for name, task in tasks.items()} for key, tasks in snapshot.members.items()},
        "on_node": {key: {name: repr(task) for name, task in tasks.items()} for key, tasks in snapshot.on_node.items()},
        "queues": [repr(queue) for queue in snapshot.queues.values()], "totals": snapshot.totals, "active": snapshot.active,
        "tree": [tree.names, tree.tiers, tree.parents, [members.tolist() for members in tree.members]],
        "affine": set(snapshot.affine), "surroundings": repr(snapshot.surroundings),
    }  # fmt: skip


def happen(random: Random, cluster: ObjectCluster, pool: list[Document], present: Present) -> None:
    """Let one event happen: an object comes, comes again changed, or goes, known or not."""
    document = random.choice(pool)
    if random.random() < 0.35:
        cluster.remove(document)
        present.pop(identity(document), None)
    else:
        cluster.put(document)
        present[identity(document)] = document


def built_from_scratch(random: Random, present: Present) -> ObjectCluster:
    cluster = ObjectCluster()
    cluster.remove({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}})
    for document in random.sample(list(present.values()), len(present)):
        cluster.put(document)
    return cluster


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_any_history_of_events_equals_a_fresh_start(seed: int) -> None:
    random = Random(seed)
    pool = chance.objects(random) + chance.objects(random)
    cluster, present = ObjectCluster(), Present()
    default = next(item for item in pool if identity(item) == ("Queue", "/default"))
    cluster.put(default)
    present[identity(default)] = default
    for _ in range(random.randint(1, 60)):
        happen(random, cluster, pool, present)
        if random.random() < 0.1:
            cluster.snapshot(0.0)
    one, other = cluster.snapshot(0.0), built_from_scratch(random, present).snapshot(0.0)
    assert contents(one) == contents(other)
    config = chance.config(random)
    policy = read_policy(config, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))
    mine, its = (answer(snapshot, run_cycle(snapshot, policy, CATALOGUE)) for snapshot in (one, other))
    assert {key: mine[key] for key in mine if key != "groups"} == {key: its[key] for key in its if key != "groups"}
    assert [(key, group["phase"], group["conditions"]) for key, group in mine["groups"].items()] == [
        (key, group["phase"], group["conditions"]) for key, group in its["groups"].items()
    ]


@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_a_snapshot_does_not_change_when_the_cluster_does(seed: int) -> None:
    random = Random(seed)
    pool = chance.objects(random) + chance.objects(random)
    cluster = ObjectCluster()
    for document in pool:
        cluster.put(document)
    snapshot = cluster.snapshot(0.0)
    before = contents(snapshot)
    for _ in range(20):
        happen(random, cluster, pool, {})
    assert contents(snapshot) == before
