"""Explanations of gangs in a few words: objects in, the tree out."""

from collections.abc import Iterable
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.tree import Explanation, Line, Stage, StageResult
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.testing.build import Document
from phalanx.whatif.trial_cluster import TrialCluster

NOON = 1_767_268_800.0
"""2026-01-01T12:00:00Z."""
PHALANX = policy_of_profile("phalanx")


def explained(
    *parts: Any, gang: str = "default/train", policy: Policy = PHALANX, now: float = NOON, schedulers: Iterable[str] = ()
) -> Explanation:
    """Hold one session on objects and explain a gang."""
    documents: list[Document] = [document for part in parts for document in ([part] if isinstance(part, dict) else part)]
    cluster = ObjectCluster(schedulers=frozenset(schedulers))
    for document in documents:
        cluster.put(document)
    trial = TrialCluster(documents, cluster, Profile(policy, catalogue_of(policy.catalogue)), now).decide(traced=[gang])
    found = trial.explanation(gang)
    assert found is not None, f"there is no gang {gang}"
    return found


def stage(found: Explanation, name: Stage) -> StageResult:
    """Return one stage."""
    return next(result for result in found.stages if result.stage is name)


def texts(result: StageResult) -> list[str]:
    """Return every line of a stage, those below others with two blanks more."""
    return [text for line in result.lines for text in _texts(line, "")]


def _texts(line: Line, indent: str) -> list[str]:
    return [indent + line.text, *(text for below in line.lines for text in _texts(below, indent + "  "))]
