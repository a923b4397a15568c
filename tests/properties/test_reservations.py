"""Laws of reservations and backfill, in virtual time, with a cluster in which nobody goes ahead as the judge."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.model.task import GangKey
from phalanx.session.policy import PluginPolicy, Policy
from phalanx.testing import build
from tests.support.reserving_policy import reserving_policy
from tests.support.virtual_sessions import BEGIN, NODE_GPUS, Job, VirtualCluster, nodes_of, play, some_jobs

SEEDS = st.integers(0, 2**40)
PHALANX = reserving_policy()


def policy(**arguments: object) -> Policy:
    """Return our own profile without evictions, with these settings of reservations; with none at all, without reservations."""
    tiers = tuple(
        tuple(
            PluginPolicy("reservation", arguments=arguments) if plugin.name == "reservation" else plugin
            for plugin in tier
            if plugin.name != "reservation" or arguments
        )
        for tier in PHALANX.tiers
    )
    return Policy(("allocate",), tiers, victim_rule=PHALANX.victim_rule, best_effort_members=PHALANX.best_effort_members)


VARIANTS = {"easy": policy(variant="easy"), "conservative": policy(variant="conservative", depth=3)}
NONE = policy()


def cluster(chosen: Policy, nodes: int, rack: int = 0, queues: int = 1) -> VirtualCluster:
    fixed = nodes_of(nodes, rack) + [build.queue(f"q{number}") for number in range(queues if queues > 1 else 0)]
    return VirtualCluster(chosen, fixed=[build.queue("default"), *fixed])


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.sampled_from(list(VARIANTS)), st.booleans())
def test_a_reserved_gang_starts_no_later_than_if_nobody_went_ahead(seed: int, variant: str, racks: bool) -> None:
    random = Random(seed)
    jobs = some_jobs(random, nodes=4, count=12, racks=racks)
    world, latest = cluster(VARIANTS[variant], 4, 2 if racks else 0), dict[GangKey, int]()
    for reserved in play(world, jobs):
        for each in reserved[:1]:
            if each.gang not in latest:
                judge = world.copy(NONE, [each.gang.partition("/")[2]])
                judge.run_out()
                latest[each.gang] = judge.starts[each.gang]
    assert all(world.starts[gang] <= start for gang, start in latest.items())


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.sampled_from(list(VARIANTS)), st.booleans(), st.booleans())
def test_a_reserved_start_is_kept_and_never_put_off(seed: int, variant: str, racks: bool, wholes: bool) -> None:
    """It holds for the first in line, and for all of them where no choice of nodes can leave room in pieces."""
    jobs = some_jobs(Random(seed), nodes=4, count=12, racks=racks)
    if wholes:
        jobs = [replace(job, gpus=NODE_GPUS, rack=False) for job in jobs]
    world, promised = cluster(VARIANTS[variant], 4, 2 if racks else 0), dict[GangKey, float]()
    for reserved in play(world, jobs):
        for each in reserved if wholes else reserved[:1]:
            assert each.start > BEGIN + world.now
            assert each.start <= promised.get(each.gang, each.start)
            promised[each.gang] = each.start
    assert set(world.starts) == {job.key for job in jobs}
    assert all(BEGIN + world.starts[gang] <= start for gang, start in promised.items())


@settings(deadline=None, max_examples=30)
@given(SEEDS)
def test_a_reserved_start_is_kept_though_other_queues_come_first_meanwhile(seed: int) -> None:
    jobs = some_jobs(Random(seed), nodes=4, count=14, queues=3)
    world, promised = cluster(VARIANTS["easy"], 4, queues=3), dict[GangKey, float]()
    for reserved in play(world, jobs):
        for each in reserved:
            assert each.start <= promised.get(each.gang, each.start)
            promised[each.gang] = each.start
        left = promised.keys() - world.starts.keys() - {each.gang for each in reserved}
        assert not left, "who has a reserved start has it until it starts"
    assert all(BEGIN + world.starts[gang] <= start for gang, start in promised.items())


@settings(deadline=None, max_examples=15)
@given(SEEDS)
def test_equal_input_gives_equal_output(seed: int) -> None:
    jobs = some_jobs(Random(seed), nodes=4, count=10, queues=2)
    worlds = [cluster(VARIANTS["conservative"], 4, queues=2) for _ in range(2)]
    first, second = ([repr(reserved) for reserved in play(world, jobs)] for world in worlds)
    assert first == second
    assert worlds[0].starts == worlds[1].starts


@settings(deadline=None, max_examples=30)
@given(SEEDS, st.booleans())
def test_without_run_times_nothing_changes_before_somebody_starves(seed: int, racks: bool) -> None:
    jobs = some_jobs(Random(seed), nodes=4, count=10, says=False, racks=racks)
    worlds = [cluster(chosen, 4, 2 if racks else 0) for chosen in (policy(starvation="10h"), NONE)]
    for world in worlds:
        assert not any(play(world, jobs))
    assert worlds[0].starts == worlds[1].starts


@settings(deadline=None, max_examples=3)
@given(SEEDS)
def test_without_run_times_a_stream_of_small_gangs_starves_a_large_one_no_longer_than_the_bound(seed: int) -> None:
    """From the bound on nothing starts on its nodes, so it waits for what runs there and no longer."""
    random = Random(seed)
    stream = [Job(f"s{number:03}", number * 100 + random.randrange(100), 500, 1, 4, says=False) for number in range(110)]
    large = Job("large", random.randrange(1000, 2000), 900, 4, NODE_GPUS, says=False)
    starts = {}
    for name, chosen in (("bound", policy(starvation="1h", drainFor="0s")), ("none", NONE)):
        world = cluster(chosen, 4)
        list(play(world, [*stream, large]))
        starts[name] = world.starts[large.key]
    assert starts["bound"] <= large.arrives + 3600 + 100 + 500  # sessions are a hundred seconds apart, and one gang runs 500
    assert starts["none"] > large.arrives + 2 * 3600
