"""Which sub-groups of a gang are needed, where they form a tree and a parent may need only some of those below it.

A leaf holds tasks and is met by them; a parent is met by enough of its children, the gang by enough of those on top. Where nobody
says how many are enough, all are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.model.gang import SubGroup

Test = Callable[[SubGroup], bool]
Order = Callable[[SubGroup], Any]
ROOT = ""
"""The gang itself, the parent of the sub-groups on top."""


@dataclass(frozen=True, slots=True)
class SubGroupTree:
    """The sub-groups of one gang by parent, and how many each parent needs."""

    children: Mapping[str, tuple[SubGroup, ...]]
    needed: Mapping[str, int]

    @classmethod
    def of(cls, subgroups: tuple[SubGroup, ...], min_children: int | None = None) -> "SubGroupTree":
        """Make the tree; `min_children` says how many of those on top the gang needs, None for all."""
        children: dict[str, tuple[SubGroup, ...]] = {ROOT: ()}
        for part in subgroups:
            children[part.parent] = (*children.get(part.parent, ()), part)
        limits = {**{part.name: part.min_children for part in subgroups}, ROOT: min_children}
        needed = {name: len(below) if (limit := limits.get(name)) is None else limit for name, below in children.items()}
        return cls(children, needed)

    def is_leaf(self, part: SubGroup) -> bool:
        """Tell whether a sub-group holds tasks and no other sub-groups."""
        return part.match_keys is not None or part.name not in self.children

    def leaves(self, name: str = ROOT) -> Iterator[SubGroup]:
        """Yield the leaves below a parent."""
        for part in self.children[name]:
            if self.is_leaf(part):
                yield part
            else:
                yield from self.leaves(part.name)

    def is_met(self, has: Test, name: str = ROOT) -> bool:
        """Tell whether the leaves that pass a test are enough for a parent."""
        return sum(self._passes(part, has) for part in self.children[name]) >= self.needed[name]

    def _passes(self, part: SubGroup, has: Test) -> bool:
        return has(part) if self.is_leaf(part) else self.is_met(has, part.name)

    def missing(self, has: Test, could: Test, order: Order, name: str = ROOT) -> list[SubGroup]:
        """Return the leaves without `has` that would meet a parent: as few as it needs, those first that `could` be met."""
        short = [part for part in self.children[name] if not self._passes(part, has)]
        short.sort(key=lambda part: (not self._passes(part, could), order(part)))
        count = self.needed[name] - (len(self.children[name]) - len(short))
        parts = ([part] if self.is_leaf(part) else self.missing(has, could, order, part.name) for part in short[: max(count, 0)])
        return [leaf for part in parts for leaf in part]

    def extra(self, has: Test, could: Test, order: Order, name: str = ROOT) -> list[SubGroup]:
        """Return the leaves of the next child that a parent can do without and that could be met; empty when there is none."""
        for part in sorted(self.children[name], key=order):
            if not self._passes(part, has) and self._passes(part, could):
                return [part] if self.is_leaf(part) else self.missing(has, could, order, part.name)
            if not self.is_leaf(part) and (found := self.extra(has, could, order, part.name)):
                return found
        return []

    def spare(self, has: Test, order: Order, name: str = ROOT) -> list[SubGroup]:
        """Return the leaves of the last child that a parent has beyond what it needs; empty when it has none."""
        met = [part for part in sorted(self.children[name], key=order, reverse=True) if self._passes(part, has)]
        if len(met) > self.needed[name]:
            return [met[0]] if self.is_leaf(met[0]) else list(self.leaves(met[0].name))
        inner = (self.spare(has, order, part.name) for part in met if not self.is_leaf(part))
        return next((found for found in inner if found), [])

    def least(self, cost: Callable[[SubGroup], int], name: str = ROOT) -> int:
        """Return what meets a parent at the least, where each leaf costs something."""
        costs = sorted(cost(part) if self.is_leaf(part) else self.least(cost, part.name) for part in self.children[name])
        return sum(costs[: self.needed[name]])
