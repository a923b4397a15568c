"""Amounts over time: against a slow way that is easy to see through, and fast on many changes."""

import itertools
import time
from random import Random

import numpy as np
import pytest

from phalanx.sim import curves
from phalanx.sim.curves import Changes


def drawn(seed: int, count: int, rows: int, end: float) -> tuple[Changes, Changes]:
    """Return changes of nodes that offer 8, or nothing for a while, and hold whole numbers up to that."""
    chance, held = Random(seed), [0.0] * rows
    moments = sorted(chance.choice((round(chance.uniform(0, end), 1), 7.0)) for _ in range(count))
    parts: list[tuple[float, int, float]] = []
    for moment in moments:
        row = chance.randrange(rows)
        level = float(chance.randint(0, 8))
        parts.append((moment, row, level - held[row]))
        held[row] = level
    offered = [(0.0, row, 8.0) for row in range(rows)] + [(end / 2, 0, 0.0), (end * 0.75, 0, 8.0)]
    return Changes.of(*zip(*parts, strict=True)), curves.steps(*zip(*offered, strict=True))


def level(changes: Changes, row: int, moment: float) -> float:
    return float(changes.amounts[(changes.rows == row) & (changes.moments <= moment)].sum())


def averaged(changes: Changes, row: int, start: float, stop: float) -> float:
    """Return the average level, step by step."""
    points = sorted({start, stop, *(float(moment) for moment in changes.moments if start < moment < stop)})
    return sum(level(changes, row, since) * (to - since) for since, to in itertools.pairwise(points)) / (stop - start)


@pytest.mark.parametrize("seed", range(5))
def test_a_picture_has_the_average_of_each_column(seed: int) -> None:
    held, _ = drawn(seed, 60, 3, 100.0)
    edges = np.linspace(0.0, 100.0, 8)
    found = curves.picture(held, 3, edges)
    expected = [[averaged(held, row, *pair) for pair in itertools.pairwise(edges)] for row in range(3)]
    assert found == pytest.approx(np.array(expected))


@pytest.mark.parametrize("seed", range(5))
def test_totals_are_what_the_steps_add_up_to(seed: int) -> None:
    held, offered = drawn(seed, 60, 3, 100.0)
    for changes in (held, offered):
        assert changes.total(80.0) == pytest.approx(80.0 * sum(averaged(changes, row, 0.0, 80.0) for row in range(3)))


@pytest.mark.parametrize("seed", range(5))
def test_fragmentation_is_what_the_steps_add_up_to(seed: int) -> None:
    held, offered = drawn(seed, 60, 3, 100.0)
    points = sorted({0.0, 100.0, *held.moments.tolist(), *offered.moments.tolist()})
    weighed = seconds = 0.0
    for since, to in itertools.pairwise(points):
        used = [level(held, row, since) for row in range(3)]
        free = [max(level(offered, row, since) - taken, 0.0) for row, taken in enumerate(used)]
        if sum(free):
            weighed += sum(room for room, taken in zip(free, used, strict=True) if taken) / sum(free) * (to - since)
            seconds += to - since
    assert curves.fragmentation(held, offered, 100.0) == pytest.approx(weighed / seconds)


def test_steps_turn_levels_into_changes() -> None:
    found = curves.steps([0.0, 1.0, 2.0, 3.0], [1, 0, 1, 1], [5.0, 2.0, 7.0, 0.0])
    assert found.amounts.tolist() == [5.0, 2.0, 2.0, -7.0]


def test_nothing_at_all_is_no_problem() -> None:
    nothing = Changes.of([], [], [])
    assert curves.steps([], [], []).total(10.0) == nothing.total(10.0) == 0.0
    assert curves.fragmentation(nothing, nothing, 10.0) == 0.0
    assert curves.picture(nothing, 2, np.linspace(0.0, 10.0, 3)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_hundred_thousand_changes_take_well_under_a_second() -> None:
    held, offered = drawn(1, 100_000, 1000, 1e6)
    begun = time.process_time()
    curves.fragmentation(held, offered, 1e6)
    curves.picture(held, 1000, np.linspace(0.0, 1e6, 201))
    assert time.process_time() - begun < 0.5
