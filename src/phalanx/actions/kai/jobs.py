"""Jobs in the order in which they are tried: down a tree of queues, each with its own line of jobs."""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from phalanx.core.podsets import can_be_whole
from phalanx.core.session import Session
from phalanx.core.states import GangState
from phalanx.core.verdict import Verdict
from phalanx.kai.order import Contender, comes_first
from phalanx.kai.shares import QueueShare
from phalanx.model.status import Status


def waiting_jobs(session: Session, action: str) -> list[GangState]:
    """Return the jobs that can be tried: enough tasks to be whole, one of them waiting, in a leaf queue.

    Of each queue only as many as `queueDepthPerAction` allows, the first ones in order; the others are told so.
    """
    tree = session.instance("proportion").tree if session.instance("proportion") else None
    jobs = [gang for gang in session.gangs.values() if _is_waiting(gang) and (tree is None or tree.leaf(gang.gang.queue))]
    depth = _depth(session, action)
    return jobs if depth < 0 else _first_ones(session, jobs, action, depth)


def _depth(session: Session, action: str) -> int:
    """Return how many jobs of a queue an action tries; -1 for all."""
    depths = session.policy.options.get("queueDepthPerAction")
    return int(depths.get(action, -1)) if isinstance(depths, Mapping) else -1


def _first_ones(session: Session, jobs: list[GangState], action: str, depth: int) -> list[GangState]:
    lines: dict[str, list[GangState]] = {}
    for gang in sorted(jobs, key=session.gang_key):
        lines.setdefault(gang.gang.queue, []).append(gang)
    text = f"not tried by {action}: it takes {depth} of the jobs of queue {{!r}} (queueDepthPerAction) and others come first"
    for name, line in lines.items():
        for gang in line[depth:]:
            gang.verdicts.append(Verdict.refuse(action, "QueueDepth", text.format(name), queue=name, depth=depth))
    return [gang for line in lines.values() for gang in line[:depth]]


def _is_waiting(gang: GangState) -> bool:
    has_waiting = any(task.status is Status.PENDING and not task.task.is_gated for task in gang.tasks)
    return has_waiting and can_be_whole(gang)


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
