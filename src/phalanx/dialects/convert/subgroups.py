"""Sub-groups and topologies as Volcano and KAI write them.

Volcano makes one sub-group for each distinct value of some labels; KAI names each of its own. So templates are written out for
KAI, and KAI's sub-groups become templates that match one value each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phalanx.dialects.convert.neutral_gangs import GangPod, NeutralGang, once_per_gang
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.model.gang import SubGroup, TopologyConstraint
from phalanx.model.selectors import LabelSelector


def volcano_topology(found: TopologyConstraint | None) -> dict[str, Any]:
    """Return a constraint on tiers of HyperNodes; nothing for one on node labels."""
    if found is None or (found.highest_tier is None and not found.highest_tier_name):
        return {}
    tier = {} if found.highest_tier is None else {"highestTierAllowed": found.highest_tier}
    name = {"highestTierName": found.highest_tier_name} if found.highest_tier_name else {}
    return {"networkTopology": {"mode": "hard" if found.is_hard else "soft", **tier, **name}}


def volcano_parts(group: NeutralGang) -> dict[str, Any]:
    """Return the sub-groups of a gang as templates; those that only hold others are left out."""
    parents = {part.parent for part in group.subgroups}
    entries = [_template(part) for part in group.subgroups if part.name not in parents]
    return {"subGroupPolicy": entries} if entries else {}


def _template(part: SubGroup) -> dict[str, Any]:
    keys = [SUBGROUP] if part.match_keys is None else list(part.match_keys)
    return {
        "name": part.name, "subGroupSize": part.min_member, "minSubGroups": part.min_subgroups,
        **({"labelSelector": _selector(part.selector)} if part.selector is not None else {}),
        "matchLabelKeys": keys, **volcano_topology(part.topology),
    }  # fmt: skip


def _selector(found: LabelSelector) -> dict[str, Any]:
    needs = [(item.key, item.operator, list(item.values)) for item in found.requirements]
    exact = {key: values[0] for key, operator, values in needs if operator == "In" and len(values) == 1}
    others = [
        {"key": key, "operator": operator, **({"values": values} if values else {})}
        for key, operator, values in needs if not (operator == "In" and len(values) == 1)
    ]  # fmt: skip
    return {**({"matchLabels": exact} if exact else {}), **({"matchExpressions": others} if others else {})}


def kai_topology(found: TopologyConstraint | None) -> dict[str, Any]:
    """Return a constraint on levels of node labels; nothing for one on tiers."""
    if found is None or not (found.required_level or found.preferred_level):
        return {}
    fields = {
        "topology": found.topology,
        "requiredTopologyLevel": found.required_level,
        "preferredTopologyLevel": found.preferred_level,
    }
    return {"topologyConstraint": {key: text for key, text in fields.items() if text}}


@dataclass(slots=True)
class KaiParts:
    """The sub-groups of a gang as KAI names them, and who is in which."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    part_by_pod: dict[str, str] = field(default_factory=dict)
    lost: list[tuple[str, str]] = field(default_factory=list)
    """Fields, and why each cannot be said."""

    def part_of(self, member: GangPod) -> str:
        """Return the sub-group of a pod; empty if it is in none."""
        return self.part_by_pod.get(_name(member), "")


@once_per_gang
def kai_parts(group: NeutralGang) -> KaiParts:
    """Return roles and sub-groups as KAI writes them."""
    found = KaiParts()
    for role, minimum in group.roles.items():
        found.entries.append({"name": role, "minMember": minimum})
    found.part_by_pod |= {_name(member): member.role for member in group.members if member.role in group.roles}
    for part in group.subgroups:
        if part.match_keys is None:
            _add_named(found, group, part)
        else:
            _add_written_out(found, group, part)
    alone = sum(1 for member in group.members if not found.part_of(member)) if found.entries else 0
    if alone:
        found.lost.append(("members", f"{alone} pods are in no sub-group; KAI counts only those that are in one"))
    return found


def _add_named(found: KaiParts, group: NeutralGang, part: SubGroup) -> None:
    parent = {"parent": part.parent} if part.parent else {}
    has_pods = all(other.parent != part.name for other in group.subgroups)
    minimum = {"minMember": part.min_member} if has_pods else {}
    some = {} if part.min_children is None else {"minSubGroup": part.min_children}
    found.entries.append({"name": part.name, **minimum, **some, **parent, **kai_topology(part.topology)})
    found.part_by_pod |= {_name(member): part.name for member in group.members if _labels(member).get(SUBGROUP) == part.name}


def _add_written_out(found: KaiParts, group: NeutralGang, part: SubGroup) -> None:
    """Add a sub-group for each that a template makes of the pods."""
    place, names = f"subGroupPolicy[{part.name}]", dict[str, None]()
    for member in group.members:
        values = part.instance(_labels(member)) if _name(member) not in found.part_by_pod else None
        if values is not None:
            name = "-".join((part.name, *values)).lower()
            found.part_by_pod[_name(member)] = name
            names[name] = None
    parent = _parent(found, part, len(names))
    found.entries += [{"name": name, "minMember": max(part.min_member, 1), **parent} for name in names]
    if part.min_subgroups > len(names):
        text = f"{part.min_subgroups} sub-groups are needed and pods name {len(names)}; KAI needs those that are there"
        found.lost.append((f"{place}.minSubGroups", text))
    if part.topology is not None:
        found.lost.append((f"{place}.networkTopology", "KAI counts levels of node labels, not tiers of HyperNodes"))


def _parent(found: KaiParts, part: SubGroup, count: int) -> dict[str, str]:
    """Add a sub-group that needs only some of those that a template makes, if not all are needed; return how they name it."""
    if part.min_subgroups >= count:
        return {}
    found.entries.append({"name": part.name.lower(), "minSubGroup": part.min_subgroups})
    return {"parent": part.name.lower()}


def _labels(member: GangPod) -> Mapping[str, str]:
    return member.document["metadata"].get("labels") or {}


def _name(member: GangPod) -> str:
    return str(member.document["metadata"]["name"])
