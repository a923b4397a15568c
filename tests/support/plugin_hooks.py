"""Which shipped plugins answer which hook, for the type checker: a method that its hook could not ask is an error of mypy here.

`tests/unit/test_session_hooks.py` sees to it that none is missing.
"""

from phalanx.plugins.bindbackoff import BindBackoffPlugin
from phalanx.plugins.binpack import BinpackPlugin
from phalanx.plugins.capacity import CapacityPlugin
from phalanx.plugins.cdp import CooldownPlugin
from phalanx.plugins.conformance import ConformancePlugin
from phalanx.plugins.coscheduling import CoschedulingPlugin
from phalanx.plugins.deviceshare import DeviceSharePlugin
from phalanx.plugins.drf import DrfPlugin
from phalanx.plugins.evictioncost import EvictionCostPlugin
from phalanx.plugins.extender import ExtenderPlugin
from phalanx.plugins.gang import GangPlugin
from phalanx.plugins.kai import minruntime as kai_minruntime
from phalanx.plugins.kai import nodetypes as kai_nodetypes
from phalanx.plugins.kai import orders as kai_orders
from phalanx.plugins.kai import proportion as kai_proportion
from phalanx.plugins.kai import scores as kai_scores
from phalanx.plugins.kai import topology as kai_topology
from phalanx.plugins.network_topology_aware import NetworkTopologyAwarePlugin
from phalanx.plugins.nodegroup import NodeGroupPlugin
from phalanx.plugins.nodeorder import NodeOrderPlugin
from phalanx.plugins.numa_aware import NumaAwarePlugin
from phalanx.plugins.overcommit import OvercommitPlugin
from phalanx.plugins.pdb import PdbPlugin
from phalanx.plugins.predicates import PredicatesPlugin
from phalanx.plugins.priority import PriorityPlugin
from phalanx.plugins.proportion import ProportionPlugin
from phalanx.plugins.rescheduling import ReschedulingPlugin
from phalanx.plugins.reservation import ReservationPlugin
from phalanx.plugins.resource_strategy_fit import ResourceStrategyFitPlugin
from phalanx.plugins.resourcequota import ResourceQuotaPlugin
from phalanx.plugins.sla import SlaPlugin
from phalanx.plugins.task_topology import TaskTopologyPlugin
from phalanx.plugins.tdm import TdmPlugin
from phalanx.plugins.usage import UsagePlugin
from phalanx.session import hooks, node_hooks

OPEN: tuple[type[hooks.Open], ...] = (
    EvictionCostPlugin,
    GangPlugin,
    DrfPlugin,
    ProportionPlugin,
    PredicatesPlugin,
    NodeOrderPlugin,
    OvercommitPlugin,
    CapacityPlugin,
    NetworkTopologyAwarePlugin,
    ReservationPlugin,
    NodeGroupPlugin,
    TaskTopologyPlugin,
    UsagePlugin,
    NumaAwarePlugin,
    DeviceSharePlugin,
    ExtenderPlugin,
    PdbPlugin,
    ResourceQuotaPlugin,
    TdmPlugin,
    BindBackoffPlugin,
    kai_proportion.KaiProportionPlugin,
    kai_scores.PodAffinityPlugin,
    kai_scores.GpuPackPlugin,
    kai_scores.GpuSpreadPlugin,
    kai_minruntime.MinRuntimePlugin,
)
CLOSE: tuple[type[hooks.Close], ...] = (EvictionCostPlugin, PredicatesPlugin, DeviceSharePlugin, ExtenderPlugin, CoschedulingPlugin)
CHANGED: tuple[type[hooks.Changed], ...] = (
    DrfPlugin,
    ProportionPlugin,
    CapacityPlugin,
    NodeGroupPlugin,
    TaskTopologyPlugin,
    UsagePlugin,
    NumaAwarePlugin,
    DeviceSharePlugin,
    ExtenderPlugin,
    PdbPlugin,
    NetworkTopologyAwarePlugin,
    kai_proportion.KaiProportionPlugin,
)
GANG_ORDER: tuple[type[hooks.GangOrder], ...] = (
    GangPlugin,
    PriorityPlugin,
    DrfPlugin,
    SlaPlugin,
    TdmPlugin,
    CoschedulingPlugin,
    kai_orders.KaiPriorityPlugin,
    kai_orders.ElasticPlugin,
)
SUBGROUP_ORDER: tuple[type[hooks.SubGroupOrder], ...] = (GangPlugin, PriorityPlugin)
TASK_ORDER: tuple[type[hooks.TaskOrder], ...] = (
    PriorityPlugin,
    TaskTopologyPlugin,
    kai_orders.KubeflowPlugin,
    kai_orders.RayPlugin,
    kai_orders.TaskOrderPlugin,
)
QUEUE_ORDER: tuple[type[hooks.QueueOrder], ...] = (DrfPlugin, ProportionPlugin, CapacityPlugin)
VICTIM_QUEUE_ORDER: tuple[type[hooks.VictimQueueOrder], ...] = (CapacityPlugin,)
GIVING_ORDER: tuple[type[hooks.GivingOrder], ...] = (CapacityPlugin,)
GANG_VALID: tuple[type[hooks.GangValid], ...] = (GangPlugin, NetworkTopologyAwarePlugin, BindBackoffPlugin, CoschedulingPlugin)
GANG_READY: tuple[type[hooks.GangReady], ...] = (GangPlugin, ExtenderPlugin)
SUBGROUP_READY: tuple[type[hooks.SubGroupReady], ...] = (GangPlugin,)
GANG_PIPELINED: tuple[type[hooks.GangPipelined], ...] = (GangPlugin, SlaPlugin, TdmPlugin)
SUBGROUP_PIPELINED: tuple[type[hooks.SubGroupPipelined], ...] = (GangPlugin,)
GANG_ENQUEUEABLE: tuple[type[hooks.GangEnqueueable], ...] = (
    ProportionPlugin,
    OvercommitPlugin,
    CapacityPlugin,
    SlaPlugin,
    ExtenderPlugin,
    ResourceQuotaPlugin,
)
GANG_ENQUEUED: tuple[type[hooks.GangEnqueued], ...] = (ProportionPlugin, OvercommitPlugin, CapacityPlugin, ResourceQuotaPlugin)
GANG_STARVING: tuple[type[hooks.GangStarving], ...] = (GangPlugin, PriorityPlugin, TdmPlugin)
TOLERATED_GAP: tuple[type[hooks.ToleratedGap], ...] = (CoschedulingPlugin,)
QUEUE_OVERUSED: tuple[type[hooks.QueueOverused], ...] = (ProportionPlugin, ExtenderPlugin)
TASKS_UNTIL_OVERUSED: tuple[type[hooks.TasksUntilOverused], ...] = (ProportionPlugin,)
QUEUE_ROOM: tuple[type[hooks.QueueRoom], ...] = (ProportionPlugin, CapacityPlugin)
QUEUE_LIMITS: tuple[type[hooks.QueueLimits], ...] = (
    ProportionPlugin,
    CapacityPlugin,
    kai_proportion.KaiProportionPlugin,
)
QUEUE_PREEMPTIVE: tuple[type[hooks.QueuePreemptive], ...] = (ProportionPlugin, CapacityPlugin)
QUEUE_SURPLUS: tuple[type[hooks.QueueSurplus], ...] = (CapacityPlugin,)
PREFILTER: tuple[type[node_hooks.Prefilter], ...] = (PredicatesPlugin, kai_nodetypes.NodeTypesPlugin)
SCREEN: tuple[type[node_hooks.Screen], ...] = (
    PredicatesPlugin,
    ResourceStrategyFitPlugin,
    UsagePlugin,
    NumaAwarePlugin,
    DeviceSharePlugin,
    TdmPlugin,
    kai_nodetypes.NodeTypesPlugin,
)
TASK_SCREEN: tuple[type[node_hooks.TaskScreen], ...] = (PredicatesPlugin, NodeGroupPlugin, ExtenderPlugin, BindBackoffPlugin)
AVOIDED_NODES: tuple[type[node_hooks.AvoidedNodes], ...] = (BindBackoffPlugin,)
COUPLES_NODES: tuple[type[node_hooks.CouplesNodes], ...] = (PredicatesPlugin, NodeOrderPlugin, NumaAwarePlugin)
COUPLED_FILTERS: tuple[type[node_hooks.CoupledFilters], ...] = (PredicatesPlugin,)
COUPLED_SCORES: tuple[type[node_hooks.CoupledScores], ...] = (NodeOrderPlugin,)
NODE_ROOM: tuple[type[node_hooks.NodeRoom], ...] = (PredicatesPlugin, DeviceSharePlugin, ResourceStrategyFitPlugin)
NODE_WAITS: tuple[type[node_hooks.NodeWaits], ...] = (PredicatesPlugin,)
NODE_SCORES: tuple[type[node_hooks.NodeScores], ...] = (
    NodeOrderPlugin,
    BinpackPlugin,
    ResourceStrategyFitPlugin,
    UsagePlugin,
    DeviceSharePlugin,
    TdmPlugin,
)
BATCH_SCORES: tuple[type[node_hooks.BatchScores], ...] = (NodeOrderPlugin, NumaAwarePlugin)
TASK_SCORES: tuple[type[node_hooks.TaskScores], ...] = (
    NetworkTopologyAwarePlugin,
    NodeGroupPlugin,
    TaskTopologyPlugin,
    ExtenderPlugin,
)
PLACEMENT_SCORES: tuple[type[node_hooks.PlacementScores], ...] = (
    kai_scores.NodeAvailabilityPlugin,
    kai_scores.ResourceTypePlugin,
    kai_scores.GpuSharingOrderPlugin,
    kai_scores.NominatedNodePlugin,
    kai_scores.PodAffinityPlugin,
    kai_scores.NodePlacementPlugin,
    kai_topology.TopologyPlugin,
)
SCORES_BY_LEAF: tuple[type[node_hooks.ScoresByLeaf], ...] = (NetworkTopologyAwarePlugin,)
PREEMPTABLE: tuple[type[hooks.Preemptable], ...] = (
    EvictionCostPlugin,
    GangPlugin,
    PriorityPlugin,
    ConformancePlugin,
    DrfPlugin,
    ExtenderPlugin,
    PdbPlugin,
    CooldownPlugin,
    TdmPlugin,
)
RECLAIMABLE: tuple[type[hooks.Reclaimable], ...] = (
    EvictionCostPlugin,
    GangPlugin,
    ConformancePlugin,
    DrfPlugin,
    ProportionPlugin,
    CapacityPlugin,
    ExtenderPlugin,
    PdbPlugin,
    CooldownPlugin,
)
EVICTABLE: tuple[type[hooks.Evictable], ...] = (
    EvictionCostPlugin,
    GangPlugin,
    PriorityPlugin,
    ConformancePlugin,
    ProportionPlugin,
    CapacityPlugin,
    PdbPlugin,
    CooldownPlugin,
)
WHY_PROTECTED: tuple[type[hooks.WhyProtected], ...] = (
    EvictionCostPlugin,
    GangPlugin,
    PriorityPlugin,
    ConformancePlugin,
    DrfPlugin,
    ProportionPlugin,
    CapacityPlugin,
    PdbPlugin,
    CooldownPlugin,
    TdmPlugin,
)
VICTIM_TASKS: tuple[type[hooks.VictimTasks], ...] = (PdbPlugin, TdmPlugin, ReschedulingPlugin)
HYPERNODE_GRADIENTS: tuple[type[node_hooks.HyperNodeGradients], ...] = (NetworkTopologyAwarePlugin,)
HYPERNODE_SCORES: tuple[type[node_hooks.HyperNodeScores], ...] = (NetworkTopologyAwarePlugin,)
NODE_SUBSETS: tuple[type[node_hooks.NodeSubsets], ...] = (kai_topology.TopologyPlugin,)
