"""Where a gang may be and where it is: tiers resolved, the HyperNodes it occupies recovered from its running tasks.

Where it is follows from its tasks in every session. The group object keeps it too, but it may be lost or name a HyperNode that is
gone; a gang that grows must stay near the members that run.
"""

from phalanx.model.gang import TopologyConstraint
from phalanx.model.task_status import HOLDING
from phalanx.state.gang_state import GangState, SubGroupState
from phalanx.state.hypernodes import HyperTree


def locate_gang(gang: GangState, tree: HyperTree) -> None:
    """Set the allowed tiers and the allocated HyperNodes of a gang and its sub-groups."""
    if gang.topology is None and not gang.has_subgroups:
        return
    gang.allowed_tier = _allowed_tier(gang.topology, tree, tree.tiers[tree.top])
    for subgroup in gang.subgroups.values():
        widest = gang.allowed_tier if gang.allowed_tier is not None else tree.tiers[tree.top]
        subgroup.allowed_tier = gang.allowed_tier if subgroup.is_default else _allowed_tier(subgroup.topology, tree, widest)
        subgroup.allocated_hypernode = _locate_part(subgroup, tree)
    gang.allocated_hypernode = _locate_whole(gang, tree)


def _allowed_tier(constraint: TopologyConstraint | None, tree: HyperTree, widest: int) -> int | None:
    """Return the widest tier that a constraint allows; None without one, and where a hard one says no tier that exists.

    A soft constraint is a hard one with the widest tier: the search then prefers narrow domains and refuses none.
    """
    if constraint is None:
        return None
    if not constraint.is_hard:
        return widest
    if constraint.highest_tier is None:
        return tree.tier_by_name.get(constraint.highest_tier_name)
    return constraint.highest_tier


def _locate_part(subgroup: SubGroupState, tree: HyperTree) -> str:
    """Return the lowest HyperNode that holds all placed tasks.

    For tasks on nodes outside of every HyperNode that is the virtual top, wider than any tier: what is near to them is not known.
    Then the group object is believed, if it says where the gang is.
    """
    nodes = {task.node for task in subgroup.tasks if task.status in HOLDING and task.node >= 0}
    if not nodes or subgroup.topology is None or not subgroup.topology.is_of_tiers:
        return ""
    number = tree.lowest_with(nodes)
    recorded = _recorded(subgroup.gang, tree) if number == tree.top else ""
    return recorded or tree.names[number]


def _locate_whole(gang: GangState, tree: HyperTree) -> str:
    """Return the HyperNode that the group object names, or else the lowest that holds what its sub-groups have."""
    occupied = [subgroup.allocated_hypernode for subgroup in gang.subgroups.values() if subgroup.allocated_hypernode]
    found = _recorded(gang, tree) if occupied else ""
    if found:
        return found
    for name in occupied:
        found = tree.widen(found, tree.number_by_name[name])
    return found


def _recorded(gang: GangState, tree: HyperTree) -> str:
    """Return the HyperNode that the group object names; of one that does not exist the HyperNode that has it as a member."""
    name = gang.gang.allocated_hypernode
    if name in tree.parent_by_missing:
        return tree.names[tree.parent_by_missing[name]]
    return name if name in tree.number_by_name else ""
