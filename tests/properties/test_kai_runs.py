"""Tasks that are alike are placed in runs, and everything is as if each had been placed by itself."""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.placement import Mask, Scores
from phalanx.session.arguments import PlainPlugin
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import random_kai_clusters as kai_chance

SEEDS = st.integers(0, 2**40)


class OneByOnePlugin(PlainPlugin):
    """Scores nothing and does not say that it keeps the order of nodes, so that nothing is placed in runs."""

    name = "onebyone"

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score all nodes alike."""
        return np.zeros(len(offered))


ONE_BY_ONE = Catalogue(KAI_CATALOGUE.actions, {**KAI_CATALOGUE.plugins, OneByOnePlugin.name: OneByOnePlugin})


def one_by_one(policy: Policy) -> Policy:
    return replace(policy, tiers=(*policy.tiers, (PluginPolicy(OneByOnePlugin.name),)))


def snapshot_of(objects: list[Document]) -> Snapshot:
    cluster = ObjectCluster()
    for item in objects:
        assert cluster.put(item)
    return cluster.snapshot(kai_chance.NOW)


def crowd(chance: Random) -> list[Document]:
    """Return nodes of several sizes, and gangs of many tasks that run on them, leave them and wait for them."""
    free = {f"n{number}": [chance.choice((2, 4, 8)), chance.choice((4, 110))] for number in range(chance.randint(2, 6))}
    nodes = [_node(chance, name, gpus, pods) for name, (gpus, pods) in free.items()]
    queues = [kai.queue("top", parent="", quota=-1), *(_queue(chance, name) for name in kai_chance.LEAVES)]
    found = [*nodes, *queues, *map(kai.priority_class, kai.CLASSES), kai.topology("net", "zone")]
    for number in range(chance.randint(2, 9)):
        found += _gang(chance, f"job-{number}", free, runs=chance.random() < 0.5)
    return found


def _node(chance: Random, name: str, gpus: int, pods: int) -> Document:
    return build.node(name, labels={"zone": chance.choice("xy")}, cpu=chance.choice((8, 64)), pods=pods, gpus=gpus)


def _queue(chance: Random, name: str) -> Document:
    return kai.queue(name, parent="top", quota=chance.choice((0, 4, 8, -1)), limit=chance.choice((-1, -1, 12)))


def _gang(chance: Random, name: str, free: dict[str, list[int]], *, runs: bool) -> list[Document]:
    tasks, gpus = chance.randint(1, 12), chance.choice((0, 1, 1, 2, 4))
    group = kai.pod_group(name, min_member=chance.randint(1, tasks), queue=chance.choice(kai_chance.LEAVES))
    group["spec"] |= {"priorityClassName": chance.choice(tuple(kai.CLASSES)), "preemptibility": "preemptible"}
    group["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{chance.randint(0, 9)}Z"
    if chance.random() < 0.2:
        level = chance.choice(("requiredTopologyLevel", "preferredTopologyLevel"))
        group["spec"]["topologyConstraint"] = {"topology": "net", level: "zone"}
    asks: dict[str, Any] = {"gpus": gpus} if gpus else {}
    pods = [kai.pod(f"{name}-{number}", name, **asks) for number in range(tasks)]
    for pod in pods if runs else ():
        _start(chance, pod, gpus, free)
    for pod in pods:
        if chance.random() < 0.1:
            pod.setdefault("status", {})["nominatedNodeName"] = chance.choice(tuple(free))
    return [group, *pods]


def _start(chance: Random, pod: Document, gpus: int, free: dict[str, list[int]]) -> None:
    roomy = [name for name, (devices, pods) in free.items() if devices >= gpus and pods]
    if not roomy:
        return
    name = chance.choice(roomy)
    free[name] = [free[name][0] - gpus, free[name][1] - 1]
    pod["spec"]["nodeName"], pod["status"] = name, {"phase": "Running"}
    if chance.random() < 0.1:
        kai.leaving(pod)


def both_ways(objects: list[Document], policy: Policy) -> list[bytes]:
    snapshot = snapshot_of(objects)
    found = (run_cycle(snapshot, policy, KAI_CATALOGUE), run_cycle(snapshot, one_by_one(policy), ONE_BY_ONE))
    return [msgspec.json.encode(answer(snapshot, decisions)) for decisions in found]


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_a_crowded_cluster_is_scheduled_as_if_each_task_was_placed_by_itself(seed: int) -> None:
    in_runs, by_itself = both_ways(crowd(Random(seed)), kai.policy())
    assert in_runs == by_itself


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_any_cluster_is_scheduled_as_if_each_task_was_placed_by_itself(seed: int) -> None:
    chance = Random(seed)
    in_runs, by_itself = both_ways(kai_chance.objects(chance), kai.policy(**kai_chance.config(chance)))
    assert in_runs == by_itself
