"""The tree of network domains: HyperNodes over nodes, with a virtual top that holds everything.

HyperNodes are numbered by tier and name, so children have lower numbers than their parents and members are resolved in one pass.
Members that name a HyperNode of a higher number are left out: objects may refer to each other in a circle, and this is where the
circle is cut. The virtual top makes one tree of what may be several, so that every two nodes have a common domain. What is left out
is reported by `hypernode_problems.py`.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from phalanx.model.node import HyperNode, HyperNodeMember
from phalanx.model.patterns import compile_pattern
from phalanx.placement import Index
from phalanx.placement.domains import Domains
from phalanx.state.node_table import NodeTable

TOP = "<cluster-top-hypernode>"


class HyperTree:
    """HyperNodes by number, the virtual top last. Unknown members are left out; a member keeps its first parent."""

    def __init__(self, hypernodes: Iterable[HyperNode], nodes: NodeTable) -> None:
        """Resolve members and nest the domains."""
        ordered = sorted(hypernodes, key=lambda hypernode: (hypernode.tier, hypernode.name))
        self.hypernodes = ordered
        self.names = [hypernode.name for hypernode in ordered] + [TOP]
        self.number_by_name = {name: number for number, name in enumerate(self.names)}
        # Above every other tier, and never tier 1: nobody has said that all nodes of a cluster are as close as those of a leaf.
        top_tier = max((hypernode.tier for hypernode in ordered), default=1) + 1
        self.tiers = [hypernode.tier for hypernode in ordered] + [top_tier]
        self.tier_by_name = {hypernode.tier_name: hypernode.tier for hypernode in ordered if hypernode.tier_name}
        self.top = len(ordered)
        self.parents = [-1] * len(self.names)
        self.children: list[list[int]] = [[] for _ in self.names]
        self.parent_by_missing: dict[str, int] = {}
        """HyperNodes that others name as members and that do not exist, with the narrowest that does."""
        members = self._resolve(ordered, nodes)
        self.domains = Domains(members)
        self._adopt_orphans()
        self.leaves = self._find_leaves(len(nodes))
        """The narrowest HyperNode of each node; the virtual top for one that is in no other."""

    def _find_leaves(self, nodes: int) -> Index:
        leaves = np.full(nodes, self.top, dtype=np.int64)
        for number in reversed(range(self.top)):
            leaves[self.members[number]] = number
        return leaves

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no HyperNode but the virtual top."""
        return self.top == 0

    @property
    def members(self) -> Sequence[Index]:
        """The node numbers of each HyperNode."""
        return self.domains.members

    def _resolve(self, ordered: Sequence[HyperNode], nodes: NodeTable) -> list[Index]:
        found: list[Index] = []
        for number, hypernode in enumerate(ordered):
            parts = [self._member_nodes(number, member, nodes, found) for member in hypernode.members]
            found.append(np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64))
        found.append(np.arange(len(nodes), dtype=np.int64))
        return found

    def _member_nodes(self, parent: int, member: HyperNodeMember, nodes: NodeTable, found: Sequence[Index]) -> Index:
        names: Mapping[str, int] = self.number_by_name if member.is_hypernode else nodes.number_by_name
        numbers = [number for number in select(member, names, nodes) if not member.is_hypernode or number < parent]
        if not member.is_hypernode:
            return np.array(numbers, dtype=np.int64)
        for number in numbers:
            self._attach(number, parent)
        if member.name and member.name not in names:
            self.parent_by_missing.setdefault(member.name, parent)
        return np.concatenate([found[number] for number in numbers]) if numbers else np.zeros(0, dtype=np.int64)

    def _attach(self, child: int, parent: int) -> None:
        if self.parents[child] < 0:
            self.parents[child] = parent
            self.children[parent].append(child)

    def _adopt_orphans(self) -> None:
        """Hang HyperNodes that no other one names under the virtual top."""
        for number in range(self.top):
            if self.parents[number] < 0:
                self._attach(number, self.top)

    def ancestors(self, number: int) -> list[int]:
        """Return the HyperNode and everything above it, lowest first."""
        line = [number]
        while self.parents[line[-1]] >= 0:
            line.append(self.parents[line[-1]])
        return line

    def common(self, left: int, right: int) -> int:
        """Return the lowest HyperNode that holds both."""
        above = set(self.ancestors(left))
        return next(number for number in self.ancestors(right) if number in above)

    def widen(self, occupied: str, number: int) -> str:
        """Return the name of the lowest HyperNode that holds one that is occupied, if any is, and another one."""
        old = self.number_by_name.get(occupied)
        return self.names[number if old is None else self.common(old, number)]

    def descendants(self, root: int) -> list[int]:
        """Return the HyperNode and everything below it, widest first."""
        line = [root]
        for number in line:
            line.extend(self.children[number])
        return line

    def lowest_with(self, nodes: Iterable[int]) -> int:
        """Return the lowest HyperNode that holds all these nodes: the smallest tier, then the first name."""
        wanted = np.array(sorted(set(nodes)), dtype=np.int64)
        for number in range(self.top):  # the lowest tier first, by the way they are numbered
            if np.isin(wanted, self.members[number], assume_unique=True).all():
                return number
        return self.top


def select(member: HyperNodeMember, names: Mapping[str, int], nodes: NodeTable) -> list[int]:
    """Return the numbers of the nodes or HyperNodes that a line of members means; `names` has those that exist."""
    if member.name:
        return [names[member.name]] if member.name in names else []
    if member.pattern:
        pattern = compile_pattern(member.pattern)
        return [number for name, number in names.items() if pattern.is_in(name)]
    if member.labels is None or member.is_hypernode:
        return []
    wanted = dict(member.labels)
    return [number for number, node in enumerate(nodes.nodes) if wanted.items() <= node.labels.items()]
