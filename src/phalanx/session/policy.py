"""How to decide: which actions run, which plugins are asked in which tier, with which settings. `config/` reads it from files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phalanx.model.storage import AttachRules

FLAGS = (
    "enableJobOrder", "enableJobReady", "enableJobPipelined", "enableJobStarving", "enableJobEnqueued", "enableTaskOrder",
    "enableQueueOrder", "enablePreemptable", "enableReclaimable", "enablePreemptive", "enablePredicate", "enableNodeOrder",
    "enableBestNode", "enableTargetJob", "enableReservedNodes", "enableHierarchy", "enabledVictim", "enabledOverused",
    "enabledAllocatable", "enabledHyperNodeOrder", "enabledHyperNodeGradient", "enabledSubJobReady", "enabledSubJobPipelined",
    "enabledSubJobOrder", "enabledClusterOrder",
)  # fmt: skip
OFF_UNLESS_SET = frozenset({"enableHierarchy", "enabledClusterOrder"})


@dataclass(frozen=True, slots=True)
class PluginPolicy:
    """One plugin in a tier: its switches and arguments."""

    name: str
    enabled: frozenset[str] = frozenset(FLAGS) - OFF_UNLESS_SET
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessFlags:
    """Options of the scheduler process rather than of a plugin."""

    sharding_mode: str = "none"
    shard_name: str = ""
    ignored_provisioners: frozenset[str] = frozenset()
    lifts_kueue_gate: bool = False
    """Nobody else lifts the gate that keeps Kueue's pod groups waiting."""
    gates: tuple[str, ...] = ()
    """Names of scheduling gates, besides our own, behind which gangs wait until all of a gang has room (`dialects/gates.py`)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole configuration."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginPolicy, ...], ...]
    arguments_by_action: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    flags: ProcessFlags = ProcessFlags()
    catalogue: str = "volcano"
    """What the names of actions and plugins mean: profiles have names in common for different rules (`config/builtin.py`)."""
    dialect: str = "volcano"
    """In which dialect queues and gangs are made for a scheduler of this policy, by a workload or in an empty cluster."""
    has_tiers: bool = True
    """Its configuration lists plugins in tiers, each with switches. Otherwise there is one tier in a given order, and options."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of a configuration without tiers, which its actions and plugins read."""
    follows_shards: bool = False
    """Each SchedulingShard of the cluster is a scheduler with its own nodes and gangs, by node pool."""
    node_pool: str | None = None
    """Which nodes and gangs the scheduler of a shard sees, by their label; empty for those without, None for all."""
    tries_all_gangs: bool = False
    """Every gang whose queue takes part is tried in each session, and there is no admission. Otherwise only admitted ones are."""
    reads_kai_queues: bool = False
    """Queues are KAI's: where Volcano has one of the same name, that one is not meant, and those without bounds do not exist."""
    counts_all_gangs: bool = False
    """Every gang takes part in every session, also those that need nothing: fair shares, victims and staleness are counted over all
    of them, so none may be left out and no session spared. Otherwise settled gangs are left out, which costs nothing.
    """
    books_are_live: bool = False
    """Placements of a session count at once for Kubernetes' own filters and scores, whichever plugins are loaded. Otherwise the
    plugin predicates decides, as in Volcano.
    """
    evictions_free_devices: bool = False
    """Devices that victims hold through claims can be reserved in the same session, whatever the plugin predicates is told."""
    binds_by_request: bool = False
    """Every bind is a BindRequest for the binder. Otherwise only pods for which something must be prepared have one."""
    victim_rule: str = "first-tier"
    """How plugins agree on victims: `first-tier` as in Volcano, or `all-agree`, where an empty answer protects."""
    best_effort_members: str = "after-gang"
    """When members without requests are placed: `after-gang` as in Volcano, where they count towards the minimum before `backfill`
    has found a place for them, if it ever does; or `with-gang`, where a gang starts only if they have a place too.
    """
    unready_nodes: str = "by-taints"
    """Whether nodes whose condition Ready is not True take pods: `by-taints` as in Volcano, where only the taints count that the
    node controller puts on them; or `refused`, where they take none. Snapshots and hand-written nodes may lack these taints.
    """
    unknown_drivers: str = "refused"
    """What becomes of volumes whose driver no CSINode names: `refused` as in Volcano, where no node has a slot for them, so that
    `ignoredProvisioners` has to name it; or `uncounted` as in kube-scheduler. Provisioners of local volumes are no CSI drivers.
    """
    says_why: bool = True
    """Gangs are told why they wait. Nothing is decided by it, and it costs time on a full cluster: whoever runs
    sessions that nobody reads about does without.
    """

    @property
    def has_admission(self) -> bool:
        """Tell whether groups are admitted before their pods are placed."""
        return "enqueue" in self.actions

    @property
    def moves_running(self) -> bool:
        """Tell whether pods that run may have to go although nobody waits for their places."""
        return "shuffle" in self.actions

    @property
    def heals(self) -> bool:
        """Tell whether gangs that lost members are given a fresh start."""
        return "heal" in self.actions

    @property
    def relieves(self) -> bool:
        """Tell whether gangs are rolled back that were bound to nodes without room for them."""
        return "relieve" in self.actions

    @property
    def holds_gangs(self) -> bool:
        """Tell whether a gang starts as a whole or not at all: KAI's rules always see to it, otherwise the plugin `gang` does."""
        plugins = (plugin for plugin in self.plugins() if plugin.name == "gang")
        return not self.has_tiers or any("enableJobReady" in plugin.enabled for plugin in plugins)

    @property
    def counts_unplaced(self) -> bool:
        """Tell whether members without requests count before they have a place."""
        return self.best_effort_members == "after-gang"

    @property
    def refuses_unready_nodes(self) -> bool:
        """Tell whether nodes that are not ready take no pods, whatever their taints."""
        return self.unready_nodes == "refused"

    @property
    def attach_rules(self) -> AttachRules:
        """Return whose volumes count towards what nodes can attach."""
        return AttachRules(self.flags.ignored_provisioners, counts_unknown=self.unknown_drivers == "refused")

    def plugins(self) -> list[PluginPolicy]:
        """Return every plugin in the order in which it is opened."""
        return [plugin for tier in self.tiers for plugin in tier]
