"""Gangs that found no room are left in peace until there is some."""

import itertools

from phalanx.model.task import GangKey
from phalanx.sim.settings import Settings
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds

PARKING = Settings(parks_up_to=240, heartbeat=10)


def seen(world: World, gang: str) -> list[float]:
    """Return a list that will hold the moments of the sessions in which a gang takes part."""
    moments: list[float] = []

    def note(snapshot: object, decisions: object) -> None:
        if GangKey(f"default/{gang}") in snapshot.active:  # type: ignore[attr-defined]
            moments.append(world.now - world.start)

    world.loop.decided.append(note)
    return moments


def full() -> World:
    """Return a world whose only two GPUs are taken until 1000 s."""
    world = worlds.world(nodes=1, gpus=2, settings=PARKING)
    worlds.submit(world, worlds.gang("first", tasks=1, duration="999s", gpus=2))
    return world


def test_a_gang_without_room_is_asked_after_longer_and_longer_times() -> None:
    world = full()
    moments = seen(world, "big")
    worlds.submit(world, worlds.gang("big", tasks=2, gpus=1), at=10)
    worlds.run(world, 900)
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert [gap for gap in gaps if gap >= 60] == [60.0, 120.0, 240.0, 240.0]


def test_it_is_asked_as_soon_as_there_is_room() -> None:
    world = full()
    worlds.submit(world, worlds.gang("big", tasks=2, gpus=1), at=10)
    worlds.run(world, 2000)
    assert worlds.record(world, "first").finished == 1000.0
    assert worlds.record(world, "big").started == 1001.0


def test_room_for_a_part_of_it_is_no_reason() -> None:
    world = worlds.world(nodes=1, gpus=2, settings=PARKING)
    moments = seen(world, "big")
    worlds.submit(world, worlds.gang("a", tasks=1, duration="30s", gpus=1), worlds.gang("b", tasks=1, duration="500s", gpus=1))
    worlds.submit(world, worlds.gang("big", tasks=2, gpus=1), at=10)
    worlds.run(world, 60)
    assert 31.0 not in [round(moment) for moment in moments if moment > 20]


def test_a_gang_that_changes_is_asked_again() -> None:
    world = full()
    moments = seen(world, "big")
    worlds.submit(world, worlds.gang("big", tasks=2, gpus=1), at=10)
    world.plan(40, lambda: world.submit([[build.in_group("big", build.pod("big-2", gpus=1))]]))
    worlds.run(world, 50)
    assert 40.0 in moments


def test_of_gangs_that_are_alike_only_the_first_in_line_is_asked_when_there_is_room_for_one() -> None:
    world = full()
    worlds.submit(world, worlds.gang("second", tasks=2, duration="50s", gpus=1), at=10)
    moments = seen(world, "third")
    worlds.submit(world, worlds.gang("third", tasks=2, gpus=1), at=11)
    worlds.run(world, 2000)
    assert worlds.record(world, "first").finished == 1000.0
    assert worlds.record(world, "second").started == 1001.0
    assert not [moment for moment in moments if 1000.0 <= moment < 1050.0]
    assert worlds.record(world, "third").started == 1052.0


def test_a_gang_that_lost_free_room_to_another_is_asked_at_its_time_all_the_same() -> None:
    world = worlds.world(nodes=1, gpus=4, settings=PARKING)
    worlds.submit(world, worlds.gang("whole", tasks=1, duration="99s", gpus=4))
    worlds.submit(world, worlds.gang("small", tasks=1, duration="999s", gpus=1), at=10)
    moments = seen(world, "big")
    worlds.submit(world, worlds.gang("big", tasks=1, gpus=4), at=20)
    worlds.run(world, 1000)
    assert 100.0 in moments, "there is room for either of them"
    asked = max(moment for moment in moments if moment < 100.0)
    assert [moment for moment in moments if 100.0 < moment < 400.0] == [asked + 120.0]


def test_no_session_is_held_that_has_no_gang_in_it() -> None:
    counts = []
    for parks_up_to in (0.0, 240.0):
        world = worlds.world(nodes=1, gpus=2, settings=Settings(parks_up_to=parks_up_to, removes_finished=True))
        worlds.submit(world, worlds.gang("only", tasks=1, duration="30s", gpus=2))
        worlds.run(world, 100)
        assert worlds.record(world, "only").finished == 31.0
        counts.append(world.loop.count)
    assert counts[1] < counts[0]
