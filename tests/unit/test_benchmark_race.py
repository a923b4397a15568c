"""The race: its rows, what it counts, and how results are written and drawn. A small race is run in tests/integration."""

import math
import os
import runpy
from pathlib import Path
from typing import Any

import pytest
from benchmarks.race import results as kept
from benchmarks.race.__main__ import HERE, arguments
from benchmarks.race.contenders import CONTENDERS
from benchmarks.race.gangs import Submitted, in_turn
from benchmarks.race.process_use import use_of
from benchmarks.race.raw_binder import length, request
from benchmarks.race.results import MeasuredRow, Outcome, Results, percentile, ratio, table
from benchmarks.race.rows import ROWS, Row, chosen, scaled
from benchmarks.race.site import sent
from benchmarks.race.started import Started

from phalanx.model.kinds import Document

DRAW = Path(__file__).resolve().parents[2] / "docs" / "figures" / "draw.py"

# --- rows ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
@pytest.mark.parametrize("scale", [1, 0.1, 0.01])
def test_a_row_fits_on_its_nodes_at_any_scale_or_is_twice_what_fits(row: Row, scale: float) -> None:
    small = scaled(row, scale)
    assert small.nodes <= row.nodes
    match small.load:
        case "overload":
            assert small.gangs == 2 * small.fitting
        case "backlog":
            assert small.fitting > small.ends
            assert small.fitting * small.size == small.slots
        case _:
            assert small.gangs <= small.fitting


def test_rows_are_chosen_by_name_or_by_how_names_begin_and_keep_their_order() -> None:
    assert [row.key for row in chosen(["overload", "gangs-of-50", "arrivals-1"])] == ["gangs-of-50", "arrivals-1", "overload"]
    assert [row.key for row in chosen(["arr"])] == ["arrivals-1", "arrivals-10", "arrivals-50"]
    with pytest.raises(ValueError, match="there is no 'arrivals-2'; write one of gangs-of-50"):
        chosen(["arrivals-2"])


def test_only_a_race_of_full_size_is_written_down_by_default() -> None:
    assert arguments([]).out == HERE
    assert arguments(["--scale", "0.1"]).out is None
    assert arguments(["--scale", "0.1", "--out", "here"]).out == Path("here")


def test_rivals_are_built_only_if_they_take_part() -> None:
    assert arguments(["--only", "raw,phalanx,native"]).rivals == []
    assert arguments([]).rivals == ["vc-scheduler", "coscheduling"]
    with pytest.raises(SystemExit):
        arguments(["--only", "phalanx,slurm"])


# --- gangs ---------------------------------------------------------------------------------------------------------------


def gang_of(dialect: Any) -> tuple[Any, list[Any]]:
    submitted = Submitted("ns", "some-scheduler", dialect, Row("x", "wave", nodes=2, gangs=1, size=3))
    owner = {"metadata": {"name": "a", "uid": "1"}}
    return submitted.group("a"), submitted.pods("a", owner)


def test_groups_need_all_their_pods_and_pods_name_their_group() -> None:
    group, pods = gang_of("native")
    assert group["spec"] == {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert pods[2]["spec"]["schedulingGroup"] == {"podGroupName": "a"}
    group, pods = gang_of("volcano")
    assert group["spec"]["minMember"] == 3
    assert pods[2]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "a"
    group, pods = gang_of("coscheduling")
    assert group["spec"]["minMember"] == 3
    assert pods[2]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "a"
    assert gang_of("")[0] is None


def test_every_pod_tells_its_gang_by_the_name_of_its_job() -> None:
    for contender in CONTENDERS:
        _, pods = gang_of(contender.dialect)
        assert {pod["metadata"]["labels"]["job-name"] for pod in pods} == {"a"}
        assert [pod["metadata"]["name"] for pod in pods] == ["a-0", "a-1", "a-2"]


def test_pods_of_several_gangs_come_in_turn() -> None:
    gangs: list[list[Document]] = [[{"name": f"{gang}{number}"} for number in range(2)] for gang in "ab"]
    assert [pod["name"] for pod in in_turn(gangs)] == ["a0", "b0", "a1", "b1"]


# --- what is counted -----------------------------------------------------------------------------------------------------


def test_a_gang_is_whole_when_its_last_pod_is_bound_and_in_part_until_then() -> None:
    started = Started(size=2)
    started.bound("a", "a-0", 1.0)
    started.bound("b", "b-0", 2.0)
    started.bound("a", "a-1", 4.0)
    started.bound("a", "a-1", 9.0)
    assert (started.whole, started.in_part, started.binds, started.last_bind) == (1, 1, 3, 4.0)
    assert (started.whole_at, started.longest_part) == ({"a": 4.0}, 3.0)
    started.close(12.0)
    assert started.longest_part == 10.0


def test_a_gang_that_is_rolled_back_is_in_part_no_more_and_one_that_ends_never_was() -> None:
    started = Started(size=2)
    started.bound("a", "a-0", 1.0)
    started.gone("a", "a-0", 3.0)
    assert (started.in_part, started.longest_part) == (0, 2.0)
    for pod in ("b-0", "b-1"):
        started.bound("b", pod, 5.0)
    started.retire("b")
    started.gone("b", "b-0", 6.0)
    assert (started.whole, started.in_part) == (0, 0)


def test_a_gang_that_loses_a_pod_is_in_part() -> None:
    started = Started(size=2)
    for pod in ("a-0", "a-1"):
        started.bound("a", pod, 1.0)
    started.gone("a", "a-1", 2.0)
    assert started.in_part == 1


def test_requests_are_counted_by_account() -> None:
    lines = (
        'apiserver_flowcontrol_dispatched_requests_total{flow_schema="race-volcano",priority_level="exempt"} 12',
        'apiserver_flowcontrol_dispatched_requests_total{flow_schema="race-raw",priority_level="exempt"} 1.5e+03',
        'apiserver_flowcontrol_dispatched_requests_total{flow_schema="exempt",priority_level="exempt"} 99',
    )
    assert [sent("\n".join(lines), name) for name in ("raw", "volcano", "native")] == [1500, 12, 0]


def test_a_process_tells_what_it_uses() -> None:
    found = use_of(os.getpid())
    assert found.cpu_seconds > 0
    assert found.memory_mib > 1


# --- raw binds -----------------------------------------------------------------------------------------------------------


def test_a_raw_bind_is_a_whole_request() -> None:
    head, _, body = request("127.0.0.1:6443", "secret", "ns", "a-0", "uid-1", "node-7").partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/v1/namespaces/ns/pods/a-0/binding HTTP/1.1\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b'"uid":"uid-1"' in body
    assert b'"name":"node-7"' in body


def test_an_answer_is_whole_when_its_body_is() -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\nDate: today\r\n\r\n"
    assert length(head[:20]) == 0
    assert length(head + b"ab") == length(head + b"abcd") == len(head) + 4
    with pytest.raises(ValueError, match="without a length"):
        length(b"HTTP/1.1 201 Created\r\n\r\n")


# --- results -------------------------------------------------------------------------------------------------------------


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, percent) for percent in (50, 99, 100)] == [50.0, 99.0, 100.0]
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0
    assert math.isnan(percentile([], 50))


USE = {"cpu": 5.0, "memory": 100.0, "requests": 5000.0, "part_seconds": 0.05}
FOUND = MeasuredRow(
    "gangs-of-50", "wave", "100 gangs of 50 on 1,000 nodes", "2 rounds; here.",
    [
        Outcome("raw", 0, {**USE, "seconds": 4.0}), Outcome("raw", 1, {**USE, "seconds": 6.0}),
        Outcome("phalanx", 0, {**USE, "seconds": 6.0}), Outcome("phalanx", 1, {**USE, "seconds": 6.5}),
        Outcome("volcano", 0, {**USE, "seconds": 50.0}), Outcome("volcano", 1, {**USE, "seconds": 50.0}),
        Outcome("plain", 0, {**USE, "seconds": 9.0}), Outcome("plain", 1, USE, "not in 300 s: 3 gangs whole, 9 in part"),
    ],
)  # fmt: skip


def test_a_table_has_medians_and_ratios_to_raw_and_to_each_rival() -> None:
    lines = table(FOUND, {"volcano": "Volcano 1.10.0"}).splitlines()
    assert "| raw | 5.00 s | 5.0 | 100 | 5,000 | 50 ms | 1.00 | 1.25 | 4.00 s, 6.00 s |" in lines
    assert "| Volcano 1.10.0 | 50.00 s | 5.0 | 100 | 5,000 | 50 ms | 10.00 | 0.12 | 50.00 s, 50.00 s |" in lines


def test_who_fails_in_one_round_has_no_median_and_the_table_says_why() -> None:
    text = table(FOUND, {})
    assert "| plain | – | 5.0 | 100 | 5,000 | 50 ms | – | – | 9.00 s, – |" in text
    assert text.endswith("- plain: not in 300 s: 3 gangs whole, 9 in part\n")


def test_ratios_to_nothing_are_left_out() -> None:
    assert [ratio(1.0, 2.0), ratio(None, 2.0), ratio(1.0, None), ratio(1.0, 0.0)] == ["0.50", "–", "–", "–"]


def test_a_row_that_is_raced_again_replaces_the_old_one_in_its_place(tmp_path: Path) -> None:
    results = Results({"raw": "raw binds"})
    for key in ("overload", "gangs-of-50", "gangs-of-50"):
        results.replace(MeasuredRow(key, "wave", key, "here", []))
    assert [row.key for row in results.rows] == ["gangs-of-50", "overload"]
    kept.write(tmp_path / "race.json", results)
    assert kept.read(tmp_path / "race.json") == results
    assert kept.read(tmp_path / "none.json") == Results({})


def test_the_chart_has_a_bar_for_everybody_with_a_time_and_says_who_has_none(tmp_path: Path) -> None:
    kept.write(tmp_path / "race.json", Results({}, [FOUND]))
    svg = runpy.run_path(str(DRAW))["race"](tmp_path / "race.json").svg()
    assert [svg.count(f'<rect class="{kind}"') for kind in ("box", "blue", "orange")] == [1, 1, 1]
    assert "100 gangs of 50 on 1,000 nodes" in svg
    assert "50.0 s" in svg
    assert svg.count("not in time") == 1
    assert "prefers-color-scheme: dark" in svg


def test_the_chart_says_so_when_nothing_was_measured(tmp_path: Path) -> None:
    assert "Not measured yet" in runpy.run_path(str(DRAW))["race"](tmp_path / "none.json").svg()


def test_the_section_shows_every_row_that_was_measured() -> None:
    text = kept.section(Results({}, [FOUND]))
    assert text.startswith("By `make race`")
    assert "### gangs-of-50: 100 gangs of 50 on 1,000 nodes" in text
