"""Jobs in the order in which they are tried: down a tree of queues, each with its own line of jobs."""

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from phalanx.core.podsets import can_be_whole
from phalanx.core.session import Session
from phalanx.core.states import GangState
from phalanx.kai.order import Contender, comes_first
from phalanx.kai.shares import QueueShare
from phalanx.model.status import Status


def waiting_jobs(session: Session) -> list[GangState]:
    """Return the jobs that can be tried: enough tasks to be whole, one of them waiting, in a leaf queue; plugins may refuse one."""
    tree = session.instance("proportion").tree if session.instance("proportion") else None
    jobs = [gang for gang in session.gangs.values() if _is_waiting(gang) and (tree is None or tree.leaf(gang.gang.queue))]
    return [gang for gang in jobs if _may_be_tried(session, gang)]


def _is_waiting(gang: GangState) -> bool:
    has_waiting = any(task.status is Status.PENDING and not task.task.is_gated for task in gang.tasks)
    return has_waiting and can_be_whole(gang)


def _may_be_tried(session: Session, gang: GangState) -> bool:
    verdict = session.gang_valid(gang)
    if not verdict.ok:
        gang.verdicts.append(verdict)
    return verdict.ok


class JobLine:
    """Gives the next job of the queue whose turn it is, as things stand at that moment."""

    def __init__(self, session: Session, jobs: list[GangState], *, is_simulated: bool = False) -> None:
        """Line the jobs up by queue; in a simulation evicted tasks wait too."""
        self._session, self._number, self._is_simulated = session, count(), is_simulated
        self._proportion = session.instance("proportion")
        self._lines: dict[str, list[Any]] = {}
        for gang in jobs:
            self._lines.setdefault(gang.gang.queue, []).append((session.gang_key(gang), next(self._number), gang))
        for line in self._lines.values():
            heapify(line)

    def push(self, gang: GangState) -> None:
        """Put a job back in line."""
        heappush(self._lines.setdefault(gang.gang.queue, []), (self._session.gang_key(gang), next(self._number), gang))

    def pop(self) -> GangState | None:
        """Take the next job out; None when there is none."""
        name = self._next_queue()
        if name is None:
            return None
        gang: GangState = heappop(self._lines[name])[-1]
        return gang

    def _next_queue(self) -> str | None:
        if self._proportion is None:
            names = [name for name, line in self._lines.items() if line]
            return min(names, key=lambda name: (self._session.queues[name].created, name), default=None)
        best = self._best(self._proportion.tree.roots)
        return best[1].gang.queue if best is not None else None

    def _best(self, queues: list[QueueShare]) -> tuple[Contender, GangState] | None:
        """Return the queue of these that is next, with the job it would give."""
        best: tuple[Contender, GangState] | None = None
        for queue in queues:
            gang = self._first_job(queue)
            if gang is None:
                continue
            chunk = self._proportion.next_chunk(self._session, gang, counts_evicted=self._is_simulated)
            mine = Contender(queue, chunk)
            if best is None or comes_first(mine, best[0], self._proportion.total):
                best = (mine, gang)
        return best

    def _first_job(self, queue: QueueShare) -> GangState | None:
        if not queue.children:
            line = self._lines.get(queue.name)
            return line[0][-1] if line else None
        best = self._best(queue.children)
        return best[1] if best is not None else None
