"""What the work of gangs came to: useful and lost work, and slowdowns, also of gangs that have not ended."""

import pytest

from phalanx.sim.recorder import GangRecord
from phalanx.sim.work_done import lost_work_of, slowdown_of, work_of

END = 1000.0


def record(
    *spans: tuple[float, float | None], kept: tuple[float, ...] = (), finished: float | None = None, submitted: float = 0.0
) -> GangRecord:
    started, saved = spans[0][0] if spans else None, list(kept or [0.0] * len(spans))
    return GangRecord("a/b", "default", 0, 2, 2, 2.0, submitted, started, finished, spans=list(spans), kept=saved)


def test_what_led_to_the_end_is_useful_and_what_came_before_is_lost() -> None:
    gang = record((100, 200), (300, 600), finished=600)
    assert (work_of(gang, END), lost_work_of(gang, END)) == (800.0, 200.0)


def test_what_was_saved_before_an_interruption_is_not_lost() -> None:
    assert lost_work_of(record((100, 200), (300, 600), kept=(80, 0), finished=600), END) == 2 * 20.0
    assert lost_work_of(record((100, 200), (300, 400), kept=(80, 90)), END) == 2 * 30.0
    assert lost_work_of(record((100, 200), (300, 400), kept=(100, 100)), END) == 0.0


def test_what_goes_on_at_the_end_is_not_lost() -> None:
    gang = record((100, 200), (900, None))
    assert (work_of(gang, END), lost_work_of(gang, END)) == (400.0, 200.0)


def test_a_gang_that_waits_again_has_lost_all_its_work() -> None:
    assert lost_work_of(record((100, 200)), END) == 200.0


def test_a_slowdown_is_the_time_to_the_end_as_a_multiple_of_the_time_that_was_needed() -> None:
    assert slowdown_of(record((100, 200), (300, 500), finished=500), None, END) == 2.5
    assert slowdown_of(record((100, 200), (300, 400), kept=(100, 0), finished=400), None, END) == 2.0
    assert slowdown_of(record((0, 50), finished=50), None, END) == 1.0


def test_a_very_short_gang_counts_as_if_it_needed_ten_seconds() -> None:
    assert slowdown_of(record((99, 100), finished=100), None, END) == 10.0


@pytest.mark.parametrize(
    ("gang", "least"),
    [
        (record(), (1000 + 500) / 500),
        (record((900, None)), (1000 + 400) / 500),
        (record((0, 100)), (1000 + 500) / 500),
        (record((0, 100), kept=(60,)), (1000 + 440) / 500),
        (record((100, None)), 1000 / 900),
    ],
    ids=["never started", "runs", "waits again", "waits with a checkpoint", "runs longer than expected"],
)
def test_a_gang_that_has_not_ended_counts_as_if_nothing_held_it_up_any_more(gang: GangRecord, least: float) -> None:
    assert slowdown_of(gang, 500.0, END) == pytest.approx(least)


def test_a_gang_that_never_started_and_whose_duration_nobody_knows_counts_with_its_wait() -> None:
    assert slowdown_of(record(submitted=900), None, END) == 10.0
