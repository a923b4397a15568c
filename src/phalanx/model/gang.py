"""A gang: the tasks that start together, how many of them are needed, and in which places they may be.

One model serves every dialect. A gang has a minimum, minima per role, and sub-groups. A sub-group is either *fixed* (named
by the group object, any depth) or a *template* that makes one sub-group per distinct value of some pod labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from phalanx.model.resources import Resources
from phalanx.model.selectors import Labels, LabelSelector
from phalanx.model.shard import DEFAULT_POOL
from phalanx.model.task import FailedBind, GangKey

DEFAULT_QUEUE = "default"
"""The queue that is always there."""


@dataclass(frozen=True, slots=True)
class TopologyConstraint:
    """How close together the members must be: no wider than a tier of HyperNodes, or than a level of a label tree."""

    is_hard: bool = True
    highest_tier: int | None = None
    highest_tier_name: str = ""
    topology: str = ""
    """Name of a tree of node labels; then the levels below count, not tiers."""
    required_level: str = ""
    preferred_level: str = ""

    @property
    def is_of_tiers(self) -> bool:
        """Tell whether HyperNodes say how close the members must be, and not labels of nodes."""
        return not (self.topology or self.required_level or self.preferred_level)

    @property
    def label(self) -> str:
        """The node label of which all members must share a value; empty where a tree or tiers say how close they must be."""
        return "" if self.topology else self.required_level


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A part of a gang with a minimum and a place of its own."""

    name: str
    parent: str = ""
    min_member: int = 1
    min_subgroups: int = 0
    """How many sub-groups of this name must have their minimum: those that a template makes, or the fixed one itself."""
    topology: TopologyConstraint | None = None
    selector: LabelSelector | None = None
    match_keys: tuple[str, ...] | None = None
    """Label keys of a template; None for a fixed sub-group."""
    min_children: int | None = None
    """How many of the sub-groups directly below it are needed; None for all."""

    def instance(self, labels: Labels) -> tuple[str, ...] | None:
        """Return the label values that name the sub-group a task belongs to, or None when the template does not match."""
        if self.selector is not None and not self.selector.matches(labels):
            return None
        if self.match_keys is None:
            return () if self.selector is not None else None
        if not self.match_keys:
            return None
        values = tuple(labels.get(key, "") for key in self.match_keys)
        return values if all(values) else None


STALE = "Stale"
"""The condition of a group that runs with fewer members than it needs."""
OVERDUE = "Overdue"
"""The condition of a group that runs longer than it may."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A statement about a group that is kept on its object."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: float = 0.0
    """When the status last changed; 0 when unknown."""
    node_pool: str = ""
    """The pool of nodes that it is about, where there are pools."""


class Quorum(Enum):
    """Which members count towards the minima of a gang."""

    PRESENT = "waiting-and-running"
    """Those that have a place or are about to get one, and those that succeeded."""
    ONCE = "once-satisfied"
    """The same until the gang was whole; from then on every member starts for itself, as long as one of them is left."""
    FRESH = "only-waiting"
    """Only those that are about to get a place: each start needs as many as the first."""


Counts = tuple[int, int, int]
"""How many members run, succeeded and failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Gang:
    """The group object, read."""

    key: GangKey
    uid: str = ""
    queue: str = DEFAULT_QUEUE
    min_member: int = 1
    role_minima: Mapping[str, int] = field(default_factory=dict)
    subgroups: tuple[SubGroup, ...] = ()
    min_children: int | None = None
    """How many of the sub-groups on top are needed; None for all."""
    topology: TopologyConstraint | None = None
    priority: int = 0
    priority_class: str = ""
    created: float = 0.0
    min_resources: Resources | None = None
    checks_min_resources: bool = False
    """All nodes together must have its minResources before any place is looked for; elsewhere they only count for admission."""
    min_quota: Resources = field(default_factory=dict)
    """What the minimum takes of quotas, under names that only quotas know, such as ``count/pods``; no node and no queue has it."""
    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    is_preemptable: bool | None = None
    allocated_hypernode: str = ""
    staleness_grace_seconds: float | None = None
    """How long it may run with too few members, `inf` for ever; None leaves it to the configuration."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    dialect: str = "volcano"
    node_pool: str = ""
    """Label that says to which nodes it belongs; empty without one."""
    tries_pool_once: bool = False
    """After one failure in a pool it waits until somebody moves it to another."""
    marks_pods: bool = True
    """Its pods are told when they cannot be placed."""
    schedule_timeout_seconds: float | None = None
    """How long it may wait to become whole before it releases its places and backs off; None leaves it to the configuration."""
    has_timed_out: bool = False
    """Its status says that it did not become whole in time; it is tried again all the same."""
    keeps_places: bool = False
    """Members that found a place keep it while others have none, until the time is up."""
    quorum: Quorum = Quorum.PRESENT
    gang_group: tuple[str, ...] = ()
    """Groups that start together with it, itself among them; empty when it starts alone."""
    pieces: tuple["Gang", ...] = ()
    """The groups of which it was put together, each as it stands alone."""
    failed_binds: tuple[FailedBind, ...] = ()
    """Where members of it could not be bound: they may be made anew, and the gang remembers."""
    reported: Mapping[str, Counts] | None = None
    """What its status says of its members, by role, or under "" of all; None where it says nothing of the kind."""
    fault: str = ""
    """What is wrong with it as it stands beside others; it takes no part until that is mended."""
    version: str = ""
    """API version of the group object, where the versions speak differently."""
    own_priority: int | None = None
    """The number on the group object itself; it comes before the one of the class."""
    follows_pods: bool = False
    """Its pods say how important it is, the most important one for all."""
    goes_whole: bool = False
    """Nobody may take a part of it, not even one that it can spare."""
    has_object: bool = True
    """There is a group object to write on; otherwise its pods alone make it."""
    keeps_phase: bool = True
    """The group object has a place for the phase."""
    default_priority: int = 0
    """Where it names no priority class and the cluster has no default one."""
    is_always_active: bool = False
    """Takes part in every session: fair shares and victims of its queues are counted over all gangs, settled ones too."""
    needs_one_scheduler: bool = False
    """All its pods must name the same scheduler."""
    preferred_queue: str = ""
    """The queue that it is in whenever there is one of this name; otherwise in the default one. Empty: `queue` says it all."""
    unheeded_minimum: int = 0
    """What the group object says it needs, where its sub-groups say otherwise and alone count; 0 without such a number."""

    @property
    def namespace(self) -> str:
        """The namespace of the group."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """The name of the group; in a key its dialect may follow."""
        return self.key.partition("/")[2].partition("@")[0]

    @property
    def written_minimum(self) -> Resources | None:
        """What the group says its minimum needs, under all names."""
        return None if self.min_resources is None else {**self.min_resources, **self.min_quota}

    @property
    def pool(self) -> str:
        """The name of its node pool."""
        return self.node_pool or DEFAULT_POOL

    @property
    def latest_attempt(self) -> Condition | None:
        """What was last said about an attempt in a node pool; None when nobody tried."""
        return next((item for item in reversed(self.conditions) if item.node_pool), None)

    @property
    def label(self) -> str:
        """The node label of which all members must share a value; empty without one."""
        return self.topology.label if self.topology else ""

    @property
    def roles_count(self) -> bool:
        """Tell whether minima per role are in force: they are ignored when they add up to more than the gang's own."""
        return bool(self.role_minima) and self.min_member >= sum(self.role_minima.values())
