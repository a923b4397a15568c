"""The tree of network domains: HyperNodes over nodes, with a virtual top that holds everything.

HyperNodes are numbered by tier and name, so children have lower numbers than their parents and members are resolved in one pass.
Members that name a HyperNode of a higher number are left out: objects may refer to each other in a circle, and this is where the
circle is cut. The virtual top makes one tree of what may be several, so that every two nodes have a common domain.
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
        self.names = [hypernode.name for hypernode in ordered] + [TOP]
        self.number_by_name = {name: number for number, name in enumerate(self.names)}
        top_tier = max((hypernode.tier for hypernode in ordered), default=0) + 1
        self.tiers = [hypernode.tier for hypernode in ordered] + [top_tier]
        self.tier_by_name = {hypernode.tier_name: hypernode.tier for hypernode in ordered if hypernode.tier_name}
        self.top = len(ordered)
        self.parents = [-1] * len(self.names)
        self.children: list[list[int]] = [[] for _ in self.names]
        members = self._resolve(ordered, nodes)
        self.domains = Domains(members)
        self.covered = {int(number) for nodes_of_one in members[: self.top] for number in nodes_of_one}
        """The nodes that are in some HyperNode besides the virtual top."""
        self._adopt_orphans()

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
        numbers = [number for number in _select(member, names, nodes) if not member.is_hypernode or number < parent]
        if not member.is_hypernode:
            return np.array(numbers, dtype=np.int64)
        for number in numbers:
            self._attach(number, parent)
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


def _select(member: HyperNodeMember, names: Mapping[str, int], nodes: NodeTable) -> list[int]:
    if member.name:
        return [names[member.name]] if member.name in names else []
    if member.pattern:
        pattern = compile_pattern(member.pattern)
        return [number for name, number in names.items() if pattern.is_in(name)]
    if member.labels is None or member.is_hypernode:
        return []
    wanted = dict(member.labels)
    return [number for number, node in enumerate(nodes.nodes) if wanted.items() <= node.labels.items()]
