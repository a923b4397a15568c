"""Affinity, anti-affinity and spread: gangs that are placed in runs get what they get when every task is placed by itself."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.session.coupled_view import CoupledNodeView
from phalanx.session.cycle import Catalogue, run_cycle
from phalanx.session.policy import Policy
from phalanx.session.session import Session
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import random_kai_clusters as kai_chance
from tests.support import random_pod_terms as chance

SEEDS = st.integers(0, 2**40)
PROFILES = ("volcano", "phalanx", "coscheduling", "default-scheduler")


def answer_to(documents: list[Document], policy: Policy, catalogue: Catalogue = CATALOGUE, now: float = 0.0) -> dict[str, Any]:
    cluster = ObjectCluster()
    for document in documents:
        assert cluster.put(deepcopy(document))
    snapshot = cluster.snapshot(now)
    return answer(snapshot, run_cycle(snapshot, policy, catalogue))


def task_by_task(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Answer with a node view that looks at every node after every task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "apart_from_pods", lambda session, shape: None)
        return ask()


def random_policy(random: Random) -> Policy:
    """Return plugins with random weights; in some, nodes that refuse a task are asked again for the next one."""
    plugins: list[Document] = [
        {"name": "nodeorder", "arguments": chance.policy_weights(random)},
        {"name": "binpack", "arguments": {"binpack.weight": random.randint(0, 5)}},
    ]
    random.shuffle(plugins)
    tiers = [{"plugins": [{"name": "priority"}, {"name": "gang"}]}, {"plugins": [{"name": "predicates"}, *plugins]}]
    if random.random() < 0.1:
        del tiers[1]["plugins"][0]
    remembers = {"name": "allocate", "arguments": {"enablePredicateErrorCache": random.random() < 0.5}}
    document = {"actions": "enqueue, allocate, backfill", "tiers": tiers, "configurations": [remembers]}
    return read_policy(document, actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))


@settings(deadline=None, max_examples=400)
@given(SEEDS)
def test_runs_of_tasks_that_look_at_pods_equal_placing_one_by_one(seed: int) -> None:
    random = Random(seed)
    documents, policy = chance.objects(random), random_policy(random)
    together = answer_to(documents, policy)
    assert task_by_task(lambda: answer_to(documents, policy)) == together


@pytest.mark.parametrize("profile", PROFILES)
@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_runs_equal_placing_one_by_one_in_every_profile(profile: str, seed: int) -> None:
    documents, policy = chance.objects(Random(seed)), policy_of_profile(profile)
    together = answer_to(documents, policy)
    assert task_by_task(lambda: answer_to(documents, policy)) == together


@settings(deadline=None, max_examples=150)
@given(SEEDS)
def test_pods_look_the_same_to_the_profile_kai(seed: int) -> None:
    random = Random(seed)
    documents, policy = kai_chance.objects(random), kai.policy(**kai_chance.config(random))
    for document in documents:
        if document["kind"] == "Pod":
            app = random.choice(chance.APPS)
            document["metadata"].setdefault("labels", {})["app"] = app
            document["spec"] |= chance.terms(random, app)
    together = answer_to(documents, policy, KAI_CATALOGUE, kai_chance.NOW)
    assert task_by_task(lambda: answer_to(documents, policy, KAI_CATALOGUE, kai_chance.NOW)) == together


def test_the_random_clusters_have_runs_of_every_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without runs of several tasks the laws above would hold for nothing."""
    kinds: dict[tuple[bool, bool], int] = {}
    place = CoupledNodeView.place

    def counted(view: CoupledNodeView, count: int, **more: Any) -> tuple[list[int], list[int]]:
        is_steady = view.is_steady
        found = place(view, count, **more)
        if len(found[0]) > 1:
            kind = (is_steady, len(found[0]) == count)
            kinds[kind] = kinds.get(kind, 0) + 1
        return found

    monkeypatch.setattr(CoupledNodeView, "place", counted)
    for seed in range(40):
        answer_to(chance.objects(Random(seed)), policy_of_profile("volcano"))
    assert set(kinds) == {(steady, whole) for steady in (True, False) for whole in (True, False)}
