"""The search over network domains for gangs with sub-groups or a network constraint.

The descent. A plugin names the domains (HyperNodes) that a gang may use in groups, narrow before wide: its *gradients*. In each
domain of a group the gang is tried: its sub-groups, those that a minimum needs first, do the same one level down, each with its own
gradients below that domain, and at the bottom runs the task loop of `allocate_tasks.py`, restricted to the domain's nodes. The best
domain of the first group with any success wins; wider groups are not tried then. This is Volcano's order, and its answers depend
on it: the narrowest domain wins over a wider one with a better score.

Why every try is a dry run. Domains are compared by what the sub-groups scored in them, which is known only once they are
placed, and two placements of one gang cannot stand in the books at the same time. So a try is undone and kept as a list of
moves (`Solution`), and the best one is replayed. What holds between tries: the books, the tasks left to try and the domain of
each sub-group are as they were before. `TaskPlacer` takes tasks off its lists while it tries them, so these lists are put back
by hand; everything else is undone by the statement.

What keeps it fast. A try costs as much as placing the gang, so what cannot win is not tried: domains come in descending order
of what they could score, and the first that cannot beat the best ends the group. A sub-group that failed in a domain is not
tried there again while the session is in the same state (`version`): the same sub-group meets the same domain from several
domains above it.
"""

from dataclasses import dataclass, field

import numpy as np

from phalanx.actions.allocate_tasks import TaskPlacer
from phalanx.actions.domain_trace import domain_name, note_domains
from phalanx.model.queue import Queue
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import OperationKind, Statement
from phalanx.session.task_filters import offers
from phalanx.session.trace_events import GangPipelined, GangReady
from phalanx.session.trace_searches import DomainChosen, DomainLeft, DomainSpared, DomainTried, DomainWorks
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import WHOLE_CLUSTER, SearchScope


@dataclass(slots=True)
class Solution:
    """A successful dry run: the moves to replay, the tasks left to try afterwards, and what it scores."""

    hypernode: int
    score: float = 0.0
    moves: list[tuple[OperationKind, list[TaskState], list[int]]] = field(default_factory=list)
    left: dict[str, list[TaskState]] = field(default_factory=dict)
    hypernodes_by_subgroup: dict[str, str] = field(default_factory=dict)
    """Sub-group to its allocated HyperNode afterwards."""


class DomainSearch:
    """Places gangs that have sub-groups or must stay within a network domain."""

    def __init__(self, session: Session, placer: TaskPlacer) -> None:
        """Prepare for one run of an action; failed tries are remembered across its gangs."""
        self._session, self._placer = session, placer
        self._tree = session.snapshot.hypernodes
        self._offered: Mask = np.ones(len(session.snapshot.nodes), dtype=np.bool_)
        self._masks: dict[int, Mask] = {}
        self._failed: set[tuple[str, int, int, int]] = set()

    def allocate(self, gang: GangState, queue: Queue) -> bool:
        """Place the gang if some domain has room; tell whether it was committed."""
        # Nodes that refused a bind of the gang are left out at first and offered again when no domain works without them.
        for offered in offers(self._session, gang, np.ones(len(self._session.snapshot.nodes), dtype=np.bool_)):
            self._offer(offered)
            gradients = self._session.hypernode_gradients(gang, self._tree.top)
            note_domains(self._session, gang, "allocate", gradients)
            for gradient in gradients:
                solution = self._best_for_gang(gang, queue, gradient)
                if solution is not None:
                    return self._carry_out(gang, solution)
        return False

    def _offer(self, nodes: Mask) -> None:
        """Search only these nodes from now on, and forget failures: what failed with other nodes on offer may work with these."""
        if not np.array_equal(nodes, self._offered):
            self._offered = nodes
            self._masks.clear()
            self._failed.clear()

    def _carry_out(self, gang: GangState, solution: Solution) -> bool:
        """Replay the best solution; tell whether the gang is ready and it was committed.

        A gang that is only pipelined keeps its places from others until the session ends, and nothing is bound.
        """
        self._session.trace.note(DomainChosen, gang.key, domain_name(self._tree, solution.hypernode))
        statement = self._session.statement()
        self._replay(solution, statement)
        for subgroup in gang.subgroups.values():
            if subgroup.id in solution.left:
                self._placer.restore(subgroup, solution.left[subgroup.id])
        if not self._session.gang_ready(gang).ok:
            statement.keep()
            self._session.trace.note(GangPipelined, gang.key)
            return False
        statement.commit()
        self._session.trace.note(GangReady, gang.key)
        gang.allocated_hypernode = self._tree.widen(gang.allocated_hypernode, solution.hypernode)
        for subgroup in gang.subgroups.values():
            subgroup.allocated_hypernode = solution.hypernodes_by_subgroup.get(subgroup.id, subgroup.allocated_hypernode)
        return True

    def _replay(self, solution: Solution, statement: Statement) -> None:
        for kind, tasks, nodes in solution.moves:
            (statement.allocate if kind is OperationKind.ALLOCATE else statement.pipeline)(tasks, nodes)

    def _best_for_gang(self, gang: GangState, queue: Queue, gradient: list[int]) -> Solution | None:
        """Return the solution with the highest score, the first name among equals."""
        best: Solution | None = None
        for hypernode, bound in self._best_bound_first(gang, gradient):
            if best is not None and not self._could_win(hypernode, bound, best):
                self._session.trace.note(DomainSpared, gang.key, domain_name(self._tree, hypernode), bound, best.score)
                break
            solution = self._try_gang(gang, queue, hypernode)
            if solution is not None and (best is None or self._could_win(hypernode, solution.score, best)):
                best = solution
        return best

    def _could_win(self, hypernode: int, score: float, best: Solution) -> bool:
        names = self._tree.names
        return (-score, names[hypernode]) < (-best.score, names[best.hypernode])

    def _best_bound_first(self, gang: GangState, gradient: list[int]) -> list[tuple[int, float]]:
        """Return the domains with the most that each could score, best first.

        A gang of one sub-group scores what that sub-group scores in the domain, or in any below it: the best of these is the bound.
        Scores of several sub-groups add up, each placed with the others in the books, and have no bound that is cheap: then every
        domain is tried, by name.
        """
        names = self._tree.names
        if len(gang.subgroups) != 1 or len(gradient) == 1:
            return [(hypernode, np.inf) for hypernode in sorted(gradient, key=lambda number: names[number])]
        below = [self._tree.descendants(hypernode) for hypernode in gradient]
        numbers = sorted({number for domains in below for number in domains})
        scores, bonus = self._session.hypernode_scores(next(iter(gang.subgroups.values())), numbers)
        known = dict(zip(numbers, (scores + bonus).tolist(), strict=True))
        bounds = [(hypernode, max(known[number] for number in domains)) for hypernode, domains in zip(gradient, below, strict=True)]
        return sorted(bounds, key=lambda entry: (-entry[1], names[entry[0]]))

    def _try_gang(self, gang: GangState, queue: Queue, hypernode: int) -> Solution | None:
        """Dry run: place sub-groups one by one inside the domain until the gang is ready; None if it is not even pipelined."""
        session, solution = self._session, Solution(hypernode)
        session.trace.note(DomainTried, gang.key, domain_name(self._tree, hypernode), "allocate")
        before = {
            subgroup.id: (list(self._placer.tasks_left(subgroup)), subgroup.allocated_hypernode)
            for subgroup in gang.subgroups.values()
        }
        statement = session.dry_run()
        pending_subgroups = self._subgroups_in_order(gang)
        while pending_subgroups:
            subgroup = pending_subgroups.pop(0)
            part = self._best_for_subgroup(subgroup, queue, hypernode)
            if part is None:
                continue
            self._take(subgroup, part, solution, statement)
            if session.gang_ready(gang).ok:
                break
            if self._placer.tasks_left(subgroup):
                pending_subgroups = self._put_back_in_line(pending_subgroups, subgroup)
        is_solved = bool(statement.operations) and (session.gang_ready(gang).ok or session.gang_pipelined(gang))
        if session.trace.level >= 3:
            self._note_try(gang, solution, is_solved)
        solution.left = {subgroup.id: list(self._placer.tasks_left(subgroup)) for subgroup in gang.subgroups.values()}
        statement.discard()
        for subgroup in gang.subgroups.values():
            tasks, subgroup.allocated_hypernode = before[subgroup.id]
            self._placer.restore(subgroup, tasks)
        return solution if is_solved else None

    def _note_try(self, gang: GangState, solution: Solution, is_solved: bool) -> None:
        name = domain_name(self._tree, solution.hypernode)
        if is_solved:
            self._session.trace.note(DomainWorks, gang.key, name, solution.score)
            return
        reason = self._session.gang_ready(gang).message or "its sub-groups have too few places"
        placed = gang.tally.ready + gang.tally.pipelined
        self._session.trace.note(DomainLeft, gang.key, name, reason, placed, gang.gang.min_member or len(gang.tasks))

    def _take(self, subgroup: SubGroupState, part: Solution, solution: Solution, statement: Statement) -> None:
        self._replay(part, statement)
        self._placer.restore(subgroup, part.left[subgroup.id])
        subgroup.allocated_hypernode = self._tree.widen(subgroup.allocated_hypernode, part.hypernode)
        solution.hypernodes_by_subgroup[subgroup.id] = subgroup.allocated_hypernode
        solution.moves.extend(part.moves)
        solution.score += part.score

    def _subgroups_in_order(self, gang: GangState) -> list[SubGroupState]:
        """Return the sub-groups with tasks to place, those that a minimum needs first: others must not take their room."""
        key = self._session.subgroup_key
        waiting = sorted((subgroup for subgroup in gang.subgroups.values() if self._placer.tasks_left(subgroup)), key=key)
        needed: set[str] = set()
        for policy in gang.missing_policies(lambda subgroup: subgroup.is_ready):
            ready = sum(subgroup.is_ready for subgroup in gang.subgroups.values() if subgroup.policy is policy)
            candidates = [subgroup for subgroup in waiting if subgroup.policy is policy and not subgroup.is_ready]
            needed.update(subgroup.id for subgroup in candidates[: max(policy.min_subgroups - ready, 0)])
        return [s for s in waiting if s.id in needed] + [s for s in waiting if s.id not in needed]

    def _put_back_in_line(self, pending_subgroups: list[SubGroupState], subgroup: SubGroupState) -> list[SubGroupState]:
        """Put a sub-group with tasks left back in line: beyond its minimum it gets one task at a time, in turn with the others."""
        key = self._session.subgroup_key
        return sorted([*pending_subgroups, subgroup], key=key)

    def _best_for_subgroup(self, subgroup: SubGroupState, queue: Queue, root: int) -> Solution | None:
        gradients = self._session.hypernode_gradients(subgroup, root)
        note_domains(self._session, subgroup, "allocate", gradients, root)
        for gradient in gradients:
            solution = self._best_in_gradient(subgroup, queue, gradient)
            if solution is not None:
                return solution
        return None

    def _best_in_gradient(self, subgroup: SubGroupState, queue: Queue, gradient: list[int]) -> Solution | None:
        """Return the best domain of the group: the highest score; of several that share it the one with most
        members, then the first name. None when no domain has room.
        """
        scores, bonus = self._session.hypernode_scores(subgroup, gradient)
        order = sorted(range(len(gradient)), key=lambda place: (-scores[place], self._tree.names[gradient[place]]))
        found: list[tuple[int, Solution]] = []
        for place in order:
            # Domains come with the highest score first. Only equal ones go on, to see which has most members of the sub-group.
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
        """Dry run: place tasks of the sub-group on the domain's nodes; None when too few fit."""
        tasks = self._placer.tasks_left(subgroup)
        mark = (subgroup.id, hypernode, self._session.version, len(tasks))
        if mark in self._failed:
            return None
        before = list(tasks)
        scope = WHOLE_CLUSTER if hypernode == self._tree.top else SearchScope(hypernode=self._tree.names[hypernode])
        statement = self._placer.place(subgroup, queue, within=self._mask(hypernode), scope=scope, is_dry_run=True)
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
