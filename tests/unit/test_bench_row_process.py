"""Rows in processes of their own: what they print comes back, and what goes wrong is said with the name of the row."""

import pytest

from phalanx.bench.backlog import BacklogScenario
from phalanx.bench.backlog import run as run_backlog
from phalanx.bench.evict import EvictRow
from phalanx.bench.row_process import print_row, run_apart
from phalanx.errors import PhalanxError


def test_a_row_comes_back_as_it_was_measured() -> None:
    row = run_backlog(BacklogScenario("volcano", 80, 60))
    assert (row.scenario, row.nodes, row.waiting) == ("volcano, 60 waiting", 80, 60)
    assert row.peak_rss_bytes > 0


def test_a_row_that_takes_too_long_is_named() -> None:
    with pytest.raises(PhalanxError, match=r"^gang of 200: took longer than 0 s$"):
        run_apart("phalanx.bench.evict", "gang of 200 by preempt", name="gang of 200", row=EvictRow, most_seconds=0.01)


def test_a_row_whose_process_fails_says_its_last_line() -> None:
    with pytest.raises(PhalanxError, match=r"^a row: .*no_such_module"):
        run_apart("phalanx.no_such_module", name="a row", row=EvictRow, most_seconds=60)


def test_a_row_that_cannot_be_measured_ends_the_process_with_a_sentence() -> None:
    def fail() -> object:
        raise PhalanxError("3 of 8 pods of a gang that fits start")

    with pytest.raises(SystemExit, match="3 of 8 pods"):
        print_row(fail)
