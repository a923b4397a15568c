"""What queues have used lately: which samples count, how much, and as a part of what."""

from datetime import UTC, datetime

import pytest

from phalanx.errors import ConfigError
from phalanx.kai.usage_window import UsageWindow, integral, read_window, usage_by_queue
from phalanx.model.cron import Cron
from phalanx.model.queue_usage import QueueHistory, Series

HOUR = 3600.0
NOW = datetime(2026, 1, 7, 12, tzinfo=UTC).timestamp()  # a Wednesday
DAY = UsageWindow(size_seconds=24 * HOUR, stale_seconds=HOUR)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def hours_ago(*samples: tuple[float, float]) -> Series:
    return tuple((NOW - ago * HOUR, amount) for ago, amount in samples)


def history(used: Series, capacity: Series | None = None) -> QueueHistory:
    return QueueHistory({"a": {"gpu": (used,)}}, {} if capacity is None else {"gpu": (capacity,)})


def usage(found: QueueHistory, window: UsageWindow = DAY, capacity: float = 10.0) -> float:
    return usage_by_queue(found, window, NOW, {"gpu": capacity})["a"]["gpu"]


# --- samples -------------------------------------------------------------------------------------------------------------


def test_a_sample_holds_until_the_next_one_and_the_last_until_now() -> None:
    assert integral(hours_ago((4, 8.0), (1, 2.0)), DAY, NOW) == pytest.approx(3 * HOUR * 8 + HOUR * 2)


def test_the_last_sample_holds_no_longer_than_the_staleness_period() -> None:
    assert integral(hours_ago((4, 8.0)), DAY, NOW) == pytest.approx(HOUR * 8)


def test_what_was_before_the_window_does_not_count() -> None:
    window = UsageWindow(size_seconds=2 * HOUR, stale_seconds=HOUR)
    assert integral(hours_ago((4, 8.0), (0.5, 0.0)), window, NOW) == pytest.approx(1.5 * HOUR * 8)


def test_what_is_after_now_does_not_count() -> None:
    assert integral(hours_ago((1, 8.0), (-1, 100.0)), DAY, NOW) == pytest.approx(HOUR * 8)


def test_no_samples_are_no_usage() -> None:
    assert integral((), DAY, NOW) == 0.0


def test_an_hour_counts_half_as_much_one_half_life_earlier() -> None:
    window = UsageWindow(size_seconds=24 * HOUR, half_life_seconds=3 * HOUR, stale_seconds=HOUR)
    late = integral(hours_ago((1, 8.0), (0, 0.0)), window, NOW)
    early = integral(hours_ago((4, 8.0), (3, 0.0)), window, NOW)
    assert early == pytest.approx(late / 2)
    assert late < HOUR * 8


def test_a_very_long_half_life_is_as_good_as_none() -> None:
    samples = hours_ago((4, 8.0), (1, 2.0))
    window = UsageWindow(size_seconds=24 * HOUR, half_life_seconds=1e12, stale_seconds=HOUR)
    assert integral(samples, window, NOW) == pytest.approx(integral(samples, DAY, NOW), rel=1e-6)


# --- a part of the cluster -----------------------------------------------------------------------------------------------


def test_a_quarter_of_the_cluster_all_the_time_is_a_quarter() -> None:
    assert usage(history(hours_ago((48, 4.0), (0, 4.0)), hours_ago((48, 16.0), (0, 16.0)))) == pytest.approx(0.25)


def test_24_of_100_device_hours_are_24_percent() -> None:
    window = UsageWindow(size_seconds=10 * HOUR, stale_seconds=HOUR)
    found = history(hours_ago((5, 8.0), (2, 0.0), (0, 0.0)), hours_ago((10, 10.0), (0, 10.0)))
    assert usage(found, window) == pytest.approx(0.24)


def test_the_cluster_of_today_stands_in_where_nobody_measured_its_size() -> None:
    assert usage(history(hours_ago((24, 5.0), (0, 5.0))), capacity=20.0) == pytest.approx(0.25)


def test_a_cluster_without_the_resource_has_no_usage_of_it() -> None:
    assert usage(history(hours_ago((24, 5.0), (0, 5.0))), capacity=0.0) == 0.0


def test_decay_leaves_the_share_of_a_steady_queue_as_it_is() -> None:
    window = UsageWindow(size_seconds=24 * HOUR, half_life_seconds=HOUR, stale_seconds=HOUR)
    assert usage(history(hours_ago((48, 4.0), (0, 4.0)), hours_ago((48, 16.0), (0, 16.0))), window) == pytest.approx(0.25)


def test_with_decay_recent_usage_weighs_more_than_old_usage() -> None:
    window = UsageWindow(size_seconds=24 * HOUR, half_life_seconds=2 * HOUR, stale_seconds=HOUR)
    old, recent = hours_ago((20, 8.0), (16, 0.0), (0, 0.0)), hours_ago((20, 0.0), (4, 8.0), (0, 8.0))
    assert usage(history(old)) == pytest.approx(usage(history(recent)))
    assert usage(history(old), window) < 0.1 * usage(history(recent), window)


@pytest.mark.parametrize(("ago", "is_known"), [(0.9, True), (1.1, False)])
def test_usage_that_nobody_measured_for_too_long_is_ignored(ago: float, is_known: bool) -> None:
    found = usage_by_queue(history(hours_ago((24, 5.0), (ago, 5.0))), DAY, NOW, {"gpu": 10.0})
    assert bool(found) == is_known


def test_no_history_is_no_usage() -> None:
    assert usage_by_queue(None, DAY, NOW, {}) == {}


def test_several_series_of_one_queue_add_up() -> None:
    one = history(hours_ago((24, 2.0), (0, 2.0)))
    assert usage(one.plus(one)) == pytest.approx(0.4)


# --- windows -------------------------------------------------------------------------------------------------------------


def test_a_sliding_window_ends_now() -> None:
    assert DAY.start(NOW) == NOW - 24 * HOUR


def test_a_tumbling_window_begins_a_whole_number_of_windows_after_the_first() -> None:
    window = read_window(
        {"windowType": "tumbling", "windowSize": "48h", "tumblingWindowStartTime": "2026-01-01T06:00:00Z"}, "usage"
    )
    assert window.start(NOW) == at("2026-01-07T06:00:00")
    assert window.start(at("2026-01-09T05:59:59")) == at("2026-01-07T06:00:00")
    assert window.start(at("2026-01-09T06:00:00")) == at("2026-01-09T06:00:00")


def test_a_cron_window_begins_when_the_schedule_says() -> None:
    window = read_window({"windowType": "cron", "cronWindowDurationString": "0 0 * * mon"}, "usage")
    assert window.start(NOW) == at("2026-01-05T00:00:00")


def test_a_cron_window_is_no_longer_than_its_size() -> None:
    window = read_window({"windowType": "cron", "windowSize": "24h", "cronWindowDurationString": "0 0 * * mon"}, "usage")
    assert window.start(NOW) == NOW - 24 * HOUR


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"windowType": "hopping"}, "usage.windowType: 'hopping' is unknown; write 'sliding', 'tumbling' or 'cron'"),
        ({"windowSize": "a week"}, "usage.windowSize: 'a week' is not a duration; write for example '168h'"),
        ({"windowSize": "0s"}, "usage.windowSize: a window of no time holds nothing; write for example '168h'"),
        ({"tumblingWindowStartTime": "monday"}, "usage.tumblingWindowStartTime: 'monday' is not a time; write for example '2026-"),
        ({"windowType": "cron"}, "usage.cronWindowDurationString: missing; say when the window begins anew"),
        ({"windowType": "cron", "cronWindowDurationString": "60 * * * *"}, "usage.cronWindowDurationString: '60' is no minute"),
        ({"halfLife": "1h"}, "usage.halfLife: unknown setting; known: windowType, windowSize, halfLifePeriod"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as problem:
        read_window(given, "usage")
    assert str(problem.value).startswith(message)


# --- schedules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("* * * * *", "2026-01-07T12:00:00"),
        ("0 13 * * *", "2026-01-06T13:00:00"),
        ("*/25 * * * *", "2026-01-07T12:00:00"),
        ("59 11 * * *", "2026-01-07T11:59:00"),
        ("0 0 1 * *", "2026-01-01T00:00:00"),
        ("30 8 1 jun *", "2025-06-01T08:30:00"),
        ("0 0 * * 0", "2026-01-04T00:00:00"),
        ("0 0 * * 7", "2026-01-04T00:00:00"),
        ("0 0 * * mon-tue", "2026-01-06T00:00:00"),
        ("0 0 2 * mon", "2026-01-05T00:00:00"),
        ("0 6,18 * * *", "2026-01-07T06:00:00"),
        ("0 0 29 2 *", "2024-02-29T00:00:00"),
    ],
)
def test_the_last_moment_of_a_schedule(text: str, last: str) -> None:
    assert Cron(text).last(NOW) == at(last)


def test_a_schedule_that_never_comes_has_no_last_moment() -> None:
    assert Cron("0 0 31 2 *").last(NOW) is None


@pytest.mark.parametrize(
    "text", ["", "* * * *", "a * * * *", "5-1 * * * *", "*/0 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *"]
)
def test_a_schedule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write"):
        Cron(text)
