"""The one list of what we ship. Importing a module never registers anything; adding a line here does."""

from phalanx.actions.allocate import AllocateAction
from phalanx.actions.backfill import BackfillAction
from phalanx.actions.enqueue import EnqueueAction
from phalanx.actions.gang_eviction import GangPreemptAction, GangReclaimAction
from phalanx.actions.heal import HealAction
from phalanx.actions.kai import allocate as kai_allocate
from phalanx.actions.kai import evictions as kai_evicting
from phalanx.actions.overdue import OverdueAction
from phalanx.actions.preempt import PreemptAction
from phalanx.actions.reclaim import ReclaimAction
from phalanx.actions.relieve import RelieveAction
from phalanx.actions.shuffle import ShuffleAction
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
from phalanx.session.cycle import Catalogue

CATALOGUE = Catalogue(
    actions={
        action.name: action
        for action in (
            EnqueueAction, AllocateAction, BackfillAction, PreemptAction, ReclaimAction, GangPreemptAction, GangReclaimAction,
            ShuffleAction, HealAction, RelieveAction, OverdueAction,
        )
    },
    plugins={
        plugin.name: plugin
        for plugin in (
            GangPlugin, PriorityPlugin, ConformancePlugin, DrfPlugin, ProportionPlugin, PredicatesPlugin, NodeOrderPlugin,
            BinpackPlugin, OvercommitPlugin, CapacityPlugin, NetworkTopologyAwarePlugin, ResourceStrategyFitPlugin, SlaPlugin,
            NodeGroupPlugin, TaskTopologyPlugin, UsagePlugin, NumaAwarePlugin, DeviceSharePlugin, ExtenderPlugin,
            PdbPlugin,
            CooldownPlugin,
            ResourceQuotaPlugin,
            TdmPlugin,
            ReschedulingPlugin,
            BindBackoffPlugin,
            CoschedulingPlugin,
            ReservationPlugin,
            EvictionCostPlugin,
        )
    },
)  # fmt: skip

KAI_CATALOGUE = Catalogue(
    actions={
        action.name: action
        for action in (
            kai_allocate.KaiAllocateAction, kai_evicting.ConsolidationAction, kai_evicting.KaiReclaimAction,
            kai_evicting.KaiPreemptAction, kai_evicting.StaleGangEvictionAction,
        )
    },
    plugins={
        plugin.name: plugin
        for plugin in (
            PredicatesPlugin, kai_proportion.KaiProportionPlugin, kai_orders.KaiPriorityPlugin, kai_orders.ElasticPlugin,
            kai_orders.KubeflowPlugin, kai_orders.RayPlugin, kai_orders.TaskOrderPlugin, kai_orders.SubGroupOrderPlugin,
            kai_scores.NodeAvailabilityPlugin, kai_scores.ResourceTypePlugin, kai_scores.GpuSharingOrderPlugin,
            kai_scores.NominatedNodePlugin, kai_scores.PodAffinityPlugin, kai_scores.NodePlacementPlugin, kai_scores.GpuPackPlugin,
            kai_scores.GpuSpreadPlugin, kai_orders.DynamicResourcesPlugin, kai_topology.TopologyPlugin,
            kai_minruntime.MinRuntimePlugin, kai_nodetypes.NodeTypesPlugin, BindBackoffPlugin,
        )
    },
)  # fmt: skip
"""Actions and plugins of the profile kai, which share names with others and mean something else."""


def catalogue_of(name: str) -> Catalogue:
    """Return the catalogue that a policy or a profile names; most profiles choose from the same one."""
    return KAI_CATALOGUE if name == "kai" else CATALOGUE
