"""Recorded work, denser or sparser and a little different for each seed."""

import pytest

from phalanx.errors import ConfigError
from phalanx.sim.named_workloads import read_workload
from phalanx.sim.varied_work import at_load, jittered
from phalanx.sim.workload import Workload, WorkloadGang, WorkloadPart, machine, quantities


def workload(*gangs: tuple[float, float]) -> Workload:
    part = WorkloadPart(2, quantities(gpus=4))
    made = [WorkloadGang(f"g{number}", submitted, duration, (part,)) for number, (submitted, duration) in enumerate(gangs)]
    return Workload(tuple(made), (machine("a", gpus=8),))


def test_the_load_of_a_trace_is_as_asked() -> None:
    found = at_load(workload((0, 100), (10, 100), (50, 200)), 0.5)
    assert [gang.submitted for gang in found.gangs] == [0, 160, 800]
    assert [gang.duration for gang in found.gangs] == [100, 100, 200]


def test_all_submissions_at_once_have_no_load() -> None:
    with pytest.raises(ConfigError, match="one submission only"):
        at_load(workload((0, 100), (0, 100)), 0.5)


def test_gaps_and_durations_vary_by_the_part_asked_for_and_with_the_seed() -> None:
    given = workload(*((number * 100.0, 1000.0) for number in range(200)))
    found = jittered(given, 0.1, 1)
    gaps = [later.submitted - gang.submitted for gang, later in zip(found.gangs, found.gangs[1:], strict=False)]
    assert 89.9 < min(gaps) < 92
    assert 108 < max(gaps) < 110.1
    assert 900 <= min(gang.duration for gang in found.gangs) < 910
    assert jittered(given, 0.1, 1) == found != jittered(given, 0.1, 2)
    assert jittered(given, 0.0, 1) == given


def test_gangs_that_came_at_once_still_do() -> None:
    found = jittered(workload((0, 1), (50, 1), (50, 1)), 0.5, 3)
    assert found.gangs[1].submitted == found.gangs[2].submitted


def test_gangs_of_a_trace_save_their_work_if_asked_to() -> None:
    found = [read_workload(f"tiresias:tests/data/traces/tiresias{option}", 0).workload for option in ("", ",checkpoints=30")]
    assert [{gang.checkpoint_every for gang in workload.gangs} for workload in found] == [{0.0}, {1800.0}]
    assert found[0].with_checkpoints(30) == found[1]


@pytest.mark.parametrize("option", ["checkpoints=-1", "jitter=1", "jitter=x", "load=0", "load=1,load=2"])
def test_an_impossible_setting_of_a_trace_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="is not possible; write one number from"):
        read_workload(f"tiresias:tests/data/traces/tiresias,{option}", 0)
