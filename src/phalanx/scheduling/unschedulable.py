"""Gangs that found no room are left out of sessions until there is some, or until it is time to ask again whether others should
make room: what kube-scheduler's queue of unschedulable pods does, for gangs.

A session costs what the gangs in it cost. A large gang may wait for days, and most sessions are held because of others: a gang
arrives, pods start, somebody ends. Who only takes room helps nobody who waits for some, and who gives some back helps those whose
requests then find enough places. Everything else that happens to a cluster, such as another limit of a queue or a new node, is rare
and may help anybody: `forget` lets the next session look at all of them.
"""

from collections import Counter
from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from phalanx.model.gang import Gang
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import READY, Status
from phalanx.placement.fit import copies
from phalanx.session.decision import Decisions
from phalanx.state.gang_state import GangState
from phalanx.state.node_table import request_of
from phalanx.state.snapshot import Snapshot

Amounts = tuple[tuple[str, int], ...]
"""What a task asks for."""
Line = Hashable
"""What gangs have in common of which the first is served first: the queue, and all that matters to a node."""
FIRST_WAIT = 1 / 4
"""As a part of the longest."""


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that is left out of sessions: as it was, what it needs to start, and until when."""

    gang: Gang
    members: Mapping[TaskKey, Task]
    needs: tuple[tuple[Amounts, int], ...]
    """What tasks ask for, and how many of them need a place."""
    line: Line
    until: float
    wait: float

    def turn(self) -> tuple[int, float, str]:
        """Order the gangs of a line as sessions do."""
        return -self.gang.priority, self.gang.created, self.gang.key

    def is_same(self, snapshot: Snapshot) -> bool:
        """Tell whether nobody has touched the gang: its pods, or what its group asks for."""
        gang = snapshot.gangs.get(self.gang.key)
        if gang is None or snapshot.members_of(self.gang.key) is not self.members:
            return False
        return gang is self.gang or _asks(gang) == _asks(self.gang)


class UnschedulableGangs:
    """Takes gangs out of sessions that could do nothing for them."""

    def __init__(self, longest: float) -> None:
        """Ask after a quarter of `longest` seconds, then after twice as long each time, and at last after all of them."""
        self._first, self._longest = longest * FIRST_WAIT, longest
        self._waiting: dict[GangKey, WaitingGang] = {}

    def without(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot without the gangs that wait for room that is not there; those for which there is some are calm."""
        waiting = {key: self._waiting[key] for key in snapshot.active if key in self._waiting}
        resting = {key: entry for key, entry in waiting.items() if snapshot.now < entry.until and entry.is_same(snapshot)}
        if not resting:
            return snapshot
        places = _Places(snapshot, [key for key in snapshot.active if key not in waiting])
        reserved = resting.keys() & frozenset(snapshot.reserved)
        fitting = (entry for key, entry in resting.items() if key not in reserved and places.suffice(entry))
        woken = reserved | {entry.gang.key for entry in sorted(fitting, key=WaitingGang.turn) if places.serve(entry)}
        active = tuple(key for key in snapshot.active if key not in resting or key in woken)
        return replace(snapshot, active=active, calm=frozenset(woken), is_partial=True)

    def note(self, snapshot: Snapshot, decisions: Decisions) -> None:
        """Leave every gang out from now on that waited in vain and has no nominated nodes; let go of all others of the session.

        Gangs with a reserved start take part in every session, or nobody would leave them their room, but nobody is searched whom
        to evict for them while they rest. When one of them is gone or has started, another may be the first in line: all are asked.
        """
        reserved = {each.gang for each in decisions.reservations}
        if not reserved.issuperset(snapshot.reserved):
            self._waiting.clear()
        for outcome in decisions.outcomes:
            state, key = outcome.state, outcome.state.gang.key
            old = self._waiting.pop(key, None)
            if not _waits_in_vain(state):
                continue
            if old is not None and key in snapshot.calm:
                self._waiting[key] = old
                continue
            wait = self._first if old is None or not old.is_same(snapshot) else min(old.wait * 2, self._longest)
            until, members = snapshot.now + wait, snapshot.members_of(key)
            self._waiting[key] = WaitingGang(state.declared, members, _needs(state), _line(state), until, wait)

    def forget(self) -> None:
        """Let the next session look at every gang."""
        self._waiting.clear()

    def keep(self, gangs: Container[GangKey]) -> None:
        """Forget all others: nobody asks for those that are gone."""
        self._waiting = {key: entry for key, entry in self._waiting.items() if key in gangs}

    def remembered(self, snapshot: Snapshot) -> list[tuple[str, float, float]]:
        """Return the gangs that are left out, until when and how long, except those that have changed and are asked in any case."""
        return [(key, entry.until, entry.wait) for key, entry in self._waiting.items() if entry.is_same(snapshot)]

    def remember(self, snapshot: Snapshot, resting: list[tuple[str, float, float]]) -> None:
        """Go on with what was remembered before."""
        for name, until, wait in resting:
            key = GangKey(name)
            if key in snapshot.gangs:
                self._waiting[key] = _left_out(snapshot, key, until, wait)

    def next_time(self) -> float | None:
        """Return when the next gang wants to be asked."""
        return min((entry.until for entry in self._waiting.values()), default=None)


def _left_out(snapshot: Snapshot, key: GangKey, until: float, wait: float) -> WaitingGang:
    members = snapshot.members_of(key)
    state = GangState(snapshot.gangs[key], ((task, -1) for task in members.values()))
    return WaitingGang(state.declared, members, _needs(state), _line(state), until, wait)


def _asks(gang: Gang) -> tuple[object, ...]:
    return gang.queue, gang.min_member, gang.priority, gang.phase, gang.role_minima, gang.subgroups, gang.min_children


def _waits_in_vain(state: GangState) -> bool:
    counts = state.tally.counts
    return bool(counts[Status.PENDING]) and not any(counts[status] for status in (*READY, Status.PIPELINED, Status.RELEASING))


def _needs(state: GangState) -> tuple[tuple[Amounts, int], ...]:
    """Return what the gang asks for: so many tasks of its only class as its minimum is, or else one of each class."""
    waiting = [task.task for task in state.tasks if task.status is Status.PENDING]
    shapes = dict.fromkeys(task.shape for task in waiting)
    count = min(state.gang.min_member, len(waiting)) if len(shapes) == 1 else 1
    return tuple((tuple(sorted(shape.request.items())), max(count, 1)) for shape in shapes)


def _line(state: GangState) -> Line:
    gang, shapes = state.gang, {task.task.shape for task in state.tasks}
    kinds = frozenset(shape.placement_key() if shape.is_self_contained else shape for shape in shapes)
    return gang.queue, gang.topology, gang.label, kinds


class _Places:
    """Counts how many tasks find room now, what is nominated for others left out; asked once for each kind of request.

    Room that is being released counts when it is free: until then queues count it as taken.
    """

    def __init__(self, snapshot: Snapshot, others: list[GangKey]) -> None:
        self._space = snapshot.space
        idle = snapshot.nodes.allocatable - snapshot.used
        unreserved = idle + snapshot.releasing
        for task in (task for key in others for task in snapshot.members_of(key).values()):
            node = snapshot.nodes.number_by_name.get(task.nominated_node) if task.status is Status.PENDING else None
            if node is not None:
                unreserved[:, node] -= request_of(task.shape.request, self._space).amounts
        self._room = np.minimum(idle, unreserved)
        self._totals: dict[Amounts, int] = {}
        self._taken: Counter[tuple[Line, Amounts]] = Counter()

    def suffice(self, waiting: WaitingGang) -> bool:
        """Tell whether each request finds as many places as it needs."""
        return all(self._total(amounts) >= count for amounts, count in waiting.needs)

    def serve(self, waiting: WaitingGang) -> bool:
        """Tell the same besides what gangs before it in its line would take; it takes its places."""
        if any(self._total(amounts) < count + self._taken[waiting.line, amounts] for amounts, count in waiting.needs):
            return False
        self._taken.update({(waiting.line, amounts): count for amounts, count in waiting.needs})
        return True

    def _total(self, amounts: Amounts) -> int:
        if amounts not in self._totals:
            self._totals[amounts] = int(copies(self._room, request_of(dict(amounts), self._space)).sum())
        return self._totals[amounts]
