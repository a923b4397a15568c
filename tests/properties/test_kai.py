"""Laws of a session of the profile kai, on random clusters. A failure names the seed of its cluster."""

from collections import Counter, defaultdict
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from phalanx.actions.kai.placement import Placer
from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.explain.gang_rows import gang_rows
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import next_tasks, pod_sets
from phalanx.kubernetes.shared_gpus import SharedGpus
from phalanx.model.resources import PODS
from phalanx.model.task import TaskKey
from phalanx.model.task_status import HOLDING, ON_NODE, Status
from phalanx.session.cycle import close_session, open_session, run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import random_kai_clusters as kai_chance

SEEDS = st.integers(0, 2**40)
GPU = "nvidia.com/gpu"
CLOSE = 1e-6


def snapshot_of(objects: list[Document]) -> Snapshot:
    cluster = ObjectCluster()
    for item in objects:
        assert cluster.put(item)
    return cluster.snapshot(kai_chance.NOW)


def session_of(random: Random) -> Session:
    return open_session(snapshot_of(kai_chance.objects(random)), kai.policy(**kai_chance.config(random)), KAI_CATALOGUE)


def decide(seed: int) -> tuple[Session, Decisions]:
    session = session_of(Random(seed))
    for name in session.policy.actions:
        KAI_CATALOGUE.actions[name]({}).run(session)
    return session, close_session(session)


def shares_of(session: Session) -> FairShares:
    shares = session.read_state(FairShares)
    assert shares is not None
    return shares


def tasks_of(session: Session) -> list[TaskState]:
    return [task for gang in (*session.gangs.values(), *session.left_out) for task in gang.tasks]


# --- room ----------------------------------------------------------------------------------------------------------------


class Load:
    """What tasks take from nodes and shared devices, counted from scratch."""

    def __init__(self) -> None:
        self.amounts: dict[str, Counter[str]] = defaultdict(Counter)
        self.devices: dict[tuple[str, str], float] = defaultdict(float)

    def add(self, task: TaskState, node: str, devices: list[str]) -> None:
        shape = task.task.shape
        self.amounts[node].update({name: amount for name, amount in shape.request.items() if name != PODS})
        self.amounts[node][PODS] += 1
        for device in devices:
            assert shape.gpu_share is not None
            if (node, device) not in self.devices:
                self.amounts[node][GPU] += 1000
            self.devices[node, device] += shape.gpu_share.portion

    def check(self, snapshot: Snapshot) -> None:
        rows = snapshot.space.row_by_name
        for number, node in enumerate(snapshot.nodes.names):
            for name, amount in self.amounts[node].items():
                offered = snapshot.nodes.max_pods[number] if name == PODS else snapshot.nodes.allocatable[rows[name], number]
                assert amount <= offered, f"{node} has {offered} {name}, {amount} taken"
        for (name, device), part in self.devices.items():
            assert part <= 1 + CLOSE, f"{part} of device {device} of {name} taken"


def load_now(session: Session) -> Load:
    """Count what holds room at this moment, leaving pods included."""
    load = Load()
    for task in tasks_of(session):
        if task.task.status in ON_NODE:
            load.add(task, task.task.node, list(task.task.gpu_groups))
        elif task.status in (Status.BINDING, Status.RELEASING):
            load.add(task, session.node_name(task.node), [name for name, _ in task.gpu_groups])
    return load


def load_later(session: Session) -> Load:
    """Count what holds room once everybody who has to go is gone and everybody who is pipelined has come."""
    load = Load()
    for task in tasks_of(session):
        if task.status in (Status.BINDING, Status.PIPELINED):
            load.add(task, session.node_name(task.node), [name for name, _ in task.gpu_groups])
        elif task.status in HOLDING:
            load.add(task, task.task.node, list(task.task.gpu_groups))
    return load


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_no_node_and_no_device_gives_more_than_it_has(seed: int) -> None:
    session, _ = decide(seed)
    load_now(session).check(session.snapshot)


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_no_node_and_no_device_is_given_away_beyond_what_it_will_have(seed: int) -> None:
    session, _ = decide(seed)
    load_later(session).check(session.snapshot)


# --- gangs ---------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_every_leaf_of_a_gang_that_gets_a_place_has_its_minimum(seed: int) -> None:
    session, decisions = decide(seed)
    for gang in session.gangs.values():
        if any(task.task.key in decisions.binds for task in gang.tasks) and not any(task.is_evicted for task in gang.tasks):
            assert all(leaf.count((*HOLDING, Status.PIPELINED)) >= leaf.minimum for leaf in pod_sets(gang))
            if not any(task.task.key in decisions.evictions for task in gang.tasks):
                assert all(leaf.count(HOLDING) >= leaf.minimum for leaf in pod_sets(gang))


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_nobody_is_evicted_unless_somebody_is_pipelined(seed: int) -> None:
    session, decisions = decide(seed)
    for eviction in decisions.evictions.values():
        if eviction.action != "stalegangeviction":
            waiting = next(gang for gang in session.gangs.values() if gang.key == eviction.preemptor)
            assert any(task.status is Status.PIPELINED for task in waiting.tasks)


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_consolidation_alone_takes_nobody_s_place(seed: int) -> None:
    _, decisions = decide(seed)
    for key, eviction in decisions.evictions.items():
        if eviction.action == "consolidation":
            assert key in decisions.pipelined


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_no_limit_of_a_queue_is_exceeded_by_a_decision(seed: int) -> None:
    session, _ = decide(seed)
    for name, share in shares_of(session).tree.by_name.items():
        before = session.decisions.queues[name]["allocated"]["gpu"]
        if share.limit[2] >= 0 and share.allocated[2] > before + CLOSE:
            assert share.allocated[2] <= share.limit[2] + CLOSE


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_every_gang_that_waits_says_why(seed: int) -> None:
    session, decisions = decide(seed)
    for row in gang_rows(session.snapshot, decisions):
        assert row.status.has_minimum or row.why
        assert "admitted" not in row.why


# --- the same again ------------------------------------------------------------------------------------------------------


def bytes_of(seed: int) -> bytes:
    random = Random(seed)
    snapshot, policy = snapshot_of(kai_chance.objects(random)), kai.policy(**kai_chance.config(random))
    return msgspec.json.encode(answer(snapshot, run_cycle(snapshot, policy, KAI_CATALOGUE)))


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_the_same_input_gives_the_same_bytes(seed: int) -> None:
    assert bytes_of(seed) == bytes_of(seed)


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_the_order_of_the_objects_does_not_matter(seed: int) -> None:
    random = Random(seed)
    objects, policy = kai_chance.objects(random), kai.policy(**kai_chance.config(random))
    answers = []
    for _ in range(2):
        snapshot = snapshot_of(objects)
        found = answer(snapshot, run_cycle(snapshot, policy, KAI_CATALOGUE))
        answers.append({key: found[key] for key in ("binds", "pipelined", "evictions", "queues")})
        random.shuffle(objects)
    assert answers[0] == answers[1]


# --- books ---------------------------------------------------------------------------------------------------------------


def change_something(random: Random, session: Session, statement: Statement) -> None:
    """Do one random thing: place the next tasks of a job, evict a running task, or take an eviction back."""
    tasks = tasks_of(session)
    running = [task for task in tasks if task.status in HOLDING and task.node >= 0]
    evicted = [task for task in tasks if task.is_evicted]
    jobs = [gang for gang in session.gangs.values() if next_tasks(session, gang)]
    kind = random.random()
    if running and kind < 0.35:
        statement.evict(random.choice(running), action="test", preemptor="somebody", reason="chance")
    elif evicted and kind < 0.5:
        statement.restore(random.choice(evicted))
    elif jobs:
        gang = random.choice(jobs)
        chunk = next_tasks(session, gang, counts_evicted=random.random() < 0.5)
        Placer(session, pipelines_only=random.random() < 0.5).place(gang, chunk, statement)


def books(session: Session) -> list[Any]:
    """Return all that operations change, to compare."""
    devices = session.book(SharedGpus)
    return deepcopy(
        [
            [(task.status, task.node, task.gpu_groups) for task in tasks_of(session)],
            [(gang.tally.counts, session.gang_key(gang)) for gang in session.gangs.values()],
            [(share.allocated, share.allocated_nonpreemptible) for share in shares_of(session).tree.by_name.values()],
            [devices.state_of(number) for number in range(len(session.snapshot.nodes))],
        ]
    )


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_discard_restores_every_book(seed: int) -> None:
    random = Random(seed)
    session = session_of(random)
    before, ledger = books(session), session.ledger.copy()
    with session.trial() if random.random() < 0.5 else session.statement() as statement:
        for _ in range(random.randint(1, 8)):
            mark = statement.checkpoint()
            change_something(random, session, statement)
            if random.random() < 0.3:
                statement.rollback(mark)
    assert session.ledger.same_as(ledger)
    assert books(session) == before
    assert not session.decisions.binds
    assert not session.decisions.evictions


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_the_ledger_at_the_end_is_that_of_the_tasks_in_their_places(seed: int) -> None:
    session, decisions = decide(seed)
    load, row = load_now(session), session.snapshot.space.row_by_name.get(GPU)
    assume(not any(task.task.status is Status.PENDING and task.task.key in decisions.evictions for task in tasks_of(session)))
    for number, name in enumerate(session.snapshot.nodes.names):
        assert session.ledger.used[0, number] == load.amounts[name]["cpu"]
        if row is not None:
            assert session.ledger.used[row, number] == load.amounts[name][GPU]


# --- binding -------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_what_is_being_bound_holds_its_place_in_the_next_session(seed: int) -> None:
    random = Random(seed)
    objects, policy = kai_chance.objects(random), kai.policy(**{**kai_chance.config(random), "actions": "allocate"})
    first = answer_to(objects, policy)
    pods = set(first["binds"])
    stale = [item for item in objects if item["kind"] == "BindRequest" and f"default/{item['metadata']['name']}" in pods]
    kept = [item for item in objects if item not in stale]
    second = answer_to([*kept, *first["bindRequests"]], policy)
    assert not pods.intersection(second["binds"])
    for key, node in first["binds"].items():
        assert (second["tasks"][key]["status"], second["tasks"][key]["node"]) == ("Binding", node)


def answer_to(objects: list[Document], policy: Policy) -> dict[str, Any]:
    snapshot = snapshot_of(objects)
    return answer(snapshot, run_cycle(snapshot, policy, KAI_CATALOGUE))


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_a_shared_gpu_is_reserved_as_long_as_somebody_uses_it(seed: int) -> None:
    session, decisions = decide(seed)
    plan = answer(session.snapshot, decisions)["gpuReservations"]
    reserved = {task.reserved_gpu for task in session.snapshot.reservations.values()}
    bound = {name for task in tasks_of(session) if task.task.key in decisions.binds for name, _ in task.gpu_groups}
    used = {name for task in tasks_of(session) if task.task.status in ON_NODE for name in task.task.gpu_groups}
    assert bound <= reserved | {entry["group"] for entry in plan["create"]}
    assert not reserved.intersection(entry["group"] for entry in plan["create"])
    gone = {session.snapshot.reservations[TaskKey(key)].reserved_gpu for key in plan["delete"]}
    assert gone == reserved - used - bound
