"""The sub-groups of KAI's PodGroups: a tree, whose leaves hold pods, and how much of it is needed.

KAI has counted in three ways. Its first design gave `minMember` two meanings: pods in a leaf, sub-groups in a parent. What was
released (0.13) reads the `minMember` of leaves only and needs all of them; its pod-grouper writes the sum of them on top. Later
releases count the sub-groups below a parent in a field of its own, `minSubGroup`, and refuse `minMember` on a parent. Here as
there: without `minSubGroup` all are needed. A `minMember` on a parent is accepted where it can only mean that: as the number of
sub-groups or of pods below it.
"""

from phalanx.dialects.kinds import kai as kinds
from phalanx.errors import SnapshotError
from phalanx.model.gang import SubGroup, TopologyConstraint
from phalanx.model.selectors import LabelSelector
from phalanx.model.subgroup_tree import ROOT, SubGroupTree

SUBGROUP = "kai.scheduler/subgroup-name"
"""The label of a pod that names its sub-group, a leaf."""


def subgroups(spec: kinds.KaiPodGroupSpec) -> tuple[SubGroup, ...]:
    """Read the sub-groups; those that are no tree, or of which more are needed than there are, are refused."""
    parts = spec.sub_groups or []
    _check_tree(parts)
    parents = {part.parent for part in parts if part.parent}
    found = tuple(_subgroup(part, is_leaf=part.name not in parents) for part in parts)
    tree = SubGroupTree.of(found, spec.min_sub_group)
    _check_needed("spec.minSubGroup", spec.min_sub_group, spec.min_member, tree, ROOT)
    for part in parts:
        where = f"spec.subGroups: minSubGroup of {part.name!r}"
        _check_needed(where, part.min_sub_group, part.min_member, tree, part.name)
        if part.name in parents and part.min_member:
            _check_parent(part, tree)
    return found


def min_member(spec: kinds.KaiPodGroupSpec, found: tuple[SubGroup, ...]) -> int:
    """Return how many pods a gang needs at the least."""
    written = 1 if spec.min_member is None else spec.min_member
    if written < 0:
        raise SnapshotError(f"spec.minMember: {written} is negative; write 1 or more")
    return SubGroupTree.of(found, spec.min_sub_group).least(_pods) if found else max(written, 1)


def unheeded_minimum(spec: kinds.KaiPodGroupSpec, found: tuple[SubGroup, ...]) -> int:
    """Return a `minMember` that has no effect beside the sub-groups; 0 if it only says that all of them are needed."""
    tree = SubGroupTree.of(found, spec.min_sub_group)
    heeded = (None, 0, len(tree.children.get(ROOT, ())), tree.least(_pods)) if found else (spec.min_member,)
    return 0 if spec.min_member in heeded else spec.min_member or 0


def _pods(leaf: SubGroup) -> int:
    return leaf.min_member


def _check_tree(parts: list[kinds.KaiSubGroup]) -> None:
    parents = {part.name: part.parent or "" for part in parts}
    if len(parents) < len(parts):
        raise SnapshotError("spec.subGroups: two have the same name; give each its own")
    for name, parent in parents.items():
        if parent and parent not in parents:
            raise SnapshotError(
                f"spec.subGroups: {name!r} names the parent {parent!r}, which does not exist; add it, or leave the parent out"
            )
        line = [name]
        while (above := parents[line[-1]]) and above not in line:
            line.append(above)
        if above:
            raise SnapshotError(f"spec.subGroups: {name!r} is its own ancestor; parents must form a tree, remove one of them")


def _check_needed(where: str, needed: int | None, pods: int | None, tree: SubGroupTree, name: str) -> None:
    """Refuse a number of sub-groups that cannot be met; the gang itself needs at least one of them."""
    if needed is None:
        return
    there, least = len(tree.children.get(name, ())), 1 if name == ROOT else 0
    if not there:
        raise SnapshotError(f"{where}: there are no sub-groups to count; leave it out, and write the number of pods as minMember")
    if not least <= needed <= there:
        raise SnapshotError(f"{where}: {needed} of {there} sub-groups cannot be needed; write {least} to {there}")
    if pods:
        raise SnapshotError(f"{where}: minMember is there too; it counts pods and minSubGroup counts sub-groups, write one of them")


def _check_parent(part: kinds.KaiSubGroup, tree: SubGroupTree) -> None:
    """Refuse a minMember on a sub-group with others below it, unless it says that all of them are needed."""
    below, pods = len(tree.children[part.name]), sum(leaf.min_member for leaf in tree.leaves(part.name))
    if part.min_member not in (below, pods):
        raise SnapshotError(
            f"spec.subGroups: minMember of {part.name!r} is {part.min_member}, but it has {below} sub-groups and no own pods; "
            f"write as minSubGroup how many of them are needed, at most {below}, or leave minMember out if all are"
        )


def _subgroup(read: kinds.KaiSubGroup, *, is_leaf: bool) -> SubGroup:
    minimum = 1 if read.min_member is None else read.min_member
    if minimum < 0:
        raise SnapshotError(f"spec.subGroups: minMember of {read.name!r} is negative; write 1 or more")
    return SubGroup(
        read.name, read.parent or "", minimum, int(is_leaf and minimum > 0), constraint(read.topology_constraint),
        selector=LabelSelector().plus({SUBGROUP: read.name}), min_children=read.min_sub_group,
    )  # fmt: skip


def constraint(read: kinds.KaiTopologyConstraint | None) -> TopologyConstraint | None:
    """Read a topology constraint; None where it constrains nothing."""
    if read is None or not (read.topology or read.required_topology_level or read.preferred_topology_level):
        return None
    return TopologyConstraint(
        bool(read.required_topology_level), topology=read.topology or "", required_level=read.required_topology_level or "",
        preferred_level=read.preferred_topology_level or "",
    )  # fmt: skip
