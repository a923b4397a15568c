"""The report page of a simulation: its words, its tables, and the data of its charts."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from phalanx.sim.comparison import compared
from phalanx.sim.metrics import METRICS
from phalanx.sim.report import MODULES, joined_script, page
from phalanx.sim.report_data import CURVE_POINTS, HEAT_COLUMNS, HEAT_ROWS, curve_mean, heat, node_means, pack, stuck_span
from phalanx.sim.report_tables import comparison, evictions, nodes, queues, waits
from phalanx.sim.report_text import Result, deadlocks, duration, headline, number, percent, titles, work
from tests.support import sim_results as results

EVIL = "<script>alert('&\"')</script>"
MARKUP = re.compile(r"<[^>]+>")


class Elements(HTMLParser):
    """Counts the elements of a page, and keeps its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def data_of(text: str) -> Any:  # any JSON
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def metrics(**other: Any) -> Result:
    return results.result([results.gang("a/one"), results.gang("a/two", wait=30.0)], metrics=other)


# --- words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.25, "0.3 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3599.7, "1 h"),
        (5430, "1 h 31 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"), [(None, "–"), (3.0, "3"), (0.125, "0.12"), (0.5, "0.5"), (1234.5, "1,234"), (10**6, "1,000,000")]
)
def test_a_number_has_decimals_only_where_they_matter(value: float | None, words: str) -> None:
    assert number(value) == words


def test_fractions_and_work_are_written_with_their_units() -> None:
    assert [percent(None), percent(0.0644), percent(1)] == ["–", "6.4 %", "100 %"]
    result = results.result([])
    assert [work(result, value) for value in (None, 90.0, 5400.0)] == ["–", "90 GPU seconds", "1.5 GPU hours"]
    assert work(result | {"resource": "example.com/tpu"}, 7200.0) == "2 example.com/tpu hours"


def test_results_of_the_same_name_are_told_apart() -> None:
    one, other = results.result([]), results.result([], profile="kai", seed=None)
    assert titles([one, other]) == ["phalanx, seed 7", "kai"]
    assert titles([one, other, one]) == ["phalanx, seed 7 (1)", "kai", "phalanx, seed 7 (2)"]


def test_the_headline_says_what_became_of_the_gangs() -> None:
    gangs = [results.gang("a/one", wait=10.0), results.gang("a/two", wait=None)]
    words = headline(results.result(gangs, evictions=[results.eviction("a/one", 20.0)]))
    assert words == (
        "10 min of virtual time from 2026-01-01T00:00:00Z, decided in 60 sessions."
        " 2 gangs came: 1 started, 1 finished, 1 waits at the end."
        " On average 81 % of all GPUs were held, 78 % by gangs that were whole."
        " Half of the gangs waited 5 min 5 s at most, nine of ten 9 min 1 s at most, and the longest wait was 10 min."
        " 1 pod of 1 gang was evicted; 1.5 GPU hours of work were lost."
    )


def test_a_headline_about_nothing_is_short() -> None:
    words = headline(results.result([], metrics={"allocation": None}))
    assert words.endswith("decided in 60 sessions. No gang was submitted. Nothing was evicted.")


def test_gangs_that_start_at_once_are_said_in_fewer_words() -> None:
    words = headline(results.result([results.gang("a/b")]))
    assert "1 gang came: 1 started, 1 finished, none waits at the end." in words
    assert "No gang had to wait." in words


def test_a_deadlock_is_told_with_who_and_what() -> None:
    assert deadlocks(results.deadlock()) == [
        "From 1 min 10 s on, research/left and research/right hold 4 GPUs together and keep each other from starting:"
        " none gives back what it has, and what is free is not enough."
    ]


def test_a_deadlock_of_very_many_names_some_of_them() -> None:
    found = [{"since": 0.0, "gangs": [f"a/{number}" for number in range(20)], "holds": 1.0}]
    assert (
        "From the start on, a/0, a/1, a/2, a/3, a/4, a/5, a/6, a/7 and 12 other gangs hold 1 GPU together"
        in deadlocks(results.result([], deadlocks=found))[0]
    )


def test_no_deadlock_is_said_too() -> None:
    assert deadlocks(results.result([]))[0].startswith("There was no deadlock")


# --- comparison ----------------------------------------------------------------------------------------------------------


def best(path: str, *given: Result) -> set[int]:
    metric = next(metric for metric in METRICS if ".".join(metric.path) == path)
    line = next(line for line in compared({str(place): [item] for place, item in enumerate(given)}).lines if line.metric == metric)
    return {place for place, value in enumerate(line.values) if value.is_best}


def test_the_best_is_the_highest_or_the_lowest_as_the_figure_wants() -> None:
    low, high = metrics(occupancy=0.5, evictions=1), metrics(occupancy=0.9, evictions=7)
    assert best("occupancy", low, high) == {1}
    assert best("evictions", low, high) == {0}
    assert best("sessions", metrics(sessions=1), metrics(sessions=2)) == set()


def test_equals_share_a_mark_and_nobody_is_best_when_all_are_equal() -> None:
    low, high = metrics(occupancy=0.5), metrics(occupancy=0.9)
    assert best("occupancy", high, low, high) == {0, 2}
    assert best("occupancy", low, low) == set()
    assert best("occupancy", metrics(occupancy=None), low) == set()


def ended(*names: str, wait: float = 0.0, other: tuple[str, ...] = (), **more: Any) -> Result:
    """Return a result in which these gangs finished, after a wait, and others never started."""
    lost = [results.gang(name, wait=None, run=None) for name in other]
    return results.result([*(results.gang(name, wait=wait) for name in names), *lost], **more)


def test_only_results_that_finished_the_same_gangs_are_compared() -> None:
    part, slow, slower = ended("a", other=("b",)), ended("a", "b", wait=8), ended("a", "b", wait=9)
    assert best("wait.mean", part, slow, slower) == {1}
    assert best("wait.mean", part, slow) == set()
    assert best("makespan", part, slow, slower) == {1}
    assert best("finished", part, slow, slower) == {1, 2}


def test_as_many_other_gangs_are_not_the_same() -> None:
    assert best("wait.mean", ended("a", other=("b",)), ended("b", wait=8, other=("a",))) == set()


def test_gangs_that_started_count_where_none_ends() -> None:
    first = results.result([results.gang("a", run=None), results.gang("b", wait=None, run=None)], metrics={"occupancy": 0.9})
    both = results.result([results.gang("a", run=None), results.gang("b", run=None)], metrics={"occupancy": 0.5})
    assert best("occupancy", first, both) == set()
    assert best("started", first, both) == {1}


def test_what_a_deadlock_holds_is_no_merit() -> None:
    blocked = {"since": 0.0, "gangs": ["a"], "holds": 8.0}
    stuck = ended(other=("a",), deadlocks=[blocked], metrics={"occupancy": 1.0})
    assert best("occupancy", stuck, ended(other=("a",), metrics={"occupancy": 0.0})) == set()


def test_what_is_held_without_effect_is_no_merit() -> None:
    rolled_back, idle = (ended("a", other=("b",), metrics={"allocation": part, "occupancy": 0.5}) for part in (0.625, 0.5))
    assert best("allocation", rolled_back, idle) == best("occupancy", rolled_back, idle) == set()


def test_a_deadlock_counts_against_a_result() -> None:
    assert best("deadlocks", results.deadlock(), results.result([])) == {1}


def test_a_comparison_marks_the_best_in_words_too() -> None:
    text = comparison(compared({"one": [metrics(occupancy=0.5)], "other": [metrics(occupancy=0.9)]}))
    assert '<td class="best">90.0% <span aria-hidden="true">★</span><span class="unseen">best</span></td>' in text
    assert comparison(None) == ""


# --- tables --------------------------------------------------------------------------------------------------------------


def cells(table: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[MARKUP.sub("", cell) for cell in re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row)] for row in rows]


def test_waits_stand_by_queue_and_by_size() -> None:
    table = cells(waits(results.result([results.gang("a/b", wait=5.0), results.gang("a/c", queue="ops", wait=None, tasks=1)])))
    assert [row[:3] for row in table[1:]] == [
        ["All", "2", "5 min 3 s"],
        ["Queue ops", "1", "10 min"],
        ["Queue research", "1", "5 s"],
        ["Of 1 task", "1", "10 min"],
        ["Of 4 tasks", "1", "5 s"],
    ]
    assert cells(waits(results.result([])))[1] == ["All", "0", "–", "–", "–", "–", "–"]


def test_only_the_first_evictions_are_listed() -> None:
    table = evictions(results.result([], evictions=[results.eviction("a/b", float(number)) for number in range(201)]))
    assert len(cells(table)) == 1 + 200
    assert "The first 200 of 201 are shown." in table
    assert evictions(results.result([])) == "<p>Nothing was evicted.</p>"


def test_nodes_and_queues_are_averaged_over_time() -> None:
    result = results.deadlock()
    assert cells(nodes(result))[1:] == [["node-0", "98.3 %", "100 %"], ["node-1", "93.3 %", "100 %"]]
    assert cells(queues(result))[1:] == [["research", "3.83", "4", "4"]]


# --- data of the charts --------------------------------------------------------------------------------------------------


def test_gangs_are_packed_by_queue_and_arrival() -> None:
    gangs = [results.gang("b/late", "b", 5.0), results.gang("b/early", "b", 1.0), results.gang("a/x", "a", 9.0)]
    packed = pack(results.result(gangs))
    assert [(row[0], packed["queues"][row[1]]) for row in packed["gangs"]] == [("a/x", "a"), ("b/early", "b"), ("b/late", "b")]
    assert len(packed["fields"]) == len(packed["gangs"][0])


def test_a_gang_is_marked_once_for_each_moment_at_which_it_lost_pods() -> None:
    lost = [results.eviction("a/b", time) for time in (5.0, 5.0, 7.25)]
    packed = pack(results.result([results.gang("a/b"), results.gang("a/c")], evictions=lost))
    assert [row[packed["fields"].index("marks")] for row in packed["gangs"]] == [[5, 7.25], []]


def test_a_deadlock_lasts_until_a_gang_is_whole_or_to_the_end() -> None:
    assert stuck_span([], None) is None
    assert stuck_span([], 5.0) == [5, None]
    assert stuck_span([[1.0, 4.0], [9.0, None]], 5.0) == [5, 9.0]


def test_the_first_deadlock_of_a_gang_counts() -> None:
    found = [{"since": since, "gangs": ["a/b"], "holds": 1.0} for since in (9.0, 4.0)]
    packed = pack(results.result([results.gang("a/b", wait=None)], deadlocks=found))
    assert packed["gangs"][0][packed["fields"].index("stuck")] == [4, None]


def test_a_heat_map_has_even_columns_of_time() -> None:
    values = heat(results.deadlock())["values"]
    assert [len(row) for row in values] == [HEAT_COLUMNS, HEAT_COLUMNS]
    assert values[1][:40] + values[1][47:] == [50] * 40 + [100] * (HEAT_COLUMNS - 47)


def test_very_many_nodes_share_rows() -> None:
    names = [f"node-{number}" for number in range(1000)]
    found = heat(
        results.result([], nodes={"names": names, "times": [0.0], "held": [[float(number % 5 == 0)] for number in range(1000)]})
    )
    assert found["rows"][0] == "node-0 to node-4 (5 nodes)"
    assert {value for row in found["values"] for value in row} == {20}
    assert len(found["values"]) == HEAT_ROWS


def test_a_node_that_is_not_there_is_not_an_empty_node() -> None:
    result = results.result([], nodes={"names": ["gone", "never"], "times": [0.0, 300.0], "held": [[0.5, None], [None, None]]})
    found = heat(result)["values"]
    assert found[0] == [50] * 200 + [-1] * 200
    assert set(found[1]) == {-1}
    assert node_means(result) == [("gone", 0.5, 0.5), ("never", None, None)]


def test_a_curve_begins_where_it_is_known() -> None:
    curve = {"times": [300.0], "held": [8.0], "deserved": [float("inf")]}
    assert curve_mean(curve, "held", 600.0) == 8.0
    assert curve_mean(curve, "deserved", 600.0) is None
    assert pack(results.result([], queues={"a": curve}))["shares"] == [
        {"queue": "a", "times": [300], "held": [8], "deserved": [None]}
    ]


def test_a_queue_that_never_heard_what_it_deserves_has_a_curve_all_the_same() -> None:
    result = results.result([], queues={"a": {"times": [0.0, 5.0], "held": [1.0, 2.0], "deserved": []}})
    assert pack(result)["shares"][0]["deserved"] == [None, None]
    assert cells(queues(result))[1:] == [["a", "1.99", "–", "2"]]


def test_a_gang_belongs_to_the_size_that_its_tasks_reach() -> None:
    gangs = [results.gang(f"a/{tasks}", tasks=tasks) for tasks in (1, 2, 4, 5, 200)]
    result = results.result(gangs, metrics={"waitBySize": {name: {"count": 1} for name in ("1", "2-4", "5-8", "129+")}})
    packed = pack(result)
    sizes = {row[0]: packed["sizes"][row[packed["fields"].index("size")]] for row in packed["gangs"]}
    assert sizes == {"a/1": "1 task", "a/2": "2-4 tasks", "a/4": "2-4 tasks", "a/5": "5-8 tasks", "a/200": "over 128 tasks"}


def test_a_curve_has_no_more_points_than_can_be_seen() -> None:
    times = [float(number) for number in range(5000)]
    curve = {"times": times, "held": [number % 2 for number in range(5000)], "deserved": [3.0] * 5000}
    (share,) = pack(results.result([], 5000.0, queues={"a": curve}))["shares"]
    assert share["times"] == list(range(0, 5000, 5000 // CURVE_POINTS))
    assert set(share["held"]) == {0.4, 0.6}
    assert set(share["deserved"]) == {3}


# --- page ----------------------------------------------------------------------------------------------------------------


def evil_result() -> Result:
    gangs = [results.gang(EVIL, queue=EVIL, why=EVIL)]
    return results.result(
        gangs,
        profile=EVIL,
        start=EVIL,
        resource=EVIL,
        evictions=[dict.fromkeys(("pod", "gang", "action", "for", "message"), EVIL) | {"time": 1.0}],
        deadlocks=[{"since": 1.0, "gangs": [EVIL], "holds": 1.0}],
        nodes={"names": [EVIL], "times": [0.0], "held": [[1.0]]},
        queues={EVIL: {"times": [0.0], "held": [1.0], "deserved": [1.0]}},
    )


def test_text_of_the_data_never_becomes_markup() -> None:
    tame = page([json.loads(json.dumps(evil_result()).replace(json.dumps(EVIL)[1:-1], "tame"))] * 2)
    text = page([evil_result()] * 2)
    assert Elements(text).names == Elements(tame).names
    assert EVIL not in text
    assert data_of(text)[0]["gangs"][0][0] == EVIL


def test_a_page_names_no_address_but_its_own() -> None:
    text = page([results.crowd(20), results.deadlock()])
    assert Elements(text).addresses == ["#results"]
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text


def test_a_single_result_is_not_compared() -> None:
    assert "Comparison" not in page([results.deadlock()])
    assert 'name="result"' not in page([results.deadlock()])
    assert page([results.deadlock()] * 3).count('name="result"') == 3


def test_no_result_is_said() -> None:
    assert "There is no result to show." in page([])


def test_equal_results_give_equal_pages() -> None:
    assert page([results.crowd(50)]) == page([results.crowd(50)])


def test_modules_use_only_those_before_them() -> None:
    script = joined_script()
    used = {name: set(re.findall(r"^const \{[^}]*\} = (\w+);$", part, re.MULTILINE)) for name, part in scopes(script).items()}
    assert list(used) == list(MODULES)
    assert all(used[name] <= set(MODULES[:index]) for index, name in enumerate(MODULES))
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


def scopes(script: str) -> dict[str, str]:
    return dict(re.findall(r"^const (\w+) = \(\(\) => \{\n(.*?)^\}\)\(\);$", script, re.MULTILINE | re.DOTALL))
