"""Where nobody reads why gangs wait, sessions and simulations do not find it out, and decide the same."""

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.session.cycle import Profile, run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from tests.properties.test_node_plans import PROFILES, SEEDS, scene
from tests.properties.test_sessions import policy_of, snapshot_of
from tests.properties.test_simulations import CASES, Case, outcome
from tests.support import random_clusters as chance


def decided(decisions: Decisions) -> list[object]:
    """Return what is carried out, in its order, and how each gang stands."""
    evictions = [(key, found.action, found.preemptor, found.message) for key, found in decisions.evictions.items()]
    states = {outcome.state.key: (outcome.state.phase, outcome.state.tally.counts) for outcome in decisions.outcomes}
    return [list(decisions.binds.items()), list(decisions.pipelined.items()), evictions, states, decisions.stamps]


def quiet(policy: Policy) -> Policy:
    return replace(policy, says_why=False)


@PROFILES
@settings(deadline=None, max_examples=100)
@given(seed=SEEDS)
def test_a_session_decides_the_same_without_reasons(profile: str, seed: int) -> None:
    snapshot, decider = scene(profile, Random(seed))
    explained = run_cycle(snapshot, decider.policy, decider.catalogue)
    assert decided(run_cycle(snapshot, quiet(decider.policy), decider.catalogue)) == decided(explained)


@settings(deadline=None, max_examples=200)
@given(seed=SEEDS)
def test_any_configuration_decides_the_same_without_reasons(seed: int) -> None:
    random = Random(seed)
    snapshot, decider = snapshot_of(chance.objects(random)), Profile(policy_of(chance.config(random)), CATALOGUE)
    explained = run_cycle(snapshot, decider.policy, decider.catalogue)
    assert decided(run_cycle(snapshot, quiet(decider.policy), decider.catalogue)) == decided(explained)


@pytest.mark.parametrize("profile", ["phalanx", "volcano"])
@settings(deadline=None, max_examples=25)
@given(case=CASES, parks=st.sampled_from([0.0, 300.0]))
def test_a_simulation_gives_the_same_bytes_without_reasons(profile: str, case: Case, parks: float) -> None:
    told = replace(case, settings=replace(case.settings, parks_up_to=parks))
    unread = replace(told, settings=replace(told.settings, says_why=False))
    assert json.dumps(outcome(unread, profile)) == json.dumps(outcome(told, profile))
