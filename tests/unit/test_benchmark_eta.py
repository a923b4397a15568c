"""The benchmark of expected starts, on a small load: simulated answers are nearer to the truth than the mean wait so far."""

import itertools

import pytest
from benchmarks import eta
from benchmarks.eta import DEADLINES, EXACT, FROM_NOW, FROM_SUBMISSION, HISTORY, Load, Sample, quality

from phalanx.sim.generate import generate

SMALL = Load("small", "generated:jobs=40,nodes=1,days=0.25,load=1.5,seed=3", moments=(5 * 3600.0,))


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return eta.measure(SMALL, seeds=4, divides=False)


def test_every_waiting_gang_is_asked_about_with_every_knowledge(samples: list[Sample]) -> None:
    kinds = (*eta.SIMULATED, FROM_NOW, FROM_SUBMISSION)
    assert {kind: quality(samples, kind).questions for kind in kinds} == dict.fromkeys(kinds, 17)
    assert {kind for kind in kinds if quality(samples, kind).silent} == {
        eta.SAME_DAY
    }  # the gang that blocks them is the first of its kind


def test_who_knows_durations_is_nearer_to_the_truth_than_who_knows_only_waits(samples: list[Sample]) -> None:
    exact, history, naive = (quality(samples, kind) for kind in (EXACT, HISTORY, FROM_NOW))
    assert exact.error < history.error < naive.error
    assert exact.relative < 0.25


def test_a_gang_that_keeps_its_deadline_ends_before_it_so_others_start_by_p90(samples: list[Sample]) -> None:
    assert quality(samples, DEADLINES).by_p90 == 1.0


def test_who_counts_later_submissions_is_right_about_the_latest_start_more_often(samples: list[Sample]) -> None:
    found = quality(samples, EXACT)
    assert found.by_p90 > found.by_alone


def test_a_page_shows_both_tables(samples: list[Sample]) -> None:
    lines = eta.section({"small": samples}, [SMALL], 4).splitlines()
    assert sum(line.startswith("| small |") for line in lines) == 9
    assert any(line.startswith("| small | exact durations | 17 | 0 |") for line in lines)


# --- its parts -----------------------------------------------------------------------------------------------------------


def test_errors_are_medians_and_an_answer_that_is_missing_is_counted() -> None:
    given = [
        Sample("x", 100.0, 200.0, 150.0, 100.0, 120.0), Sample("x", 500.0, 600.0, 1000.0, 500.0, 550.0),
        Sample("x", None, None, 70.0, None, None),
    ]  # fmt: skip
    found = quality([*given, Sample("y", 0.0, 0.0, 0.0, 0.0)], "x")
    assert (found.questions, found.silent, found.error, round(found.by_p90, 3)) == (3, 1, 275.0, 0.333)
    assert (found.by_alone, found.slack) == (0.0, -175.0)
    quiet = quality(given, "x", is_quiet=True)
    assert (quiet.questions, quiet.silent, quiet.error, quiet.by_alone) == (2, 0, 0.0, 1.0)


def test_families_have_similar_durations_and_a_history_of_their_own() -> None:
    workload = eta.with_families(generate(3, jobs=48, nodes=4, days=1), count=4)
    families = [sorted(gang.duration for gang in workload.gangs if gang.name.startswith(f"kind-{name}-")) for name in "abcd"]
    assert [len(family) for family in families] == [12] * 4
    assert all(left[-1] <= right[0] for left, right in itertools.pairwise(families))
    taken = [gang.seconds for gang in eta.history_of(workload) if gang.gang.startswith("default/kind-c-")]
    assert len(taken) == eta.FINISHED
    assert all(families[2][0] <= seconds <= families[2][-1] for seconds in taken)
    assert not set(taken) & set(families[2])
