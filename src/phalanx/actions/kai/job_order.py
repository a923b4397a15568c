"""Jobs in the order in which they are tried: down a tree of queues, each with its own line of jobs.

Whose turn it is changes with every placement, so queues are compared again at each step and no order is made in advance. What can
be kept is the order of jobs inside a queue, and, for a search that simulates thousands of times, the order of all that wait
(`WaitingOrder`): it is made once per action and corrected for the few jobs that a decision changed.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count, groupby
from typing import Any, NamedTuple

from phalanx.kai.amounts import Figures
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import can_be_whole
from phalanx.kai.queue_order import Contender, Standing, comes_first
from phalanx.kai.shares import QueueShare
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.session.hooks import SortKey
from phalanx.session.plugin_trace import note_line
from phalanx.session.session import Session
from phalanx.session.trace_events import GangsAhead
from phalanx.session.trace_searches import JobNotTried
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import Verdict


def waiting_jobs(session: Session, action: str) -> list[GangState]:
    """Return the jobs that can be tried: enough tasks to be whole, one of them waiting, in a leaf queue; plugins may refuse one.

    Of each queue only as many as `queueDepthPerAction` allows, the first ones in order; the others are told so.
    """
    shares = session.read_state(FairShares)
    jobs = [
        gang
        for gang in session.gangs.values()
        if _is_waiting(session, gang) and (shares is None or shares.tree.leaf(gang.gang.queue))
    ]
    jobs = [gang for gang in jobs if _may_be_tried(session, gang, action)]
    if action == "allocate" and session.trace.level >= GangsAhead.at_level:
        note_line(session, action, jobs)
    depth = _depth(session, action)
    return jobs if depth < 0 else _first_ones(session, jobs, action, depth)


def _may_be_tried(session: Session, gang: GangState, action: str) -> bool:
    verdict = session.gang_valid(gang)
    if not verdict.ok:
        gang.verdicts.append(verdict)
        session.trace.note(JobNotTried, gang.key, action, verdict.message)
    return verdict.ok


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
            session.trace.note(JobNotTried, gang.key, action, f"it takes {depth} job(s) of queue {name}, and others come first")
    return [gang for line in lines.values() for gang in line[:depth]]


def _is_waiting(session: Session, gang: GangState) -> bool:
    return _has_waiting(gang) and session.remembered(gang, can_be_whole, lambda: can_be_whole(gang))


def _has_waiting(gang: GangState) -> bool:
    return bool(gang.tally.counts[Status.PENDING]) and any(_waits(task) for task in gang.tasks)


def _waits(task: TaskState) -> bool:
    return task.status is Status.PENDING and not task.task.is_gated


LinePosition = tuple[int, bool, bool]
"""The place of a job in the line of its queue: the number of its run of jobs that would get the same, and whether it is the first
or the last of that run."""


class WaitingOrder:
    """All jobs with a waiting task in the order of their queues, kept over an action; ready to start or not."""

    def __init__(self, session: Session) -> None:
        """Sort the jobs."""
        self._session, self._shares = session, session.read_state(FairShares)
        self.by_queue: dict[str, list[tuple[SortKey, str]]] = {}
        self.gone: set[str] = set()
        """Jobs that are in the lists and wait no more."""
        self._chunks: dict[str, Figures] = {}
        self._ends: dict[str, dict[int, int]] = {}
        self._firsts: dict[str, int] = {}
        self._positions: dict[str, dict[str, LinePosition]] = {}
        for gang in session.gangs.values():
            if _has_waiting(gang):
                self.by_queue.setdefault(gang.gang.queue, []).append((session.gang_key(gang), gang.key))
        for line in self.by_queue.values():
            line.sort()

    def first(self, name: str) -> int:
        """Return the place of the first job of a queue that still waits."""
        line, place = self.by_queue.get(name, []), self._firsts.get(name, 0)
        while place < len(line) and line[place][1] in self.gone:
            place += 1
        self._firsts[name] = place
        return place

    def chunk(self, key: str) -> Figures:
        """Return what a job would get next."""
        if key not in self._chunks:
            assert self._shares is not None, "without shares there is no turn of a queue"
            self._chunks[key] = self._shares.next_chunk(self._session.gangs[GangKey(key)])
        return self._chunks[key]

    def end(self, name: str, place: int) -> int:
        """Return where the run of jobs ends that would get the same as the one at this place.

        Passing over one such job leaves the queue where it was, so all of them are passed over in one step: a queue with 4,000
        equal waiting jobs costs each simulation one step and not 4,000.
        """
        ends, line = self._ends.setdefault(name, {}), self.by_queue[name]
        if place not in ends:
            chunk, end = self.chunk(line[place][1]), place + 1
            while end < len(line) and self.chunk(line[end][1]) == chunk:
                end += 1
            ends.update(dict.fromkeys(range(place, end), end))
        return ends[place]

    def position(self, gang: GangState) -> LinePosition | None:
        """Return what a simulation can see of the place of a job in line; jobs of a queue with equal answers are served alike."""
        name = gang.gang.queue
        if self._shares is None:
            return None
        if name not in self._positions:
            keys = [key for _, key in self.by_queue.get(name, []) if key not in self.gone]
            runs = enumerate([list(run) for _, run in groupby(keys, key=self.chunk)])
            self._positions[name] = {key: (number, key == run[0], key == run[-1]) for number, run in runs for key in run}
        return self._positions[name].get(gang.key)

    def update(self, gangs: Mapping[str, GangState]) -> None:
        """Take out jobs that no longer wait, and put those that have changed in their new place."""
        for key, gang in gangs.items():
            self._chunks.pop(key, None)
            self._positions.pop(gang.gang.queue, None)
            if _has_waiting(gang):
                self._insert(key, gang)
            else:
                self.gone.add(key)

    def _insert(self, key: str, gang: GangState) -> None:
        name = gang.gang.queue
        # Jobs that no longer wait are dropped here and not when they are found: taking one out moves all places behind it.
        line = [entry for entry in self.by_queue.get(name, []) if entry[1] != key and entry[1] not in self.gone]
        insort(line, (self._session.gang_key(gang), key))
        self.by_queue[name] = line
        self._ends.pop(name, None)
        self._firsts.pop(name, None)


class _First(NamedTuple):
    """The first job in a queue: what it would get, the leaf that it is in, and where that puts the queue."""

    chunk: Figures
    leaf: str
    standing: Standing


class JobLine:
    """Gives the next job of the queue whose turn it is, as things stand at that moment.

    In a simulation there are others in line, which are never given. Their tasks and those that are evicted wait too.
    """

    def __init__(
        self,
        session: Session,
        jobs: list[GangState],
        *,
        others: WaitingOrder | None = None,
        chunks: Mapping[str, Figures] | None = None,
    ) -> None:
        """Line the jobs up by queue; `others` make it a simulation, `chunks` say what some jobs would get."""
        self._session, self._number, self._others, self._chunks = session, count(), others, chunks or {}
        self._shares = session.read_state(FairShares)
        self._own = {gang.key for gang in jobs}
        self._places: dict[str, int] = {}
        self._version = -1
        self._firsts: dict[str, _First | None] = {}
        """The first job of each leaf, as long as the session is as it was."""
        self._lines: dict[str, list[Any]] = {}
        for gang in jobs:
            self._lines.setdefault(gang.gang.queue, []).append((session.gang_key(gang), next(self._number), gang))
        for line in self._lines.values():
            heapify(line)

    def push(self, gang: GangState) -> None:
        """Put a job back in line."""
        self._firsts.pop(gang.gang.queue, None)
        heappush(self._lines.setdefault(gang.gang.queue, []), (self._session.gang_key(gang), next(self._number), gang))

    def pop(self) -> GangState | None:
        """Take the next job out; None when there is none."""
        while names := [name for name, line in self._lines.items() if line]:
            name = self._next_queue(names)
            if name is None:
                return None
            self._firsts.pop(name, None)
            if names == [name] or self._other(name) is None:
                gang: GangState = heappop(self._lines[name])[-1]
                return gang
            self._pass_over(name)
        return None

    def _next_queue(self, names: list[str]) -> str | None:
        """Return the queue whose turn it is; `names` are those with jobs to give. If there is one of them, turns do not matter."""
        if self._shares is None:
            return min(names, key=lambda name: (self._session.queues[name].created, name))
        if len(names) == 1 and self._shares.tree.leaf(names[0]) is not None:
            return names[0]
        if self._version != self._session.version:
            self._version = self._session.version
            self._firsts.clear()
        best = self._best(self._shares, self._shares.tree.roots)
        return best.leaf if best is not None else None

    def _best(self, shares: FairShares, queues: Sequence[QueueShare]) -> _First | None:
        """Return the first job of the queue of these that is next."""
        best: _First | None = None
        for queue in queues:
            first = self._first(shares, queue)
            if first is not None and (best is None or comes_first(first.standing, best.standing)):
                best = first
        return best

    def _first(self, shares: FairShares, queue: QueueShare) -> _First | None:
        """Return the first job in a queue; that of a leaf is found anew when it was taken or something has changed."""
        if queue.children:
            best = self._best(shares, queue.children)
            return None if best is None else _First(best.chunk, best.leaf, shares.standing(Contender(queue, best.chunk)))
        if queue.name not in self._firsts:
            chunk = self._next_chunk(shares, queue)
            first = None if chunk is None else _First(chunk, queue.name, shares.standing(Contender(queue, chunk)))
            self._firsts[queue.name] = first
        return self._firsts[queue.name]

    def _next_chunk(self, shares: FairShares, queue: QueueShare) -> Figures | None:
        """Return what the first job of a leaf would get; None if there is none."""
        other, line = self._other(queue.name), self._lines.get(queue.name)
        if other is not None and self._others is not None:
            return self._others.chunk(other)
        return self._chunk(shares, line[0][-1]) if line else None

    def _chunk(self, shares: FairShares, gang: GangState) -> Figures:
        return self._chunks.get(gang.key) or shares.next_chunk(gang, counts_evicted=self._others is not None)

    # --- others in line ----------------------------------------------------------------------------------------------------

    def _other(self, name: str) -> str | None:
        """Return the first job of a queue if it is one of the others."""
        others, line = self._others, self._lines.get(name)
        if others is None or self._shares is None:
            return None
        waiting, place = others.by_queue.get(name, []), max(self._places.get(name, 0), others.first(name))
        while place < len(waiting) and (waiting[place][1] in self._own or waiting[place][1] in others.gone):
            place += 1
        self._places[name] = place
        is_behind = place == len(waiting) or (line and line[0][0] < waiting[place][0])
        return None if is_behind else waiting[place][1]

    def _pass_over(self, name: str) -> None:
        """Pass over the first waiting job of a queue, with all that would get the same, up to the first job of its own line."""
        assert self._others is not None, "there is somebody to pass over"
        place, line = self._places[name], self._lines.get(name)
        end = self._others.end(name, place)
        if line:
            end = bisect_left(self._others.by_queue[name], (line[0][0],), place + 1, end)
        self._places[name] = end
