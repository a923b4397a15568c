"""Gangs with network topology: runs of tasks in one HyperNode are placed as if they came one by one."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Document


def objects(random: Random) -> list[Document]:
    """Return nodes in two or three tiers of HyperNodes, some outside, and gangs that want to be close."""
    count, width = random.randint(2, 16), random.randint(1, 4)
    names = [f"n{number:02}" for number in range(count)]
    found: list[Document] = [build.queue("default"), *(build.node(name, cpu=random.choice((2, 4, 8))) for name in names)]
    inside = names if random.random() < 0.7 else names[: count // 2 + 1]
    leaves = [inside[start : start + width] for start in range(0, len(inside), width)]
    found += [build.hypernode(f"leaf-{number}", tier=1, members=part) for number, part in enumerate(leaves)]
    if len(leaves) > 2 and random.random() < 0.7:
        halves = [range(len(leaves) // 2), range(len(leaves) // 2, len(leaves))]
        parts = [[f"leaf-{number}" for number in half] for half in halves]
        found += [build.hypernode(f"part-{number}", tier=2, members=part, of="HyperNode") for number, part in enumerate(parts)]
    for number in range(random.randint(1, 3)):
        found += _gang(random, f"gang-{number}", names)
    return found


def _gang(random: Random, name: str, nodes: list[str]) -> list[Document]:
    tasks, cpu = random.randint(2, 14), random.choice((1, 1, 2))
    mode = {"mode": "hard", "highestTierAllowed": random.randint(1, 3)} if random.random() < 0.3 else {"mode": "soft"}
    group, *pods = build.gang(name, tasks=tasks, cpu=cpu)
    group["spec"] |= {"networkTopology": mode, "minMember": random.randint(1, tasks)}
    for pod in random.sample(pods, random.choice((0, 0, 1))):
        pod["spec"]["nodeName"], pod["status"] = random.choice(nodes), {"phase": "Running"}
    for pod in random.sample(pods, random.choice((0, 0, 2))):
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    return [group, *pods]


def policy(random: Random) -> Policy:
    plugins: list[Document] = [
        {"name": "binpack", "arguments": {"binpack.weight": random.randint(0, 5)}},
        {
            "name": "nodeorder",
            "arguments": {f"{name}.weight": random.randint(0, 3) for name in ("leastrequested", "balancedresource")},
        },
        {"name": "network-topology-aware", "arguments": {"weight": random.choice((1, 1, 3))}},
    ]
    tiers = [{"plugins": [{"name": "gang"}]}, {"plugins": [{"name": "predicates"}, *plugins]}]
    document = {"actions": "allocate", "tiers": tiers}
    return read_policy(document, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))


def binds(documents: list[Document], chosen: Policy) -> dict[str, Any]:
    cluster = ObjectCluster()
    for document in documents:
        assert cluster.put(document)
    snapshot = cluster.snapshot(0.0)
    found: dict[str, Any] = answer(snapshot, run_cycle(snapshot, chosen, CATALOGUE))["binds"]
    return found


@settings(deadline=None, max_examples=250)
@given(st.integers(0, 2**40))
def test_runs_in_a_hypernode_equal_placing_one_by_one(seed: int) -> None:
    random = Random(seed)
    documents, chosen = objects(random), policy(random)
    together = binds(documents, chosen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "is_local", lambda session, shape: False)
        assert binds(documents, chosen) == together
