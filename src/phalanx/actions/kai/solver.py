"""The search for victims that consolidation, reclaim and preempt share.

A scenario is a list of victims. It is tried by evicting them for a trial and then placing everybody, victims included, in the
usual order: a victim that finds a place, or can stay, is none. All jobs that wait stand in line with them and are passed over,
but whose turn it is depends on them: nobody wins what the next session would give to another. The scenario counts if the job got
its places and the action finds it fair. Scenarios that cannot work, for want of GPUs in the whole cluster, are not tried.
"""

from collections.abc import Callable

import numpy as np

from phalanx.actions.kai.job_order import JobLine, WaitingOrder
from phalanx.actions.kai.placement import Placer
from phalanx.actions.kai.victim_order import VictimLine, VictimUnit
from phalanx.kai.amounts import Figures
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import is_whole, next_tasks
from phalanx.kubernetes.shared_gpus import SharedGpus, uses_gpu
from phalanx.model.resources import GPU
from phalanx.model.status import Status
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import Kind, Statement
from phalanx.state.gang_state import GangState, TaskState

Judge = Callable[[list[VictimUnit], list[TaskState]], bool]
"""Says whether a scenario is fair, given all units that it evicts for these tasks: some have another place, or stay."""


def gone(units: list[VictimUnit]) -> list[VictimUnit]:
    """Return what of the units found no other place."""
    return _those_in(units, (Status.RELEASING,))


def uprooted(units: list[VictimUnit]) -> list[VictimUnit]:
    """Return what of the units does not stay where it is, whether it found another place or not."""
    return _those_in(units, (Status.RELEASING, Status.PIPELINED))


def _those_in(units: list[VictimUnit], statuses: tuple[Status, ...]) -> list[VictimUnit]:
    parts = [[task for task in unit if task.status in statuses] for unit in units]
    return [part for part in parts if part]


class Solver:
    """Searches victims for one job."""

    def __init__(
        self, session: Session, gang: GangState, action: str, message: Callable[[TaskState], str], others: WaitingOrder
    ) -> None:
        """Serve a job; `message` says why a task has to go, `others` are all jobs that wait."""
        self._session, self._gang, self._action, self._message, self._others = session, gang, action, message, others
        self._placer = Placer(session, pipelines_only=True)

    def solve(self, make_line: Callable[[], VictimLine], judge: Judge) -> Statement | None:
        """Return a statement that places the job, or None; grows the problem task by task and keeps the victims found so far."""
        tasks = next_tasks(self._session, self._gang)
        recorded: list[VictimUnit] = []
        for count in range(1, len(tasks) + 1):
            found = self._search(tasks[:count], recorded, make_line(), judge)
            if found is None:
                return None
            statement, recorded = found
            if count == len(tasks) and is_whole(self._gang):
                return statement
            statement.discard()
        return None

    def _search(
        self, tasks: list[TaskState], recorded: list[VictimUnit], line: VictimLine, judge: Judge
    ) -> tuple[Statement, list[VictimUnit]] | None:
        potential: list[VictimUnit] = []
        line.skip([task for unit in recorded for task in unit])
        if recorded and (statement := self._simulate(tasks, recorded, potential, judge)):
            return statement, self._victims(statement, recorded)
        while unit := line.pop():
            potential.append(unit)
            if not self._could_work(tasks, [*recorded, *potential]):
                continue
            if statement := self._simulate(tasks, recorded, potential, judge):
                return statement, self._victims(statement, [*recorded, *potential])
        return None

    def _victims(self, statement: Statement, units: list[VictimUnit]) -> list[VictimUnit]:
        """Return the units of which somebody was evicted in the end, moved ones included; a unit goes whole."""
        evicted = {id(operation.tasks[0]) for operation in statement.operations if operation.kind is Kind.EVICT}
        stayed = {id(operation.tasks[0]) for operation in statement.operations if operation.undoes is not None}
        return [unit for unit in units if any(id(task) in evicted - stayed for task in unit)]

    def _could_work(self, tasks: list[TaskState], units: list[VictimUnit]) -> bool:
        """Tell whether the cluster has enough GPUs with the victims gone, node by node: the largest request to the freest node."""
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
        self, tasks: list[TaskState], recorded: list[VictimUnit], potential: list[VictimUnit], judge: Judge
    ) -> Statement | None:
        """Try a scenario, node by node of the latest victim."""
        statement = self._session.trial()
        self._evict(statement, recorded)
        nodes = list(dict.fromkeys(task.node for task in potential[-1])) if potential else [-1]
        for node in nodes:
            mark = statement.checkpoint()
            chosen = self._on_node(potential, node)
            self._evict(statement, chosen)
            units = [*recorded, *chosen]
            if self._place_everybody(tasks, units, statement) and judge(units, tasks):
                return statement
            statement.rollback(mark)
        statement.discard()
        return None

    def _on_node(self, potential: list[VictimUnit], node: int) -> list[VictimUnit]:
        """Return the potential victims of all jobs that have one on the node."""
        jobs = {unit[0].gang.key for unit in potential if any(task.node == node for task in unit)}
        return [unit for unit in potential if unit[0].gang.key in jobs]

    def _evict(self, statement: Statement, units: list[VictimUnit]) -> None:
        for unit in units:
            for task in unit:
                statement.evict(task, action=self._action, preemptor=self._gang.key, reason=self._message(task))

    def _place_everybody(self, tasks: list[TaskState], units: list[VictimUnit], statement: Statement) -> bool:
        """Place the job and the victims' jobs in the usual order; tell whether the job got its places."""
        nodes = self._nodes(tasks, units)
        jobs = {unit[0].gang.key: unit[0].gang for unit in units}
        line = JobLine(self._session, [self._gang, *jobs.values()], others=self._others, chunks=self._chunks(tasks))
        has_place = False
        while (gang := line.pop()) is not None:
            if gang is self._gang:
                has_place = self._has_quota(gang, tasks) and self._placer.place(gang, tasks, statement, nodes)
                if not has_place:
                    return False
            else:
                self._bring_back(gang, statement, nodes)
        return has_place

    def _chunks(self, tasks: list[TaskState]) -> dict[str, Figures]:
        """Return what counts for the turn of the job's queue: the tasks that the problem has grown to."""
        shares = self._session.read_state(FairShares)
        return {} if shares is None else {self._gang.key: shares.chunk(tasks)}

    def _bring_back(self, gang: GangState, statement: Statement, nodes: Mask) -> None:
        """Place evicted tasks of a victim again, where they were if that is best: its minimum, or one task of a job that has it."""
        tasks = next_tasks(self._session, gang, counts_evicted=True)
        if tasks and self._has_quota(gang, tasks):
            self._placer.place(gang, tasks, statement, nodes)

    def _has_quota(self, gang: GangState, tasks: list[TaskState]) -> bool:
        shares = self._session.read_state(FairShares)
        return shares is None or shares.capacity(gang, tasks).ok

    def _nodes(self, tasks: list[TaskState], units: list[VictimUnit]) -> Mask:
        """Return the nodes to place on: those with GPUs that are free or will be, and those of the victims; all without GPUs."""
        row = self._session.snapshot.space.row_by_name.get(GPU)
        if row is None or not any(uses_gpu(task.task.shape) for task in tasks):
            return np.ones(len(self._session.snapshot.nodes), dtype=np.bool_)
        mask: Mask = self._session.ledger.future[row] > 0
        mask[self._session.book(SharedGpus).open_nodes()] = True
        mask[[task.node for unit in units for task in unit if task.node >= 0]] = True
        return mask
