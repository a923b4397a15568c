"""The cluster at one moment, as `run_cycle` reads it. Arrays are copies, everything else is shared and never changed."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from math import inf
from types import MappingProxyType

import numpy as np

from phalanx.model.bind_request import BindRequest
from phalanx.model.disruption import DisruptionBudget
from phalanx.model.gang import Gang
from phalanx.model.label_tree import LabelTree
from phalanx.model.node import NodeUsage
from phalanx.model.numa import NumaTopology
from phalanx.model.queue import Queue
from phalanx.model.queue_usage import QueueHistory
from phalanx.model.quota import ResourceQuota
from phalanx.model.resources import Resources, ResourceSpace
from phalanx.model.run_times import RunTimes
from phalanx.model.selectors import Labels, LabelSelector
from phalanx.model.shard import PoolShard, Shard
from phalanx.model.storage import (
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
    StorageCapacity,
    StorageClass,
    Volume,
    VolumeClaim,
    VolumeLimits,
)
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.placement import Amounts, Counts
from phalanx.state.finished_runs import Runs
from phalanx.state.holders import HolderTable
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_table import NodeTable


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the gangs of a queue."""

    gangs: int = 0
    allocated: Resources = field(default_factory=dict)
    requested: Resources = field(default_factory=dict)
    inqueue: Resources = field(default_factory=dict)
    """What admitted gangs need for their minimum and do not hold yet."""
    elastic: Resources = field(default_factory=dict)
    """What gangs hold beyond their minimum."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything else that filters read: volumes, claims, namespaces, shards, services."""

    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)
    volume_claims: Mapping[str, VolumeClaim] = field(default_factory=dict)
    volume_limits: Mapping[str, VolumeLimits] = field(default_factory=dict)
    storage_capacities: Mapping[str, StorageCapacity] = field(default_factory=dict)
    capacity_drivers: frozenset[str] = frozenset()
    """CSI drivers that publish storage capacity."""
    resource_claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    resource_slices: Mapping[str, ResourceSlice] = field(default_factory=dict)
    namespace_labels: Mapping[str, Labels] = field(default_factory=dict)
    service_selectors: Mapping[str, tuple[str, LabelSelector]] = field(default_factory=dict)
    """Service key to its namespace and pod selector."""
    shards: Mapping[str, Shard] = field(default_factory=dict)
    pool_shards: Mapping[str, PoolShard] = field(default_factory=dict)
    queue_history: QueueHistory | None = None
    numa_topologies: Mapping[str, NumaTopology] = field(default_factory=dict)
    node_usage: Mapping[str, NodeUsage] = field(default_factory=dict)
    label_trees: Mapping[str, LabelTree] = field(default_factory=dict)
    disruption_budgets: Mapping[str, DisruptionBudget] = field(default_factory=dict)
    resource_quotas: Mapping[str, ResourceQuota] = field(default_factory=dict)
    schedulers: frozenset[str] = frozenset()
    """The scheduler names of pods that are ours; all are where there are none."""


EMPTY: Mapping[TaskKey, Task] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a session reads."""

    now: float
    space: ResourceSpace
    nodes: NodeTable
    used: Amounts
    releasing: Amounts
    scored: Amounts
    pods: Counts
    gangs: Mapping[GangKey, Gang]
    members: Mapping[GangKey, Mapping[TaskKey, Task]]
    on_node: Mapping[str, Mapping[TaskKey, Task]]
    queues: Mapping[str, Queue]
    totals: Mapping[str, Totals]
    """What the gangs of each queue hold and ask for."""
    active: tuple[GangKey, ...]
    """Gangs that may change in this session; all others are complete and their status is written."""
    hypernodes: HyperTree
    surroundings: Surroundings
    holders: HolderTable
    """Who runs where, in columns."""
    affine: Mapping[TaskKey, Task] = field(default_factory=dict)
    """Tasks on nodes that have pod affinity or anti-affinity terms."""
    bind_requests: Mapping[str, BindRequest] = field(default_factory=dict)
    lost_requests: Mapping[str, str] = field(default_factory=dict)
    run_times: Mapping[GangKey, RunTimes] = field(default_factory=dict)
    """How long gangs run, as far as that is known whenever they began; whoever asks reads what is not in it."""
    failing_rounds: Mapping[GangKey, TaskKey] = field(default_factory=dict)
    """Gangs whose bind requests are being rolled back, each with the pod whose request failed."""
    """Bind requests that the binder will never carry out, each with what is wrong."""
    refused: Mapping[TaskKey, Task] = field(default_factory=dict)
    """Waiting tasks of which some binds failed."""
    refused_gangs: frozenset[GangKey] = frozenset()
    """Gangs that remember binds of members that failed, whether those are still there or not."""
    reservations: Mapping[TaskKey, Task] = field(default_factory=dict)
    """Reservation pods: tasks that hold a shared device for those who share it."""
    finished_runs: Runs = field(default_factory=dict)
    """How long gangs took that have finished since the scheduler began to watch."""
    overdue: Mapping[GangKey, float] = field(default_factory=dict)
    """Gangs that run longer than they may, and since when."""
    next_due: float = inf
    """When the next gang will."""
    reserved: tuple[GangKey, ...] = ()
    """Gangs that the last session reserved a start for; they keep it, whoever comes first now."""
    short_since: Mapping[GangKey, float] = field(default_factory=dict)
    """Gangs of pods alone that earlier sessions found stale, and since when: there is no object that could tell."""
    calm: frozenset[GangKey] = frozenset()
    """Gangs that may take free room in this session but evict nobody."""
    is_partial: bool = False
    """Gangs that wait were left out: if a session on it evicts anybody, another one on all of them replaces it."""
    namesakes: Mapping[str, Queue] = field(default_factory=dict)
    """KAI's queues that have the name of one of Volcano's in `queues`; they replace it for whoever decides by KAI's rules."""
    full_tree: Mapping[str, Queue] | None = None
    """The queues as their objects say, where `queues` is what one scheduler makes of them."""

    @property
    def queue_objects(self) -> Mapping[str, Queue]:
        """Return the queues as their objects say."""
        return self.queues if self.full_tree is None else self.full_tree

    def is_same_cluster(self, other: "Snapshot") -> bool:
        """Tell whether nothing has changed between two snapshots of one cluster but the time.

        What did not change is shared, so that comparing costs next to nothing. When in doubt the answer is no.
        """
        return (
            all(getattr(self, name) is getattr(other, name) for name in _REPLACED)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _COPIED)
            and all(getattr(self, field.name) == getattr(other, field.name) for field in _others())
        )

    def members_of(self, gang: GangKey) -> Mapping[TaskKey, Task]:
        """Return the tasks of a gang."""
        return self.members.get(gang, EMPTY)


_REPLACED = ("space", "nodes", "hypernodes", "surroundings", "holders")
"""Parts that are made anew when something in them changes."""
_COPIED = ("used", "releasing", "scored", "pods")


@cache
def _others() -> list[Field[object]]:
    return [field for field in fields(Snapshot) if field.name not in (*_REPLACED, *_COPIED, "now")]
