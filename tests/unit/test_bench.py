"""The benchmark: rows are real, and say what they measured."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from phalanx import cli
from phalanx.bench import measure as measure_module
from phalanx.bench.clusters import build
from phalanx.bench.measure import CycleRow, measure
from phalanx.bench.report import section, table
from phalanx.bench.scenarios import DEFAULT, FULL, BenchKind, BenchScenario
from phalanx.bench.suite import FailedRow, run_row, run_suite
from phalanx.errors import PhalanxError

TINY = {
    BenchKind.PLAIN: BenchScenario(BenchKind.PLAIN, 4, 8, 4),
    BenchKind.MIXED: BenchScenario(BenchKind.MIXED, 4, 8, 4),
    BenchKind.ANTI_AFFINITY: BenchScenario(BenchKind.ANTI_AFFINITY, 4, 8, 4),
    BenchKind.ZONE_AFFINITY: BenchScenario(BenchKind.ZONE_AFFINITY, 20, 8, 4),
    BenchKind.SPREAD_HARD: BenchScenario(BenchKind.SPREAD_HARD, 20, 20, 10),
    BenchKind.SPREAD_SOFT: BenchScenario(BenchKind.SPREAD_SOFT, 20, 20, 10),
    BenchKind.TOPOLOGY_SOFT: BenchScenario(BenchKind.TOPOLOGY_SOFT, 20, 20, 20),
    BenchKind.TOPOLOGY_HARD: BenchScenario(BenchKind.TOPOLOGY_HARD, 20, 20, 20),
    BenchKind.SUBGROUPS: BenchScenario(BenchKind.SUBGROUPS, 20, 20, 20),
    BenchKind.STEADY: BenchScenario(BenchKind.STEADY, 4, 32, 8),
    BenchKind.BARE_PODS: BenchScenario(BenchKind.BARE_PODS, 4, 8, 4),
    BenchKind.REAL_PODS: BenchScenario(BenchKind.REAL_PODS, 4, 8, 4),
}


@pytest.fixture(autouse=True)
def each_row_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_module, "MOST_RUNS", 1)
    monkeypatch.setattr(measure_module, "ARRIVALS", 2)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["bench", "core", *arguments], prog_name="phalanx")


def a_row(scenario: BenchScenario, *, seconds: float = 1.0, growth: float | None = None) -> CycleRow:
    return CycleRow(
        scenario.title, scenario.kind, scenario.nodes, scenario.pods, scenario.gang, scenario.arriving, 1, 0.5, seconds, 0.0,
        0.1, seconds - 0.1, scenario.arriving / seconds, 100 << 20, growth,
    )  # fmt: skip


def test_one_row_answers_with_time_speed_and_memory() -> None:
    result = run("--nodes", "4", "--pods", "8", "--gang", "4", "-o", "json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["seconds"] > 0
    assert answer["pods_per_second"] == pytest.approx(8 / answer["seconds"])
    assert answer["peak_rss_bytes"] > 1 << 20
    assert answer["placed"] == 8


@pytest.mark.parametrize("kind", BenchKind)
def test_a_row_of_every_kind_places_all_its_pods(kind: BenchKind) -> None:
    scenario = TINY[kind]
    row = measure(scenario)
    assert row.placed == scenario.arriving
    assert row.seconds == pytest.approx(row.events_seconds + row.snapshot_seconds + row.cycle_seconds)


def test_a_row_that_does_not_place_all_its_pods_is_an_error() -> None:
    with pytest.raises(PhalanxError, match=r"^0 of 4 pods were placed; .*anti-affinity"):
        measure(BenchScenario(BenchKind.ANTI_AFFINITY, 3, 4, 4))


def test_pods_that_are_no_whole_number_of_gangs_are_refused() -> None:
    result = run("--nodes", "4", "--pods", "7", "--gang", "4")
    assert result.exit_code == 1
    assert "pods must be a whole number of gangs" in result.stderr


def test_no_two_gangs_share_a_shape() -> None:
    snapshot = build(TINY[BenchKind.PLAIN]).snapshot(0.0)
    shapes = [{task.shape for task in members.values()} for members in snapshot.members.values()]
    assert [len(of_one_gang) for of_one_gang in shapes] == [1, 1]
    assert not shapes[0] & shapes[1]


def test_gangs_of_a_mixed_row_ask_for_different_amounts() -> None:
    snapshot = build(TINY[BenchKind.MIXED]).snapshot(0.0)
    requests = {tuple(task.shape.request.items()) for members in snapshot.members.values() for task in members.values()}
    assert len(requests) == 2


def test_the_three_tiers_of_6000_nodes_are_9600_hypernodes() -> None:
    tree = build(BenchScenario(BenchKind.TOPOLOGY_SOFT, 6_000, 1, 1)).snapshot(0.0).hypernodes
    assert [tree.tiers.count(tier) for tier in (1, 2, 3)] == [6_000, 3_000, 600]
    assert {len(tree.members[number]) for number in range(tree.top) if tree.tiers[number] == 3} == {10}


def test_nothing_is_active_in_a_steady_state_before_the_arrival() -> None:
    assert build(TINY[BenchKind.STEADY]).snapshot(0.0).active == ()


def test_the_default_suite_shows_100000_pods_on_1000_and_on_10000_nodes() -> None:
    shown = {(row.nodes, row.pods, row.gang) for row in DEFAULT if row.kind is BenchKind.PLAIN}
    assert {(1_000, 100_000, 100), (10_000, 100_000, 100)} <= shown
    assert set(DEFAULT) <= set(FULL)


def test_growth_is_the_cost_per_pod_relative_to_the_row_before_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        BenchScenario(BenchKind.PLAIN, 4, 8, 4),
        BenchScenario(BenchKind.PLAIN, 4, 8, 8),
        BenchScenario(BenchKind.PLAIN, 8, 16, 4),
    ]
    seconds = {8: 1.0, 16: 3.0}
    monkeypatch.setattr("phalanx.bench.suite.run_row", lambda scenario: a_row(scenario, seconds=seconds[scenario.pods]))
    results = run_suite(rows, lambda number, scenario: None)
    assert [result.growth for result in results if isinstance(result, CycleRow)] == [None, None, pytest.approx(1.5)]


def test_a_row_that_fails_does_not_stop_the_suite() -> None:
    rows = [BenchScenario(BenchKind.ANTI_AFFINITY, 3, 4, 4), TINY[BenchKind.PLAIN]]
    failed, done = run_suite(rows, lambda number, scenario: None)
    assert isinstance(failed, FailedRow)
    assert isinstance(done, CycleRow)
    assert failed.error.startswith("anti-affinity on the host name, gangs of 4, 3 nodes, 4 pods: 0 of 4 pods were placed; ")
    assert "failed" in table([failed, done])


def test_the_profile_of_a_row_can_be_written(tmp_path: Path) -> None:
    run_row(TINY[BenchKind.PLAIN], profile=tmp_path / "row.prof")
    assert (tmp_path / "row.prof").stat().st_size > 0


def test_the_table_says_what_is_timed() -> None:
    shown = table([a_row(TINY[BenchKind.PLAIN], growth=1.25)])
    assert " ".join(shown.split()[:11]) == "scenario nodes pods gang load s seconds pods/s peak MiB growth"
    assert shown.splitlines()[1].split()[-5:] == ["0.50", "1.00", "8", "100", "1.25×"]
    assert "session, enqueue, allocate, backfill;" in shown
    assert "profile volcano: [priority, gang, conformance] [overcommit, drf," in shown


def test_the_section_names_command_and_machine() -> None:
    written = section([a_row(TINY[BenchKind.PLAIN])], "phalanx bench core")
    assert "Written by `phalanx bench core` on 2" in written
    assert "NumPy" in written
    assert "| plain, gangs of 4 | 4 | 8 | 4 | 0.50 | 1.00 | 8 | 100 |  |" in written


@pytest.mark.parametrize(
    "arguments",
    [("--nodes", "4"), ("--only", "no such row"), ("--profile", "x.prof"), ("--nodes", "0", "--pods", "1", "--gang", "1")],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2
