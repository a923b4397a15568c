"""Cycles that are spared because nothing has changed since one that had nothing to carry out."""

from dataclasses import replace

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.model.gang import Gang
from phalanx.model.node import Node
from phalanx.model.queue import Queue, QueueBounds
from phalanx.model.shape import Shape
from phalanx.model.task import FailedBind, GangKey, Task, TaskKey
from phalanx.session.cycle import SETTLED_SECONDS, Catalogue, Decider, run_cycle
from phalanx.session.session import Session
from phalanx.state.cluster import ClusterState

KEY = GangKey("default/train")
FREE = (-1.0, -1.0, -1.0)


class Counting:
    """A catalogue that counts the cycles that were run."""

    def __init__(self, profile: str) -> None:
        self.policy, known = policy_of_profile(profile), catalogue_of("kai" if profile == "kai" else "volcano")
        self.cycles, first = 0, self.policy.actions[0]

        def count(arguments: object) -> "Counting":
            self.cycles += 1
            self._action = known.actions[first](self.policy.arguments_by_action.get(first, {}))
            return self

        self.name, self.catalogue = first, Catalogue({**known.actions, first: count}, known.plugins)

    def run(self, session: Session) -> None:
        self._action.run(session)


def waiting(profile: str) -> ClusterState:
    """Return a cluster of one node on which a gang of two has no room."""
    state, is_kai = ClusterState(), profile == "kai"
    state.put_queue(Queue("default", bounds=QueueBounds(FREE, FREE, (1.0, 1.0, 1.0)) if is_kai else None))
    state.put_queue(Queue("root"))
    offered = {"cpu": 1000, "memory": 1 << 30, "pods": 10}
    state.put_node(Node("n0", {}, allocatable=offered, reported=offered))
    state.put_gang(Gang(KEY, KEY, "default", 2, phase="Inqueue", dialect="kai" if is_kai else "volcano"))
    shape = Shape("default", {}, {"cpu": 1000, "pods": 1}, scoring_request=(1000, 0), booked_request=(1000, 0))
    for number in range(2):
        key = TaskKey(f"default/train-{number}")
        state.put_task(Task(key, key, shape, KEY, "volcano"))
    return state


def decide(decider: Decider, counting: Counting, state: ClusterState, now: float) -> list[str]:
    decisions = decider.decide(state.snapshot(now), counting.policy, counting.catalogue)
    fresh = run_cycle(state.snapshot(now), counting.policy, catalogue_of("kai" if counting.policy.counts_all_gangs else "volcano"))
    assert [outcome.now for outcome in decisions.outcomes] == [now for _ in fresh.outcomes]
    assert [outcome.state.verdicts for outcome in decisions.outcomes] == [outcome.state.verdicts for outcome in fresh.outcomes]
    assert (decisions.binds, decisions.queues) == (fresh.binds, fresh.queues)
    return list(decisions.binds)


@pytest.mark.parametrize("profile", ["phalanx", "volcano", "kai"])
def test_a_cycle_is_run_again_only_when_something_has_changed(profile: str) -> None:
    counting, decider, state = Counting(profile), Decider(), waiting(profile)
    for now in (100.0, 101.0, 102.0):
        assert decide(decider, counting, state, now) == []
    assert counting.cycles == 1
    offered = {"cpu": 2000, "memory": 1 << 30, "pods": 10}
    state.put_node(Node("n0", {}, allocatable=offered, reported=offered))
    assert len(decide(decider, counting, state, 103.0)) == 2
    assert counting.cycles == 2


def test_a_cycle_that_binds_is_not_taken_for_the_next_one() -> None:
    counting, decider, state = Counting("phalanx"), Decider(), waiting("phalanx")
    offered = {"cpu": 2000, "memory": 1 << 30, "pods": 10}
    state.put_node(Node("n0", {}, allocatable=offered, reported=offered))
    for now in (100.0, 101.0):
        assert len(decide(decider, counting, state, now)) == 2
    assert counting.cycles == 2


def test_a_cycle_is_run_after_a_minute_because_time_alone_may_matter() -> None:
    counting, decider, state = Counting("phalanx"), Decider(), waiting("phalanx")
    decide(decider, counting, state, 100.0)
    decide(decider, counting, state, 100.0 + SETTLED_SECONDS)
    assert counting.cycles == 2


def test_a_gang_that_is_in_back_off_is_looked_at_when_its_time_has_come() -> None:
    counting, decider, state = Counting("phalanx"), Decider(), waiting("phalanx")
    task = state.task(TaskKey("default/train-0"))
    assert task is not None
    state.put_task(replace(task, failed_binds=(FailedBind("n0", 1, 100.0, "refused"),)))
    first = decider.decide(state.snapshot(100.0), counting.policy, counting.catalogue)
    assert first.again is not None
    decider.decide(state.snapshot(first.again - 0.1), counting.policy, counting.catalogue)
    assert counting.cycles == 1
    decide(decider, counting, state, first.again)
    assert counting.cycles == 2
