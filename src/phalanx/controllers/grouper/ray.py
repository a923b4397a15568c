"""Ray: one gang of the head and the minimum of workers.

The pod that empties Redis when a cluster is deleted is none of them: it starts when all others have gone.
"""

from collections.abc import Iterator

from msgspec import field

from phalanx.controllers.grouper.grouping import (
    PREFERRED,
    REQUIRED,
    TOPOLOGY,
    Count,
    GroupConstraint,
    Grouping,
    GroupPart,
    PodTemplateRead,
    apart,
    constraint_of,
    one_group,
    total,
)
from phalanx.controllers.grouper.owners import LARGEST_COUNT, OwnerChain, find, read
from phalanx.controllers.objects import labels_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document, kind_of

RAY_CLUSTER = kind_of({"apiVersion": "ray.io/v1", "kind": "RayCluster"})
HEAD_PART, GROUP_LABEL, PRIORITY_LABEL = "headgroup", "ray.io/group", "ray.io/priority-class-name"
NODE_TYPE, REDIS_CLEANUP = "ray.io/node-type", "redis-cleanup"


class HeadGroup(Read):
    """The head."""

    template: PodTemplateRead = field(default_factory=PodTemplateRead)


class WorkerGroup(Read):
    """Equal workers of a RayCluster; what is read of their template differs."""

    group_name: str | None = None
    replicas: Count | None = None
    min_replicas: Count | None = None
    max_replicas: Count | None = None
    num_of_hosts: Count | None = None
    suspend: bool | None = None
    suspended: bool | None = None

    @property
    def pods(self) -> int:
        """Return how many workers are made: the replicas, kept between their bounds, times the hosts of each."""
        least, most = self.min_replicas or 0, LARGEST_COUNT if self.max_replicas is None else self.max_replicas
        return 0 if self.suspend else min(max(self.replicas or 0, least), most) * self._hosts

    @property
    def needed(self) -> int:
        """Return how many pods have to start together: the least, else all that Ray's operator makes between its bounds."""
        if self.suspend or self.suspended:
            return 0
        wanted = self.min_replicas or self.replicas or 0
        most = wanted if self.max_replicas is None else self.max_replicas
        return min(wanted, most) * self._hosts

    @property
    def _hosts(self) -> int:
        return 1 if self.num_of_hosts is None else self.num_of_hosts


class GroupedWorkers(WorkerGroup):
    """Workers, with where their template wants them."""

    template: PodTemplateRead = field(default_factory=PodTemplateRead)


class ClusterSpec(Read):
    """What a RayCluster asks for."""

    head_group_spec: HeadGroup = field(default_factory=HeadGroup)
    worker_group_specs: list[GroupedWorkers] | None = None


class RayCluster(Read):
    """A RayCluster."""

    spec: ClusterSpec = field(default_factory=ClusterSpec)


class ClusterName(Read):
    """What a RayService says about one of its clusters."""

    ray_cluster_name: str | None = None


class RayStatus(Read):
    """Which cluster a RayJob or a RayService has."""

    ray_cluster_name: str | None = None
    active_service_status: ClusterName = field(default_factory=ClusterName)
    pending_service_status: ClusterName = field(default_factory=ClusterName)

    @property
    def cluster(self) -> str:
        """Return its name; empty if there is none yet."""
        services = (self.active_service_status, self.pending_service_status)
        return next((name for name in (self.ray_cluster_name, *(each.ray_cluster_name for each in services)) if name), "")


class RayOwner(Read):
    """A RayJob or a RayService."""

    status: RayStatus = field(default_factory=RayStatus)


def cluster(chain: OwnerChain) -> Grouping:
    """Group the pods of a RayCluster."""
    return _grouped(chain, chain.head)


def of_cluster(chain: OwnerChain) -> Grouping:
    """Group the pods of a RayJob or RayService by the cluster that was made for it."""
    name = read(chain.head, RayOwner).status.cluster
    found = find(chain.view, RAY_CLUSTER, chain.pod, name) if name else None
    if found is None:
        own = next((owner for owner in chain.owners if owner.get("kind") == "RayCluster" and "spec" in owner), None)
        if own is None:
            raise SnapshotError(f"{describe(chain.head)}: has no RayCluster yet; see that Ray's operator runs and makes one")
        found = own
    return _grouped(chain, found)


def _grouped(chain: OwnerChain, of: Document) -> Grouping:
    if labels_of(chain.pod).get(NODE_TYPE) == REDIS_CLEANUP:
        return apart(chain)
    spec = read(of, RayCluster).spec
    parts = [
        GroupPart(HEAD_PART, 1, constraint=_constraint(of, "headGroupSpec", spec.head_group_spec.template)),
        *_worker_parts(of, spec),
    ]
    whole, name = one_group(chain), labels_of(chain.pod).get(GROUP_LABEL, "")
    part = name if name in {each.name for each in parts} else ""
    return Grouping(
        whole.name, whole.owner, total(parts), parts, part, whole.constraint, labels_of(chain.head).get(PRIORITY_LABEL, "")
    )


def _worker_parts(of: Document, spec: ClusterSpec) -> Iterator[GroupPart]:
    for number, group in enumerate(spec.worker_group_specs or ()):
        if group.needed:
            name, where = group.group_name or f"worker-group-{number}", f"spec.workerGroupSpecs[{number}]"
            yield GroupPart(name, group.needed, constraint=_constraint(of, where, group.template))


def _constraint(of: Document, where: str, template: PodTemplateRead) -> GroupConstraint | None:
    """Return where the pods of a template have to be; a topology alone says nothing."""
    annotations = template.annotations
    if not (annotations.get(REQUIRED) or annotations.get(PREFERRED)):
        return None
    if not annotations.get(TOPOLOGY):
        place = f"{describe(of)}: {where}.template.metadata.annotations"
        raise SnapshotError(f"{place}: a level without a topology; write {TOPOLOGY} as well")
    return constraint_of(annotations)
