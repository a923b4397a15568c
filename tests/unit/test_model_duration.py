"""Durations in configurations and annotations."""

import pytest

from phalanx.errors import ConfigError
from phalanx.model.duration import seconds_of
from phalanx.session.arguments import Arguments


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400.0), ("90s", 90.0), ("1.5m", 90.0), (".5s", 0.5), ("0", 0.0), (" 250ms ", 0.25), ("3µs", 3e-6)],
)
def test_a_duration_is_a_number_of_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "1h 30m", "-1h", "1d", "1h30", "9" * 100_000], ids=len)
def test_what_is_not_a_duration_has_no_seconds(text: str) -> None:
    assert seconds_of(text) is None


def test_an_argument_that_is_not_a_duration_is_refused_with_an_example() -> None:
    with pytest.raises(ConfigError, match=r"argument 'tdm.evict.period': '5' is not a duration; write for example '1h30m'"):
        Arguments("tdm", {"tdm.evict.period": "5"}).seconds("tdm.evict.period", "1m")


def test_a_duration_that_nobody_gave_has_the_default_or_none() -> None:
    assert Arguments("tdm", {}).seconds("tdm.evict.period", "1m") == 60.0
    assert Arguments("sla", {}).seconds("sla-waiting-time", None) is None
