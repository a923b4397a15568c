"""Curves of the report page: whatever the steps, columns of time hold their means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.sim.report_data import even_columns

SECONDS = 100
steps = st.lists(
    st.tuples(st.integers(0, SECONDS - 1), st.none() | st.integers(0, 8)), min_size=1, max_size=12, unique_by=lambda step: step[0]
)


def mean_by_seconds(curve: list[tuple[int, int | None]], begin: int, end: int) -> float | None:
    """Return the mean of a curve whose steps are at whole seconds, second by second."""
    values = [next((value for time, value in reversed(curve) if time <= second), None) for second in range(begin, end)]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@given(steps, st.sampled_from([1, 2, 4, 5, 10, 20, 25, 50, 100]))
def test_a_column_holds_the_mean_of_its_seconds(drawn: list[tuple[int, int | None]], count: int) -> None:
    curve = sorted(drawn)
    values = np.array([[value for _, value in curve]], dtype=np.float64)
    columns = even_columns(np.array([time for time, _ in curve], dtype=np.float64), values, SECONDS, count)[0]
    width = SECONDS // count
    expected = [mean_by_seconds(curve, index * width, (index + 1) * width) for index in range(count)]
    assert [None if np.isnan(value) else value for value in columns] == [
        None if mean is None else pytest.approx(mean) for mean in expected
    ]
