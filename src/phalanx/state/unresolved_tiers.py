"""Hard network constraints that mean no tier: what is wrong with them, and what to write instead.

A constraint means a tier of HyperNodes by its number or by its name. It cannot be resolved when it says neither, when no HyperNode
has the name, or when there are no HyperNodes at all. What becomes of such a gang is up to the plugin network-topology-aware.
"""

from collections.abc import Iterator

from phalanx.model.gang import Gang, TopologyConstraint
from phalanx.state.hypernodes import HyperTree
from phalanx.state.verdict import Verdict

PLUGIN = "network-topology-aware"
HOW_TO_CREATE = "create HyperNodes, or let 'phalanx run --hypernode-level LABEL' create them from labels of nodes"


def unresolved_tier(gang: Gang, tree: HyperTree) -> Verdict | None:
    """Return why a hard constraint of a gang or its sub-groups means no tier; None if all of them mean one."""
    for where, constraint in hard_constraints(gang):
        if tree.is_empty:
            text = f"{where} is hard, but no HyperNode exists; {HOW_TO_CREATE}, or write mode: soft"
            return Verdict.refuse(PLUGIN, "NoHyperNodes", text)
        if constraint.highest_tier is None and constraint.highest_tier_name not in tree.tier_by_name:
            return _no_such_tier(where, constraint.highest_tier_name, tree)
    return None


def hard_constraints(gang: Gang) -> Iterator[tuple[str, TopologyConstraint]]:
    """Yield the hard constraints by tier, each with the field of the group object that it is in."""
    parts = ((f"spec.subGroupPolicy[{policy.name}].networkTopology", policy.topology) for policy in gang.subgroups)
    for where, constraint in (("spec.networkTopology", gang.topology), *parts):
        if constraint is not None and constraint.is_hard and constraint.is_of_tiers:
            yield where, constraint


def _no_such_tier(where: str, name: str, tree: HyperTree) -> Verdict:
    if not name:
        text = f"{where} is hard, but names no tier; write highestTierAllowed or highestTierName, or mode: soft"
        return Verdict.refuse(PLUGIN, "TierMissing", text)
    known = ", ".join(map(repr, sorted(tree.tier_by_name)))
    hint = f"the HyperNodes have {known}" if known else "none has a tierName; write highestTierAllowed instead"
    return Verdict.refuse(PLUGIN, "TierNotFound", f"{where}.highestTierName: no HyperNode has the tier name {name!r}; {hint}")
