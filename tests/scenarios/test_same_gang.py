"""The same gang is the same gang in every dialect: placed alike, and beside the others whole or not at all."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.model.kinds import POD
from phalanx.sim.world import World
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import same_gang as speech

PROFILES = ("phalanx", "volcano")
WITH_ROLES = ("volcano", "kai", "koordinator", "yunikorn")
ELASTIC = tuple(dialect for dialect in speech.DIALECTS if dialect != "kueue")
"""All that can say that a gang needs fewer pods than it has."""


def cluster(profile: str, *, nodes: int) -> Cluster:
    """Return nodes of which some have more in use than others, so that it matters which are taken."""
    found = build.cluster(nodes=nodes, gpus=4, policy=speech.policy(profile)).submit(build.queue("default"))
    return found.submit(build.pod(f"busy-{number}", on=f"node-{number}", gpus=number % 3) for number in range(0, nodes, 2))


def binds(found: Cluster, documents: list[Document]) -> dict[str, str]:
    """Return who is bound where, after as many sessions as admission may take."""
    found.submit(speech.seen(documents))
    cycle = found.run_cycle()
    if not cycle.binds:
        groups = [item for item in documents if item["kind"] == "PodGroup"]
        found.submit({**group, "status": {"phase": "Inqueue"}} for group in groups)
        cycle = found.run_cycle()
    return dict(cycle.binds)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dialect", ELASTIC)
def test_four_pods_of_which_three_are_needed_are_on_the_same_nodes(dialect: str, profile: str) -> None:
    expected = binds(cluster(profile, nodes=4), speech.gang("volcano", "train", tasks=4, min_member=3, gpus=2))
    assert len(expected) == 4
    assert binds(cluster(profile, nodes=4), speech.gang(dialect, "train", tasks=4, min_member=3, gpus=2)) == expected


@pytest.mark.parametrize("dialect", ELASTIC)
def test_three_of_four_start_where_there_is_room_for_three(dialect: str) -> None:
    only = build.cluster(nodes=1, gpus=6, policy=speech.policy()).submit(build.queue("default"))
    assert len(binds(only, speech.gang(dialect, "train", tasks=4, min_member=3, gpus=2))) == 3


def test_kueue_has_no_word_for_a_minimum_below_the_number_of_pods() -> None:
    only = build.cluster(nodes=1, gpus=6, policy=speech.policy()).submit(build.queue("default"))
    documents = speech.gang("kueue", "train", tasks=4, min_member=3, gpus=2)
    assert binds(only, documents) == {}
    expected = binds(cluster("phalanx", nodes=4), speech.gang("volcano", "train", tasks=4, gpus=2))
    assert binds(cluster("phalanx", nodes=4), documents) == expected != {}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("dialect", WITH_ROLES)
def test_two_roles_are_on_the_same_nodes(dialect: str, profile: str) -> None:
    parts = {"launcher": 1, "worker": 3}
    expected = binds(cluster(profile, nodes=4), speech.roles("volcano", "train", parts, gpus=2))
    assert len(expected) == 4
    assert binds(cluster(profile, nodes=4), speech.roles(dialect, "train", parts, gpus=2)) == expected


@pytest.mark.parametrize("dialect", speech.DIALECTS)
def test_nobody_starts_where_there_is_no_room_for_the_minimum(dialect: str) -> None:
    found = build.cluster(nodes=1, gpus=4, policy=speech.policy()).submit(build.queue("default"))
    assert binds(found, speech.gang(dialect, "train", tasks=4, min_member=3, gpus=2)) == {}


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**40))
def test_all_eight_in_one_cluster_start_whole_or_not_at_all(seed: int) -> None:
    random = Random(seed)
    sizes = {dialect: random.randint(1, 5) for dialect in speech.DIALECTS}
    minima = {dialect: size if dialect == "kueue" else random.randint(1, size) for dialect, size in sizes.items()}
    found = cluster("phalanx", nodes=random.randint(1, 8))
    for dialect in random.sample(speech.DIALECTS, len(speech.DIALECTS)):
        found.submit(speech.seen(speech.gang(dialect, dialect, tasks=sizes[dialect], min_member=minima[dialect], gpus=2)))
    started = [pod.rpartition("-")[0] for pod, _ in found.run_cycle().binds]
    for dialect in speech.DIALECTS:
        assert started.count(dialect) == 0 or started.count(dialect) >= minima[dialect]


def test_all_eight_start_where_there_is_room() -> None:
    found = speech.cluster(nodes=8, gpus=8)
    found.submit([speech.gang(dialect, dialect, tasks=4, gpus=2) for dialect in speech.DIALECTS])
    found.advance(found.start + 60)
    assert {dialect: len(speech.running(found, dialect)) for dialect in speech.DIALECTS} == dict.fromkeys(speech.DIALECTS, 4)


def test_gates_plan_the_same_nodes_as_the_scheduler_would_take() -> None:
    found = speech.cluster(nodes=4, gpus=4)
    other = speech.cluster(nodes=4, gpus=4)
    found.submit([speech.gang("gates", "train", tasks=4, gpus=2)])
    other.submit([speech.gang("volcano", "train", tasks=4, gpus=2)])
    for world in (found, other):
        world.advance(world.start + 60)
    assert places(found) == places(other)


def places(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in world.store.items(POD)}
