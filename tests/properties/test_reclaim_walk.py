"""Victims that follow each other and ask for the same are judged as one run: the result is that of judging them one by one."""

from random import Random

import numpy as np
from hypothesis import given, settings

from phalanx.placement import Vector
from phalanx.plugins.capacity.accounts import Account
from phalanx.plugins.capacity.reclaim_walk import ReclaimWalk
from phalanx.session.session import Session
from phalanx.state.gang_state import TaskState
from tests.properties.test_sessions import SEEDS, session_of


def some_of(random: Random, total: Vector) -> Vector:
    """Return a part of each amount: nothing, all, or a number of thousandths, not always whole."""
    return np.array([amount * random.choice((0.0, 1.0, random.randrange(1000) / 1000)) for amount in total.tolist()])


def account_of(random: Random, session: Session, name: str, tasks: list[TaskState]) -> Account:
    held = np.zeros(len(session.snapshot.space))
    for task in tasks:
        if task.gang.gang.queue == name:
            held += session.request_of(task.task.shape).amounts
    nothing = np.zeros_like(held)
    guarantee, deserved = some_of(random, held) * 0.5, some_of(random, held)
    return Account(session.queues[name], held, held, nothing, nothing, guarantee, deserved, held, held)


def random_accounts(random: Random, session: Session, tasks: list[TaskState]) -> dict[str, Account]:
    """Return accounts of all queues; some are below others."""
    accounts = [account_of(random, session, name, tasks) for name in session.queues]
    for number, account in enumerate(accounts):
        account.parent = random.choice([None, *accounts[:number]])
    return {account.queue.name: account for account in accounts}


@settings(deadline=None, max_examples=300)
@given(SEEDS)
def test_a_run_of_victims_is_judged_as_one_by_one(seed: int) -> None:
    random = Random(seed)
    session = session_of(random)
    tasks = [task for gang in session.gangs.values() for task in gang.tasks for _ in range(random.randrange(1, 6))]
    if not tasks:
        return
    accounts, preemptor = random_accounts(random, session, tasks), random.choice(tasks)
    level, asks_both = random.randrange(3), random.random() < 0.5
    one_by_one = ReclaimWalk(accounts, preemptor, level, session)
    expected = [task for task in tasks if one_by_one.victims([task], asks_both=asks_both)]
    assert ReclaimWalk(accounts, preemptor, level, session).victims(tasks, asks_both=asks_both) == expected
