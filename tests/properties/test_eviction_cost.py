"""Queues do not take the same gang from each other again and again, at a load above what the cluster can do."""

from collections import defaultdict
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.generate import generate
from phalanx.sim.playback import play
from phalanx.sim.settings import Settings
from phalanx.sim.setup import set_workload
from phalanx.sim.world import World

DAY = 86_400.0
MOST_IN_A_DAY = 5
"""With a first back-off of one hour that doubles: after 0, 1, 3, 7 and 15 hours."""
PHALANX = policy_of_profile("phalanx")


def with_costs(**arguments: object) -> Policy:
    """Return our own profile with other settings of `evictioncost`."""
    tiers = tuple(
        tuple(replace(plugin, arguments=arguments) if plugin.name == "evictioncost" else plugin for plugin in tier)
        for tier in PHALANX.tiers
    )
    return replace(PHALANX, tiers=tiers)


def without_costs() -> Policy:
    """Return our own profile without it."""
    return replace(
        PHALANX, tiers=tuple(tuple(plugin for plugin in tier if plugin.name != "evictioncost") for tier in PHALANX.tiers)
    )


def evictions_by_gang(policy: Policy, seed: int) -> dict[str, list[float]]:
    """Return when each gang was evicted for others; pods that go together are one eviction."""
    world = World(Profile(policy, CATALOGUE), settings=Settings(heartbeat=600.0, parks_up_to=1800.0, says_why=False), seed=0)
    set_workload(world, generate(seed, jobs=50, nodes=4, days=1, load=1.5, queues=3), policy.dialect)
    play(world, None, lambda moment: moment)
    found: dict[str, set[float]] = defaultdict(set)
    for each in world.recorder.evictions:
        if each.preemptor:
            found[each.gang].add(each.moment)
    return {gang: sorted(moments) for gang, moments in found.items()}


def most_in_a_day(moments: list[float]) -> int:
    return max(sum(begin <= moment < begin + DAY for moment in moments) for begin in moments)


@settings(deadline=None, max_examples=4)
@given(st.integers(0, 2**20), st.sampled_from([0.25, 1e6]))
def test_no_gang_is_evicted_more_often_in_a_day_than_the_back_off_allows(seed: int, most_lost: float) -> None:
    found = evictions_by_gang(with_costs(mostLost=most_lost), seed)
    assert all(most_in_a_day(moments) <= MOST_IN_A_DAY for moments in found.values())


def test_without_it_gangs_are_evicted_more_often() -> None:
    """So that the law above is one of the plugin and not of the load."""
    before, after = (sum(map(len, evictions_by_gang(policy, 3).values())) for policy in (without_costs(), PHALANX))
    assert after < before / 2
