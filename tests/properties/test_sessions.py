"""Laws of one session, on random clusters. A failure names the seed of its cluster."""

from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.explain.failed_searches import failed_searches
from phalanx.model.task_status import EVICTABLE, READY, Status
from phalanx.session.cycle import close_session, open_session, run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.node_view import NodeView
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.testing.build import Document
from tests.support import random_clusters as chance

SEEDS = st.integers(0, 2**40)


def policy_of(config: Document) -> Policy:
    return read_policy(config, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))


def snapshot_of(objects: list[Document]) -> Snapshot:
    cluster = ObjectCluster()
    for item in objects:
        assert cluster.put(item)
    return cluster.snapshot(0.0)


def answer_to(objects: list[Document], policy: Policy) -> dict[str, Any]:
    snapshot = snapshot_of(objects)
    return answer(snapshot, run_cycle(snapshot, policy, CATALOGUE))


def without_sentences(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out why gangs wait: of several tasks without a node the sentence may name any."""
    groups = {key: {**group, "why": ""} for key, group in answer["groups"].items()}
    return {**answer, "groups": groups}


def without_messages(answer: dict[str, Any]) -> dict[str, Any]:
    """Keep the decisions and phases. A message may tell what a node lacked when it was first asked, or what it lacks now."""
    tasks = {key: {**task, "message": ""} for key, task in answer["tasks"].items()}
    return {**answer, "tasks": tasks, "groups": {key: group["phase"] for key, group in answer["groups"].items()}}


def session_of(random: Random) -> Session:
    return open_session(snapshot_of(chance.objects(random)), policy_of(chance.config(random)), CATALOGUE)


def decide(seed: int) -> tuple[Session, Decisions]:
    session = session_of(Random(seed))
    for name in session.policy.actions:
        CATALOGUE.actions[name]({}).run(session)
    return session, close_session(session)


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_no_node_holds_or_promises_more_than_it_offers(seed: int) -> None:
    session, _ = decide(seed)
    assert (session.ledger.idle >= 0).all()
    assert (session.ledger.future >= 0).all()
    assert (session.ledger.used <= session.ledger.allocatable).all()
    if "preempt" not in session.policy.actions:
        # A promise to a preemptor may count beside a pod that is leaving.
        assert (session.ledger.pods <= session.snapshot.nodes.max_pods).all()


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_the_books_at_the_end_are_those_of_the_tasks_in_their_places(seed: int) -> None:
    session, decisions = decide(seed)
    used = np.zeros_like(session.ledger.used)
    for name, tasks in session.snapshot.on_node.items():
        for member in tasks.values():
            used[:, session.snapshot.nodes.number_by_name[name]] += session.request_of(member.shape).amounts
    for state in session.gangs.values():
        for task in state.tasks:
            assert (task.status is Status.BINDING) == (task.task.key in decisions.binds)
            if task.status in (Status.BINDING, Status.ALLOCATED):
                used[:, task.node] += session.request_of(task.task.shape).amounts
    assert np.array_equal(session.ledger.used, used)


def members_placed(state: GangState, *, counts_unplaced: bool, role: str | None = None) -> int:
    """Count members that hold a place; only where Volcano's rule is asked for, those without requests count without one."""
    members = [task for task in state.tasks if role is None or task.task.role == role]
    waiting = (Status.PENDING, Status.PIPELINED) if counts_unplaced else ()
    return sum(task.status in READY or (task.status in waiting and task.task.is_best_effort) for task in members)


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_a_gang_gets_its_minimum_or_nothing(seed: int) -> None:
    session, decisions = decide(seed)
    unplaced = session.policy.counts_unplaced
    for outcome in decisions.outcomes:
        state = outcome.state
        is_broken_up = any(task.task.key in decisions.evictions for task in state.tasks)
        if not is_broken_up and any(task.task.key in decisions.binds for task in state.tasks):
            assert members_placed(state, counts_unplaced=unplaced) >= state.gang.min_member
            if state.gang.min_member >= sum(state.gang.role_minima.values()):
                for role, minimum in state.gang.role_minima.items():
                    assert members_placed(state, counts_unplaced=unplaced, role=role) >= minimum


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_every_gang_that_waits_says_why(seed: int) -> None:
    session, decisions = decide(seed)
    groups = answer(session.snapshot, decisions)["groups"]
    for outcome in decisions.outcomes:
        if any(task.status in (Status.PENDING, Status.PIPELINED) for task in outcome.state.tasks):
            assert groups[outcome.state.key]["why"]


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_causes_divide_the_nodes_that_refuse_a_task(seed: int) -> None:
    session, decisions = decide(seed)
    for outcome in decisions.outcomes:
        for found in failed_searches(outcome, session.snapshot):
            counts = found.search.error.counts
            assert found.general is not None or sum(cause.nodes for cause in found.causes) == sum(counts.values())
            assert all(cause.nodes and cause.code for cause in found.causes)


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_the_same_input_gives_the_same_bytes(seed: int) -> None:
    objects, policy = chance.objects(Random(seed)), policy_of(chance.config(Random(seed)))
    assert msgspec.json.encode(answer_to(objects, policy)) == msgspec.json.encode(answer_to(objects, policy))


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_a_cycle_leaves_its_snapshot_as_it_was(seed: int) -> None:
    snapshot, policy = snapshot_of(chance.objects(Random(seed))), policy_of(chance.config(Random(seed)))
    first = msgspec.json.encode(answer(snapshot, run_cycle(snapshot, policy, CATALOGUE)))
    assert msgspec.json.encode(answer(snapshot, run_cycle(snapshot, policy, CATALOGUE))) == first


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_the_order_of_the_objects_does_not_matter(seed: int) -> None:
    random = Random(seed)
    objects, policy = chance.objects(random), policy_of(chance.config(random))
    shuffled = random.sample(objects, len(objects))
    assert without_sentences(answer_to(shuffled, policy)) == without_sentences(answer_to(objects, policy))


@settings(deadline=None, max_examples=500)
@given(SEEDS, st.booleans())
def test_placing_a_class_at_once_equals_placing_one_by_one(seed: int, is_simple: bool) -> None:
    random = Random(seed)
    objects, policy = chance.objects(random, is_simple=is_simple), policy_of(chance.config(random))
    together = without_messages(answer_to(objects, policy))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "is_local", lambda session, shape: False)
        one_by_one = without_messages(answer_to(objects, policy))
    assert together == one_by_one


def change_something(random: Random, session: Session, statement: Statement) -> None:
    """Do one random operation: place a run of waiting tasks of one gang and shape, or evict a running one."""
    tasks = [task for gang in session.gangs.values() for task in gang.tasks]
    waiting = [task for task in tasks if task.status is Status.PENDING]
    running = [task for task in tasks if task.status in EVICTABLE and task.node >= 0]
    nodes = len(session.snapshot.nodes)
    if running and random.random() < 0.3:
        statement.evict(random.choice(running), action="test", preemptor="somebody", reason="chance")
    elif waiting:
        first = random.choice(waiting)
        run = [task for task in waiting if task.gang is first.gang and task.task.shape is first.task.shape]
        run = run[: random.randint(1, len(run))]
        place = random.choice((statement.allocate, statement.pipeline))
        place(run, [random.randrange(nodes) for _ in run])


def state_of(session: Session) -> list[Any]:
    """Return all that operations change, to compare."""
    return [
        [
            (gang.tally.counts, gang.tally.pending_best_effort, {role: tally.counts for role, tally in gang.role_tallies.items()})
            for gang in session.gangs.values()
        ],
        [
            (subgroup.tally.counts, subgroup.tally.pending_best_effort)
            for gang in session.gangs.values()
            for subgroup in gang.subgroups.values()
        ],
        [(task.status, task.node) for gang in session.gangs.values() for task in gang.tasks],
        [session.gang_key(gang) for gang in session.gangs.values()],
        session.version,
    ]


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_discard_restores_every_book(seed: int) -> None:
    random = Random(seed)
    session = session_of(random)
    ledger, before = session.ledger.copy(), deepcopy(state_of(session))
    with session.statement() as statement:
        for _ in range(random.randint(1, 8)):
            mark = statement.checkpoint()
            change_something(random, session, statement)
            if random.random() < 0.3:
                statement.rollback(mark)
        inner = session.statement()
        change_something(random, session, inner)
        statement.merge(inner)
    assert session.ledger.same_as(ledger)
    assert deepcopy(state_of(session)) == before
    assert not session.decisions.binds
    assert not session.decisions.evictions


def view(node_view: NodeView) -> list[Any]:
    """Return what an node_view says: which nodes fit, now and later, and what they score."""
    found: list[Any] = []
    for is_now, mask in node_view.groups():
        scores = node_view.scores(mask) if mask.sum() > 1 else None
        found.append((is_now, mask.tolist(), None if scores is None else scores[mask].tolist()))
    return found


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_an_outlook_that_is_kept_up_to_date_equals_a_new_one(seed: int) -> None:
    random = Random(seed)
    session = session_of(random)
    shapes = {id(task.task.shape): task.task.shape for gang in session.gangs.values() for task in gang.tasks}
    statement = session.statement()
    for _ in range(random.randint(1, 6)):
        for shape in shapes.values():
            assert view(session.node_view(shape)) == view(NodeView(session, shape))
        mark = statement.checkpoint()
        change_something(random, session, statement)
        if random.random() < 0.3:
            statement.rollback(mark)
    statement.discard()
    for shape in shapes.values():
        assert view(session.node_view(shape)) == view(NodeView(session, shape))
