"""What a load says of gangs that came, ran, waited, went and came again, of nodes, and of what it cannot say."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.config.policies import policy_of_profile
from phalanx.model.kinds import GROUP_BY_DIALECT, NODE, POD, QUEUE, kind_of
from phalanx.model.task import GangKey
from phalanx.model.work_annotations import ARRIVES, DURATION
from phalanx.recording.gang_lives import Ending, GangLife, Stand
from phalanx.recording.load import Load, load_of
from phalanx.recording.observed_work import ObservedWork
from phalanx.recording.reading import Recording
from phalanx.sim.scenario import Scenario, find_scenarios
from phalanx.sim.settings import Settings
from phalanx.sim.setup import set_stage
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds
from tests.support.recordings import recorded

GROUP = GROUP_BY_DIALECT["volcano"]
SHORT = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "short"}, "value": 5}


def _world(**more: Any) -> World:  # Any: as a world takes it
    return worlds.world(policy=policy_of_profile("phalanx"), **{"nodes": 2, "gpus": 2, **more})


def _load(folder: Path, *, assumed: float | None = None, start: float | None = None) -> tuple[ObservedWork, Load]:
    work = ObservedWork()
    for _, entry in Recording(folder, tell=lambda text: None).entries():
        work.enter(entry)
    work.finish()
    return work, load_of(work, start=work.begun if start is None else start, assumed=assumed)


def _loaded(folder: Path, world: World, until: float, *plan: tuple[float, Callable[[], object]]) -> tuple[ObservedWork, Load]:
    """Record a world until a moment, with some things that happen."""
    with recorded(world, folder):
        for at, deed in plan:
            world.plan(at, deed)
        worlds.run(world, until)
    return _load(folder)


def _annotations(load: Load, kind: str) -> dict[str, dict[str, str]]:
    return {item["metadata"]["name"]: item["metadata"].get("annotations") or {} for item in load.documents if item["kind"] == kind}


def _played(load: Load, until: float, **more: Any) -> World:  # Any: as a world takes it
    """Simulate a load."""
    (scenario,) = find_scenarios(yaml.safe_dump(load.scenario).encode(), "load")
    world = World(worlds.world(policy=policy_of_profile("phalanx")).loop.profile, settings=scenario.settings, **more)
    set_stage(world, worlds.parts(load.documents), scenario)
    worlds.run(world, until)
    return world


def _submit(world: World, *gangs: Sequence[Any]) -> Callable[[], object]:
    return lambda: world.submit(gangs)


def test_a_gang_that_ended_has_its_measured_duration(tmp_path: Path) -> None:
    world = _world()
    work, load = _loaded(tmp_path, world, 900, (50, _submit(world, worlds.gang("train", tasks=2, duration="5m", gpus=1))))
    (life,) = work.lives
    assert (life.wait, life.ending, life.duration()) == (1.0, Ending.ENDED, 300.0)
    assert _annotations(load, "PodGroup") == {"train": {ARRIVES: "50s", DURATION: "300s"}}
    assert all(DURATION not in found and ARRIVES not in found for found in _annotations(load, "Pod").values())
    assert load.notes == []


def test_what_has_no_end_is_said(tmp_path: Path) -> None:
    world = _world(nodes=1)
    runs, waits = (worlds.gang(name, tasks=2, gpus=1) for name in ("runs", "waits"))
    work, load = _loaded(tmp_path, world, 600, (0, _submit(world, runs)), (10, _submit(world, waits)))
    assert {life.name: life.ending for life in work.lives} == {"default/runs": Ending.RUNS, "default/waits": Ending.WAITS}
    assert _annotations(load, "PodGroup") == {"runs": {ARRIVES: "0s", DURATION: "599s"}, "waits": {ARRIVES: "10s"}}
    assert [note.partition(",")[0] for note in load.notes] == [
        "1 gang still running at the end of the recording",
        "1 gang not started by the end of the recording; durations of those without an end: no end",
    ]
    _, assumed = _load(tmp_path, assumed=90.0)
    assert _annotations(assumed, "PodGroup")["waits"][DURATION] == "90s"


def test_a_gang_that_never_started_takes_as_long_as_others_of_its_queue(tmp_path: Path) -> None:
    world = _world(nodes=1)
    world.load([build.queue("other")])
    plan = [
        (400.0 * number, _submit(world, worlds.gang(f"done-{number}", tasks=2, gpus=1, duration=f"{100 * (number + 1)}s")))
        for number in range(3)
    ]
    never = [worlds.gang("never", tasks=9, gpus=1), worlds.gang("elsewhere", tasks=9, gpus=1, queue="other")]
    _, load = _loaded(tmp_path, world, 2000, *plan, (1900, _submit(world, *never)))
    durations = {name: found.get(DURATION) for name, found in _annotations(load, "PodGroup").items()}
    assert (durations["never"], durations["elsewhere"]) == ("200s", "200s")
    assert "the median of the queue for 1, the median of all gangs for 1" in load.notes[-1]


def test_a_declared_duration_is_better_than_a_guess(tmp_path: Path) -> None:
    world = _world(nodes=1)
    gangs = [worlds.gang(name, tasks=2, gpus=1, duration="1h") for name in ("runs", "waits")]
    _, load = _loaded(tmp_path, world, 600, (0, _submit(world, *gangs)))
    assert {found[DURATION] for found in _annotations(load, "PodGroup").values()} == {"1h"}
    assert load.notes == [f"2 gangs without an end in the recording, with the annotation {DURATION} as duration"]


def test_a_name_that_is_used_again_is_another_gang(tmp_path: Path) -> None:
    world = _world(settings=Settings(removes_finished=True))
    first, again = (worlds.gang("train", tasks=2, duration=duration, gpus=1) for duration in ("1m", "3m"))
    work, load = _loaded(tmp_path, world, 900, (0, _submit(world, first)), (300, _submit(world, again)))
    assert [life.name for life in work.lives] == ["default/train", "default/train-2"]
    assert _annotations(load, "PodGroup") == {
        "train": {ARRIVES: "0s", DURATION: "60s"}, "train-2": {ARRIVES: "300s", DURATION: "180s"},
    }  # fmt: skip
    assert len(_annotations(load, "Pod")) == 4
    played = _played(load, 900)
    assert {name: record.finished for name, record in played.recorder.gangs.items()} == {
        life.name: life.finished - work.begun for life in work.lives if life.finished is not None
    }


def test_a_gang_that_was_deleted_has_ended_or_never_started(tmp_path: Path) -> None:
    world = _world(nodes=1)

    def delete(name: str) -> None:
        for pod in world.pods_of(f"default/{name}"):
            world.store.delete(POD, "default", pod.partition("/")[2], grace=0)
        world.store.delete(GROUP, "default", name)

    gangs = [worlds.gang(name, tasks=2, gpus=1) for name in ("ran", "waited")]
    work, load = _loaded(
        tmp_path, world, 600, (0, _submit(world, *gangs)), (100, lambda: delete("waited")), (200, lambda: delete("ran"))
    )
    assert {life.name: life.ending for life in work.lives} == {"default/ran": Ending.ENDED, "default/waited": Ending.DELETED}
    assert _annotations(load, "PodGroup")["ran"][DURATION] == "199s"
    assert load.notes[0].startswith("1 gang deleted before the start, but not in the load")


def test_a_recording_that_begins_in_the_middle_has_what_runs_then(tmp_path: Path) -> None:
    world = _world(nodes=2)
    for number in range(12):
        gang = worlds.gang(f"gang-{number}", tasks=2, duration="17m", gpus=1)
        worlds.submit(world, gang, at=300.0 * number)
    worlds.run(world, 2_000)
    with recorded(world, tmp_path):
        worlds.run(world, 10_000)
    work, load = _load(tmp_path, start=5_000_000.0)
    there = [life for life in work.lives if life.ran_before]
    assert there
    played = _played(load, 10_000, start=5_000_000.0)
    for life in work.lives:
        if not life.was_over:
            assert life.finished is not None
            record = played.recorder.gangs[life.key]
            assert record.finished == pytest.approx(life.finished - work.begun, abs=1.0), life.name
    assert any("left out: ended before the recording began" in note for note in load.notes)
    stamps = [item["metadata"]["creationTimestamp"] for item in load.documents if item["kind"] == "Node"]
    assert stamps
    assert all(stamp.startswith("1970-02-2") for stamp in stamps), "as long before the start as they were"


def test_pods_that_come_later_than_their_gang_do_so_again(tmp_path: Path) -> None:
    world = _world()
    group, *pods = worlds.gang("grows", tasks=3, min_member=2, duration="10m", gpus=1)
    _, load = _loaded(tmp_path, world, 2000, (0, _submit(world, [group, *pods[:2]])), (100, _submit(world, [pods[2]])))
    assert load.scenario["arrivals"] == [{"at": "100s", "pods": [f"default/{pods[2]['metadata']['name']}"]}]


def test_queues_that_a_scheduler_makes_are_there_from_the_beginning(tmp_path: Path) -> None:
    world = _world()
    queues = [build.queue(name) for name in ("root", "late")]
    train = worlds.gang("train", tasks=1, duration="1m", gpus=1)
    _, load = _loaded(
        tmp_path, world, 300, (0.0, lambda: world.submit([train])), (10.0, lambda: [world.store.create(item) for item in queues])
    )
    arrivals = {name: ARRIVES in notes for name, notes in _annotations(load, "Queue").items()}
    assert arrivals == {"default": False, "root": False, "late": True}


def test_events_of_nodes_in_the_words_of_scenarios(tmp_path: Path) -> None:
    world = _world(nodes=3)
    late = build.node("late", gpus=2)
    _, load = _loaded(
        tmp_path, world, 1000, (0, _submit(world, worlds.gang("train", tasks=2, gpus=2))),
        (100, lambda: world.faults.cordon("node-2")), (200, lambda: world.faults.uncordon("node-2")),
        (300, lambda: world.faults.drain("node-0")), (400, lambda: world.faults.uncordon("node-0")),
        (500, lambda: world.faults.join(late)), (600, lambda: world.faults.die("node-2")),
        (700, lambda: world.faults.come_back("node-2")), (800, lambda: world.faults.leave("late")),
    )  # fmt: skip
    assert [(item["at"], item["node"], item["event"]) for item in load.scenario["nodes"]] == [
        ("100s", "node-2", "cordon"), ("200s", "node-2", "uncordon"), ("300s", "node-0", "drain"), ("400s", "node-0", "uncordon"),
        ("500s", "late", "join"), ("600s", "node-2", "die"), ("700s", "node-2", "return"), ("800s", "late", "leave"),
    ]  # fmt: skip
    assert isinstance(find_scenarios(yaml.safe_dump(load.scenario).encode(), "load")[0], Scenario)


def test_pods_that_fail_fail_again(tmp_path: Path) -> None:
    world = _world()
    gang = worlds.gang("train", tasks=2, duration="10m", gpus=1)
    name = gang[1]["metadata"]["name"]
    work, load = _loaded(tmp_path, world, 2000, (0, _submit(world, gang)), (100, lambda: world.faults.fail("default", name)))
    assert load.scenario["failures"] == [{"at": "100s", "pod": f"default/{name}"}]
    assert _played(load, 2000).recorder.gangs[work.lives.lives[0].key].finished == worlds.record(world, "train").finished


def test_binds_that_failed_are_counted(tmp_path: Path) -> None:
    world = _world()
    world.faults.refuse_binds("node-0", 1)
    _, load = _loaded(tmp_path, world, 600, (0, _submit(world, worlds.gang("train", tasks=2, duration="1m", gpus=2))))
    assert load.notes[-1] == "1 bind failed in the recording, but not in the load"


def test_what_a_load_cannot_say_is_counted(tmp_path: Path) -> None:
    world = _world()
    foreign = build.pod("foreign", cpu="1")
    foreign["spec"] |= {"schedulerName": "somebody-else", "nodeName": "node-0"}
    _, load = _loaded(
        tmp_path, world, 600, (10, lambda: world.store.create(foreign)),
        (20, lambda: world.store.patch(QUEUE, "", "default", {"spec": {"weight": 7}})),
        (30, lambda: world.store.create(SHORT)), (40, lambda: world.store.delete(kind_of(SHORT), "", "short")),
        (50, lambda: world.store.patch(NODE, "", "node-1", {"metadata": {"labels": {"zone": "b"}}})),
    )  # fmt: skip
    assert load.notes == [
        "1 pod without a gang, in the load as a gang of its own",
        "1 object changed, and in the load as at first: 1 Queue",
        "1 object gone later, but not in the load: 1 PriorityClass",
        "labels, taints or resources changed, and are in the load as they were first: node-1",
    ]


def test_a_pod_that_leaves_while_another_has_its_seat_is_no_further_member() -> None:
    life = GangLife(GangKey("default/train"), 1, 0.0)
    old, new = ({"metadata": {"name": name, "uid": name}, "spec": {}} for name in ("old", "new"))
    seat, vacant = life.seat_of(old, 0.0)
    seat.running = 1.0
    seat.set_stand(Stand.LEAVING, 10.0)
    assert vacant is None
    assert life.seat_of(new, 12.0) == (seat, 0.0)
    assert life.seat_of(old, 13.0) == (seat, None)
    assert (seat.uid, len(life.seats), life.displaced) == ("new", 1, 1)


@pytest.mark.parametrize("name", ["train-1", "train-zzzzz"])
def test_a_pod_that_was_made_again_in_a_gap_takes_the_seat_of_the_old_one(name: str, tmp_path: Path) -> None:
    world = _world()
    group, *pods = worlds.gang("train", tasks=2, gpus=1)
    with recorded(world, tmp_path):
        _submit(world, [group, *pods])()
        worlds.run(world, 100)
    world.store.delete(POD, "default", "train-1", grace=0)
    again = {**pods[1], "metadata": {**pods[1]["metadata"], "name": name, "uid": "another"}}
    world.submit([[again]])
    with recorded(world, tmp_path):
        worlds.run(world, 300)
    work, load = _load(tmp_path)
    assert work.gaps == 1
    assert [len(life.seats) for life in work.lives] == [2]
    assert sorted(_annotations(load, "Pod")) == ["train-0", "train-1"], "as they were submitted"
