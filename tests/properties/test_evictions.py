"""Laws of our own way to evict, on small crowded clusters, with an exhaustive search as the judge.

A failure names the seed of its cluster.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.task import GangKey, Task
from phalanx.session.cycle import run_cycle
from phalanx.session.decision import Decisions, Eviction
from phalanx.session.policy import Policy
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import crowded_clusters as crowds
from tests.support.crowded_clusters import Style
from tests.support.eviction_judge import Judge

SEEDS = st.integers(0, 2**40)
ALONE = [Style(), Style(shapes=2), Style(shapes=2, is_limited=True), Style(queues=2), Style(queues=3, shapes=2, is_limited=True)]
"""One gang waits: an exhaustive search can tell what was possible."""
TOGETHER = [Style(waiting=3, shapes=2), Style(queues=3, waiting=4, shapes=2, is_limited=True)]
BUDGETED = [Style(has_budgets=True), Style(queues=3, waiting=4, shapes=2, has_budgets=True)]
POLICY = policy_of_profile("phalanx")
WAITING = GangKey("default/wait-0")


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, what one cycle decided on it, and who judges."""

    snapshot: Snapshot
    decisions: Decisions
    judge: Judge

    def evictions_by_gang(self) -> dict[GangKey, list[Eviction]]:
        found: dict[GangKey, list[Eviction]] = {}
        for eviction in self.decisions.evictions.values():
            found.setdefault(GangKey(eviction.preemptor), []).append(eviction)
        return found


def decide(seed: int, style: Style, policy: Policy = POLICY) -> Case:
    cluster = ObjectCluster()
    for item in crowds.crowd(Random(seed), style):
        assert cluster.put(item)
    snapshot = cluster.snapshot(0.0)
    decisions = run_cycle(snapshot, policy, CATALOGUE)
    return Case(snapshot, decisions, Judge(snapshot, decisions))


@settings(deadline=None, max_examples=600)
@given(SEEDS, st.sampled_from(ALONE + TOGETHER))
def test_whoever_others_were_evicted_for_gets_its_minimum(seed: int, style: Style) -> None:
    case = decide(seed, style)
    for gang in case.evictions_by_gang():
        assert case.judge.is_whole(case.snapshot.gangs[gang], case.judge.members_with_a_place(gang))
    assert case.judge.overfull() == []


@settings(deadline=None, max_examples=600)
@given(SEEDS, st.sampled_from(ALONE + TOGETHER))
def test_no_gang_is_left_with_too_few_tasks(seed: int, style: Style) -> None:
    case = decide(seed, style)
    victims = case.judge.victims()
    assert [gang for gang in case.snapshot.gangs if case.judge.is_broken(gang, victims)] == []


@settings(deadline=None, max_examples=600)
@given(SEEDS, st.sampled_from(ALONE + TOGETHER))
def test_protected_tasks_stay(seed: int, style: Style) -> None:
    case = decide(seed, style)
    assert [task.key for task in case.judge.victims() if case.judge.is_protected(task)] == []


@settings(deadline=None, max_examples=400)
@given(SEEDS, st.sampled_from(BUDGETED))
def test_no_disruption_budget_is_overdrawn_and_no_gang_broken_by_one(seed: int, style: Style) -> None:
    case = decide(seed, style)
    victims = case.judge.victims()
    for budget in case.snapshot.surroundings.disruption_budgets.values():
        assert sum(task.namespace == budget.namespace and budget.counts(task) for task in victims) <= max(budget.allowed, 0)
    assert [gang for gang in case.snapshot.gangs if case.judge.is_broken(gang, victims)] == []
    for gang in case.evictions_by_gang():
        assert case.judge.is_whole(case.snapshot.gangs[gang], case.judge.members_with_a_place(gang))


@settings(deadline=None, max_examples=500)
@given(SEEDS, st.sampled_from(ALONE))
def test_only_who_may_go_goes_and_no_queue_gives_what_it_deserves(seed: int, style: Style) -> None:
    case = decide(seed, style)
    for gang, evictions in case.evictions_by_gang().items():
        tasks, purpose = [eviction.task for eviction in evictions], purpose_of(evictions)
        assert all(case.judge.may_go(task, case.snapshot.gangs[gang], purpose) for task in tasks)
        assert case.judge.may_go_together(tasks, purpose)


def purpose_of(evictions: list[Eviction]) -> str:
    actions = {eviction.action for eviction in evictions}
    assert len(actions) == 1
    return actions.pop().removeprefix("gang")


def smaller_sets(tasks: list[Task]) -> Iterator[tuple[Task, ...]]:
    return (chosen for size in range(len(tasks)) for chosen in combinations(tasks, size))


@settings(deadline=None, max_examples=600)
@given(SEEDS, st.sampled_from(ALONE))
def test_without_any_of_the_victims_the_gang_would_have_no_place(seed: int, style: Style) -> None:
    case = decide(seed, style)
    judge, decisions = case.judge, case.decisions
    for gang, evictions in case.evictions_by_gang().items():
        placed = [task for task in judge.waiting(gang) if task.key in decisions.pipelined or task.key in decisions.binds]
        purpose = purpose_of(evictions)
        for fewer in smaller_sets([eviction.task for eviction in evictions]):
            assert not (judge.may_go_together(fewer, purpose) and judge.has_place(placed, fewer, purpose))


@settings(deadline=None, max_examples=600)
@given(SEEDS, st.sampled_from(ALONE))
def test_a_gang_that_evictions_can_start_is_started(seed: int, style: Style) -> None:
    case = decide(seed, style)
    judge, gang = case.judge, case.snapshot.gangs[WAITING]
    if judge.is_whole(gang, judge.members_with_a_place(WAITING)):
        return
    for purpose in ("preempt", "reclaim"):
        assert not any(judge.could_start(WAITING, victims, purpose) for victims in judge.sets(gang, purpose))


class Rounds:
    """Session after session: who was pipelined runs, who was evicted comes back and waits.

    In a slow cluster who was pipelined waits for it, and who was evicted takes a session to leave.
    """

    def __init__(self, seed: int, style: Style, *, is_slow: bool) -> None:
        self._cluster, self._is_slow = ObjectCluster(), is_slow
        self._pods: dict[str, Document] = {}
        for item in crowds.crowd(Random(seed), style):
            self._cluster.put(item)
            self._pods[f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"] = item
        self.evictions: list[list[Eviction]] = []
        self._leaving: list[str] = []

    def run(self, sessions: int) -> Snapshot:
        for _ in range(sessions):
            snapshot = self._cluster.snapshot(0.0)
            decisions = run_cycle(snapshot, POLICY, CATALOGUE)
            self.evictions.append(list(decisions.evictions.values()))
            self._carry_out(decisions)
        return snapshot

    def _carry_out(self, decisions: Decisions) -> None:
        gone = self._leaving if self._is_slow else list(decisions.evictions)
        self._leaving = list(decisions.evictions)
        for key in gone:
            self._put(key, "", {"phase": "Pending"})
        for key in self._leaving if self._is_slow else ():
            self._put(key, self._pods[key]["spec"]["nodeName"], {"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:00Z")
        for key, node in decisions.binds.items():
            self._put(key, node, {"phase": "Running"})
        for key, node in decisions.pipelined.items():
            if self._is_slow:
                self._put(key, "", {"phase": "Pending", "nominatedNodeName": node})
            else:
                self._put(key, node, {"phase": "Running"})

    def _put(self, key: str, node: str, status: Document, **metadata: str) -> None:
        pod = self._pods[key]
        spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"} | ({"nodeName": node} if node else {})
        data = {name: value for name, value in pod["metadata"].items() if name != "deletionTimestamp"} | metadata
        self._pods[key] = {**pod, "metadata": data, "spec": spec, "status": status}
        self._cluster.put(self._pods[key])


STEADY_AFTER, MOST_TIMES = 8, 3


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from(TOGETHER), st.booleans())
def test_evictions_come_to_an_end(seed: int, style: Style, is_slow: bool) -> None:
    rounds = Rounds(seed, style, is_slow=is_slow)
    rounds.run(20)
    assert not any(rounds.evictions[STEADY_AFTER:])
    times = Counter(eviction.task.key for session in rounds.evictions for eviction in session)
    assert max(times.values(), default=0) <= MOST_TIMES


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from([Style(queues=3, waiting=4, shapes=2, is_limited=True), Style(queues=2, waiting=4)]), st.booleans())
def test_no_two_queues_take_from_each_other_in_turn(seed: int, style: Style, is_slow: bool) -> None:
    rounds = Rounds(seed, style, is_slow=is_slow)
    gangs = rounds.run(20).gangs
    taken = {
        (gangs[GangKey(eviction.preemptor)].queue, gangs[eviction.task.gang].queue)
        for session in rounds.evictions
        for eviction in session
        if eviction.action == "gangreclaim" and eviction.task.gang is not None
    }
    assert not any((loser, winner) in taken for winner, loser in taken)


@settings(deadline=None, max_examples=80)
@given(SEEDS, st.sampled_from(TOGETHER), st.booleans())
def test_what_was_evicted_is_not_won_back_in_the_next_session(seed: int, style: Style, is_slow: bool) -> None:
    rounds = Rounds(seed, style, is_slow=is_slow)
    rounds.run(6)
    for before, after in zip(rounds.evictions, rounds.evictions[1:], strict=False):
        losers = {(eviction.preemptor, str(eviction.task.gang)) for eviction in before}
        assert not losers & {(str(eviction.task.gang), eviction.preemptor) for eviction in after}


@pytest.mark.parametrize("free", [0, 1])
def test_one_free_node_and_one_freed_node_start_a_gang_of_two(free: int) -> None:
    cluster = build.cluster(nodes=2, policy=POLICY, cpu=4).submit(crowds.classes(), build.queue("blue"))
    cluster.submit(
        build.pod_group("old", queue="blue", phase="Running"), build.pod("old-0", group="old", on=f"node-{1 - free}", cpu=4)
    )
    gang = build.gang("new", tasks=2, queue="blue", cpu=4)
    gang[0]["spec"]["priorityClassName"] = "high"
    cycle = cluster.submit(gang).run_cycle()
    assert list(cycle.decisions.evictions) == ["default/old-0"]
    assert sorted(node for _, node in cycle.pipelined) == ["node-0", "node-1"]
