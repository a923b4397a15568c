"""Made-up work: what may be asked for, and that it looks like work of a cluster for machine learning."""

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from statistics import median

import pytest

from phalanx.errors import ConfigError
from phalanx.sim.generate import LIMITS, GeneratorSettings, generate, read_settings
from phalanx.sim.named_workloads import LIMITS_BY_OPTION
from phalanx.sim.traces import FORMATS
from phalanx.sim.workload import HIGH, LOW, NORMAL, Workload
from phalanx.sim.workload_objects import gang_objects

DAY = 86400


@pytest.fixture(scope="module")
def usual() -> Workload:
    return generate(7, jobs=10_000, nodes=1000)


def test_settings_are_read_from_a_text() -> None:
    found = read_settings(" jobs=10000, nodes=1000,days=2.5,seed=3 ")
    assert found == {"jobs": 10_000, "nodes": 1000, "days": 2.5, "seed": 3}
    assert generate(**found) == generate(3, jobs=10_000, nodes=1000, days=2.5)
    assert read_settings("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobz=3", f"generated: jobz: unknown setting; write one of: {', '.join(LIMITS)}"),
        ("jobs=x", "generated: jobs: 'x' is not possible; write a whole number from 1 to 1000000"),
        ("jobs=0", "generated: jobs: '0' is not possible; write a whole number from 1 to 1000000"),
        ("nodes=1.5", "generated: nodes: '1.5' is not possible; write a whole number from 1 to 100000"),
        ("load=nan", "generated: load: 'nan' is not possible; write a number from 0.01 to 10"),
        ("days=1e400", "generated: days: '1e400' is not possible; write a number from 0.01 to 366"),
        ("jobs", "generated: 'jobs' has no value; write for example jobs=10000"),
        ("jobs=1,jobs=2", "generated: jobs: is given twice; write it once"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_may_be_written(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        read_settings(text)


@pytest.mark.parametrize("settings", [{"jobs": 2.5}, {"jobs": 0}, {"speed": 1}, {"load": float("inf")}])
def test_a_call_with_a_wrong_setting_is_refused_too(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"^generated: "):
        generate(1, **settings)


def test_another_seed_gives_other_work() -> None:
    assert generate(1, jobs=20) != generate(2, jobs=20)


def test_a_seed_stands_for_the_same_work_in_every_version() -> None:
    gangs = generate(5, jobs=5, nodes=2).gangs
    assert [(gang.submitted, gang.duration) for gang in (gangs[0], gangs[-1])] == [(283692.96, 456593.99), (580684.87, 59102.978)]


def test_most_gangs_are_one_task_and_few_are_very_large(usual: Workload) -> None:
    sizes = Counter(gang.tasks for gang in usual.gangs)
    assert set(sizes) == {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
    assert 0.65 < sizes[1] / 10_000 < 0.85
    assert 0 < sum(count for size, count in sizes.items() if size >= 128) < 200


def test_durations_have_a_long_tail(usual: Workload) -> None:
    durations = sorted(gang.duration for gang in usual.gangs)
    assert durations[9900] > 50 * median(durations)
    assert durations[0] < median(durations) / 20


def test_afternoons_are_busier_than_nights(usual: Workload) -> None:
    hours = Counter(int(gang.submitted % DAY // 3600) for gang in usual.gangs)
    assert sum(hours[hour] for hour in range(12, 18)) > 2 * sum(hours[hour] for hour in range(6))
    level = Counter(int(gang.submitted % DAY // 43200) for gang in generate(7, jobs=10_000, rhythm=0, sweeps=0).gangs)
    assert abs(level[0] - level[1]) < 500


def test_some_gangs_come_in_sweeps_of_small_ones_from_one_queue(usual: Workload) -> None:
    at_once = Counter(gang.submitted for gang in usual.gangs)
    sweeps = [[gang for gang in usual.gangs if gang.submitted == moment] for moment, count in at_once.items() if count >= 8]
    assert 0.1 < sum(map(len, sweeps)) / 10_000 < 0.3
    assert all(gang.queue == sweep[0].queue and gang.parts == sweep[0].parts for sweep in sweeps for gang in sweep)
    assert all(gang.tasks == 1 for sweep in sweeps for gang in sweep)


def test_without_sweeps_no_many_gangs_come_at_once() -> None:
    gangs = generate(7, jobs=2000, sweeps=0).gangs
    assert max(Counter(gang.submitted for gang in gangs).values()) < 8


def test_queues_differ_in_weight_and_few_gangs_have_a_high_priority(usual: Workload) -> None:
    assert usual.weight_by_queue == {"team-1": 1, "team-2": 2, "team-3": 3, "team-4": 4}
    priorities = Counter(gang.priority for gang in usual.gangs)
    assert priorities[NORMAL] > priorities[LOW] > priorities[HIGH] > 0


def test_with_a_heavier_tail_fewer_gangs_have_most_of_the_work() -> None:
    def largest_part(tail: float) -> float:
        work = sorted((gang.duration for gang in generate(7, jobs=2000, tail=tail).gangs), reverse=True)
        return sum(work[:20]) / sum(work)

    assert largest_part(0.5) < largest_part(1.9) < largest_part(3)


def test_bursts_bring_half_of_the_gangs_within_minutes() -> None:
    gangs = generate(7, jobs=2000, days=2, sweeps=0, bursts=0.5).gangs
    slots = Counter(int(gang.submitted // 600) for gang in gangs)
    assert 0.35 < sum(count for _, count in slots.most_common(8)) / 2000 < 0.6
    even = Counter(int(gang.submitted // 600) for gang in generate(7, jobs=2000, days=2, sweeps=0).gangs)
    assert sum(count for _, count in even.most_common(8)) / 2000 < 0.15


def test_as_many_gangs_are_large_as_asked_for() -> None:
    gangs = generate(7, jobs=4000, sweeps=0, large=0.25).gangs
    assert 0.22 < sum(gang.tasks > 32 for gang in gangs) / 4000 < 0.28
    with pytest.raises(ConfigError, match="no gang of more than 32 tasks fits into the cluster; give it more nodes"):
        generate(7, jobs=10, nodes=4, large=0.25)


def test_a_node_has_the_gpus_asked_for_and_tasks_no_more() -> None:
    workload = generate(2, jobs=200, nodes=3, gpus=2)
    assert {machine.offers["nvidia.com/gpu"] for machine in workload.machines} == {"2"}
    assert {part.request["nvidia.com/gpu"] for gang in workload.gangs for part in gang.parts} == {"1", "2"}


def test_gangs_save_their_work_if_asked_to_and_are_the_same_otherwise() -> None:
    usual, saving = generate(2, jobs=20), generate(2, jobs=20, checkpoints=15)
    assert {gang.checkpoint_every for gang in saving.gangs} == {900.0}
    assert saving == usual.with_checkpoints(15)
    group, *_ = gang_objects(saving.gangs[0], "volcano")
    assert group["metadata"]["annotations"]["phalanx.dev/checkpoint-every"] == "900.000s"


def test_the_reference_lists_every_setting_with_its_usual_value_and_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "workloads.md").read_text()
    usual = {field.name: field.default for field in fields(GeneratorSettings)}
    for name, (least, most) in LIMITS.items():
        assert f"| `{name}` | {usual[name]} | {least} | {most} |" in page
    assert page.count("\n| `") == len(LIMITS) + len(FORMATS) + len(LIMITS_BY_OPTION)
    for option, (low, high) in LIMITS_BY_OPTION.items():
        assert f"| `{option[:-1]}` | {low:g} | {high:g} |" in page
    assert all(f"\n| `{name}` |" in page for name in FORMATS)
