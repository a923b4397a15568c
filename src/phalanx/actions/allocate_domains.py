"""The search over network domains for gangs with sub-groups or a network constraint.

A gang tries its domains group by group, narrow before wide; in each domain its sub-groups do the same one level down, with
the task loop of `allocate_tasks.py` restricted to the domain's nodes. A try is a dry run: it is undone and remembered, and
the best one of the first group with any success is done again for good.

Trying is what costs, so what cannot win is not tried: domains are tried in descending order of what they could score, and
a try that failed is not repeated while the books are the same.
"""

from dataclasses import dataclass, field

import numpy as np

from phalanx.actions.allocate_tasks import TaskPlacer
from phalanx.model.queue import Queue
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import Kind, Statement
from phalanx.session.task_filters import offers
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import WHOLE_CLUSTER, SearchScope


@dataclass(slots=True)
class Solution:
    """A successful dry run: what to do again, what is left to try, and what it scores."""

    hypernode: int
    score: float = 0.0
    moves: list[tuple[Kind, list[TaskState], list[int]]] = field(default_factory=list)
    left: dict[str, list[TaskState]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """Sub-group to its allocated HyperNode afterwards."""


class DomainSearch:
    """Places gangs that care where they are."""

    def __init__(self, session: Session, placer: TaskPlacer) -> None:
        """Begin with nothing tried."""
        self._session, self._placer = session, placer
        self._tree = session.snapshot.hypernodes
        self._offered: Mask = np.ones(len(session.snapshot.nodes), dtype=np.bool_)
        self._masks: dict[int, Mask] = {}
        self._failed: set[tuple[str, int, int, int]] = set()

    def allocate(self, gang: GangState, queue: Queue) -> bool:
        """Place the gang if some domain has room; tell whether it was committed."""
        for offered in offers(self._session, gang, np.ones(len(self._session.snapshot.nodes), dtype=np.bool_)):
            self._offer(offered)
            for gradient in self._session.hypernode_gradients(gang, self._tree.top):
                solution = self._best_for_gang(gang, queue, gradient)
                if solution is not None:
                    return self._carry_out(gang, solution)
        return False

    def _offer(self, nodes: Mask) -> None:
        """Search only these nodes from now on; what failed with fewer or more of them may work."""
        if not np.array_equal(nodes, self._offered):
            self._offered = nodes
            self._masks.clear()
            self._failed.clear()

    def _carry_out(self, gang: GangState, solution: Solution) -> bool:
        statement = self._session.statement()
        self._replay(solution, statement)
        for subgroup in gang.subgroups.values():
            if subgroup.id in solution.left:
                self._placer.restore(subgroup, solution.left[subgroup.id])
        if not self._session.gang_ready(gang).ok:
            statement.keep()
            return False
        statement.commit()
        gang.allocated_hypernode = self._widen(gang.allocated_hypernode, solution.hypernode)
        for subgroup in gang.subgroups.values():
            subgroup.allocated_hypernode = solution.places.get(subgroup.id, subgroup.allocated_hypernode)
        return True

    def _replay(self, solution: Solution, statement: Statement) -> None:
        for kind, tasks, nodes in solution.moves:
            (statement.allocate if kind is Kind.ALLOCATE else statement.pipeline)(tasks, nodes)

    def _widen(self, allocated: str, chosen: int) -> str:
        old = self._tree.number_by_name.get(allocated)
        return self._tree.names[chosen if old is None else self._tree.common(old, chosen)]

    def _best_for_gang(self, gang: GangState, queue: Queue, gradient: list[int]) -> Solution | None:
        """Return the solution with the highest score, the first name among equals."""
        best: Solution | None = None
        for hypernode, bound in self._by_likelihood(gang, gradient):
            if best is not None and not self._could_win(hypernode, bound, best):
                break
            solution = self._try_gang(gang, queue, hypernode)
            if solution is not None and (best is None or self._could_win(hypernode, solution.score, best)):
                best = solution
        return best

    def _could_win(self, hypernode: int, score: float, best: Solution) -> bool:
        names = self._tree.names
        return (-score, names[hypernode]) < (-best.score, names[best.hypernode])

    def _by_likelihood(self, gang: GangState, gradient: list[int]) -> list[tuple[int, float]]:
        """Order domains by the most they could score; that is known for a gang of one sub-group, which scores what it scores."""
        names = self._tree.names
        if len(gang.subgroups) != 1 or len(gradient) == 1:
            return [(hypernode, np.inf) for hypernode in sorted(gradient, key=lambda number: names[number])]
        below = [self._tree.descendants(hypernode) for hypernode in gradient]
        numbers = sorted({number for line in below for number in line})
        scores, bonus = self._session.hypernode_scores(next(iter(gang.subgroups.values())), numbers)
        known = dict(zip(numbers, (scores + bonus).tolist(), strict=True))
        bounds = [(hypernode, max(known[number] for number in line)) for hypernode, line in zip(gradient, below, strict=True)]
        return sorted(bounds, key=lambda entry: (-entry[1], names[entry[0]]))

    def _try_gang(self, gang: GangState, queue: Queue, hypernode: int) -> Solution | None:
        """Dry run: place sub-groups one after the other inside the domain until the gang is ready."""
        session, solution = self._session, Solution(hypernode)
        before = {
            subgroup.id: (list(self._placer.tasks_left(subgroup)), subgroup.allocated_hypernode)
            for subgroup in gang.subgroups.values()
        }
        statement = session.statement()
        line = self._subgroups_in_order(gang)
        while line:
            subgroup = line.pop(0)
            part = self._best_for_subgroup(subgroup, queue, hypernode)
            if part is None:
                continue
            self._take(subgroup, part, solution, statement)
            if session.gang_ready(gang).ok:
                break
            if self._placer.tasks_left(subgroup):
                line = self._merge(line, subgroup)
        is_solved = bool(statement.operations) and (session.gang_ready(gang).ok or session.gang_pipelined(gang))
        solution.left = {subgroup.id: list(self._placer.tasks_left(subgroup)) for subgroup in gang.subgroups.values()}
        statement.discard()
        for subgroup in gang.subgroups.values():
            tasks, subgroup.allocated_hypernode = before[subgroup.id]
            self._placer.restore(subgroup, tasks)
        return solution if is_solved else None

    def _take(self, subgroup: SubGroupState, part: Solution, solution: Solution, statement: Statement) -> None:
        self._replay(part, statement)
        self._placer.restore(subgroup, part.left[subgroup.id])
        subgroup.allocated_hypernode = self._widen(subgroup.allocated_hypernode, part.hypernode)
        solution.places[subgroup.id] = subgroup.allocated_hypernode
        solution.moves.extend(part.moves)
        solution.score += part.score

    def _subgroups_in_order(self, gang: GangState) -> list[SubGroupState]:
        """Return the sub-groups with tasks to place: those that a minimum needs first."""
        key = self._session.subgroup_key
        waiting = sorted((subgroup for subgroup in gang.subgroups.values() if self._placer.tasks_left(subgroup)), key=key)
        needed: set[str] = set()
        for policy in gang.gang.subgroups:
            ready = sum(subgroup.is_ready for subgroup in gang.subgroups.values() if subgroup.policy is policy)
            candidates = [subgroup for subgroup in waiting if subgroup.policy is policy and not subgroup.is_ready]
            needed.update(subgroup.id for subgroup in candidates[: max(policy.min_subgroups - ready, 0)])
        return [s for s in waiting if s.id in needed] + [s for s in waiting if s.id not in needed]

    def _merge(self, line: list[SubGroupState], subgroup: SubGroupState) -> list[SubGroupState]:
        """Put a sub-group with tasks left back in line."""
        key = self._session.subgroup_key
        return sorted([*line, subgroup], key=key)

    def _best_for_subgroup(self, subgroup: SubGroupState, queue: Queue, root: int) -> Solution | None:
        for gradient in self._session.hypernode_gradients(subgroup, root):
            solution = self._best_in_gradient(subgroup, queue, gradient)
            if solution is not None:
                return solution
        return None

    def _best_in_gradient(self, subgroup: SubGroupState, queue: Queue, gradient: list[int]) -> Solution | None:
        """Return the best domain of the group: the highest score; of several that share it the one with most
        members, then the first name.
        """
        scores, bonus = self._session.hypernode_scores(subgroup, gradient)
        order = sorted(range(len(gradient)), key=lambda place: (-scores[place], self._tree.names[gradient[place]]))
        found: list[tuple[int, Solution]] = []
        for place in order:
            if found and (scores[place] < scores[found[0][0]] or not bonus.any()):
                break
            solution = self._try_subgroup(subgroup, queue, gradient[place])
            if solution is not None:
                found.append((place, solution))
        if not found:
            return None
        place, best = max(found, key=lambda entry: bonus[entry[0]])
        best.score = float(scores[place] + (bonus[place] if len(found) > 1 else 0.0))
        return best

    def _try_subgroup(self, subgroup: SubGroupState, queue: Queue, hypernode: int) -> Solution | None:
        """Dry run: place tasks of the sub-group on the domain's nodes."""
        tasks = self._placer.tasks_left(subgroup)
        mark = (subgroup.id, hypernode, self._session.version, len(tasks))
        if mark in self._failed:
            return None
        before = list(tasks)
        scope = WHOLE_CLUSTER if hypernode == self._tree.top else SearchScope(hypernode=self._tree.names[hypernode])
        statement = self._placer.place(subgroup, queue, within=self._mask(hypernode), scope=scope)
        solution = None
        if statement is not None and statement.operations:
            solution = Solution(hypernode, left={subgroup.id: list(tasks)})
            solution.moves = [(operation.kind, list(operation.tasks), list(operation.nodes)) for operation in statement.operations]
        if statement is not None:
            statement.discard()
        if solution is None:
            self._failed.add(mark)
        self._placer.restore(subgroup, before)
        return solution

    def _mask(self, hypernode: int) -> Mask:
        if hypernode not in self._masks:
            mask = np.zeros(len(self._session.snapshot.nodes), dtype=np.bool_)
            mask[self._tree.members[hypernode]] = True
            self._masks[hypernode] = mask & self._offered
        return self._masks[hypernode]
