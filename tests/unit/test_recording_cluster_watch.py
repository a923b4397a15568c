"""Who is half-started, in a deadlock, or waits although there is room, look by look."""

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.live.catalogue import connected
from phalanx.model.kinds import POD
from phalanx.model.resources import GPU
from phalanx.model.watch_event import WatchEvent
from phalanx.recording.cluster_watch import ClusterWatch
from phalanx.recording.half_starts import GRACE_SECONDS
from phalanx.scheduling.cache import SchedulerCache
from phalanx.sim.world import World
from tests.support import deadlocked_worlds as deadlocks
from tests.support import sim_worlds as worlds


class Watched:
    """A world, and somebody who looks at it now and then."""

    def __init__(self, world: World, *, keeps: bool = True) -> None:
        self.world, self.cache = world, SchedulerCache(ObjectCluster(), report=_fail)
        self.watch = ClusterWatch(connected(policy_of_profile("phalanx")), keeps=keeps)
        for document in world.store.everything():
            self.cache.cluster.put(document)
        world.store.listen(self._notice)

    def _notice(self, event: WatchEvent) -> None:
        self.cache.notice(event)

    def look(self, *moments: float) -> None:
        """Look at the world at some moments."""
        for moment in moments:
            worlds.run(self.world, moment)
            self.watch.look(self.cache, self.world.store, self.world.now)

    def delete(self, name: str) -> None:
        """Delete the pods of a gang."""
        for pod in self.world.store.items(POD):
            if pod["metadata"]["name"].startswith(f"{name}-"):
                self.world.store.delete(POD, "default", pod["metadata"]["name"], grace=0)


def _fail(text: str) -> None:
    raise AssertionError(text)


def test_two_gangs_with_half_of_the_nodes_each_are_in_a_deadlock() -> None:
    watched = Watched(deadlocks.deadlocked())
    watched.look(20, 21 + GRACE_SECONDS)
    (deadlock,) = watched.watch.deadlocks
    assert (set(deadlock.gangs), deadlock.is_over) == ({"default/a", "default/b"}, False)
    assert deadlock.since == watched.world.start + 20


def test_a_deadlock_is_over_when_one_of_its_gangs_lets_go() -> None:
    watched = Watched(deadlocks.deadlocked())
    watched.look(20, 60)
    watched.delete("a")
    watched.look(70)
    (deadlock,) = watched.watch.deadlocks
    assert (deadlock.is_over, deadlock.seen) == (True, watched.world.start + 70)
    assert watched.watch.deadlock is None


def test_looking_for_a_deadlock_leaves_the_cluster_as_it_is() -> None:
    watched = Watched(deadlocks.deadlocked())
    watched.look(20)
    before = watched.cache.snapshot(0.0)
    watched.watch.look(watched.cache, watched.world.store, watched.world.now + 60)
    after = watched.cache.snapshot(0.0)
    assert watched.watch.deadlocks
    assert (after.used == before.used).all()
    assert {key: set(tasks) for key, tasks in after.members.items()} == {key: set(tasks) for key, tasks in before.members.items()}


def test_one_half_started_gang_is_no_deadlock() -> None:
    world = deadlocks.without_gangs(nodes=3)
    worlds.submit(world, worlds.gang("big", tasks=4, gpus=1))
    watched = Watched(world)
    watched.look(5, 60)
    assert [half.gang for half in watched.watch.all_half_starts()] == ["default/big"]
    assert watched.watch.deadlocks == []


def test_gangs_that_are_too_large_for_the_cluster_are_in_no_deadlock() -> None:
    world = deadlocks.without_gangs()
    deadlocks.submit_in_turn(world, *(worlds.gang(name, tasks=9, gpus=1) for name in ("a", "b")), at=0)
    watched = Watched(world)
    watched.look(20, 60)
    assert len(watched.watch.all_half_starts()) == 2
    assert watched.watch.deadlocks == []


def test_what_is_held_in_vain_is_added_up() -> None:
    watched = Watched(deadlocks.deadlocked())
    watched.look(20, 120)
    held = {half.gang: half.held_seconds[GPU] for half in watched.watch.all_half_starts()}
    assert held == {"default/a": pytest.approx(200.0), "default/b": pytest.approx(200.0)}


def test_a_gang_that_gets_its_minimum_within_the_grace_was_not_half_started() -> None:
    world = deadlocks.without_gangs()
    group, *pods = worlds.gang("slow", tasks=4, gpus=1)
    worlds.submit(world, [group, *pods[:2]])
    worlds.submit(world, pods[2:], at=20)
    watched = Watched(world)
    watched.look(5, 25, 100)
    assert watched.watch.all_half_starts() == []


def test_a_gang_that_was_whole_and_lost_a_pod_is_not_half_started() -> None:
    world = deadlocks.without_gangs()
    worlds.submit(world, worlds.gang("whole", tasks=4, gpus=1))
    watched = Watched(world)
    watched.look(5)
    world.store.delete(POD, "default", "whole-0", grace=0)
    watched.look(10, 100)
    assert watched.watch.all_half_starts() == []


def test_a_gang_that_nobody_serves_has_room() -> None:
    world = worlds.world(nodes=2, gpus=1)
    world.load(worlds.gang("idle", tasks=2, gpus=1))
    watched = Watched(world)
    watched.watch.look(watched.cache, world.store, 1000.0)
    watched.watch.look(watched.cache, world.store, 1100.0)
    ((gang, seconds),) = [(span.gang, span.seconds) for span in watched.watch.all_room()]
    assert (gang, seconds) == ("default/idle", 100.0)


def test_nothing_waits_and_nothing_is_said() -> None:
    world = worlds.world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("runs", tasks=2, gpus=1))
    watched = Watched(world)
    watched.look(5, 100)
    watch = watched.watch
    assert (watch.all_half_starts(), watch.deadlocks, watch.all_room()) == ([], [], [])


def test_one_that_does_not_keep_the_past_does_not_grow() -> None:
    world = deadlocks.without_gangs()
    watched = Watched(world, keeps=False)
    for number in range(3):
        begun = number * 200.0
        names = [f"a{number}", f"b{number}"]
        deadlocks.submit_in_turn(world, *(worlds.gang(name, tasks=4, gpus=1) for name in names), at=begun)
        watched.look(begun + 20, begun + 60)
        for name in names:
            watched.delete(name)
        watched.look(begun + 80)
    watch = watched.watch
    assert (len(watch.deadlocks), watch.past_half_starts, watch.past_room) == (1, [], [])
