"""Laws of binds that fail, over sessions in virtual time. A failure names the seed of its cluster."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.policies import policy_of_profile
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import kai_objects as kai
from tests.support.refused_binds import Refusals

SEEDS = st.integers(0, 2**40)
SECONDS = 80
LONGEST = 16
PROFILES = pytest.mark.parametrize("profile", ["phalanx", "kai"])


class Scene:
    """A gang that comes before all others, others that fit beside each other, and nodes of which some refuse the first."""

    def __init__(self, random: Random, profile: str) -> None:
        self._random, self._is_kai = random, profile == "kai"
        self.nodes = [f"node-{number}" for number in range(random.randint(2, 4))]
        self.tasks = random.randint(1, 3)
        self.others = [f"other-{number}" for number in range(random.randint(1, 4))]

    def cluster(self, room: int) -> Cluster:
        """Return the cluster; every node has room for so many pods."""
        found = self._empty(room).submit(self._gang("first", self.tasks))
        for name in self.others:
            found.submit(self._gang(name, self._random.randint(1, max(1, room // len(self.others)))))
        return found

    def _empty(self, room: int) -> Cluster:
        backoff = {"bindbackoff": {"arguments": {"longest": f"{LONGEST}s"}}}
        if self._is_kai:
            return kai.cluster(nodes=len(self.nodes), gpus=room, plugins=backoff).submit(kai.queue("a", quota=-1))
        policy = policy_of_profile("phalanx")
        return build.cluster(nodes=len(self.nodes), policy=policy, cpu=room)

    def _gang(self, name: str, tasks: int) -> list[Document]:
        asks: dict[str, Any] = {"gpus": 1} if self._is_kai else {"cpu": 1}
        found = kai.gang(name, tasks=tasks, **asks) if self._is_kai else build.gang(name, tasks=tasks, **asks)
        for document in found:
            document["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z" if name == "first" else "2026-01-01T00:01:00Z"
        return found


@PROFILES
@settings(deadline=None, max_examples=25)
@given(SEEDS)
def test_a_gang_that_nobody_lets_in_is_tried_ever_less_and_starves_nobody(profile: str, seed: int) -> None:
    scene = Scene(Random(seed), profile)
    room = max(scene.tasks, len(scene.others))
    world = Refusals(scene.cluster(room), {"default/first": scene.nodes}).run(seconds=SECONDS)
    gaps = [later - earlier for earlier, later in pairwise(world.tries["default/first"])]
    assert "default/first" not in world.places
    assert len(gaps) > 3
    assert all(earlier <= later for earlier, later in pairwise(gaps)), gaps
    assert gaps[:4] == [1.0, 2.0, 4.0, 8.0]
    assert {f"default/{name}" for name in scene.others} <= set(world.places)


@PROFILES
@settings(deadline=None, max_examples=25)
@given(SEEDS)
def test_a_gang_that_some_nodes_refuse_starts_on_another(profile: str, seed: int) -> None:
    random = Random(seed)
    scene = Scene(random, profile)
    refusing = set(random.sample(scene.nodes, random.randint(1, len(scene.nodes) - 1)))
    room = scene.tasks + 4 * len(scene.others)
    world = Refusals(scene.cluster(room), {"default/first": refusing}).run(seconds=SECONDS)
    assert not refusing.intersection(world.places["default/first"].values())
    assert len(world.tries["default/first"]) <= len(refusing) + 1
    assert {f"default/{name}" for name in scene.others} <= set(world.places)
