"""Laws of explanations, on random clusters: every gang has one, it decides nothing anew, and its stages agree with its status."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.cli.explanation_text import explanation_lines
from phalanx.cli.output import Terminal
from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE, catalogue_of
from phalanx.config.kai import read_kai_policy
from phalanx.config.volcano import read_policy
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.tree import Stage
from phalanx.explain.why import why
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.testing.build import Document
from phalanx.whatif.trial_cluster import TrialCluster
from tests.support import random_clusters as volcano
from tests.support import random_kai_clusters as kai

SEEDS = st.integers(0, 2**40)
BEFORE_PLACEMENT = (Stage.VALID, Stage.ADMITTED)


def trial_of(objects: list[Document], policy: Policy) -> TrialCluster:
    cluster = ObjectCluster()
    for document in objects:
        cluster.put(document)
    return TrialCluster(objects, cluster, Profile(policy, catalogue_of(policy.catalogue)), 0.0)


def random_trial(name: str, seed: int) -> TrialCluster:
    chance = Random(seed)
    if name == "kai":
        objects = kai.objects(chance)
        config = kai.config(chance)
        policy = read_kai_policy(config, actions=list(KAI_CATALOGUE.actions), plugins=list(KAI_CATALOGUE.plugins))
        return trial_of(objects, policy)
    objects = volcano.objects(chance)
    return trial_of(objects, read_policy(volcano.config(chance), actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins)))


@pytest.mark.parametrize("name", ["volcano", "kai"])
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_every_gang_is_explained_by_the_session_as_it_was(name: str, seed: int) -> None:
    cluster = random_trial(name, seed)
    silent = cluster.decide()
    for key in sorted(silent.parts[0].snapshot.gangs):
        trial = cluster.decide(traced=[key])
        assert trial.parts[0].decisions.binds == silent.parts[0].decisions.binds, "tracing changed a decision"
        found, reading = trial.explanation(key), trial.reading(key)
        assert found is not None
        assert reading is not None
        assert found.headline == why(reading.outcome, reading.snapshot)
        assert msgspec.json.encode(found.document())
        assert list(explanation_lines(found, Terminal(width=80)))
        if found.status.has_minimum:
            assert not [result for result in found.stages if result.stage in BEFORE_PLACEMENT and result.ok is False]
        assert all(result.lines for result in found.stages if result.ok is False), "a stage that refuses says why"
