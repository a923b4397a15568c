"""How the cluster is divided among queues."""

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.errors import SnapshotError
from phalanx.kai.amounts import BOUNDLESS, UNLIMITED, ZERO, Figures, at_most, within
from phalanx.kai.shares import QueueShare, add_pending, add_running, allocatable, build_tree, divide_fairly, hold, release

MANY = 1e6


def gpu_queue(
    name: str, quota: float = 0, *, weight: float = 1, limit: float = UNLIMITED, asks: float = 0, **rest: object
) -> QueueShare:
    queue = QueueShare(name, deserved=(0, 0, quota), limit=(-1, -1, limit), weight=(1, 1, weight), request=(0, 0, asks))
    for attribute, value in rest.items():
        setattr(queue, attribute, value)
    return queue


def gpu_shares(total: float, *queues: QueueShare, k_value: float = 1.0) -> list[float]:
    divide_fairly(queues, (0, 0, total), k_value=k_value)
    return [queue.fair_share[2] for queue in queues]


def test_unlimited_counts_as_more_than_anything_on_both_sides() -> None:
    assert at_most(MANY, UNLIMITED)
    assert at_most(UNLIMITED, UNLIMITED)
    assert not at_most(UNLIMITED, MANY)
    assert within((1, 2, 3), BOUNDLESS)
    assert not within(BOUNDLESS, (1, 2, 3))


def test_a_queue_gets_its_quota_but_no_more_than_it_asks_for() -> None:
    assert gpu_shares(10, gpu_queue("a", 4, asks=9, weight=0), gpu_queue("b", 4, asks=1, weight=0)) == [4, 1]


def test_a_limit_caps_what_a_queue_asks_for() -> None:
    assert gpu_shares(10, gpu_queue("a", 8, limit=3, asks=9), gpu_queue("b", 0, limit=2, asks=9)) == [3, 2]


def test_quotas_beyond_the_cluster_are_not_scaled_down() -> None:
    assert gpu_shares(4, gpu_queue("a", 3, asks=9), gpu_queue("b", 3, asks=9)) == [3, 3]


def test_an_unlimited_quota_is_the_whole_cluster() -> None:
    assert gpu_shares(6, gpu_queue("a", UNLIMITED, asks=4), gpu_queue("b", UNLIMITED, asks=9)) == [4, 6]


def test_what_quotas_leave_is_divided_by_weight() -> None:
    assert gpu_shares(10, gpu_queue("a", 1, asks=99), gpu_queue("b", 1, asks=99, weight=3)) == [3, 7]


def test_what_one_queue_does_not_need_goes_to_the_others_in_another_round() -> None:
    assert gpu_shares(12, gpu_queue("a", asks=1), gpu_queue("b", asks=99), gpu_queue("c", asks=99)) == [1, 6, 5]


def test_only_what_a_higher_priority_leaves_goes_to_a_lower_one() -> None:
    high, low = gpu_queue("high", asks=7, priority=200), gpu_queue("low", asks=99, weight=50)
    assert gpu_shares(10, low, high) == [3, 7]


def test_units_lost_to_rounding_go_to_the_larger_fraction_then_the_older_then_the_name() -> None:
    assert gpu_shares(5, gpu_queue("a", asks=9), gpu_queue("b", asks=9, weight=2)) == [2, 3]
    assert gpu_shares(1, gpu_queue("a", asks=9, created=2.0), gpu_queue("b", asks=9, created=1.0)) == [0, 1]
    assert gpu_shares(1, gpu_queue("b", asks=9), gpu_queue("a", asks=9)) == [0, 1]


def test_the_last_part_of_a_device_goes_to_one_queue() -> None:
    assert gpu_shares(2.5, gpu_queue("a", asks=9), gpu_queue("b", asks=9)) == [1.5, 1]


def test_a_queue_without_weight_gets_nothing_above_its_quota() -> None:
    assert gpu_shares(10, gpu_queue("a", 1, asks=9, weight=0), gpu_queue("b", asks=4)) == [1, 4]


def test_weights_of_minus_one_count_as_they_are() -> None:
    assert gpu_shares(10, gpu_queue("a", asks=9, weight=-1), gpu_queue("b", asks=9, weight=-1)) == [5, 5]
    assert gpu_shares(10, gpu_queue("a", asks=9, weight=-1), gpu_queue("b", asks=9, weight=1)) == [0, 0]


def test_usage_in_the_past_lowers_the_weight() -> None:
    heavy, light = gpu_queue("heavy", asks=99, usage=(0, 0, 0.5)), gpu_queue("light", asks=99)
    assert gpu_shares(12, heavy, light, k_value=1.0) == [4, 8]
    assert gpu_shares(12, heavy, light, k_value=0.0) == [6, 6]
    assert gpu_shares(12, heavy, light, k_value=1000.0) == [0, 12]


def test_nothing_is_divided_among_queues_that_all_used_too_much() -> None:
    assert gpu_shares(12, gpu_queue("a", 1, asks=9, usage=(0, 0, 1)), gpu_queue("b", asks=9, usage=(0, 0, 1)), k_value=5.0) == [
        1,
        0,
    ]


def test_children_divide_the_fair_share_of_their_parent() -> None:
    tree = build_tree(
        [gpu_queue("top", 4), gpu_queue("x", parent_name="top"), gpu_queue("y", parent_name="top"), gpu_queue("other")]
    )
    for name in ("x", "y", "other"):
        add_pending(tree.by_name[name], (0, 0, 99))
    divide_fairly(tree.roots, (0, 0, 10))
    assert {name: queue.fair_share[2] for name, queue in tree.by_name.items()} == {"top": 7, "x": 4, "y": 3, "other": 3}


def test_dividing_again_starts_anew() -> None:
    queue = gpu_queue("a", 2, asks=9)
    assert gpu_shares(4, queue) == gpu_shares(4, queue) == [4]


def test_a_cluster_that_is_used_by_others_altogether_divides_nothing() -> None:
    assert gpu_shares(-3, gpu_queue("a", UNLIMITED, asks=4)) == [0]


def test_tenths_of_a_device_add_up_to_a_device() -> None:
    queue = QueueShare("a")
    for _ in range(10):
        add_running(queue, (0, 0, 0.1), is_preemptible=True)
    assert queue.allocated == queue.request == (0, 0, 1)


def test_a_queue_can_count_on_its_quota_or_fair_share_up_to_its_limit() -> None:
    queue = QueueShare("a", deserved=(-1, 5, 2), limit=(7, -1, 3), fair_share=(1, 2, 4))
    assert allocatable(queue) == (7, 5, 3)
    assert allocatable(QueueShare("b", deserved=BOUNDLESS)) == BOUNDLESS


def test_a_leaf_counts_for_all_queues_above_it() -> None:
    tree = build_tree([QueueShare("top"), QueueShare("mid", "top"), QueueShare("leaf", "mid"), QueueShare("side", "top")])
    leaf = tree.by_name["leaf"]
    add_running(leaf, (1000, 5, 1), is_preemptible=False)
    add_pending(leaf, (500, 5, 0))
    hold(leaf, (500, 5, 0), is_preemptible=True)
    for name in ("leaf", "mid", "top"):
        queue = tree.by_name[name]
        assert (queue.request, queue.allocated, queue.allocated_nonpreemptible) == ((1500, 10, 1), (1500, 10, 1), (1000, 5, 1))
    assert tree.by_name["side"].request == ZERO


def test_queues_whose_line_does_not_reach_the_top_are_dropped_with_all_below() -> None:
    lost = [QueueShare("lost", "nowhere"), QueueShare("below", "lost")]
    ring = [QueueShare("one", "two"), QueueShare("two", "one"), QueueShare("self", "self"), QueueShare("hanger", "two")]
    tree = build_tree([*lost, *ring, QueueShare("top"), QueueShare("leaf", "top")])
    assert sorted(tree.by_name) == ["leaf", "top"]
    assert tree.leaf("leaf") is tree.by_name["leaf"]
    assert tree.leaf("top") is None
    assert tree.leaf("lost") is None


def test_a_very_deep_tree_is_divided() -> None:
    tree = build_tree([gpu_queue("0", 1), *(gpu_queue(str(n), parent_name=str(n - 1)) for n in range(1, 5000))])
    add_pending(tree.by_name["4999"], (0, 0, 3))
    divide_fairly(tree.roots, (0, 0, 2))
    assert tree.by_name["4999"].fair_share == (0, 0, 2)


@pytest.mark.parametrize("value", [-2, -0.5, math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("kind", ["deserved", "limit", "weight"])
def test_absurd_figures_are_refused(kind: str, value: float) -> None:
    queue = QueueShare("a")
    setattr(queue, kind, (0, value, 0))
    with pytest.raises(
        SnapshotError, match=r"Queue a: spec.resources.memory.\w+: .* is no amount; write 0 or more, or -1 for no bound"
    ):
        build_tree([queue])


def test_absurd_usage_and_names_are_refused() -> None:
    with pytest.raises(SnapshotError, match="Queue a: usage of cpu: -1 is no part of the cluster"):
        build_tree([QueueShare("a", usage=(-1, 0, 0))])
    with pytest.raises(SnapshotError, match="Queue a: is there twice"):
        build_tree([QueueShare("a"), QueueShare("a")])
    with pytest.raises(SnapshotError, match="missing"):
        build_tree([QueueShare("")])


AMOUNTS = st.integers(0, 20).map(float) | st.integers(0, 2000).map(lambda n: n / 100)
BOUNDS = st.just(UNLIMITED) | AMOUNTS
WEIGHTS = st.just(UNLIMITED) | st.integers(0, 5).map(float) | st.floats(0, 1)
QUEUES = st.builds(
    lambda quota, limit, weight, asks, used, priority: gpu_queue(
        "", quota, limit=limit, weight=weight, asks=asks, usage=(0, 0, used), priority=priority
    ),
    *(BOUNDS, BOUNDS, WEIGHTS, AMOUNTS, st.floats(0, 1), st.integers(1, 2)),
)


def named(queues: list[QueueShare]) -> list[QueueShare]:
    for place, queue in enumerate(queues):
        queue.name = f"queue-{place}"
    return queues


@given(st.lists(QUEUES, max_size=5).map(named), AMOUNTS)
def test_law_nobody_gets_less_than_the_quota_nor_more_than_a_unit_above_the_request(queues: list[QueueShare], total: float) -> None:
    for queue, share in zip(queues, gpu_shares(total, *queues), strict=True):
        wanted = queue.request[2] if queue.limit[2] == UNLIMITED else min(queue.limit[2], queue.request[2])
        quota = total if queue.deserved[2] == UNLIMITED else queue.deserved[2]
        assert min(quota, wanted) <= share < wanted + 1 + 1e-6


@given(st.lists(QUEUES, max_size=5).map(named), AMOUNTS)
def test_law_more_than_the_cluster_is_given_only_as_quota(queues: list[QueueShare], total: float) -> None:
    quotas = [min(total if queue.deserved[2] == UNLIMITED else queue.deserved[2], queue.request[2]) for queue in queues]
    assert sum(gpu_shares(total, *queues)) <= max(total, sum(quotas)) + 1e-5


@given(st.lists(QUEUES, max_size=4).map(named), AMOUNTS)
def test_law_the_order_in_which_queues_come_does_not_matter(queues: list[QueueShare], total: float) -> None:
    outcomes = set()
    for order in permutations(queues):
        tree = build_tree(order)
        divide_fairly(tree.roots, (0, 0, total))
        outcomes.add(tuple(queue.fair_share for queue in queues))
    assert len(outcomes) == 1


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), max_size=20))
def test_law_taking_everything_back_leaves_nothing(loads: list[Figures]) -> None:
    tree = build_tree([QueueShare("top"), QueueShare("leaf", "top")])
    for load in loads:
        hold(tree.by_name["leaf"], load, is_preemptible=False)
    for load in reversed(loads):
        release(tree.by_name["leaf"], load, is_preemptible=False)
    left = [amount for queue in tree.by_name.values() for amount in (*queue.allocated, *queue.allocated_nonpreemptible)]
    assert left == pytest.approx([0] * 12, abs=1e-9)
    assert tree.by_name["top"].allocated[2] == 0
