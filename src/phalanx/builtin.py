"""The one list of what we ship. Importing a module never registers anything; adding a line here does."""

from phalanx.actions.allocate import AllocateAction
from phalanx.actions.backfill import BackfillAction
from phalanx.actions.enqueue import EnqueueAction
from phalanx.actions.gang_eviction import GangPreemptAction, GangReclaimAction
from phalanx.actions.preempt import PreemptAction
from phalanx.actions.reclaim import ReclaimAction
from phalanx.actions.shuffle import ShuffleAction
from phalanx.core.cycle import Catalogue
from phalanx.plugins.binpack import BinpackPlugin
from phalanx.plugins.capacity import CapacityPlugin
from phalanx.plugins.cdp import CooldownPlugin
from phalanx.plugins.conformance import ConformancePlugin
from phalanx.plugins.deviceshare import DeviceSharePlugin
from phalanx.plugins.drf import DrfPlugin
from phalanx.plugins.extender import ExtenderPlugin
from phalanx.plugins.gang import GangPlugin
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
from phalanx.plugins.resource_strategy_fit import ResourceStrategyFitPlugin
from phalanx.plugins.resourcequota import ResourceQuotaPlugin
from phalanx.plugins.sla import SlaPlugin
from phalanx.plugins.task_topology import TaskTopologyPlugin
from phalanx.plugins.tdm import TdmPlugin
from phalanx.plugins.usage import UsagePlugin

CATALOGUE = Catalogue(
    actions={
        action.name: action
        for action in (
            EnqueueAction, AllocateAction, BackfillAction, PreemptAction, ReclaimAction, GangPreemptAction, GangReclaimAction,
            ShuffleAction,
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
        )
    },
)  # fmt: skip
