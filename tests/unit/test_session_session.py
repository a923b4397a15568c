"""Sessions and statements, asked directly, on clusters of a few nodes."""

from dataclasses import dataclass
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.session.cycle import close_session, run_cycle
from phalanx.session.session import Session
from phalanx.session.victim_order import victims_in_order
from phalanx.state.gang_state import GangState
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.open_sessions import gang_in, session_of, two_nodes


@dataclass(frozen=True)
class Left:
    number: int


def statuses(gang: GangState) -> list[str]:
    return [task.status.word for task in gang.tasks]


# --- statements ------------------------------------------------------------------------------------------------------


def test_allocating_takes_effect_at_once_and_leaving_the_block_undoes_it() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=3, cpu=1))
    gang, before = gang_in(session), session.ledger.copy()
    with session.statement() as statement:
        statement.allocate(gang.tasks, [0, 1, 1])
        assert statuses(gang) == ["Allocated"] * 3
        assert session.ledger.idle[0].tolist() == [3000, 2000]
        assert session.ledger.pods.tolist() == [1, 2]
    assert statuses(gang) == ["Pending"] * 3
    assert session.ledger.same_as(before)
    assert [(task.attempt, task.attempt_node) for task in gang.tasks] == [(Status.ALLOCATED, node) for node in (0, 1, 1)]
    assert session.decisions.binds == {}


def test_commit_makes_binds_and_forgets_earlier_attempts() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, cpu=1))
    gang = gang_in(session)
    for is_kept in (False, True):
        with session.statement() as statement:
            statement.allocate(gang.tasks, [1])
            if is_kept:
                statement.commit()
    assert session.decisions.binds == {"default/train-0": "n1"}
    assert statuses(gang) == ["Binding"]
    assert gang.tasks[0].attempt is None


def test_a_pipelined_task_is_not_bound_and_keeps_its_place_when_kept() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, cpu=1))
    gang = gang_in(session)
    with session.statement() as statement:
        statement.pipeline(gang.tasks, [0])
        statement.keep()
    assert session.ledger.future[0].tolist() == [3000, 4000]
    assert session.ledger.idle[0].tolist() == [4000, 4000]
    assert close_session(session).pipelined == {"default/train-0": "n0"}
    assert session.decisions.binds == {}


def test_an_eviction_frees_room_for_later_and_names_its_cause() -> None:
    session = session_of(two_nodes(), build.pod_group("train"), build.pod("train-0", group="train", on="n0", cpu=3))
    gang = gang_in(session)
    statement = session.statement()
    statement.evict(gang.tasks[0], action="preempt", preemptor="default/big", reason="it is more important")
    assert statuses(gang) == ["Releasing"]
    assert session.ledger.idle[0, 0] == 1000
    assert session.ledger.future[0, 0] == 4000
    assert session.ledger.pods[0] == 0
    statement.commit()
    eviction = session.decisions.evictions[gang.tasks[0].task.key]
    assert (eviction.action, eviction.preemptor, eviction.message) == ("preempt", "default/big", "it is more important")


def test_an_eviction_that_is_undone_leaves_the_task_where_it_was() -> None:
    session = session_of(two_nodes(), build.pod_group("train"), build.pod("train-0", group="train", on="n1", cpu=3))
    (task,) = gang_in(session).tasks
    statement = session.statement()
    statement.evict(task, action="preempt", preemptor="x", reason="y")
    statement.discard()
    assert (task.status, task.node) == (Status.RUNNING, 1)


def test_rolling_back_to_a_mark_undoes_only_what_came_after() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=3, cpu=1))
    gang = gang_in(session)
    statement = session.statement()
    statement.allocate(gang.tasks[:1], [0])
    mark, version = statement.checkpoint(), session.version
    statement.allocate(gang.tasks[1:2], [0])
    statement.pipeline(gang.tasks[2:], [1])
    statement.rollback(mark)
    assert statuses(gang) == ["Allocated", "Pending", "Pending"]
    assert session.version == version
    assert len(statement.operations) == 1


def test_merging_hands_the_operations_over() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    gang = gang_in(session)
    outer = session.statement()
    outer.allocate(gang.tasks[:1], [0])
    with session.statement() as inner:
        inner.allocate(gang.tasks[1:], [1])
        outer.merge(inner)
    assert statuses(gang) == ["Allocated", "Allocated"]
    outer.discard()
    assert statuses(gang) == ["Pending", "Pending"]


def test_an_operation_on_nobody_is_none() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, cpu=1))
    statement = session.statement()
    statement.allocate([], [])
    assert statement.operations == []


def test_undoing_out_of_order_gives_the_books_a_new_version() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    gang = gang_in(session)
    first, second = session.statement(), session.statement()
    first.allocate(gang.tasks[:1], [0])
    second.allocate(gang.tasks[1:], [0])
    versions = [session.version]
    first.discard()
    versions.append(session.version)
    second.discard()
    versions.append(session.version)
    assert len(set(versions)) == 3


def test_a_course_tells_what_was_placed_and_evicted() -> None:
    cluster = build.cluster(nodes=1, policy=build.policy()).submit(build.gang("train", tasks=1, cpu=1))
    decisions = run_cycle(cluster.objects.snapshot(0.0), cluster.policy, CATALOGUE, trace_level=5)
    texts = [event.text for event in decisions.trace]
    assert "enter action enqueue" in texts
    assert "allocated task default/train-0 on node node-0" in texts
    assert "gang default/train is ready" in texts
    assert texts[-1] == "leave action backfill"


# --- sessions ----------------------------------------------------------------------------------------------------------


def test_a_gang_without_its_queue_is_left_out_with_the_reason() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=1, queue="nowhere", cpu=1))
    assert session.gangs == {}
    assert session.left_out[0].verdicts[0].message == "queue 'nowhere' does not exist"
    assert session.gang(GangKey("default/train")) is None
    assert [outcome.state.key for outcome in close_session(session).outcomes] == ["default/train"]


def test_tasks_come_by_number_then_age_then_identity() -> None:
    session = session_of(two_nodes(), build.gang("a-b", tasks=11, cpu=1), build.gang("plain", tasks=11, cpu=1))
    numbered = [task.task.name for task in session.sorted_tasks(reversed(gang_in(session, "a-b").tasks))]
    assert numbered == [f"a-b-{number}" for number in range(11)]
    by_identity = [task.task.name for task in session.sorted_tasks(reversed(gang_in(session, "plain").tasks))]
    assert by_identity == sorted(f"plain-{number}" for number in range(11))


def test_tasks_with_and_without_a_number_have_one_order_wherever_sorting_starts() -> None:
    pods = [build.pod(name, group="g", cpu=1) for name in ("a-b-3", "c", "a-b-1", "b", "a-b-2", "a")]
    for place, pod in enumerate(pods):
        pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{place % 3}Z"
    session = session_of(two_nodes(), build.pod_group("g"), pods)
    tasks = gang_in(session, "g").tasks
    orders = {tuple(task.task.name for task in session.sorted_tasks(tasks[start:] + tasks[:start])) for start in range(6)}
    assert len(orders) == 1


def test_queues_come_by_age_then_name_when_no_plugin_has_a_say() -> None:
    queues = [build.queue("b"), build.queue("a"), build.queue("old")]
    queues[2]["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    for queue in queues[:2]:
        queue["metadata"]["creationTimestamp"] = "2021-01-01T00:00:00Z"
    session = session_of(two_nodes(), queues)
    assert session.queue_comes_first(session.queues["old"], session.queues["a"])
    assert session.queue_comes_first(session.queues["a"], session.queues["b"])
    assert not session.queue_comes_first(session.queues["b"], session.queues["a"])


def test_a_switch_that_is_off_silences_the_plugin_for_that_question() -> None:
    off = build.policy([[{"name": "gang", "enableJobReady": False, "enableJobPipelined": False, "enableJobStarving": False}]])
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1), policy=off)
    gang = gang_in(session)
    assert session.gang_ready(gang).ok
    assert session.gang_pipelined(gang)
    assert not session.gang_starving(gang).ok
    on = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    assert not on.gang_ready(gang_in(on)).ok
    assert not on.gang_pipelined(gang_in(on))
    assert on.gang_starving(gang_in(on)).ok


def test_a_sub_group_of_a_plain_gang_answers_for_the_gang() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    (subgroup,) = gang_in(session).subgroups.values()
    assert not session.subgroup_ready(subgroup)
    assert not session.subgroup_pipelined(subgroup)


def test_nobody_is_asked_before_the_minimum_can_be_met_only_if_the_plugin_counts_members() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=5, min_member=4, cpu=1))
    (subgroup,) = gang_in(session).subgroups.values()
    assert session.ready_in(subgroup, "") == 4
    without = session_of(two_nodes(), build.gang("train", tasks=5, min_member=4, cpu=1), policy=build.policy([["predicates"]]))
    assert without.ready_in(next(iter(gang_in(without).subgroups.values())), "") == 1


def test_the_settings_of_a_loaded_plugin_can_be_asked_for() -> None:
    session = session_of(two_nodes())
    assert session.plugin("gang") is not None
    assert session.plugin("drf") is None


class CountingBook:
    """Counts placed tasks; made late, it is told what happened before."""

    def __init__(self, session: Session) -> None:
        self.placed = 0

    def changed(self, operation: Any, undone: bool) -> None:
        self.placed += -len(operation.tasks) if undone else len(operation.tasks)


def test_a_book_that_is_made_late_knows_what_happened_before() -> None:
    session = session_of(two_nodes(), build.gang("train", tasks=2, cpu=1))
    statement = session.statement()
    statement.allocate(gang_in(session).tasks[:1], [0])
    book = session.book(CountingBook)
    assert book.placed == 1
    statement.allocate(gang_in(session).tasks[1:], [0])
    assert session.book(CountingBook) is book
    assert book.placed == 2
    statement.discard()
    assert book.placed == 0


# --- victims -----------------------------------------------------------------------------------------------------------


def running(name: str, queue: str = "default", *, tasks: int = 1, priority: str = "") -> list[Document]:
    group = build.pod_group(name, queue=queue, priorityClassName=priority, phase="Running", min_member=0)
    return [group, *(build.pod(f"{name}-{number}", group=name, on="n0", cpu=1) for number in range(tasks))]


HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}


def test_only_members_of_known_gangs_that_run_may_be_victims() -> None:
    done = build.pod("a-done", group="a", on="n0")
    done["status"] = {"phase": "Succeeded"}
    session = session_of(two_nodes(), running("a", tasks=2), done, build.pod("loner", on="n0", cpu=1), running("lost", "nowhere"))
    assert sorted(task.task.name for task in session.running_on(0)) == ["a-0", "a-1"]
    assert session.running_on(1) == []


def test_victims_go_in_reverse_order_of_importance() -> None:
    policy = build.policy([["priority", "gang"], ["predicates"]])
    parts = [*two_nodes(), HIGH, *running("low", tasks=2), *running("top", priority="high"), *build.gang("new", tasks=1, cpu=1)]
    session = session_of(parts, policy=policy)
    preemptor = gang_in(session, "new").tasks[0]
    victims = victims_in_order(session, session.running_on(0), preemptor)
    assert [task.task.name for task in victims] == ["low-1", "low-0", "top-0"]


def test_victims_of_other_queues_go_queue_by_queue_the_one_served_last_first() -> None:
    queues = [build.queue("a"), build.queue("b", priority=5), build.queue("c")]
    policy = build.policy([["gang"], ["predicates", "proportion"]])
    parts = [two_nodes(), queues, running("x", "a"), running("y", "b"), build.gang("new", tasks=1, queue="c", cpu=1)]
    session = session_of(*parts, policy=policy)
    victims = victims_in_order(session, session.running_on(0), gang_in(session, "new").tasks[0])
    assert [task.task.name for task in victims] == ["x-0", "y-0"]


@pytest.mark.parametrize(("rule", "names"), [("first-tier", ["low-0"]), ("all-agree", [])])
def test_who_must_agree_on_victims_can_be_chosen(rule: str, names: list[str]) -> None:
    policy = build.policy([["priority"], ["gang"]], "allocate", victimRule=rule)
    low = running("low")
    low[0]["spec"]["minMember"] = 1
    new = build.gang("new", tasks=1, cpu=1)
    new[0]["spec"]["priorityClassName"] = "high"
    session = session_of(two_nodes(), HIGH, low, new, policy=policy)
    victims = session.preemptable(gang_in(session, "new").tasks[0], session.running_on(0))
    assert [task.task.name for task in victims] == names


def test_what_a_plugin_leaves_in_the_session_is_found_by_its_type() -> None:
    session = session_of(two_nodes())
    assert session.read_state(Left) is None
    for number in (1, 2):
        session.write_state(Left(number))
    assert session.read_state(Left) == Left(2)
