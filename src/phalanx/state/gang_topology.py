"""Where a gang may be and where it is: tiers resolved, the HyperNodes it occupies recovered from its running tasks.

Where it is follows from its tasks in every session. The group object keeps it too, but it may be lost or name a HyperNode that is
gone; a gang that grows must stay near the members that run.
"""

from phalanx.model.gang import TopologyConstraint
from phalanx.model.task_status import HOLDING
from phalanx.state.gang_state import GangState, SubGroupState
from phalanx.state.hypernodes import HyperTree
from phalanx.state.verdict import Verdict


def locate_gang(gang: GangState, tree: HyperTree) -> None:
    """Set the allowed tiers and the allocated HyperNodes of a gang and its sub-groups."""
    if gang.topology is None and not gang.has_subgroups:
        return
    gang.allowed_tier = _allowed_tier(gang.topology, tree, tree.tiers[tree.top])
    if gang.allowed_tier == 0:
        gang.verdicts.append(_no_such_tier(gang.topology))
    for subgroup in gang.subgroups.values():
        widest = gang.allowed_tier if gang.allowed_tier is not None else tree.tiers[tree.top]
        subgroup.allowed_tier = gang.allowed_tier if subgroup.is_default else _allowed_tier(subgroup.topology, tree, widest)
        subgroup.allocated_hypernode = _occupied(subgroup, tree)
    _locate_whole(gang, tree)


def _allowed_tier(constraint: TopologyConstraint | None, tree: HyperTree, widest: int) -> int | None:
    """Return the widest tier that a constraint allows; None without one, 0 where it names a tier that no HyperNode has.

    A soft constraint is a hard one with the widest tier: the search then prefers narrow domains and refuses none.
    """
    if constraint is None:
        return None
    if not constraint.is_hard:
        return widest
    if constraint.highest_tier_name:
        return tree.tier_by_name.get(constraint.highest_tier_name, 0)
    return constraint.highest_tier


def _no_such_tier(constraint: TopologyConstraint | None) -> Verdict:
    name = constraint.highest_tier_name if constraint else ""
    return Verdict.refuse("network-topology-aware", "TierNotFound", f"no HyperNode has the tier name {name!r}")


def _occupied(subgroup: SubGroupState, tree: HyperTree) -> str:
    """Return the lowest HyperNode that holds all placed tasks; unknown when one of them is in no HyperNode at all."""
    nodes = {task.node for task in subgroup.tasks if task.status in HOLDING and task.node >= 0}
    return tree.names[tree.lowest_with(nodes)] if nodes and nodes <= tree.covered else ""


def _locate_whole(gang: GangState, tree: HyperTree) -> None:
    occupied = [subgroup.allocated_hypernode for subgroup in gang.subgroups.values() if subgroup.allocated_hypernode]
    if not occupied:
        gang.allocated_hypernode = ""
    elif gang.allocated_hypernode not in tree.number_by_name:
        number = tree.number_by_name[occupied[0]]
        for name in occupied[1:]:
            number = tree.common(number, tree.number_by_name[name])
        gang.allocated_hypernode = tree.names[number]
