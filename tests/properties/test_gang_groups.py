"""Gang groups depend on the groups and pods that are there, not on how they came; and they start whole or not at all."""

import json
from collections import Counter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import run_cycle
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs

NAMES = ("x/a", "x/b", "y/c", "y/d")
POLICY = policy_of_profile("coscheduling")
SEEDS = st.integers(0, 2**40)


def group(random: Random, name: str) -> dict[str, Any]:
    """Return a group that lists some others, all of them often the same."""
    others = random.choice([NAMES, NAMES[:2], NAMES[1:], random.sample(NAMES, 2), ()])
    listed = json.dumps(sorted({name, *others}))
    (found,) = sigs.koordinator_gang(name, tasks=0, min_member=random.randint(1, 2), groups=listed)
    return found


def pods() -> list[dict[str, Any]]:
    return [sigs.member(sigs.KOORDINATOR, name, f"{name[-1]}-{number}", cpu=1) for name in NAMES for number in range(2)]


def gangs(cluster: ObjectCluster) -> dict[str, Any]:
    """Return every gang with its minima, what is wrong with it, and its members with their roles."""
    snapshot = cluster.snapshot(0.0)
    return {
        key: (gang.min_member, gang.role_minima, gang.fault, {task.key: task.role for task in snapshot.members_of(key).values()})
        for key, gang in snapshot.gangs.items()
    }


def history(random: Random) -> tuple[ObjectCluster, list[dict[str, Any]]]:
    """Let groups and pods come, change and go; return the cluster and what is there at last."""
    cluster = ObjectCluster()
    present: dict[tuple[str, ...], dict[str, Any]] = {}
    for _ in range(random.randint(1, 40)):
        document = group(random, random.choice(NAMES)) if random.random() < 0.5 else random.choice(pods())
        key = (document["kind"], document["metadata"]["namespace"], document["metadata"]["name"])
        if random.random() < 0.25:
            cluster.remove(document)
            present.pop(key, None)
        else:
            cluster.put(document)
            present[key] = document
    return cluster, [*present.values()]


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_any_history_of_gang_groups_equals_a_fresh_start(seed: int) -> None:
    random = Random(seed)
    cluster, present = history(random)
    fresh = ObjectCluster()
    for document in random.sample(present, len(present)):
        fresh.put(document)
    assert gangs(cluster) == gangs(fresh)


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_a_gang_group_has_nothing_or_every_minimum_of_its_groups(seed: int) -> None:
    random = Random(seed)
    cluster, _ = history(random)
    for number in range(random.randint(1, 3)):
        cluster.put(build.node(f"node-{number}", cpu=random.randint(1, 3)))
    snapshot = cluster.snapshot(0.0)
    binds = run_cycle(snapshot, POLICY, CATALOGUE).binds
    for key, gang in snapshot.gangs.items():
        placed = Counter(task.role for task in snapshot.members_of(key).values() if task.key in binds)
        assert not placed or placed.total() >= gang.min_member
        assert not placed or all(placed[role] >= minimum for role, minimum in gang.role_minima.items())
        assert not (placed and gang.fault)
