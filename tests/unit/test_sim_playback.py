"""When a simulation is over."""

from phalanx.sim.node_pools import AutoscalerSettings, NodePool, NodeTemplate, Stockout
from phalanx.sim.playback import End, play
from phalanx.sim.settings import Settings
from phalanx.sim.world import World
from tests.support import sim_worlds as worlds


def test_it_ends_when_nothing_more_can_happen() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="60s", gpus=1))
    ending = play(world, None, lambda moment: moment)
    assert (ending.end, ending.seconds, ending.is_quiet) == (End.DONE, 61.0, True)


def test_it_ends_when_for_a_day_nothing_has_changed_for_those_who_wait() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    ending = play(world, None, lambda moment: moment)
    assert (ending.end, ending.is_quiet) == (End.HOPELESS, True)
    assert 86_000 < ending.seconds <= 86_400


def test_it_goes_on_while_somebody_works_however_long_others_wait() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("long", tasks=1, duration="72h", gpus=1))
    worlds.submit(world, worlds.gang("next", tasks=1, duration="60s", gpus=1), at=1)
    ending = play(world, None, lambda moment: moment)
    assert ending.end is End.DONE
    assert worlds.record(world, "next").finished == 72 * 3600 + 62


def test_it_ends_at_the_moment_that_is_expected() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="60s", gpus=1))
    ending = play(world, 30.0, lambda moment: moment)
    assert (ending.end, ending.seconds, ending.is_quiet) == (End.REACHED, 30.0, False)
    ending = play(world, 1000.0, lambda moment: moment)
    assert (ending.seconds, ending.is_quiet, world.now - world.start) == (1000.0, True, 1000.0)


def test_somebody_may_end_it() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="60s", gpus=1))
    ending = play(world, None, lambda moment: min(moment, 40))
    assert (ending.end, ending.is_quiet) == (End.INTERRUPTED, False)
    assert ending.seconds == world.now - world.start == 40


def scaled_world(*stockouts: Stockout) -> World:
    pool = NodePool("gpu", NodeTemplate({"cpu": "8", "nvidia.com/gpu": "1"}), 4, stockouts=stockouts)
    return worlds.world(nodes=0, settings=Settings(autoscaler=AutoscalerSettings((pool,))))


def test_it_ends_with_the_last_node_that_leaves() -> None:
    world = scaled_world()
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1))
    ending = play(world, None, lambda moment: moment)
    assert (ending.end, ending.seconds) == (End.DONE, 800.0)


def test_nodes_that_come_and_go_and_help_nobody_are_no_reason_to_go_on() -> None:
    world = scaled_world()
    worlds.submit(world, worlds.gang("too-large", tasks=5, gpus=1))
    ending = play(world, None, lambda moment: moment)
    assert (ending.end, ending.is_quiet) == (End.HOPELESS, True)
    assert 86_000 < ending.seconds < 90_000


def test_it_goes_on_until_a_stockout_is_over() -> None:
    world = scaled_world(Stockout(nodes=1, until=48 * 3600.0))
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1))
    ending = play(world, None, lambda moment: moment)
    assert ending.end is End.DONE
    assert worlds.record(world, "a").finished is not None
