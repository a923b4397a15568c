"""The array kernel: ledger, fit, scores, fill and domains, on small arrays by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.placement import NO_LIMIT, Amounts, Counts, Scores
from phalanx.placement.domains import Domains
from phalanx.placement.fill import LEAST_TASKS, NODES_PER_TASK, NOT_A_CANDIDATE, Candidates, fill, fill_among_all
from phalanx.placement.fit import copies, first_short, fits
from phalanx.placement.ledger import Ledger, Request, amounts_at
from phalanx.placement.score import balanced, free_share, least_allocated, most_allocated, normalise, normalise_range, pack


def whole(*rows: list[int]) -> Amounts:
    return np.array(rows, dtype=np.int64)


def request(*amounts: int, scored: tuple[int, int] = (0, 0)) -> Request:
    return Request(np.array(amounts, dtype=np.int64), scored)


def index(*numbers: int) -> Counts:
    return np.array(numbers, dtype=np.int64)


def ledger() -> Ledger:
    """Two resources, three nodes; node 2 is being left by a task of 3."""
    allocatable = whole([10, 10, 10], [4, 4, 4])
    return Ledger(allocatable, allocatable, whole([0, 2, 5], [0, 0, 1]), whole([0, 0, 3], [0, 0, 1]))


def test_a_ledger_opens_with_what_is_free_now_and_later() -> None:
    books = ledger()
    assert books.idle.tolist() == [[10, 8, 5], [4, 4, 3]]
    assert books.future.tolist() == [[10, 8, 8], [4, 4, 4]]


def test_taking_a_place_uses_it_now_and_later() -> None:
    books = ledger()
    books.take(request(2, 1), index(0, 1), index(1, 3))
    assert books.used.tolist() == [[2, 8, 5], [1, 3, 1]]
    assert books.idle.tolist() == [[8, 2, 5], [3, 1, 3]]
    assert books.future.tolist() == [[8, 2, 8], [3, 1, 4]]


def test_a_pipelined_task_takes_only_from_later() -> None:
    books = ledger()
    books.pipeline(request(2, 0), 2, 1)
    assert books.idle[:, 2].tolist() == [5, 3]
    assert books.future[:, 2].tolist() == [6, 4]


def test_a_release_gives_only_to_later() -> None:
    books = ledger()
    books.release(request(2, 0), 1, 1)
    assert books.idle[:, 1].tolist() == [8, 4]
    assert books.future[:, 1].tolist() == [10, 4]


def test_the_second_book_counts_requests_defaults_and_pods() -> None:
    books = ledger()
    books.book(request(2, 1, scored=(100, 200)), index(0, 2), index(2, 1))
    assert books.booked.tolist() == [[4, 2, 7], [2, 0, 2]]
    assert books.scored.tolist() == [[200, 0, 100], [400, 0, 200]]
    assert books.pods.tolist() == [2, 0, 1]


def test_the_opposite_change_leaves_no_trace_but_the_log() -> None:
    books = ledger()
    before = books.copy()
    for change in (books.take, books.pipeline, books.release, books.book):
        change(request(2, 1, scored=(1, 1)), index(0, 2), index(2, 1))
        assert not books.same_as(before)
        change(request(2, 1, scored=(1, 1)), index(0, 2), index(-2, -1))
        assert books.same_as(before)


def test_the_ledger_names_the_nodes_that_changed_since_a_mark() -> None:
    books = ledger()
    books.take(request(1, 0), 1, 1)
    mark = books.position
    books.take(request(1, 0), index(2, 0), index(1, 1))
    books.pipeline(request(1, 0), 2, 1)
    assert books.touched_since(mark).tolist() == [0, 2]
    assert books.changes_since(mark) == 3
    assert books.touched_since(books.position).tolist() == []


def test_a_request_lists_the_rows_it_asks_for() -> None:
    assert request(0, 3).rows == [(1, 3)]


def test_a_node_fits_when_it_covers_every_row_that_is_asked_for() -> None:
    room = whole([2, 1, 2], [0, 5, 5])
    assert fits(room, request(2, 0)).tolist() == [True, False, True]
    assert fits(room, request(2, 1)).tolist() == [False, False, True]
    assert fits(room, request(0, 0)).tolist() == [True, True, True]


def test_copies_count_how_many_tasks_fit_and_are_never_negative() -> None:
    room = whole([7, 2, -1], [4, 9, 9])
    assert copies(room, request(2, 1)).tolist() == [3, 1, 0]
    assert copies(room, request(2, 3)).tolist() == [1, 1, 0]
    assert copies(room, request(2, 1), index(2, 0)).tolist() == [0, 3]
    assert copies(room, request(0, 0)).tolist() == [NO_LIMIT] * 3


def test_the_first_short_row_is_named() -> None:
    room = whole([1, 2, 2], [0, 0, 5])
    assert first_short(room, request(2, 1)).tolist() == [0, 1, -1]


def test_least_allocated_is_the_mean_of_what_stays_free() -> None:
    capacity = whole([8000, 16000, 8000], [32768, 32768, 16384])
    requested = whole([4000, 5000, 2600], [6144, 4096, 3272])
    assert least_allocated(capacity, requested).tolist() == [65, 77, 73]


def test_least_allocated_gives_nothing_for_overflow_and_leaves_out_what_a_node_lacks() -> None:
    assert least_allocated(whole([10, 10, 0], [10, 0, 0]), whole([11, 5, 1], [5, 5, 1])).tolist() == [25, 50, 0]


def test_most_allocated_is_the_mean_of_what_is_used_at_most_all() -> None:
    assert most_allocated(whole([10, 10, 0], [10, 0, 0]), whole([11, 5, 1], [5, 5, 1])).tolist() == [75, 50, 0]


def test_balance_is_75_when_nothing_changes() -> None:
    capacity = whole([8000, 16000, 8000], [32768, 32768, 16384])
    before = whole([2000, 3000, 500], [4096, 2048, 1024])
    assert balanced(capacity, before, before).tolist() == [75, 75, 75]
    after = before + whole([2000], [2048])
    assert balanced(capacity, before, after).tolist() == [70, 73, 71]


def test_balance_of_three_rows_uses_the_standard_deviation_and_of_one_row_none() -> None:
    capacity = whole([10, 10], [10, 0], [10, 0])
    # Fractions 0.2, 0.4, 0.9: mean 0.5, deviation 0.2943..., so 70 of 100; before all equal, 100.
    assert balanced(capacity, whole([0, 0], [0, 0], [0, 0]), whole([2, 9], [4, 0], [9, 0])).tolist() == [50 + 20 // 2, 75]


def test_normalising_scales_by_the_largest() -> None:
    assert normalise(index(30, 10, 30)).tolist() == [100, 33, 100]
    assert normalise(index(0, 0)).tolist() == [0, 0]
    assert normalise(index(0, 1, 2), is_reversed=True).tolist() == [100, 50, 0]
    assert normalise(index(0, 0), is_reversed=True).tolist() == [100, 100]
    assert normalise(index()).tolist() == []


def test_normalising_a_range_divides_first() -> None:
    assert normalise_range(index(40, 20, 90)).tolist() == [28, 0, 100]
    assert normalise_range(index(0, 29, 100)).tolist() == [0, 28, 100]
    assert normalise_range(index(7, 7)).tolist() == [0, 0]
    assert normalise_range(index(-5, 5)).tolist() == [0, 100]
    assert normalise_range(index()).tolist() == []


@pytest.mark.parametrize("nodes", [index(2, 0, 0), slice(None)])
@pytest.mark.parametrize("rows", [[], [1], [1, 0]])
def test_rows_for_some_nodes_are_cut_out_of_the_books(rows: list[int], nodes: Counts | slice) -> None:
    amounts = whole([1, 2, 3], [10, 20, 30])
    assert np.array_equal(amounts_at(amounts, rows, nodes), amounts[rows][:, nodes])


def test_packing_scores_how_full_a_node_would_be() -> None:
    capacity, used = whole([8, 16, 8, 0], [32, 32, 16, 32]), whole([2, 3, 7, 0], [4, 2, 1, 0])
    assert pack(capacity, used, [(0, 2), (1, 2)], [1.0, 1.0]).tolist() == [0.34375, 0.21875, 0.0, 0.03125]
    assert pack(capacity, used, [(0, 2), (1, 2)], [0.0, 1.0]).tolist() == [0.1875, 0.125, 0.1875, 0.0625]
    assert pack(capacity, used, [(0, 2)], [0.0]).tolist() == [0.0] * 4
    assert pack(capacity, used, [], []).tolist() == [0.0] * 4


def test_free_share_scores_how_empty_a_node_would_stay() -> None:
    capacity, used = whole([8, 0], [32, 32]), whole([2, 0], [4, 0])
    assert free_share(capacity, used, [(0, 2), (1, 4)], [1.0, 3.0]).tolist() == [(0.5 + 3 * 0.75) / 4, 3 * 0.875 / 4]
    assert free_share(capacity, used, [], []).tolist() == [0.0, 0.0]


def candidates(scores: list[list[float]], room: list[int]) -> Candidates:
    """Make candidates from the scores of each node after 0, 1, 2, ... tasks; a node without room is none."""
    table = np.array(scores)
    now = np.where(np.array(room) > 0, table[:, 0], NOT_A_CANDIDATE)
    return Candidates(now, table[:, 1].copy(), index(*room), lambda nodes, turns: table[nodes, turns])


def one_by_one(scores: list[list[float]], room: list[int], count: int) -> list[int]:
    taken = [0] * len(room)
    chosen = []
    for _ in range(count):
        open_nodes = [node for node in range(len(room)) if taken[node] < room[node]]
        if not open_nodes:
            break
        best = max(open_nodes, key=lambda node: (scores[node][taken[node]], -node))
        taken[best] += 1
        chosen.append(best)
    return chosen


def test_a_run_goes_to_the_best_node_of_the_moment() -> None:
    falling = [[9.0, 5.0, 1.0, 0.0], [7.0, 6.0, 2.0, 0.0]]
    assert fill(candidates(falling, [3, 3]), 4).tolist() == [0, 1, 1, 0]


def test_equal_scores_go_to_the_lower_number() -> None:
    level = [[1.0] * 5, [1.0] * 5]
    assert fill(candidates(level, [2, 2]), 5).tolist() == [0, 0, 1, 1]


def test_a_run_may_end_when_a_node_is_full() -> None:
    level = [[1.0] * 5, [1.0] * 5]
    assert fill(candidates(level, [2, 2]), 4, stops_when_full=True).tolist() == [0, 0]
    assert fill(candidates(level, [0, 0]), 4).tolist() == []


@given(st.data())
def test_filling_equals_choosing_one_by_one(data: st.DataObject) -> None:
    nodes, count = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 8))
    score = st.integers(0, 5).map(float)
    scores = data.draw(st.lists(st.lists(score, min_size=10, max_size=10), min_size=nodes, max_size=nodes))
    room = data.draw(st.lists(st.integers(0, 4), min_size=nodes, max_size=nodes))
    assert fill(candidates(scores, room), count).tolist() == one_by_one(scores, room, count)


@given(st.integers(0, 2**32 - 1), st.integers(LEAST_TASKS, LEAST_TASKS + 8), st.integers(0, 40), st.booleans())
def test_a_run_among_the_best_of_many_nodes_equals_one_among_all(seed: int, count: int, more: int, stops: bool) -> None:
    chance, nodes = np.random.default_rng(seed), NODES_PER_TASK * count + more
    scores = chance.integers(0, 4, (nodes, count + 2)).astype(np.float64).tolist()
    room = (chance.integers(0, 5, nodes) * (chance.random(nodes) < chance.random())).tolist()
    among_all = fill_among_all(candidates(scores, room), count, stops_when_full=stops).tolist()
    assert fill(candidates(scores, room), count, stops_when_full=stops).tolist() == among_all
    if not stops:
        assert among_all == one_by_one(scores, room, count)


def test_domains_sum_over_their_nodes_and_may_overlap() -> None:
    domains = Domains([index(0, 1), index(), index(1, 2)])
    assert domains.sums(whole([1, 2, 4], [10, 20, 40])).tolist() == [[3.0, 0.0, 6.0], [30.0, 0.0, 60.0]]
    values: Scores = np.array([1.0, 5.0, 10.0])
    assert domains.spread(values, 4).tolist() == [1.0, 11.0, 10.0, 0.0]


@pytest.mark.parametrize("members", [[], [index()]])
def test_no_domains_and_empty_domains_sum_to_nothing(members: list[Counts]) -> None:
    assert Domains(members).sums(whole([1, 2])).tolist() == [[0.0] * len(members)]
