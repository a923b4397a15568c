"""What counts in the comparison of a recording with simulations of its work."""

from pathlib import Path

import pytest

from phalanx.model.kinds import POD
from phalanx.recording.load import load_of
from phalanx.recording.observed_work import ObservedWork
from phalanx.recording.other_outcome import ComparedGang, GangOutcome, compared, distance, recorded_outcome
from phalanx.recording.reading import Recording
from phalanx.recording.shadow_outcome import Worlds
from phalanx.sim.world import World
from tests.support import deadlocked_worlds as deadlocks
from tests.support import sim_worlds as worlds
from tests.support.recordings import observed

LEFT = "train-0"


def followed(folder: Path, world: World, seconds: float) -> ObservedWork:
    """Record a world as others see it, and follow the recording."""
    with observed(world, folder):
        worlds.run(world, seconds)
    work = ObservedWork()
    for _, entry in Recording(folder, tell=pytest.fail).entries():
        work.enter(entry)
    work.finish()
    return work


def running(name: str = "train") -> World:
    """Return a world with a gang of two that runs after some seconds."""
    world = deadlocks.without_gangs()
    worlds.submit(world, worlds.gang(name, tasks=2, gpus=1), at=5)
    return world


def replace_pod(world: World) -> None:
    """Delete a pod that runs, and let another one come in its place."""
    pod = world.store.find(POD, "default", LEFT)
    assert pod is not None
    fresh = {**pod, "metadata": {key: value for key, value in pod["metadata"].items() if key != "uid"}, "status": {}}
    fresh["spec"] = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    world.store.delete(POD, "default", LEFT)
    world.plan(40, lambda: world.submit([[fresh]]))


def test_a_pod_that_leaves_a_node_in_order_and_comes_back_was_evicted(tmp_path: Path) -> None:
    world = running()
    world.plan(30, lambda: replace_pod(world))
    (life,) = followed(tmp_path, world, 60).lives
    assert life.evicted == 1


@pytest.mark.parametrize("event", ["drain", "die", "leave"])
def test_a_pod_that_leaves_a_node_which_is_drained_or_dead_was_not_evicted(event: str, tmp_path: Path) -> None:
    world = running()

    def lose_node() -> None:
        pod = world.store.find(POD, "default", LEFT)
        assert pod is not None
        getattr(world.faults, event)(pod["spec"]["nodeName"])

    world.plan(20, lose_node)
    work = followed(tmp_path, world, 900)
    (life,) = work.lives
    assert len(life.seat_by_uid) == 3, "another pod has come"
    assert (life.evicted, len(life.seats)) == (0, 2)


def test_a_gang_that_kube_scheduler_preempted_for_good_was_evicted_and_its_duration_is_not_known(tmp_path: Path) -> None:
    world = running()

    def preempt() -> None:
        for number in range(2):
            pod = world.store.find(POD, "default", f"train-{number}")
            assert pod is not None
            conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
            world.store.replace({**pod, "status": {**pod["status"], "conditions": conditions}}, is_status=True)
            world.store.delete(POD, "default", f"train-{number}")

    world.plan(30, preempt)
    work = followed(tmp_path, world, 60)
    (life,) = work.lives
    assert (life.evicted, life.duration()) == (2, None)
    load = load_of(work, start=work.begun, assumed=100.0)
    assert load.unmeasured == 1
    assert any(note.startswith("1 gang evicted for good, but not in the load") for note in load.notes)


def test_a_gang_that_a_simulation_does_not_have_gains_nothing(tmp_path: Path) -> None:
    work = followed(tmp_path, running(), 60)
    (life,) = work.lives
    (row,) = compared({life.name: life}, work.ended, {life.name: recorded_outcome(life, work.ended)}, {})
    assert not row.other.has_started
    assert row.other.wait == pytest.approx(55, abs=1)
    assert Worlds.of([row], ()).document()["later"] == 1


def test_a_gang_that_was_deleted_while_it_waited_has_waited_until_then_in_both_worlds(tmp_path: Path) -> None:
    world = running()
    worlds.submit(world, worlds.gang("large", tasks=4, gpus=1), at=10)
    world.plan(40, lambda: [world.store.delete(POD, "default", f"large-{number}") for number in range(4)])
    work = followed(tmp_path, world, 1000)
    life = next(life for life in work.lives if life.name == "default/large")
    same, other = ({life.name: outcome(wait, 990)} for wait in (700.0, 2.0))
    (row,) = compared({life.name: life}, work.ended, same, other)
    assert (row.recorded.has_started, row.same.has_started, row.other.has_started) == (False, False, True)
    assert row.recorded.wait == row.same.wait == pytest.approx(30, abs=2)
    assert row.other.wait == 2.0


def outcome(wait: float, end: float | None = None) -> GangOutcome:
    return GangOutcome(wait, True, end is not None, 0, end)


def row(number: int, recorded: GangOutcome, same: GangOutcome, other: GangOutcome) -> ComparedGang:
    return ComparedGang(f"default/g{number}", "default", False, recorded, same, other)


def test_the_margin_is_what_nine_of_ten_waits_keep() -> None:
    """One wait that is far away says little of the others, and a mean would hide several that are."""
    errors = [0.0] * 16 + [60.0] * 4
    rows = [row(number, outcome(100), outcome(100 + error), outcome(70)) for number, error in enumerate(errors)]
    assert (distance(rows).mean, distance(rows).high) == (12.0, 60.0)
    assert Worlds.of(rows, ()).margin == 60.0
    assert Worlds.of(rows, ()).document()["same"] == 20


def test_the_time_to_the_end_counts_gangs_that_ended_in_both_worlds() -> None:
    rows = [
        row(1, outcome(10, 100), outcome(10, 100), outcome(0, 160)),
        row(2, outcome(10, 50), outcome(10, 50), outcome(0)),
        row(3, outcome(10), outcome(10), outcome(0, 20)),
    ]
    assert Worlds.of(rows, ()).document()["timeToEnd"] == {"gangs": 1, "recorded": 100.0, "ours": 160.0}
    assert Worlds.of(rows[1:], ()).document()["timeToEnd"] == {"gangs": 0, "recorded": None, "ours": None}
