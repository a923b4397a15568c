"""The benchmark of backlogs: every row runs, and says what it measured."""

import pytest

from phalanx.bench.backlog import BacklogScenario, measure, scenarios, section, table


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "kai"])
def test_sessions_that_help_nobody_cost_less_than_the_first_one(profile: str) -> None:
    row = measure(BacklogScenario(profile, 80, 60))
    assert (row.nodes, row.pods, row.waiting) == (80, 80, 60)
    assert row.unchanged < row.first


def test_the_table_has_a_line_for_each_row_and_the_section_says_how_it_was_made() -> None:
    row = measure(BacklogScenario("phalanx", 80, 40, has_small=True))
    assert len(table([row]).splitlines()) == 2
    assert "phalanx, 40 waiting" in table([row])
    assert "`phalanx bench backlog`" in section([row])


def test_the_largest_rows_are_only_run_when_asked_for() -> None:
    assert max(scenario.waiting for scenario in scenarios()) < max(scenario.waiting for scenario in scenarios(is_full=True))
