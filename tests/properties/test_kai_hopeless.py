"""Jobs that are called hopeless would have found no victims, whoever gives and whatever is fair."""

from random import Random

from hypothesis import given, settings

from phalanx.actions.kai.hopeless import RoomWithoutVictims
from phalanx.actions.kai.job_order import WaitingOrder, waiting_jobs
from phalanx.actions.kai.solver import Solver
from phalanx.actions.kai.victim_order import VictimLine, VictimOrder, holders
from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.kai.podsets import next_tasks
from phalanx.session.cycle import open_session
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState
from phalanx.testing.build import Document
from tests.properties.test_kai_runs import SEEDS, crowd, snapshot_of
from tests.support import kai_objects as kai
from tests.support import random_kai_clusters as kai_chance


def after_allocate(objects: list[Document]) -> Session:
    session = open_session(snapshot_of(objects), kai.policy(), KAI_CATALOGUE)
    KAI_CATALOGUE.actions["allocate"]({}).run(session)
    return session


def finds_victims(session: Session, gang: GangState, victims: list[GangState]) -> bool:
    """Search among all who hold something; nothing is unfair."""
    order = VictimOrder(session, victims)
    solver = Solver(session, gang, "reclaim", lambda task: "", WaitingOrder(session))
    with session.question() as undone:
        statement = solver.solve(lambda: VictimLine(session, order, lambda victim: victim is not gang), lambda units, tasks: "")
        if statement is not None:
            undone.merge(statement)
    return statement is not None


def check(session: Session) -> None:
    running = [gang for gang in session.gangs.values() if holders(gang)]
    for gang in waiting_jobs(session, "reclaim"):
        why = RoomWithoutVictims(session).why_hopeless(next_tasks(session, gang), gang.key, lambda: running)
        assert not (why and finds_victims(session, gang, running)), f"{gang.key}: {why}"


@settings(deadline=None, max_examples=200)
@given(SEEDS)
def test_no_job_of_a_crowded_cluster_is_called_hopeless_that_finds_victims(seed: int) -> None:
    check(after_allocate(crowd(Random(seed))))


@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_no_job_is_called_hopeless_that_finds_victims(seed: int) -> None:
    check(after_allocate(kai_chance.objects(Random(seed))))
