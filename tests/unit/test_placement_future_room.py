"""Room over time: what is free when, the first moment at which something fits, and what must be left free now."""

import numpy as np
import pytest

from phalanx.placement import Amounts
from phalanx.placement.future_room import Booking, FutureRoom, Releases, held_now

NOBODY = Releases.of(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros((1, 0), dtype=np.int64))


def releases(*ends: tuple[float, int, int]) -> Releases:
    """Return releases of one resource: when, on which node, how much."""
    moments, nodes, amounts = zip(*ends, strict=True)
    return Releases.of(np.array(moments, dtype=np.float64), np.array(nodes), np.array([amounts]))


def booking(start: float, end: float, **amounts: int) -> Booking:
    """Return a booking of one resource on nodes n0, n1 and so on."""
    nodes = np.array([int(name[1:]) for name in amounts])
    return Booking(start, end, nodes, np.array([list(amounts.values())]))


def at_least(amount: int):  # type: ignore[no-untyped-def]  # a fit, in words
    """Return a fit that needs so much on all nodes together."""
    return lambda room: int(room.sum()) if int(np.maximum(room, 0).sum()) >= amount else None


def room(*amounts: int) -> Amounts:
    return np.array([amounts], dtype=np.int64)


def test_room_grows_when_tasks_end_and_those_that_never_end_are_left_out() -> None:
    future = FutureRoom(100.0, room(1, 0), releases((300.0, 0, 2), (200.0, 1, 4), (np.inf, 1, 8), (50.0, 0, 1)))
    assert future.moments == [100.0, 200.0, 300.0]
    assert [future.at(moment).tolist() for moment in future.moments] == [[[2, 0]], [[2, 4]], [[4, 4]]]


@pytest.mark.parametrize(("amount", "start"), [(1, 0.0), (2, 10.0), (7, 30.0), (9, 40.0), (10, None)])
def test_the_first_moment_is_found(amount: int, start: float | None) -> None:
    future = FutureRoom(0.0, room(1, 0), releases((10.0, 0, 1), (20.0, 1, 2), (30.0, 1, 3), (40.0, 0, 2)))
    found = future.earliest(at_least(amount), 5.0)
    assert (None if found is None else found[0]) == start


def test_a_booking_takes_its_room_for_its_time_only() -> None:
    future = FutureRoom(0.0, room(4), NOBODY, [booking(100.0, 200.0, n0=4)])
    assert future.during(0.0, 100.0).tolist() == [[4]]
    assert future.during(0.0, 101.0).tolist() == [[0]]
    assert future.earliest(at_least(2), 100.0) == (0.0, 4)
    assert future.earliest(at_least(2), 101.0) == (200.0, 4)
    assert future.earliest(at_least(5), 1.0) is None


def test_nothing_fits_behind_a_booking_without_an_end() -> None:
    future = FutureRoom(0.0, room(4), NOBODY, [booking(100.0, np.inf, n0=4)])
    assert future.earliest(at_least(2), 101.0) is None


def test_what_is_held_now_is_what_nobody_releases_before_the_start() -> None:
    held = held_now([booking(100.0, 200.0, n0=6, n1=3)], [100.0], releases((50.0, 0, 4), (150.0, 1, 4)), (1, 3))
    assert held.tolist() == [[2, 3, 0]]


def test_bookings_at_the_same_time_add_up_and_those_after_another_do_not() -> None:
    together = [booking(100.0, 300.0, n0=2), booking(200.0, 400.0, n0=3)]
    assert held_now(together, [100.0, 200.0], NOBODY, (1, 1)).tolist() == [[5]]
    apart = [booking(100.0, 200.0, n0=2), booking(200.0, 400.0, n0=3)]
    assert held_now(apart, [100.0, 200.0], NOBODY, (1, 1)).tolist() == [[3]]
    assert held_now(apart, [100.0], NOBODY, (1, 1)).tolist() == [[2]]
