"""Clusters on which changes are tried, from objects."""

from collections.abc import Iterable, Mapping
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Document
from phalanx.whatif.remedy import Findings
from phalanx.whatif.search import search
from phalanx.whatif.trial_cluster import TrialCluster

NOW = 1_800_000_000.0


def trial_cluster(
    *parts: Mapping[str, Any] | Iterable[Mapping[str, Any]], profile: str = "phalanx", policy: Policy | None = None
) -> TrialCluster:
    """Return a cluster of objects and lists of objects."""
    documents = [item for part in parts for item in ([part] if isinstance(part, Mapping) else part)]
    policy = policy or policy_of_profile(profile)
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    return TrialCluster(documents, cluster, Profile(policy, catalogue_of(policy.catalogue)), NOW)


def running_gang(name: str, *nodes: str, queue: str = "default", **asks: Any) -> list[Document]:
    """Return a gang with one running pod on each of these nodes."""
    group, *pods = build.gang(name, tasks=len(nodes), queue=queue, **asks)
    for pod, node in zip(pods, nodes, strict=True):
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
    group["status"] = {"phase": "Running"}
    return [group, *pods]


def found(cluster: TrialCluster, gang: str = "default/train") -> Findings:
    """Return what would start a gang, however long it takes to find."""
    return search(cluster, gang, cluster.decide(), clock=lambda: 0.0, budget_seconds=1.0)


def remedies(cluster: TrialCluster, gang: str = "default/train") -> list[str]:
    """Return the changes of each remedy, several joined with blanks."""
    return [" ".join(change.text for change in remedy.changes) for remedy in found(cluster, gang).remedies]
