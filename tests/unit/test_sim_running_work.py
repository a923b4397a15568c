"""Work: gangs make progress while they are whole, and end."""

import pytest

from phalanx.errors import SnapshotError
from phalanx.model.kinds import GROUP_BY_DIALECT, POD
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey, TaskKey
from phalanx.model.work_annotations import CHECKPOINT_EVERY, LAST_CHECKPOINT
from phalanx.sim.playback import End, play
from phalanx.sim.running_work import DURATION, duration_of
from phalanx.sim.settings import Checkpoints, Duration, Settings, Span
from phalanx.testing import build
from tests.support import sim_worlds as worlds


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("2h30m", 9000.0), ("7d", 604_800.0), ("1.5d2h", 136_800.0), ("12.5", 12.5)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert duration_of(text) == Span(seconds, seconds)


def test_a_duration_may_be_a_range() -> None:
    assert duration_of("30m..2h") == Span(1800.0, 7200.0)


@pytest.mark.parametrize("text", ["", "soon", "1.2.3", "-5", "d", "1d2d", "1dx", "2h1d", "2h..1h", "1h..", "..1h"])
def test_a_wrong_duration_says_what_to_write(text: str) -> None:
    with pytest.raises(SnapshotError, match=r"is not a duration; write for example '90s', '2h30m' or '30m\.\.2h'"):
        duration_of(text)


def test_a_gang_ends_after_its_duration_from_when_it_was_whole() -> None:
    world = worlds.world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1))
    worlds.run(world, 200)
    assert worlds.record(world, "a").spans == [(1.0, 61.0)]
    assert worlds.phases(world.store) == {"a-0": "Succeeded", "a-1": "Succeeded"}


def test_a_pod_that_succeeds_says_when_its_containers_ended() -> None:
    world = worlds.world(nodes=1, gpus=1)
    worlds.submit(world, worlds.gang("a", duration="60s", gpus=1))
    worlds.run(world, 200)
    task = world.cluster.state.task(TaskKey("default/a-0"))
    assert task is not None
    assert (task.started, task.finished) == (world.start + 1, world.start + 61)


def test_a_half_started_gang_makes_no_progress() -> None:
    world = worlds.world(nodes=1, gpus=1, policy=build.policy((("predicates",),), "allocate"), is_solo=True)
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1))
    worlds.run(world, 1000)
    assert worlds.record(world, "a").spans == []
    assert sorted(worlds.phases(world.store).values()) == ["Pending", "Running"]
    assert not world.work.is_whole(GangKey("default/a"))


@pytest.mark.parametrize("keeps_progress", [False, True])
def test_an_interrupted_gang_begins_anew_unless_progress_is_kept(keeps_progress: bool) -> None:
    world = worlds.world(nodes=2, gpus=1, settings=Settings(keeps_progress=keeps_progress))
    worlds.submit(world, worlds.gang("a", tasks=2, duration="60s", gpus=1))
    world.plan(31, lambda: world.faults.fail("default", "a-0"))
    worlds.run(world, 200)
    first, second = worlds.record(world, "a").spans
    assert first == (1.0, 31.0)
    assert second[1] == pytest.approx(second[0] + (30 if keeps_progress else 60))
    assert worlds.record(world, "a").finished == second[1]


GANG_OF_PODS = {"name": "a", "min-available": "2"}
SAVING = Settings(checkpoints=(Checkpoints("default/*", 20.0),))


def test_an_interrupted_gang_goes_on_at_its_last_checkpoint() -> None:
    world = worlds.world(nodes=2, gpus=1, settings=SAVING)
    worlds.submit(world, worlds.gang("a", tasks=2, duration="100s", gpus=1))
    for moment in (56, 90):
        world.plan(moment, lambda: world.faults.fail("default", "a-0"))
    worlds.run(world, 300)
    first, second, third = worlds.record(world, "a").spans
    assert (first, second[1]) == ((1.0, 56.0), 90.0)
    assert worlds.record(world, "a").kept[:2] == [40.0, 20.0]
    assert third[1] == worlds.record(world, "a").finished == third[0] + 40


def test_a_gang_that_is_interrupted_before_it_saves_again_keeps_what_it_had_saved() -> None:
    world = worlds.world(nodes=2, gpus=1, settings=SAVING)
    worlds.submit(world, worlds.gang("a", tasks=2, duration="100s", gpus=1))
    for moment in (25, 35):
        world.plan(moment, lambda: world.faults.fail("default", "a-0"))
    worlds.run(world, 300)
    assert worlds.record(world, "a").kept[:2] == [20.0, 0.0]
    last = worlds.record(world, "a").spans[-1]
    assert last[1] == last[0] + 80


def test_what_a_pod_says_of_checkpoints_goes_before_its_group_and_the_scenario() -> None:
    world = worlds.world(nodes=2, gpus=1, settings=SAVING)
    group, pod = worlds.gang("a", tasks=1, duration="100s", gpus=1)
    group["metadata"]["annotations"][CHECKPOINT_EVERY] = "50s"
    pod["metadata"]["annotations"][CHECKPOINT_EVERY] = "0s"
    other, other_pod = worlds.gang("b", tasks=1, duration="100s", gpus=1)
    other["metadata"]["annotations"][CHECKPOINT_EVERY] = "50s"
    worlds.submit(world, [group, pod], [other, other_pod])
    for name in ("a-0", "b-0"):
        world.plan(71, lambda name=name: world.faults.fail("default", name))  # type: ignore[misc]
    worlds.run(world, 72)
    assert (worlds.record(world, "a").kept, worlds.record(world, "b").kept) == ([0.0], [50.0])


def test_a_checkpoint_is_written_on_the_group_as_a_job_would() -> None:
    world = worlds.world(nodes=1, gpus=1, settings=SAVING)
    worlds.submit(world, worlds.gang("a", tasks=1, duration="100s", gpus=1), worlds.gang("b", tasks=2, duration="100s", gpus=1))
    worlds.run(world, 50)
    found = [world.store.get(GROUP_BY_DIALECT["volcano"], "default", name)["metadata"]["annotations"] for name in ("a", "b")]
    assert found[0][LAST_CHECKPOINT] == moment_text(int(world.start + 41))
    assert LAST_CHECKPOINT not in found[1], "it has not started"


def test_a_checkpoint_of_a_gang_without_a_group_is_written_on_its_pods() -> None:
    world = worlds.world(nodes=1, gpus=2, settings=SAVING)
    pods = [build.pod(f"a-{number}", gpus=1) for number in range(2)]
    for pod in pods:
        pod["metadata"]["annotations"] = {f"gang.scheduling.koordinator.sh/{name}": text for name, text in GANG_OF_PODS.items()}
    worlds.submit(world, pods)
    worlds.run(world, 30)
    found = [(pod["metadata"].get("annotations") or {}).get(LAST_CHECKPOINT) for pod in world.store.items(POD)]
    assert (len(found), set(found)) == (2, {moment_text(int(world.start + 21))})


def test_checkpoints_of_a_gang_that_never_ends_do_not_keep_a_simulation_going() -> None:
    world = worlds.world(nodes=1, gpus=1, settings=SAVING)
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    ending = play(world, None, lambda moment: moment)
    assert (ending.end, ending.seconds) == (End.DONE, 1.0)


def test_a_pod_may_have_a_duration_of_its_own() -> None:
    world = worlds.world(nodes=2, gpus=1)
    group, first, second = worlds.gang("a", tasks=2, duration="60s", gpus=1)
    first["metadata"]["annotations"][DURATION] = "10s"
    worlds.submit(world, [group, first, second])
    worlds.run(world, 30)
    assert worlds.phases(world.store) == {"a-0": "Succeeded", "a-1": "Running"}
    worlds.run(world, 100)
    assert worlds.record(world, "a").finished == 61.0


def test_durations_by_name_stand_in_for_annotations_and_others_run_forever() -> None:
    durations = (Duration("default/short-*", Span(5, 5)), Duration("default/s*", Span(50, 50)))
    world = worlds.world(nodes=3, gpus=1, settings=Settings(durations=durations))
    worlds.submit(world, *(worlds.gang(name, tasks=1, gpus=1) for name in ("short-x", "slow", "other")))
    worlds.run(world, 10_000)
    finished = {key: record.finished for key, record in world.recorder.gangs.items()}
    assert finished == {"default/short-x": 6.0, "default/slow": 51.0, "default/other": None}


def test_a_range_is_drawn_once_for_all_pods_of_a_gang() -> None:
    world = worlds.world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, duration="1m..10m", gpus=1))
    worlds.run(world, 1000)
    ((begun, ended),) = worlds.record(world, "a").spans
    assert ended is not None
    assert 60 <= ended - begun <= 600
    assert worlds.record(world, "a").finished == ended


def test_a_gang_that_worked_before_the_start_ends_so_much_earlier_unless_it_is_interrupted() -> None:
    first_gang, second_gang = GangKey("default/a"), GangKey("default/b")
    settings = Settings(done_by_gang={first_gang: 40.0, second_gang: 40.0}, duration_by_gang={second_gang: 100.0})
    world = worlds.world(nodes=2, gpus=1, settings=settings)
    worlds.submit(world, worlds.gang("a", duration="60s", gpus=1), worlds.gang("b", duration="60s", gpus=1))
    world.plan(31, lambda: world.faults.fail("default", "b-0"))
    worlds.run(world, 300)
    assert worlds.record(world, "a").spans == [(1.0, 21.0)]
    first, second = worlds.record(world, "b").spans
    assert (first, second[1]) == ((1.0, 31.0), second[0] + 100.0)
