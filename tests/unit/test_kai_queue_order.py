"""Whose turn it is among queues."""

from hypothesis import given
from hypothesis import strategies as st

from phalanx.kai.amounts import BOUNDLESS, ZERO, Figures
from phalanx.kai.queue_order import Contender, dominant_share, standing
from phalanx.kai.queue_order import comes_first as stands_before
from phalanx.kai.queue_order import gives_first as stands_to_give
from phalanx.kai.shares import QueueShare

TOTAL = (10_000.0, 10_000.0, 10.0)
GPU = (0.0, 0.0, 1.0)


def queue_share(name: str, allocated: Figures = ZERO, fair: Figures = (5000, 5000, 5), **rest: object) -> QueueShare:
    queue = QueueShare(name, deserved=(5000, 5000, 5), fair_share=fair, allocated=allocated)
    for attribute, value in rest.items():
        setattr(queue, attribute, value)
    return queue


def comes_first(left: Contender, right: Contender, total: Figures) -> bool:
    return stands_before(standing(left, total), standing(right, total))


def gives_first(left: Contender, right: Contender, total: Figures) -> bool:
    return stands_to_give(standing(left, total), standing(right, total))


def first(left: Contender, right: Contender) -> str:
    assert comes_first(left, right, TOTAL) != comes_first(right, left, TOTAL)
    return (left if comes_first(left, right, TOTAL) else right).queue.name


def test_a_queue_over_its_fair_share_in_all_three_resources_comes_last() -> None:
    over = queue_share("over", (11, 11, 2), fair=(10, 10, 1), priority=900)
    assert first(Contender(over), Contender(queue_share("under", priority=1))) == "under"


def test_over_in_two_resources_is_not_over() -> None:
    partly = queue_share("partly", (11, 11, 1), fair=(10, 10, 1), priority=900)
    assert first(Contender(partly), Contender(queue_share("under", priority=1))) == "partly"


def test_a_queue_that_stays_within_its_quota_with_its_job_comes_first() -> None:
    full, roomy = queue_share("full", (0, 0, 5), priority=900), queue_share("roomy", (0, 0, 4))
    assert first(Contender(full, GPU), Contender(roomy, GPU)) == "roomy"
    assert first(Contender(full, ZERO), Contender(roomy, GPU)) == "full"


def test_a_higher_priority_comes_before_a_smaller_share() -> None:
    assert first(Contender(queue_share("high", (0, 0, 4), priority=101)), Contender(queue_share("low"))) == "high"


def test_a_queue_that_would_use_what_it_has_no_share_of_comes_last() -> None:
    none = queue_share("none", fair=ZERO, deserved=ZERO)
    some = queue_share("some", (0, 0, 4), fair=(1, 1, 0.001), deserved=ZERO)
    assert first(Contender(none, GPU), Contender(some, GPU)) == "some"


def test_the_smaller_dominant_share_with_the_job_comes_first() -> None:
    gpus, cores = queue_share("gpus", (0, 0, 2)), queue_share("cores", (1500, 0, 0))
    assert first(Contender(gpus), Contender(cores)) == "cores"
    assert first(Contender(gpus), Contender(cores, (0, 0, 3))) == "gpus"


def test_equal_with_their_jobs_the_smaller_share_without_comes_first() -> None:
    busy, idle = queue_share("busy", (0, 0, 2)), queue_share("idle", (0, 0, 1))
    assert first(Contender(busy, GPU), Contender(idle, (0, 0, 2))) == "idle"


def test_then_the_queue_that_can_count_on_less_then_the_older_then_the_name() -> None:
    small, large = queue_share("z-small", deserved=(5000, 5000, 4), fair=ZERO), queue_share("large")
    assert first(Contender(small), Contender(large)) == "z-small"
    boundless = queue_share("boundless", deserved=BOUNDLESS)
    assert first(Contender(boundless), Contender(large)) == "large"
    assert first(Contender(queue_share("a", created=2.0)), Contender(queue_share("b", created=1.0))) == "b"
    assert first(Contender(queue_share("b")), Contender(queue_share("a"))) == "a"


def test_shares_that_are_smaller_in_one_and_larger_in_another_resource_leave_it_to_age() -> None:
    left = queue_share("left", deserved=(1, 5, 5), fair=ZERO, created=2.0)
    right = queue_share("right", deserved=(5, 1, 5), fair=ZERO, created=1.0)
    assert first(Contender(left), Contender(right)) == "right"


def test_without_a_bound_the_cluster_is_the_share_and_without_a_share_every_unit_weighs_a_thousand() -> None:
    assert dominant_share((1000, 0, 0), BOUNDLESS, TOTAL) == 0.1
    assert dominant_share((0, 0, 2), (1, 1, 0), TOTAL) == 2000
    assert dominant_share((0, 0, 2), BOUNDLESS, (1, 1, 0)) == 2000
    assert dominant_share((-1, -1, -1), (1, 1, 1), TOTAL) == 0


def test_victims_come_from_the_queue_whose_turn_is_last() -> None:
    rich, poor = queue_share("rich", (0, 0, 5)), queue_share("poor", (0, 0, 3))
    assert gives_first(Contender(rich, victims=GPU), Contender(poor, victims=GPU), TOTAL)
    assert not gives_first(Contender(poor, victims=GPU), Contender(rich, victims=GPU), TOTAL)


def test_what_victims_release_counts_against_a_queue() -> None:
    rich, poor = queue_share("rich", (0, 0, 5)), queue_share("poor", (0, 0, 3))
    assert gives_first(Contender(poor, victims=GPU), Contender(rich, victims=(0, 0, 4)), TOTAL)


AMOUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
QUEUES = st.builds(
    lambda *parts: QueueShare("", priority=parts[0], deserved=parts[1], fair_share=parts[2], allocated=parts[3], created=parts[4]),
    *(st.integers(1, 2), AMOUNTS | st.just(BOUNDLESS), AMOUNTS, AMOUNTS, st.integers(0, 1)),
)


@given(QUEUES, QUEUES, AMOUNTS, AMOUNTS)
def test_law_of_two_queues_exactly_one_comes_first(left: QueueShare, right: QueueShare, job: Figures, victims: Figures) -> None:
    left.name, right.name = "left", "right"
    one, other = Contender(left, job), Contender(right, ZERO, victims)
    assert comes_first(one, other, TOTAL) != comes_first(other, one, TOTAL)
    assert gives_first(one, other, TOTAL) == comes_first(other, one, TOTAL)
    assert not comes_first(one, one, TOTAL)
    assert not gives_first(one, one, TOTAL)
