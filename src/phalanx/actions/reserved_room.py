"""When and where the first gangs in line can start, by the ends of those that run.

A plan is made for one gang: its tasks class after class, largest first, on the nodes that its filters allow, in one domain if it
must stay together. Filters are asked about now; what only room decides is asked about every moment to come. A plan is as sound as
run times are, not always the earliest: packing several classes is greedy, and other pods that forbid a node are taken to stay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from phalanx.actions.domain_trace import domain_name
from phalanx.actions.dry_run import waiting_tasks
from phalanx.actions.eviction_domains import narrow_domains
from phalanx.actions.gang_places import runs_by_size
from phalanx.actions.needed_tasks import tasks_needed
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.placement import Amounts, Counts, Mask
from phalanx.placement.fit import copies
from phalanx.placement.future_room import Booking, FutureRoom, Releases
from phalanx.placement.ledger import Request
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.holders import numbers_of
from phalanx.state.label_domains import label_domains
from phalanx.state.run_times import RunTimesBook

Runs = Sequence[list[TaskState]]
"""Tasks class by class."""
PLACED = (Status.ALLOCATED, Status.BINDING, Status.PIPELINED)


@dataclass(frozen=True, slots=True)
class ClassDemand:
    """So many equal tasks, and the nodes whose filters let them in."""

    request: Request
    count: int
    allowed: Mask


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """When a gang can start, and what it takes where."""

    start: float
    amounts: Amounts
    domain: str = ""


class RoomPlanner:
    """Plans on the running tasks of one session; their ends are gathered once."""

    def __init__(self, session: Session, times: RunTimesBook) -> None:
        """Start with nothing gathered."""
        self._session, self._times = session, times
        self._running: tuple[list[float], Counts, Amounts] | None = None

    def releases(self) -> Releases:
        """Return when running tasks leave; those of this session among them, and without those that it evicts."""
        ends, nodes, amounts = self._of_running()
        more = list(self._of_session())
        if not more:
            return Releases.of(np.array(ends), nodes, amounts)
        all_ends = np.array([*ends, *(end for end, _, _ in more)])
        all_nodes = np.concatenate([nodes, np.array([node for _, node, _ in more], dtype=np.int64)])
        return Releases.of(all_ends, all_nodes, np.concatenate([amounts, np.array([each for _, _, each in more]).T], axis=1))

    def _of_running(self) -> tuple[list[float], Counts, Amounts]:
        if self._running is None:
            self._running = self._gather()
        return self._running

    def _gather(self) -> tuple[list[float], Counts, Amounts]:
        snapshot, table = self._session.snapshot, self._session.snapshot.holders
        on_node = np.asarray(table.nodes)
        there = np.flatnonzero(on_node >= 0)
        nodes = numbers_of(table.code_by_node, snapshot.nodes.number_by_name)[on_node[there]]
        there, nodes = there[nodes >= 0], nodes[nodes >= 0]
        times = {code: self._times.of(GangKey(name)) for name, code in table.code_by_gang.items()}
        gangs, started = np.asarray(table.gangs)[there].tolist(), np.asarray(table.started)[there].tolist()
        known: dict[tuple[int, float], float] = {}
        for each in set(zip(gangs, started, strict=True)):
            known[each] = times[each[0]].end(each[1] or snapshot.now, snapshot.now)
        shapes = np.asarray(table.shapes)[there]
        return [known[each] for each in zip(gangs, started, strict=True)], nodes, self._requests(shapes)

    def _requests(self, shapes: Counts) -> Amounts:
        """Return what tasks of these shapes take, by their codes."""
        table = self._session.snapshot.holders.code_by_shape
        by_code = np.zeros((len(self._session.snapshot.space), max(table.values(), default=-1) + 1), dtype=np.int64)
        for shape, code in table.items():
            by_code[:, code] = self._session.request_of(shape).amounts
        found: Amounts = by_code[:, shapes]
        return found

    def _of_session(self) -> Iterator[tuple[float, int, Amounts]]:
        """Yield ends of tasks that this session placed, and take back those of tasks that it evicts: their room counts as free."""
        session = self._session
        for gang in session.gangs.values():
            if any(gang.tally.counts[status] for status in PLACED):
                end = session.now + self._times.of(gang.gang.key).expected
                placed = (task for task in gang.tasks if task.status in PLACED and task.status is not task.task.status)
                yield from ((end, task.node, session.request_of(task.task.shape).amounts) for task in placed)
        numbers = session.snapshot.nodes.number_by_name
        for eviction in session.decisions.evictions.values():
            task = eviction.task
            if task.gang is not None and task.node in numbers:
                end = self._times.of(task.gang).end(task.started or session.now, session.now)
                yield end, numbers[task.node], -session.request_of(task.shape).amounts

    # --- one gang ------------------------------------------------------------------------------------------------------

    def needed(self, gang: GangState) -> Runs:
        """Return the tasks that a gang needs to be whole, class by class, large ones first."""
        waiting = [task for task in waiting_tasks(self._session, gang)[::-1] if not task.is_backfilled]
        return runs_by_size(self._session, tasks_needed(gang, waiting))

    def demand(self, runs: Runs) -> list[ClassDemand]:
        """Return what tasks need that are to start together."""
        return [self._demand_of(run) for run in runs]

    def _demand_of(self, run: Sequence[TaskState]) -> ClassDemand:
        shape = run[0].task.shape
        return ClassDemand(self._session.request_of(shape), len(run), self._session.node_view(shape).allowed)

    def plan(
        self, gang: GangState, runs: Runs, bookings: Sequence[Booking] = (), *, free: Amounts | None = None
    ) -> PlannedStart | None:
        """Return the earliest start of tasks of a gang beside bookings; None if nobody knows. `free` is the books' by default."""
        demand, session = self.demand(runs), self._session
        if not demand:
            return None
        free, seconds = session.ledger.future if free is None else free, self._times.of(gang.gang.key).bound
        future = FutureRoom(session.now, free, self.releases(), bookings)
        found: PlannedStart | None = None
        for name, domain in self.domains(gang):
            start = future.earliest(partial(fit, demand, domain, free), seconds)
            if start is not None and (found is None or start[0] < found.start):
                found = PlannedStart(start[0], start[1], name)
        return found

    def domains(self, gang: GangState) -> Iterator[tuple[str, Mask]]:
        """Yield the sets of nodes, each with a name, in one of which all of a gang has to be."""
        session, tree = self._session, self._session.snapshot.hypernodes
        if gang.gang.label:
            yield from ((f"{gang.gang.label}={each.value}", each.nodes) for each in label_domains(gang, session.snapshot.nodes))
        elif gang.allowed_tier is None and not any(part.allowed_tier is not None for part in gang.subgroups.values()):
            yield "", np.ones(len(session.snapshot.nodes), dtype=np.bool_)
        else:
            for number in dict.fromkeys(number for gradient in narrow_domains(session, gang) for number in gradient):
                nodes = np.zeros(len(session.snapshot.nodes), dtype=np.bool_)
                nodes[tree.members[number]] = True
                yield domain_name(tree, number), nodes


def fit(demand: Sequence[ClassDemand], domain: Mask, free: Amounts, room: Amounts) -> Amounts | None:
    """Return what is taken on each node if all classes find room; None if they do not.

    Nodes where others leave come before those that are free now, which stay open to whoever can use them meanwhile.
    """
    taken = np.zeros_like(room)
    for each in demand:
        places = np.where(each.allowed & domain, copies(room - taken, each.request), 0)
        if int(places.sum()) < each.count:
            return None
        now = np.minimum(copies(free - taken, each.request), places)
        order = np.lexsort((-places, now))
        counts = np.zeros(len(places), dtype=np.int64)
        counts[order] = np.clip(each.count - (np.cumsum(places[order]) - places[order]), 0, places[order])
        for row, amount in each.request.rows:
            taken[row] += amount * counts
    return taken


def drain(demand: Sequence[ClassDemand], domain: Mask, free: Amounts, capacity: Amounts) -> tuple[float, Amounts] | None:
    """Return the nodes where a gang needs the least more room, by what it takes there, and how much that is in all.

    None if the domain is too small even when everybody has left.
    """
    taken, lack = np.zeros_like(capacity), 0.0
    for each in demand:
        places = np.where(each.allowed & domain, copies(capacity - taken, each.request), 0)
        if int(places.sum()) < each.count:
            return None
        lacks = sum(np.clip(amount - (free - taken)[row], 0, amount) / amount for row, amount in each.request.rows)
        order = np.argsort(lacks + np.where(places > 0, 0, np.inf), kind="stable")
        counts = np.zeros(len(places), dtype=np.int64)
        counts[order] = np.clip(each.count - (np.cumsum(places[order]) - places[order]), 0, places[order])
        for row, amount in each.request.rows:
            taken[row] += amount * counts
        lack += float(sum((np.clip(taken[row] - free[row], 0, None) / amount).sum() for row, amount in each.request.rows))
    return lack, taken
