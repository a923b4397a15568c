"""How fairly queues were served: shares by weight, Jain's index, and the time below what a queue deserves."""

import numpy as np
import pytest

from phalanx.sim.curves import Changes, steps
from phalanx.sim.fairness import Fairness, QueueClaim, fair_shares, fairness
from phalanx.sim.recorder import GangRecord

EQUAL, HEAVY = QueueClaim(), QueueClaim(weight=3.0)


def record(queue: str, amount: float, *spans: tuple[float, float | None], submitted: float = 0.0) -> GangRecord:
    finished = spans[-1][1] if spans else None
    return GangRecord(f"{queue}/{amount}", queue, 0, 1, 1, amount, submitted, None, finished, spans=list(spans))


def offered(amount: float) -> Changes:
    return steps([0.0], [0], [amount])


def shares(demand: list[float], room: float, *claims: QueueClaim) -> list[float]:
    found = fair_shares(np.array(demand)[:, None], np.array([[room]]), claims)[:, 0]
    return [round(float(share), 6) for share in found]


@pytest.mark.parametrize(
    ("demand", "claims", "expected"),
    [
        ([9, 9], (EQUAL, EQUAL), [4, 4]),
        ([9, 9], (EQUAL, HEAVY), [2, 6]),
        ([1, 9], (EQUAL, EQUAL), [1, 7]),
        ([1, 2], (EQUAL, HEAVY), [1, 2]),
        ([0, 9], (HEAVY, EQUAL), [0, 8]),
        ([9, 9], (QueueClaim(quota=6.0), EQUAL), [7, 1]),
        ([9, 9], (QueueClaim(quota=12.0), QueueClaim(quota=4.0)), [9 / 13 * 8, 4 / 13 * 8]),
        ([9, 9, 1], (EQUAL, HEAVY, EQUAL), [1.75, 5.25, 1]),
    ],
)
def test_what_is_there_is_divided_by_weight_and_nobody_gets_more_than_he_asks_for(
    demand: list[float], claims: tuple[QueueClaim, ...], expected: list[float]
) -> None:
    assert shares(demand, 8.0, *claims) == pytest.approx(expected, abs=1e-6)


def test_queues_that_get_the_same_part_of_what_they_deserve_are_served_fairly() -> None:
    both = [record("a", 4.0, (0, 100)), record("b", 4.0, (0, 100))]
    assert fairness(both, offered(8.0), {}, 100.0) == Fairness(1.0, 0.0)


def test_a_queue_that_gets_nothing_while_another_has_all_halves_the_index() -> None:
    found = fairness([record("a", 8.0, (0, 100)), record("b", 8.0)], offered(8.0), {}, 100.0)
    assert found.index == pytest.approx(0.5)
    assert found.below == pytest.approx(0.5)


def test_weights_say_what_is_fair() -> None:
    gangs = [record("a", 2.0, (0, 100)), record("a", 6.0), record("b", 6.0, (0, 100)), record("b", 2.0)]
    assert fairness(gangs, offered(8.0), {"a": EQUAL, "b": HEAVY}, 100.0).index == pytest.approx(1.0)
    assert fairness(gangs, offered(8.0), {}, 100.0).index == pytest.approx(0.8)


def test_only_time_with_demand_counts() -> None:
    late = record("b", 4.0, (80, 100), submitted=60.0)
    found = fairness([record("a", 4.0, (0, 100)), late], offered(8.0), {}, 200.0)
    assert found.below == pytest.approx(20 / 140)


def test_where_nobody_asks_for_anything_there_is_nothing_to_say() -> None:
    assert fairness([], offered(8.0), {}, 100.0) == Fairness(None, None)
    assert fairness([record("a", 0.0)], offered(8.0), {}, 100.0) == Fairness(None, None)


def test_the_number_of_moments_looked_at_in_one_go_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gangs = [record("ab"[number % 2], 1.0 + number % 3, (number, number + 7.0), submitted=number / 2) for number in range(40)]
    whole = fairness(gangs, offered(5.0), {"a": HEAVY}, 60.0)
    monkeypatch.setattr("phalanx.sim.fairness.CELLS", 6)
    parts = fairness(gangs, offered(5.0), {"a": HEAVY}, 60.0)
    assert [parts.index, parts.below] == pytest.approx([whole.index, whole.below])
