"""How answers combine, who counts as what, who comes first: the rules without a session."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.actions.queue_heap import Heap
from phalanx.model.gang import Gang, SubGroup
from phalanx.model.resources import ResourceSpace
from phalanx.model.shape import Shape
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.placement import NO_LIMIT
from phalanx.session import combine
from phalanx.session.amounts import (
    Wanted,
    as_amounts,
    bounded,
    covers,
    dominant_share,
    room_or_reason,
    room_under,
    share,
    short_of,
    times_until_covered,
)
from phalanx.session.hooks import HOOKS
from phalanx.session.policy import FLAGS
from phalanx.session.trace import Trace
from phalanx.session.trace_events import ActionEntered, GangTried, QueueNext
from phalanx.session.trace_operations import EvictionTried, StatementCommitted, TaskAllocated
from phalanx.session.trace_searches import JobSpared
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import ABSTAINED, PERMITTED, YES, FitError, Room, SearchScope, Verdict, Vote


def says(answer: Any, asked: list[Any] | None = None) -> Any:
    """Return a method that gives this answer and notes that it was asked."""

    def method(*question: object) -> Any:
        if asked is not None:
            asked.append(answer)
        return answer

    return method


NO, OTHER_NO = Verdict.refuse("a", "No"), Verdict.refuse("b", "AlsoNo")
AGAINST = Vote.reject("a", "No")


def test_the_first_refusal_decides_and_ends_the_asking() -> None:
    asked: list[Any] = []
    assert combine.first_refusal([[says(YES, asked)], [says(NO, asked), says(OTHER_NO, asked)]]) is NO
    assert asked == [YES, NO]
    assert combine.first_refusal([]) is YES


@pytest.mark.parametrize(
    ("tiers", "value"),
    [
        ([], 1),
        ([[ABSTAINED]], 1),
        ([[PERMITTED]], 1),
        ([[AGAINST]], -1),
        ([[PERMITTED, AGAINST]], -1),
        ([[ABSTAINED], [AGAINST]], -1),
        ([[PERMITTED], [AGAINST]], 1),
        ([[ABSTAINED, PERMITTED], [AGAINST]], 1),
    ],
)
def test_a_vote_ends_with_a_voice_against_or_a_tier_in_favour(tiers: list[list[Vote]], value: int) -> None:
    assert combine.vote([[says(vote) for vote in tier] for tier in tiers]).value == value


def test_the_first_tier_that_answers_decides_alone_whether_a_gang_starves() -> None:
    assert combine.first_tier_agrees([[says(YES)], [says(NO)]]).ok
    assert not combine.first_tier_agrees([[says(YES), says(NO)], [says(YES)]]).ok
    assert combine.first_tier_agrees([[], [says(YES)]]).ok
    assert combine.first_tier_agrees([]).reason == "NobodyAsked"


def test_the_plugin_that_leaves_the_least_room_decides() -> None:
    assert combine.smallest_room([[says(Room(5, YES))], [says(Room(0, NO))]]).verdict is NO
    assert combine.smallest_room([]).tasks == NO_LIMIT


def test_the_first_difference_decides() -> None:
    assert combine.first_difference([[says(0)], [says(-1), says(1)]]) == -1
    assert combine.first_difference([[says(0)]]) == 0


A, B, C = object(), object(), object()


@pytest.mark.parametrize(
    ("tiers", "victims"),
    [
        ([], []),
        ([[[A, B]]], [A, B]),
        ([[[A, B], [B, C]]], [B]),
        ([[None, [A]]], [A]),
        ([[None], [[B]]], [B]),
        ([[[]], [[B]]], [B]),
        ([[[A], []], [[B]]], [B]),
        ([[[A], [B], [C]]], [C]),
        ([[[A]], [[B]]], [A]),
        ([[[A], [B]], [[C]]], [C]),
    ],
)
def test_the_first_tier_that_agrees_on_somebody_names_the_victims(tiers: list[list[list[Any] | None]], victims: list[Any]) -> None:
    assert combine.victims([[says(answer) for answer in tier] for tier in tiers]).victims == victims


@pytest.mark.parametrize(
    ("tiers", "victims"),
    [([], []), ([[[A, B]], [[B]]], [B]), ([[None, [A]], [None]], [A]), ([[[]], [[B]]], []), ([[[A], [B], [C]]], [])],
)
def test_everybody_may_have_to_agree_on_victims(tiers: list[list[list[Any] | None]], victims: list[Any]) -> None:
    assert combine.victims_all_agree([[says(answer) for answer in tier] for tier in tiers]).victims == victims


def test_every_switch_in_the_table_of_hooks_is_one_that_can_be_set() -> None:
    assert {hook.switch for hook in HOOKS.values()} <= {None, *FLAGS}


def test_a_heap_serves_by_how_things_stand_when_it_is_asked() -> None:
    weight = {"a": 3, "b": 1, "c": 2}
    heap = Heap[str](lambda left, right: weight[left] < weight[right])
    for name in weight:
        heap.push(name)
    assert heap.pop() == "b"
    weight["b"] = 9
    heap.push("b")
    assert [heap.pop() for _ in range(len(heap))] == ["c", "a", "b"]


def test_a_heap_sorts() -> None:
    heap = Heap[int](lambda left, right: left < right)
    for number in (5, 1, 4, 1, 5, 9, 2, 6):
        heap.push(number)
    assert [heap.pop() for _ in range(len(heap))] == [1, 1, 2, 4, 5, 5, 6, 9]


def test_a_course_keeps_events_up_to_its_level() -> None:
    silent, trace = Trace(), Trace(3)
    for each in (silent, trace):
        each.note(GangTried, "ns/a", "q")
        each.note(QueueNext, "allocate", "q", 1)
    assert silent.events == []
    assert [(event.event, event.fields) for event in trace.events] == [("gang", {"gang": "ns/a", "queue": "q", "bound": 0})]


def test_a_trace_of_some_gangs_keeps_their_events_and_those_of_the_session() -> None:
    trace = Trace(5, ["ns/a"])
    theirs = [
        GangTried("ns/b", "q"), TaskAllocated("ns/b", "ns/b-0", "n"), JobSpared("ns/b", "ns/c", "reclaim", "young"),
        StatementCommitted({"allocate": 1}, ["ns/b-0"], ["ns/b"]),
    ]  # fmt: skip
    ours = [
        ActionEntered("allocate"), QueueNext("allocate", "q", 1), GangTried("ns/a", "q"),
        EvictionTried("ns/a", "ns/a-0", "n", preemptor="ns/b", action="preempt"),
        EvictionTried("ns/b", "ns/b-0", "n", preemptor="ns/a", action="preempt"),
        JobSpared("ns/b", "ns/a", "reclaim", "young"), StatementCommitted({"evict": 1}, ["ns/b-0"], ["ns/b", "ns/a"]),
    ]  # fmt: skip
    for event in (*theirs, *ours):
        trace.note(copy, event)
    assert trace.events == ours


def test_a_fit_error_counts_reasons_in_the_words_users_know() -> None:
    error = FitError(3, {"Insufficient cpu": 2, "node(s) were unschedulable": 1}, scope=SearchScope(hypernode="s0"))
    assert error.text == "In hyperNode s0: 0/3 nodes are unavailable: 1 node(s) were unschedulable, 2 Insufficient cpu."
    assert FitError.same_everywhere(2, Verdict.refuse("predicates", "No", "no")).text == "0/2 nodes are unavailable: 2 no."


SPACE = ResourceSpace.of(["gpu"])


def vector(*amounts: float) -> Any:
    return np.array([*amounts, *[0.0] * (4 - len(amounts))])


def test_nearly_enough_is_enough_for_shares() -> None:
    assert covers(vector(10), vector(10.05))
    assert not covers(vector(10), vector(10.2))


def test_what_is_requested_is_compared_exactly_and_pods_are_left_aside() -> None:
    assert not Wanted.of(vector(1, 0), SPACE).short(vector(10, 0), vector(9, 5))
    assert Wanted.of(vector(1), SPACE).short(vector(10), vector(9.05)) == [0]
    assert not Wanted.of(vector(1, 1, 1), SPACE).short(vector(10, 10, 0), vector(4, 4, 8))


def test_a_part_of_nothing_is_all_of_it() -> None:
    assert [share(0, 0), share(1, 0), share(1, 4)] == [0.0, 1.0, 0.25]
    assert dominant_share(vector(1, 3, 9), vector(4, 4, 0)) == 0.75
    assert dominant_share(vector(1), vector()) == 0.0


def test_limits_are_infinite_where_nothing_is_said() -> None:
    assert bounded(None, SPACE).tolist() == [np.inf] * 4
    assert bounded({"cpu": 0, "gpu": 0}, SPACE).tolist() == [0.0, np.inf, np.inf, 0.0]
    assert bounded({"cpu": 0, "gpu": 0}, SPACE, unbounded_zero=True).tolist() == [np.inf, np.inf, np.inf, 0.0]


AMOUNTS = st.lists(st.integers(0, 40).map(lambda tenths: tenths / 10), min_size=len(SPACE), max_size=len(SPACE))


@given(AMOUNTS, AMOUNTS, st.lists(st.integers(0, 2), min_size=len(SPACE), max_size=len(SPACE)))
def test_amounts_are_covered_after_so_many_requests_and_not_before(
    have: list[float], want: list[float], request: list[int]
) -> None:
    has, wants, asks = (np.array(amounts, dtype=np.float64) for amounts in (have, want, request))
    times = times_until_covered(has, wants, asks)
    if times == NO_LIMIT:
        assert not covers(has + 1000 * asks, wants)
    else:
        assert covers(has + times * asks, wants)
        assert times == 1 or not covers(has + (times - 1) * asks, wants)


def test_the_room_under_a_limit_is_what_it_asks_for_most() -> None:
    limit = bounded({"cpu": 10, "gpu": 4}, SPACE)
    assert room_under(limit, vector(1), vector(2, 0, 1), SPACE) == 4
    assert room_under(limit, vector(1), vector(2, 0, 1, 2), SPACE) == 2
    assert room_under(limit, vector(12), vector(2), SPACE) == 0
    assert room_under(limit, vector(), vector(0, 5, 1), SPACE) == NO_LIMIT
    assert room_under(vector(0.3), vector(0.1), vector(0.1), SPACE) == 1 + (0.1 + 2 * 0.1 <= 0.3)


def test_a_full_queue_says_what_it_has_and_what_is_wanted() -> None:
    limit = bounded({"cpu": 4000, "memory": 1 << 30}, SPACE)
    room = room_or_reason("proportion", "blue", limit, vector(4000), vector(500), SPACE, "it deserves")
    assert room.tasks == 0
    assert room.verdict.message == "queue blue has 4 of 4 cpu it deserves; 0.5 more do not fit"
    assert room.verdict.numbers["resource"] == "cpu"
    assert room_or_reason("proportion", "blue", limit, vector(), vector(500), SPACE, "it deserves").verdict.ok
    assert short_of("p", "blue", limit, vector(), vector(), SPACE, "x").message == "queue blue has no room"


def test_amounts_by_name_leave_out_nothing_and_infinity() -> None:
    assert as_amounts(np.array([1.0, np.inf, 0.0, 2000.0]), SPACE) == {"cpu": 1.0, "gpu": 2.0}


SOME, NONE = Shape(request={"cpu": 1000, "pods": 1}), Shape(request={"pods": 1})


def gang_of(
    *statuses: Status,
    gang: Gang | None = None,
    roles: str = "",
    free: int = 0,
    labels: Callable[[int], dict[str, str]] | None = None,
    counts_unplaced: bool = False,
) -> GangState:
    """Return a gang with members in these statuses; `roles` is a letter per member, the last `free` ask for nothing."""
    tasks = []
    for number, status in enumerate(statuses):
        shape = NONE if number >= len(statuses) - free else SOME
        own, role = labels(number) if labels is not None else {}, roles[number] if roles else ""
        tasks.append((Task(TaskKey(f"default/g-{number}"), f"{number}", shape, status=status, role=role, labels=own), -1))
    return GangState(gang or Gang(GangKey("default/g"), min_member=2), tasks, counts_unplaced=counts_unplaced)


P, R, W = Status.PENDING, Status.RUNNING, Status.PIPELINED


def test_a_gang_is_ready_with_its_minimum_of_members_that_hold_a_place() -> None:
    assert gang_of(R, R, P).is_ready
    assert gang_of(R, Status.SUCCEEDED, P).is_ready
    assert gang_of(Status.BOUND, Status.BINDING).is_ready
    for status in (W, P, Status.RELEASING, Status.FAILED, Status.UNKNOWN):
        assert not gang_of(R, status).is_ready


def test_members_that_ask_for_nothing_count_once_they_have_a_place() -> None:
    assert not gang_of(R, P, free=1).is_ready
    assert not gang_of(R, P, free=1).is_pipelined
    assert gang_of(R, W, free=1).is_pipelined
    assert gang_of(R, R, free=1).is_ready


def test_members_that_ask_for_nothing_count_while_they_wait_where_volcano_s_rule_is_asked_for() -> None:
    gang = gang_of(R, P, free=1, counts_unplaced=True)
    assert gang.is_ready
    assert gang.is_pipelined
    assert gang.is_starving


def test_promised_members_count_once_promises_are_kept() -> None:
    gang = gang_of(R, W, P)
    assert not gang.is_ready
    assert gang.is_pipelined
    assert not gang.is_starving
    assert gang_of(R, P).is_starving


def test_members_that_failed_or_leave_cannot_make_a_gang_whole() -> None:
    gang = gang_of(R, W, P, Status.SUCCEEDED, Status.FAILED, Status.RELEASING, Status.UNKNOWN)
    assert gang.valid == 4


def with_roles(minimum: int, **minima: int) -> Gang:
    return Gang(GangKey("default/g"), min_member=minimum, role_minima=minima)


def test_each_role_has_its_own_minimum() -> None:
    gang = gang_of(R, W, P, gang=with_roles(2, a=1, b=1), roles="abb")
    assert gang.roles_are_valid()
    assert gang.roles_are_pipelined()
    assert not gang.roles_are_ready()
    assert not gang_of(R, R, gang=with_roles(2, a=1, b=1), roles="aa").roles_are_valid()
    assert gang_of(R, R, gang=with_roles(2, a=1, b=1), roles="ab").roles_are_ready()


def test_role_minima_beyond_the_gang_s_own_are_ignored() -> None:
    gang = gang_of(P, P, gang=with_roles(2, a=2, b=2), roles="aa")
    assert gang.roles_are_valid()
    assert gang.roles_are_ready()


def test_a_role_member_that_asks_for_nothing_counts_for_its_role() -> None:
    roles = with_roles(2, a=1, b=1)
    assert not gang_of(R, P, gang=roles, roles="ab", free=1).roles_are_ready()
    assert gang_of(R, R, gang=roles, roles="ab", free=1).roles_are_ready()
    assert gang_of(R, P, gang=roles, roles="ab", free=1, counts_unplaced=True).roles_are_ready()


def test_moving_members_keeps_every_count_right() -> None:
    gang = gang_of(P, P, P, gang=with_roles(2, a=1, b=1), roles="aab")
    gang.move(gang.tasks[0], Status.ALLOCATED)
    gang.move_all(gang.tasks[1:], Status.PIPELINED)
    assert gang.tally.ready == 1
    assert gang.tally.pipelined == 2
    assert gang.role_tallies["a"].ready == 1
    assert gang.role_tallies["b"].pipelined == 1
    plain = gang_of(P, P, free=2, counts_unplaced=True)
    plain.move_all(plain.tasks, Status.ALLOCATED)
    assert (plain.tally.ready, plain.tally.pending_best_effort) == (2, 0)
    assert plain.task(TaskKey("default/g-1")) is plain.tasks[1]
    assert plain.task(TaskKey("default/x")) is None


RINGS = Gang(GangKey("default/g"), min_member=2, subgroups=(SubGroup("ring", min_member=2, min_subgroups=1, match_keys=("ring",)),))


def ring(number: int) -> dict[str, str]:
    return {"ring": str(number // 2)} if number < 4 else {}


def test_a_template_makes_one_sub_group_per_value_and_the_rest_join_the_default_one() -> None:
    gang = gang_of(R, R, P, P, P, gang=RINGS, labels=ring)
    assert list(gang.subgroups) == ["default/g/ring-0", "default/g/ring-1", "default/g"]
    assert [len(subgroup.tasks) for subgroup in gang.subgroups.values()] == [2, 2, 1]
    assert [subgroup.min_member for subgroup in gang.subgroups.values()] == [2, 2, 1]
    assert [subgroup.ordinal for subgroup in gang.subgroups.values()] == [0, 1, 0]
    assert gang.subgroups["default/g"].is_default
    assert gang.has_subgroups


def test_a_gang_needs_enough_of_its_sub_groups() -> None:
    gang = gang_of(R, R, P, P, gang=RINGS, labels=ring)
    assert gang.subgroups_are_ready()
    assert gang.subgroups["default/g/ring-1"].shortfall() == 2
    half = gang_of(R, W, P, P, gang=RINGS, labels=ring)
    assert not half.subgroups_are_ready()
    assert half.subgroups_are_pipelined()
    failed = gang_of(Status.FAILED, Status.FAILED, gang=RINGS, labels=ring)
    assert not failed.subgroups_are_valid()
    assert gang_of(P, Status.FAILED, gang=RINGS, labels=ring).subgroups_are_valid()


def test_without_sub_groups_the_default_one_has_the_gang_s_minimum() -> None:
    (only,) = gang_of(P, P).subgroups.values()
    assert (only.id, only.min_member, only.is_default) == ("default/g", 2, True)


@pytest.mark.parametrize(
    ("gang", "role", "shortfall"),
    [
        (gang_of(R, P, P), "", 1),
        (gang_of(R, R, P), "", 0),
        (gang_of(P, P, free=1), "", 2),
        (gang_of(P, P, free=1, counts_unplaced=True), "", 1),
        (gang_of(P, P, P, gang=with_roles(2, a=2), roles="aab"), "a", 2),
        (gang_of(P, P, P, gang=with_roles(3, a=1, b=2), roles="abb"), "b", 3),
        (gang_of(R, P, P, gang=with_roles(3, a=1, b=2), roles="abb"), "b", 2),
        (gang_of(R, R, P, gang=with_roles(2, a=1, b=1), roles="aab"), "b", 1),
    ],
)
def test_a_gang_knows_how_many_more_tasks_it_needs_at_least(gang: GangState, role: str, shortfall: int) -> None:
    assert gang.shortfall(role) == shortfall


@pytest.mark.parametrize(
    ("gang", "failed", "goes_on"),
    [
        pytest.param(gang_of(P, P), {""}, False, id="every task is needed"),
        pytest.param(gang_of(P, P, P), {""}, True, id="one task may be missing"),
        pytest.param(gang_of(P, P, P, gang=with_roles(2, a=1), roles="aab"), {"a"}, False, id="the role has not its minimum"),
        pytest.param(gang_of(R, P, P, gang=with_roles(2, a=1), roles="aab"), {"a"}, True, id="the role has its minimum"),
        pytest.param(gang_of(P, P, P, gang=with_roles(2, a=1), roles="aab"), {"b"}, True, id="the role has no minimum"),
        pytest.param(gang_of(P, P, P, gang=with_roles(2, a=2, b=2), roles="aab"), {"b"}, True, id="other roles are enough"),
        pytest.param(gang_of(P, P, P, gang=with_roles(2, a=2, b=2), roles="aab"), {"a"}, False, id="other roles are too few"),
        pytest.param(gang_of(P, P, P, P, P, gang=RINGS, labels=ring), {""}, False, id="the sub-group needs all its tasks"),
    ],
)
def test_a_gang_goes_on_while_it_can_still_be_whole(gang: GangState, failed: set[str], goes_on: bool) -> None:
    subgroup = next(iter(gang.subgroups.values()))
    assert gang.may_continue_without(failed, subgroup) is goes_on


def test_a_gang_with_spare_tasks_in_a_sub_group_goes_on() -> None:
    gang = gang_of(P, P, P, gang=RINGS, labels=lambda number: {"ring": "0"})
    assert gang.may_continue_without({""}, gang.subgroups["default/g/ring-0"])
