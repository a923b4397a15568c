"""Keep a group in one domain of a tree of node labels: a rack, a block, a zone.

The tightest domain that still fits comes first, narrow levels before wide ones.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from phalanx.kai.podsets import ACTIVE
from phalanx.model.gang import TopologyConstraint
from phalanx.model.label_tree import LabelTree
from phalanx.model.resources import GPU, PODS, readable
from phalanx.placement import Amounts, Counts, Mask, Scores
from phalanx.placement.fit import copies
from phalanx.placement.ledger import Request
from phalanx.session.arguments import Arguments
from phalanx.session.node_subset import NodeSubset
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.trace_searches import UNCOUNTED
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict

STEP = 10_000.0
NOTHING_FREE = 1000.0
ROOT = ""
OCCUPIED, NOT_OFFERED = "other tasks of it are in another domain", "none of its nodes is on offer"


@dataclass(slots=True, eq=False)
class Domain:
    """Nodes that share the labels of a level and of all wider ones."""

    id: str
    level: int
    nodes: Mask
    children: list["Domain"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ask:
    """What the tasks of one attempt need together."""

    count: int
    largest: Request
    total: Amounts
    is_uniform: bool


class TopologyPlugin:
    """Names the sets of nodes to try for a group, and prefers nodes of tight domains."""

    name = "topology"
    keeps_order = True

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, policy.arguments).done()
        self._trees: dict[str, Domain] = {}
        self._preferred: dict[tuple[str, str], Scores] = {}

    def node_subsets(
        self, session: Session, gang: GangState, subgroup: str, tasks: Sequence[TaskState], offered: Mask
    ) -> list[NodeSubset] | None:
        """Return the domains that fit, best first, cut down to the offered nodes."""
        constraint = _constraint(gang, subgroup)
        if constraint is None:
            return None
        tree = _tree(session, constraint)
        if tree is None or not _levels_exist(constraint, tree):
            gang.verdicts.append(_no_tree(constraint, tree))
            return []
        search = _Search(session, self._root(session, tree), tree, constraint, _ask(session, tasks))
        self._preferred[gang.key, subgroup] = search.scores()
        domains = search.domains(offered, _occupied(gang, subgroup, tasks))
        usable = [(domain, nodes) for domain in domains if (nodes := domain.nodes & offered).any()]
        if not session.trace.wants(3, gang.key):
            return [NodeSubset(nodes) for _, nodes in usable]
        refused = search.refused(offered, [domain for domain, _ in usable])
        return refused + [NodeSubset(nodes, search.name(domain)) for domain, nodes in usable]

    def _root(self, session: Session, tree: LabelTree) -> Domain:
        if tree.name not in self._trees:
            self._trees[tree.name] = _build(session, tree)
        return self._trees[tree.name]

    def placement_scores(self, session: Session, task: TaskState, offered: Mask) -> Scores:
        """Score nodes by the preferred level of the nearest group that has one."""
        name = task.subgroup.policy.name if task.subgroup.policy is not None else ""
        parents = {policy.name: policy.parent for policy in task.gang.gang.subgroups}
        while True:
            scores = self._preferred.get((task.gang.key, name))
            if scores is not None and scores.any():
                return scores
            if not name:
                return np.zeros(len(offered))
            name = parents.get(name, "")


def _constraint(gang: GangState, subgroup: str) -> TopologyConstraint | None:
    """Return the constraint of a group that is about labels; one about tiers of HyperNodes means nothing to KAI's rules."""
    policies = [policy.topology for policy in gang.gang.subgroups if policy.name == subgroup]
    found = next(iter(policies), None) if subgroup else gang.gang.topology
    return None if found is None or found.is_of_tiers else found


def _tree(session: Session, constraint: TopologyConstraint) -> LabelTree | None:
    """Return the tree that a constraint names; one that names a label alone means the tree of this one level."""
    if constraint.label:
        return LabelTree(f"label {constraint.label}", (constraint.label,))
    return session.snapshot.surroundings.label_trees.get(constraint.topology)


def _levels(constraint: TopologyConstraint) -> list[str]:
    """Return the levels that a constraint names, each once."""
    return [level for level in dict.fromkeys((constraint.required_level, constraint.preferred_level)) if level]


def _levels_exist(constraint: TopologyConstraint, tree: LabelTree) -> bool:
    return all(level in tree.levels for level in _levels(constraint))


def _no_tree(constraint: TopologyConstraint, tree: LabelTree | None) -> Verdict:
    if tree is None:
        return Verdict.refuse("topology", "TopologyNotFound", f"Requested topology {constraint.topology} does not exist")
    unknown = " and ".join(repr(level) for level in _levels(constraint) if level not in tree.levels)
    message = f"topology {tree.name} has no level {unknown}; its levels are: {', '.join(tree.levels)}"
    return Verdict.refuse("topology", "LevelNotFound", message)


def _build(session: Session, tree: LabelTree) -> Domain:
    """Return the tree of domains; nodes that lack a label of it are outside."""
    table = session.snapshot.nodes
    inside = np.ones(len(table), dtype=np.bool_)
    for level in tree.levels:
        inside &= table.label(level).present
    root = Domain(ROOT, -1, inside)
    _divide(session, tree, root, 0)
    return root


def _divide(session: Session, tree: LabelTree, parent: Domain, level: int) -> None:
    if level == len(tree.levels):
        return
    column = session.snapshot.nodes.label(tree.levels[level])
    for code in np.unique(column.codes[parent.nodes]).tolist():
        value = column.values[code]
        child = Domain(f"{parent.id}.{value}" if parent.id else value, level, parent.nodes & (column.codes == code))
        parent.children.append(child)
        _divide(session, tree, child, level + 1)


def _ask(session: Session, tasks: Sequence[TaskState]) -> _Ask:
    amounts = np.array([session.request_of(task.task.shape).amounts for task in tasks], dtype=np.int64)
    users = (amounts > 0).sum(axis=0)[2:]
    is_uniform = bool(((users == 0) | (users == len(tasks))).all())
    return _Ask(len(tasks), Request(amounts.max(axis=0)), amounts.sum(axis=0), is_uniform)


def _occupied(gang: GangState, subgroup: str, tasks: Sequence[TaskState]) -> set[int]:
    """Return the nodes where tasks of the group are already."""
    placed = [task for task in gang.tasks if task.status in ACTIVE and task.node >= 0]
    if subgroup:
        names = {task.subgroup.id for task in tasks}
        placed = [task for task in placed if task.subgroup.id in names]
    return {task.node for task in placed}


class _Search:
    """Looks through the domains of one tree for one group."""

    def __init__(self, session: Session, root: Domain, tree: LabelTree, constraint: TopologyConstraint, ask: _Ask) -> None:
        self._session, self._root, self._tree, self._constraint, self._ask_ = session, root, tree, constraint, ask
        self._room: Counts = copies(session.ledger.future, ask.largest)
        self._names = session.snapshot.space.names
        self._rows = [row for row in np.flatnonzero(ask.total).tolist() if self._names[row] != PODS]

    def domains(self, offered: Mask, occupied: set[int]) -> list[Domain]:
        """Return the fitting domains, lowest level first, the tightest of a level first."""
        required, start = self._level(self._constraint.required_level), self._start(offered)
        if not self._fits(start):
            return []
        found = [domain for domain in self._allowed(start) if self._fits(domain)]
        if occupied and required >= 0:
            allowed = [domain for domain in self._at(self._root, required) if any(domain.nodes[node] for node in occupied)]
            found = [domain for domain in found if any(_is_inside(domain, outer) for outer in allowed)]
        return found

    def refused(self, offered: Mask, found: list[Domain]) -> list[NodeSubset]:
        """Return the domains that are allowed and were not found, each with the reason, for the trace."""
        known, domains = set(map(id, found)), self._allowed(self._start(offered))
        return [
            NodeSubset(each.nodes, self.name(each), self._why_not(each, offered), self._count(each))
            for each in domains if id(each) not in known
        ]  # fmt: skip

    def _count(self, domain: Domain) -> int:
        """Return how many of the tasks have room in a domain, if they are alike."""
        return min(int(self._room[domain.nodes].sum()), self._ask_.count) if self._ask_.is_uniform else UNCOUNTED

    def _why_not(self, domain: Domain, offered: Mask) -> str:
        if self._fits(domain):
            return OCCUPIED if (domain.nodes & offered).any() else NOT_OFFERED
        if self._ask_.is_uniform:
            return f"it has room for {int(self._room[domain.nodes].sum())} of {self._ask_.count} task(s)"
        free = self._free(domain)
        row = max(self._rows, key=lambda row: self._part(row, free))
        name = self._names[row]
        return f"{name} {readable(name, free[row])} is free in all, and {readable(name, self._ask_.total[row])} requested"

    def name(self, domain: Domain) -> str:
        """Name a domain by its labels, the narrowest first, and its topology: ``rack=r1 in block=b0 of topology racks``."""
        table, topology = self._session.snapshot.nodes, "" if self._constraint.label else f" of topology {self._tree.name}"
        node, columns = int(domain.nodes.argmax()), {level: table.label(level) for level in self._tree.levels[: domain.level + 1]}
        labels = [f"{level}={column.values[column.codes[node]]}" for level, column in columns.items()]
        return (" in ".join(reversed(labels)) or "all nodes") + topology

    def _allowed(self, start: Domain) -> Iterator[Domain]:
        """Yield the domains of the levels that are asked for, lowest level first."""
        for level in range(self._lowest(), self._level(self._constraint.required_level) - 1, -1):
            yield from self._at(start, level)

    def _level(self, name: str) -> int:
        return self._tree.levels.index(name) if name else -1

    def _lowest(self) -> int:
        return self._level(self._constraint.preferred_level or self._constraint.required_level)

    def _start(self, offered: Mask) -> Domain:
        """Return the narrowest domain that holds all offered nodes, not below the level that is asked for."""
        current = self._root
        stop = self._level(self._constraint.required_level) if self._constraint.required_level else self._lowest()
        while current.level < stop - 1:
            inner = [child for child in current.children if (child.nodes & offered).any()]
            if len(inner) != 1:
                break
            current = inner[0]
        return current

    def _at(self, domain: Domain, level: int) -> Iterator[Domain]:
        """Yield the domains of a level below one, the tightest branch first."""
        if domain.level == level:
            yield domain
            return
        for child in sorted(domain.children, key=lambda each: (-self._ratio(each), each.id)):
            yield from self._at(child, level)

    def _fits(self, domain: Domain) -> bool:
        if self._ask_.is_uniform:
            return int(self._room[domain.nodes].sum()) >= self._ask_.count
        return self._ratio(domain) <= 1

    def _ratio(self, domain: Domain) -> float:
        """Return the largest part of a domain's free room that the group needs; cpu in whole cores, pods left aside."""
        free = self._free(domain)
        return max((self._part(row, free) for row in self._rows), default=0.0)

    def _free(self, domain: Domain) -> Scores:
        free: Scores = self._session.ledger.future[:, domain.nodes].sum(axis=1, dtype=np.float64)
        return free

    def _part(self, row: int, free: Scores) -> float:
        wanted, room = float(self._ask_.total[row]), float(free[row])
        if row == 0:
            wanted, room = math.ceil(wanted / 1000) * 1000.0, math.ceil(room / 1000) * 1000.0
        return wanted / room if room > 0 else (math.inf if self._names[row] == GPU else NOTHING_FREE)

    def scores(self) -> Scores:
        """Return what the preferred level adds: later domains of the order score higher."""
        scores = np.zeros(len(self._root.nodes))
        level = self._level(self._constraint.preferred_level)
        if level < 0:
            return scores
        domains = list(self._at(self._root, level))
        for place, domain in enumerate(domains, start=1):
            scores[domain.nodes] = math.floor(10 * place / len(domains)) * STEP
        return scores


def _is_inside(inner: Domain, outer: Domain) -> bool:
    return inner is outer or inner.id.startswith(f"{outer.id}.") or outer.id == ROOT
