"""The search for victims that consolidation, reclaim and preempt share.

A scenario is a list of victims. It is tried by evicting them on trial and then placing everybody, victims included, in the usual
order: a victim that finds a place, or can stay, is none. The scenario counts if the job got its places and the action finds it
fair. Scenarios that cannot work, for want of GPUs in the whole cluster, are not tried.

The job and its victims are placed in the usual order, and so a job can only win against jobs that come after it: one that comes
before takes its room back first. All other waiting jobs stand in line too and are passed over; they are not placed, but whose turn
it is depends on the best waiting job of each queue. Without them a job would reclaim what the next session gives to another.

Scenarios grow, they are not searched: victims come in one fixed order (`victim_order.py`), each scenario has one unit more than the
last, and the problem itself grows task by task, keeping the victims found for the smaller one. That is KAI's way and decides
like it. It does not find the fewest victims, and a wrong first victim is never given up; `actions/victim_search.py` does both, for
profiles that are not KAI's. The cost grows with tasks, times victims, times nodes of each victim.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from phalanx.actions.kai.job_order import JobLine, WaitingOrder
from phalanx.actions.kai.placement import Placer
from phalanx.actions.kai.victim_order import JobVictims, VictimLine
from phalanx.kai.amounts import Figures
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import is_whole, next_tasks
from phalanx.kubernetes.shared_gpus import SharedGpus, uses_gpu
from phalanx.model.resources import GPU
from phalanx.model.task_status import Status
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import OperationKind, Statement
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_searches import ScenarioRefused, ScenarioTried, ScenarioWorks, VictimsProposed
from phalanx.state.gang_state import GangState, TaskState

Judge = Callable[[list[JobVictims], list[TaskState]], str]
"""Says why a scenario is not fair, given all units that it evicts for these tasks; of these some have another place, or stay. Empty
for a fair one."""
TOO_FEW_GPUS = "the cluster has too few GPUs even without them"
NO_PLACE = "the job finds no place, or its queue has no quota left"


def gone(units: list[JobVictims]) -> list[JobVictims]:
    """Return the tasks of the units that found no other place, unit by unit; units that lose nobody are left out."""
    return _those_in(units, (Status.RELEASING,))


def displaced(units: list[JobVictims]) -> list[JobVictims]:
    """Return the tasks of the units that do not stay where they are, whether they found another place or not, unit by unit."""
    return _those_in(units, (Status.RELEASING, Status.PIPELINED))


def _those_in(units: list[JobVictims], statuses: tuple[Status, ...]) -> list[JobVictims]:
    parts = [[task for task in unit if task.status in statuses] for unit in units]
    return [part for part in parts if part]


class Solver:
    """Searches victims for one job."""

    def __init__(
        self, session: Session, gang: GangState, action: str, message: Callable[[TaskState], str], waiting: WaitingOrder
    ) -> None:
        """Prepare for a job; `message` says why a task has to go, `waiting` holds all jobs that wait."""
        self._session, self._gang, self._action, self._message, self._waiting = session, gang, action, message, waiting
        self._placer = Placer(session, pipelines_only=True)
        self.refusal = ""
        """Why the last scenario was refused; empty before the first."""

    def solve(self, make_line: Callable[[], VictimLine], judge: Judge) -> Statement | None:
        """Return a statement that places the job, still to be committed; None when no scenario works.

        The problem grows task by task. A solution for fewer tasks is discarded, but its victims begin every scenario for one more.
        """
        tasks = next_tasks(self._session, self._gang)
        recorded: list[JobVictims] = []
        self._nodes = self._open_nodes(tasks)
        for count in range(1, len(tasks) + 1):
            found = self._search(tasks[:count], recorded, make_line(), judge)
            if found is None:
                return None
            statement, recorded = found
            is_solved = count == len(tasks) and is_whole(self._gang)
            self._note(partial(ScenarioWorks, count=count, is_trial=not is_solved), recorded)
            if is_solved:
                return statement
            # Only victims are kept. Places are found anew with one task more: the best ones for few tasks may be wrong for all.
            left = displaced(recorded)
            statement.discard()
            _add_nodes(self._nodes, left)
        return None

    def _search(
        self, tasks: list[TaskState], recorded: list[JobVictims], line: VictimLine, judge: Judge
    ) -> tuple[Statement, list[JobVictims]] | None:
        """Return the first scenario that works, with its victims; None when the line of victims ends before."""
        potential: list[JobVictims] = []
        line.skip([task for unit in recorded for task in unit])
        # One task more may fit without a new victim. Without any victim nothing is tried: `allocate` has done that already.
        if recorded and (statement := self._simulate(tasks, recorded, potential, judge)):
            return statement, self._victims(statement, recorded)
        while unit := line.pop():
            potential.append(unit)
            self._note(VictimsProposed, [unit])
            if not self._could_work(tasks, [*recorded, *potential]):
                self.refusal = TOO_FEW_GPUS
                self._note(partial(ScenarioRefused, reason=TOO_FEW_GPUS, is_trial=True), [*recorded, *potential])
                continue
            if statement := self._simulate(tasks, recorded, potential, judge):
                return statement, self._victims(statement, [*recorded, *potential])
        return None

    def _note(self, make: Callable[[str, str, Sequence[str], Sequence[str]], TraceEvent], units: list[JobVictims]) -> None:
        """Record something about victims: of which job, by which action, their tasks and their jobs."""
        if self._session.trace.level >= 3:
            tasks = [task.task.key for unit in units for task in unit]
            gangs = list(dict.fromkeys(unit[0].gang.key for unit in units))
            self._session.trace.note(make, self._gang.key, self._action, tasks, gangs)

    def _victims(self, statement: Statement, units: list[JobVictims]) -> list[JobVictims]:
        """Return the units of which somebody was evicted in the end, moved ones included.

        A unit is kept whole although a part of it may have stayed: the core of a gang that is cut would be a broken gang.
        """
        evicted = {id(operation.tasks[0]) for operation in statement.operations if operation.kind is OperationKind.EVICT}
        stayed = {id(operation.tasks[0]) for operation in statement.operations if operation.undoes is not None}
        return [unit for unit in units if any(id(task) in evicted - stayed for task in unit)]

    def _could_work(self, tasks: list[TaskState], units: list[JobVictims]) -> bool:
        """Tell whether the cluster has enough GPUs with the victims gone: the largest request goes to the freest node, and so on.

        A filter before the expensive part. True when nothing can be said, as with parts of devices.
        """
        row = self._session.snapshot.space.row_by_name.get(GPU)
        wanted = sorted((task.task.shape.request.get(GPU, 0) for task in tasks), reverse=True)
        if row is None or not any(wanted) or any(task.task.shape.gpu_share for unit in units for task in unit):
            return True
        free = self._session.ledger.future[row].copy()
        for unit in units:
            for task in unit:
                free[task.node] += task.task.shape.request.get(GPU, 0)
        for amount in wanted:
            node = int(free.argmax())
            if free[node] < amount:
                return False
            free[node] -= amount
        return True

    def _simulate(
        self, tasks: list[TaskState], recorded: list[JobVictims], potential: list[JobVictims], judge: Judge
    ) -> Statement | None:
        """Try a scenario and return its statement, or None.

        Only jobs with a victim on one node are evicted at a time, node after node of the latest victim: room of several tasks
        is of use where it lies together, and evicting everybody in the list would cost jobs that give nothing there.
        """
        statement = self._session.trial()
        self._evict(statement, recorded)
        nodes = list(dict.fromkeys(task.node for task in potential[-1])) if potential else [-1]
        for node in nodes:
            mark = statement.checkpoint()
            chosen = self._on_node(potential, node)
            self._evict(statement, chosen)
            units, offered = [*recorded, *chosen], self._nodes.copy()
            _add_nodes(offered, chosen)
            self._note(partial(ScenarioTried, count=len(tasks), is_trial=True), units)
            reason = judge(units, tasks) if self._place_everybody(tasks, units, statement, offered) else NO_PLACE
            if not reason:
                return statement
            self.refusal = reason
            self._note(partial(ScenarioRefused, reason=reason, is_trial=True), units)
            statement.rollback(mark)
        statement.discard()
        return None

    def _on_node(self, potential: list[JobVictims], node: int) -> list[JobVictims]:
        """Return the potential victims of all jobs that have one on the node."""
        jobs = {unit[0].gang.key for unit in potential if any(task.node == node for task in unit)}
        return [unit for unit in potential if unit[0].gang.key in jobs]

    def _evict(self, statement: Statement, units: list[JobVictims]) -> None:
        for unit in units:
            for task in unit:
                statement.evict(task, action=self._action, preemptor=self._gang.key, reason=self._message(task))

    def _place_everybody(self, tasks: list[TaskState], units: list[JobVictims], statement: Statement, nodes: Mask) -> bool:
        """Place the job and the victims' jobs in the usual order; tell whether the job got its places."""
        jobs = {unit[0].gang.key: unit[0].gang for unit in units}
        line = JobLine(self._session, [self._gang, *jobs.values()], others=self._waiting, chunks=self._chunks(tasks))
        has_place = False
        while (gang := line.pop()) is not None:
            if gang is self._gang:
                has_place = self._has_quota(gang, tasks) and self._placer.place(gang, tasks, statement, nodes)
                if not has_place:
                    return False
            else:
                self._place_again(gang, statement, nodes)
        return has_place

    def _chunks(self, tasks: list[TaskState]) -> dict[str, Figures]:
        """Return what counts for the turn of the job's queue: the tasks that the problem has grown to."""
        shares = self._session.read_state(FairShares)
        return {} if shares is None else {self._gang.key: shares.chunk(tasks)}

    def _place_again(self, gang: GangState, statement: Statement, nodes: Mask) -> None:
        """Place evicted tasks of a victim again, where they were if that is best: its minimum, or one task more of a whole job.

        If that fails they stay evicted: they are real victims.
        """
        tasks = next_tasks(self._session, gang, counts_evicted=True)
        if tasks and self._has_quota(gang, tasks):
            self._placer.place(gang, tasks, statement, nodes)

    def _has_quota(self, gang: GangState, tasks: list[TaskState]) -> bool:
        shares = self._session.read_state(FairShares)
        return shares is None or shares.capacity(gang, tasks).ok

    def _open_nodes(self, tasks: list[TaskState]) -> Mask:
        """Return the nodes to place on besides those of victims: those with GPUs that are free or become free by themselves.

        Tasks without GPUs may go to any node. The node of a victim that stayed where it was when fewer tasks were placed is not
        among them, as in KAI: with one task more it may have to move.
        """
        row = self._session.snapshot.space.row_by_name.get(GPU)
        if row is None or not all(uses_gpu(task.task.shape) for task in tasks):
            return np.ones(len(self._session.snapshot.nodes), dtype=np.bool_)
        mask: Mask = self._session.ledger.future[row] > 0
        mask[self._session.book(SharedGpus).open_nodes()] = True
        return mask


def _add_nodes(mask: Mask, units: list[JobVictims]) -> None:
    mask[[task.node for unit in units for task in unit if task.node >= 0]] = True
