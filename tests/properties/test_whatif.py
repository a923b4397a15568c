"""Laws of what would start a gang, on random clusters: what is found starts it, a step less does not, and nothing stays changed.

What is found is checked on a cluster that is read anew, so that what is kept incrementally cannot be wrong in the same way.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import CATALOGUE
from phalanx.config.volcano import read_policy
from phalanx.explain.answer import answer
from phalanx.model.kinds import object_key
from phalanx.session.policy import Policy
from phalanx.testing.build import Document
from phalanx.whatif.changes import parse_all
from phalanx.whatif.remedy import Changes
from phalanx.whatif.trial_cluster import Trial, TrialCluster
from tests.support import kai_objects as kai
from tests.support import random_clusters, random_kai_clusters
from tests.support.trial_clusters import found, trial_cluster

SEEDS = st.integers(0, 2**40)


def volcano(seed: int) -> tuple[list[Document], Policy]:
    chance = Random(seed)
    objects = random_clusters.objects(chance)
    return objects, read_policy(random_clusters.config(chance), actions=list(CATALOGUE.actions), plugins=list(CATALOGUE.plugins))


def kai_cluster(seed: int) -> tuple[list[Document], Policy]:
    chance = Random(seed)
    objects = random_kai_clusters.objects(chance)
    return objects, kai.policy(**random_kai_clusters.config(chance))


def waiting(trial: Trial) -> Iterator[str]:
    for part in trial.parts:
        yield from (outcome.state.key for outcome in part.decisions.outcomes if not trial.starts(outcome.state.key))


def _key(item: Mapping[str, Any]) -> tuple[str, str, str]:
    return item["apiVersion"], item["kind"], object_key(item)


def starts_anew(objects: list[Document], policy: Policy, changes: Changes, gang: str) -> bool:
    """Tell whether a gang starts in a cluster that is read anew with the changes made."""
    texts = [change.text for change in changes]
    documents: dict[tuple[str, str, str], Mapping[str, Any]] = {_key(item): item for item in objects}
    for change in parse_all(texts):
        for edit in change.edits(trial_cluster(documents.values(), policy=policy)):
            item = edit.after if edit.after is not None else edit.before
            assert item is not None
            documents.pop(_key(item), None)
            if edit.after is not None:
                documents[_key(item)] = edit.after
    return trial_cluster(documents.values(), policy=policy).decide().starts(gang)


def check(objects: list[Document], policy: Policy) -> None:
    cluster = trial_cluster(objects, policy=policy)
    for gang in list(waiting(cluster.decide()))[:2]:
        for remedy in found(cluster, gang).remedies:
            assert starts_anew(objects, policy, remedy.changes, gang), remedy.text
            for smaller in remedy.smaller:
                assert not starts_anew(objects, policy, smaller, gang), f"{remedy.text}: enough would be {smaller}"


def decided(cluster: TrialCluster) -> list[object]:
    """Return decisions and phases; of several members without a node a sentence may name any."""
    answers = [answer(part.snapshot, part.decisions) for part in cluster.decide().parts]
    groups = [{key: group["phase"] for key, group in found["groups"].items()} for found in answers]
    return [*groups, *({key: found[key] for key in ("binds", "evictions", "pipelined")} for found in answers)]


@settings(max_examples=12, deadline=None)
@given(SEEDS)
def test_what_would_start_a_gang_starts_it_and_less_does_not(seed: int) -> None:
    check(*volcano(seed))


@settings(max_examples=12, deadline=None)
@given(SEEDS)
def test_what_would_start_a_gang_of_kai_starts_it_and_less_does_not(seed: int) -> None:
    check(*kai_cluster(seed))


@settings(max_examples=12, deadline=None)
@given(SEEDS)
def test_a_search_changes_nothing(seed: int) -> None:
    objects, policy = volcano(seed)
    cluster = trial_cluster(objects, policy=policy)
    before = decided(cluster)
    for gang in list(waiting(cluster.decide()))[:1]:
        found(cluster, gang)
    assert decided(cluster) == before
