"""What an API server has shown of a cluster, and what follows from what it has not."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.errors import ClusterError, Forbidden
from phalanx.model.kinds import Kind

EFFECTS: Mapping[str, tuple[str, ...]] = {
    "constraints on network topology cannot be judged": ("hypernodes.topology.volcano.sh", "topologies.kai.scheduler"),
    "gangs of these groups are missing": (
        "podgroups.scheduling.volcano.sh", "podgroups.scheduling.run.ai", "podgroups.scheduling.x-k8s.io",
        "podgroups.scheduling.sigs.k8s.io", "podgroups.scheduling.k8s.io",
    ),
    "gangs that name a queue have to wait": ("queues.scheduling.volcano.sh", "queues.scheduling.run.ai"),
    "PodGroups that name a priority class have the default priority": ("priorityclasses.scheduling.k8s.io",),
    "disruption budgets of victims are not respected": ("poddisruptionbudgets.policy",),
    "quotas of namespaces are not respected": ("resourcequotas",),
    "pods with volumes cannot be judged": (
        "persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io", "csinodes.storage.k8s.io",
        "csidrivers.storage.k8s.io", "csistoragecapacities.storage.k8s.io",
    ),
    "pods with resource claims cannot be judged": (
        "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "deviceclasses.resource.k8s.io",
        "resourceslices.resource.k8s.io",
    ),
    "selectors of namespaces match nothing": ("namespaces",),
    "pods are not spread by the services that select them": ("services",),
    "new pods do not get the defaults of the cluster": ("limitranges", "runtimeclasses.node.k8s.io"),
    "how busy nodes are is unknown": ("nodes.metrics.k8s.io",),
    "the NUMA nodes of nodes are unknown": ("numatopologies.nodeinfo.volcano.sh",),
    "all nodes and gangs count as one shard": ("nodeshards.shard.volcano.sh", "schedulingshards.kai.scheduler"),
    "binds that are under way are unknown": ("bindrequests.scheduling.run.ai",),
}  # fmt: skip
"""What follows if kinds cannot be read, by the sentence that says so."""
OF_OWNERS = "pods without a group are grouped by the names of their owners"
_EFFECT_BY_RESOURCE = {resource: effect for effect, resources in EFFECTS.items() for resource in resources}


@dataclass(slots=True)
class ListedCluster:
    """What an API server has shown."""

    server: str
    now: float = 0.0
    """The server's clock, in seconds since 1970."""
    documents: list[dict[str, Any]] = field(default_factory=list)
    """Complete with apiVersion and kind, in the order of all kinds and then of the server."""
    problems: Mapping[Kind, ClusterError] = field(default_factory=dict)
    """Kinds that could not be read, and why."""
    namespace: str = "default"
    """That of objects that name none: of the context, or the one that was asked for."""

    def notes(self) -> Iterator[str]:
        """Say what could not be read and what follows, in one sentence for all kinds with the same cause and effect."""
        resources: dict[tuple[str, str, str], list[str]] = {}
        for kind, problem in self.problems.items():
            verb, cause = ("may not", "forbidden") if isinstance(problem, Forbidden) else ("cannot", str(problem))
            resources.setdefault((verb, cause, _effect(kind)), []).append(kind.resource)
        for (verb, cause, effect), names in resources.items():
            yield f"{verb} list {', '.join(names)} ({cause}): {effect}"


def _effect(kind: Kind) -> str:
    return _EFFECT_BY_RESOURCE.get(kind.resource, OF_OWNERS)
