"""What the evicting actions share: who starves, which nodes are worth a look, and whether a task fits once victims are gone."""

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heapify
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np

from phalanx.model.gang import Gang
from phalanx.model.queue import Queue
from phalanx.model.resources import Resources, add
from phalanx.model.task import Task
from phalanx.model.task_status import Status
from phalanx.placement import Index, Mask
from phalanx.session.plugin_trace import note_added
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.session.task_filters import own_filters
from phalanx.session.trace_events import GangSkipped
from phalanx.session.trace_searches import NodeConsidered, RoomMade, RoomNotMade
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import FitError, Verdict


class HasGang(Protocol):
    """What is known of a gang, at least the noun."""

    @property
    def gang(self) -> Gang: ...


class Running(Protocol):
    """A running task as the rules of actions see it: a `TaskState`, or the nouns of a gang that the session has not looked at."""

    @property
    def task(self) -> Task: ...
    @property
    def gang(self) -> HasGang: ...
    @property
    def status(self) -> Status: ...


class GangNoun(NamedTuple):
    """A gang as its object describes it, in place of its state."""

    gang: Gang


class RunningNoun(NamedTuple):
    """A running task and its gang, by their nouns."""

    task: Task
    gang: GangNoun
    status: Status


SpareRule = Callable[[Running], Spared | None]
"""Says why an action leaves a running task alone; None for one that plugins are asked about."""
TOO_LITTLE_ROOM = "its victims together leave too little room"
VICTIMS_NOT_ENOUGH = "without its victims it still does not fit, or its queue has no room"


def starving_gangs(session: Session, action: str, *, skips_topology: bool) -> list[GangState]:
    """Return the gangs that may take room from others: admitted, valid, and short of their minimum."""
    return [gang for gang in session.gangs.values() if not _why_passed_over(session, gang, action, skips_topology)]


def calm_gangs(session: Session) -> list[GangState]:
    """Return the gangs for which an earlier session looked for victims in vain; what it said of them is said again."""
    calm = [gang for key in session.snapshot.calm if (gang := session.gangs.get(key)) is not None]
    return [gang for gang in calm if session.gang_valid(gang).ok and session.gang_starving(gang).ok]


def _why_passed_over(session: Session, gang: GangState, action: str, skips_topology: bool) -> str:
    """Say why a gang takes no room from others, and trace it; empty if it may."""
    reason = ""
    if gang.phase in ("", "Pending"):
        reason = "not admitted yet"
    elif gang.key in session.snapshot.calm:
        reason = "nothing has changed since it was tried"
    elif not (verdict := session.gang_valid(gang)).ok:
        reason = verdict.message
    elif not session.gang_starving(gang).ok:
        return "it does not starve"
    elif skips_topology and gang.gang.topology is not None:
        reason = "it has a network topology"
    if reason:
        session.trace.note(GangSkipped, gang.key, action, reason)
    return reason


def gang_heap(session: Session, gangs: list[GangState]) -> dict[str, list[Any]]:
    """Return the gangs of each queue as a heap, first come first."""
    number = count()
    heaps: dict[str, list[Any]] = {}
    for gang in gangs:
        note_added(session, gang)
        heaps.setdefault(gang.gang.queue, []).append((session.gang_key(gang), next(number), gang))
    for heap in heaps.values():
        heapify(heap)
    return heaps


def refuse_line(heap: list[Any], action: str, overused: Verdict) -> None:
    """Record on gangs of a queue that takes nothing from others why nobody is evicted for them."""
    numbers = {**overused.numbers, "cause": overused.reason, "purpose": "reclaim", "in_reach": 1}
    for _, _, gang in heap:
        gang.no_victims.append(Verdict.refuse(action, "NoVictims", overused.message, **numbers))


def waiting_tasks(session: Session, gang: GangState) -> list[TaskState]:
    """Return the tasks of a gang that wait for a node, the next one last."""
    waiting = [task for task in gang.tasks if task.status is Status.PENDING and not task.task.is_gated]
    return session.sorted_tasks(waiting)[::-1]


def victim_reason(voters: Sequence[str], victims: Sequence[TaskState], line: Sequence[TaskState], node: str) -> str:
    """Say who let the next victim go and where it stood among those of its node; `line` are the ones behind it."""
    return f"let go by {', '.join(voters)}; number {len(victims) - len(line)} of {len(victims)} in the order of victims on {node}"


def why_refused(verdict: Verdict) -> str:
    """Return the sentence of a refusal, or its reason code if it has none; empty for a yes."""
    return "" if verdict.ok else verdict.message or verdict.reason


class DryRun:
    """The nodes as one preemptor sees them before anybody is evicted for it.

    Filters refuse a node for good (`is_final`: no eviction helps) or for now. Only the former take a node out of the candidates.

    Answers made from counts of other pods (`is_prepared`: affinity, spread) stay as they were when the dry run began, even when
    one of those pods is evicted. So it is in Volcano, whose filters read what they prepared before the eviction. With
    `sees_evictions`, as in topology-aware preemption, those that can be counted again are (`is_recounted`).
    """

    def __init__(self, session: Session, task: TaskState) -> None:
        """Ask every filter once about all nodes."""
        self._session, self._task = session, task
        self.request = session.request_of(task.task.shape)
        count = len(session.snapshot.nodes)
        hopeless: Mask = np.zeros(count, dtype=np.bool_)
        self._prepared: Mask = np.zeros(count, dtype=np.bool_)
        self._stays: Mask = np.zeros(count, dtype=np.bool_)
        for _, layers in session.screen(task.task.shape, slice(None)):
            for layer in layers:
                if layer.is_final:
                    hopeless |= layer.refused
                if layer.is_prepared:
                    self._prepared |= layer.refused
                    self._stays |= layer.refused & (not layer.is_recounted)
        for layers in own_filters(session, task, ~hopeless).layers:
            for layer in layers:
                if layer.is_final:
                    hopeless |= layer.refused
        known = task.error.final if isinstance(task.error, FitError) else None
        self.refused: Mask = hopeless if known is None else hopeless & ~known
        """The nodes that refuse the task for good, besides those that did so before."""
        self.candidates: Mask = ~hopeless if known is None else ~(hopeless | known)

    def leave_out(self, nodes: Mask) -> None:
        """Take nodes out of the candidates."""
        self.candidates = self.candidates & ~nodes

    def nodes(self) -> Index:
        """Return the nodes worth a look, in their order."""
        return np.flatnonzero(self.candidates)

    def nodes_by_score(self) -> list[int]:
        """Return the nodes worth a look, best first; none when scoring fails."""
        if not self.candidates.any():
            return []
        scores = self._session.node_view(self._task.task.shape).scores(self.candidates)
        if scores is None:
            return []
        extra = self._session.task_scores(self._task, self.candidates)
        if extra is not None:
            scores = scores + extra
        nodes = self.nodes()
        return [int(number) for number in nodes[np.argsort(-scores[nodes], kind="stable")]]

    def could_fit(self, node: int, victims: list[TaskState]) -> bool:
        """Tell whether the room of a node and of all victims together covers the request."""
        room = self._session.ledger.future[:, node].copy()
        for victim in victims:
            room += self._session.request_of(victim.task.shape).amounts
        return all(room[row] >= amount for row, amount in self.request.rows)

    def fits(self, node: int) -> bool:
        """Tell whether the future room of a node covers the request now."""
        future = self._session.ledger.future
        return all(future[row, node] >= amount for row, amount in self.request.rows)

    def passes(self, node: int, *, sees_evictions: bool = False) -> bool:
        """Tell whether the filters let the task onto the node now; `sees_evictions` counts affinity anew."""
        if (self._stays if sees_evictions else self._prepared)[node]:
            return False
        where = np.array([node], dtype=np.int64)
        for _, layers in self._session.screen(self._task.task.shape, where):
            if any(layer.refused[0] for layer in layers if not layer.is_prepared or (sees_evictions and layer.is_recounted)):
                return False
        return passes_own_filters(self._session, self._task, node)


def passes_own_filters(session: Session, task: TaskState, node: int) -> bool:
    """Tell whether the filters that depend on the task itself let it onto the node now."""
    where = np.array([node], dtype=np.int64)
    return not any(layer.refused[0] for layers in session.task_screen(task, where) for layer in layers)


def why_spared(session: Session, task: Running, preemptor: GangState, purpose: str) -> Spared | None:
    """Say why a gang-aware action does not consider a running task; None if it does.

    It considers less important tasks of the same queue, or those of a queue that gives.
    """
    gang, mine = task.gang.gang, preemptor.gang
    if task.gang is preemptor:
        return Spared.SAME_GANG
    if gang.is_preemptable is False or not task.task.is_preemptable:
        return Spared.NOT_PREEMPTABLE
    if purpose != "preempt":
        return _why_not_reclaimed(session, task, mine.queue)
    if gang.queue != mine.queue:
        return Spared.OTHER_QUEUE
    return None if gang.priority < mine.priority else Spared.NOT_LOWER


def _why_not_reclaimed(session: Session, task: Running, queue: str) -> Spared | None:
    theirs = session.queues[task.gang.gang.queue]
    if theirs.name == queue:
        return Spared.SAME_QUEUE
    if not theirs.is_reclaimable:
        return Spared.NOT_RECLAIMABLE
    if task.status is not Status.RUNNING:
        return Spared.NOT_RUNNING
    return None if may_give(session, theirs) else Spared.KEEPS_ALL


def candidates_on(session: Session, node: int, task: TaskState, spared: SpareRule, *, is_trial: bool = False) -> list[TaskState]:
    """Return who runs on a node and may be considered for a task, before plugins are asked."""
    running = session.running_on(node)
    if session.trace.wants(NodeConsidered.trial_level if is_trial else NodeConsidered.at_level, task.gang.key):
        why, name = Counter(reason.of_tasks for reason in map(spared, running) if reason), session.node_name(node)
        session.trace.note(NodeConsidered, task.gang.key, task.task.key, name, len(running), why, is_trial=is_trial)
    return [victim for victim in running if not spared(victim)]


def note_room(session: Session, task: TaskState, node: int, victims: Sequence[TaskState]) -> None:
    """Record what victims on a node make room for."""
    if session.trace.wants(3, task.gang.key):
        freed: Resources = {}
        for victim in victims:
            freed = add(freed, victim.task.shape.request)
        names = [victim.task.key for victim in victims]
        requested = dict(task.task.shape.request)
        session.trace.note(RoomMade, task.gang.key, task.task.key, session.node_name(node), names, freed, requested)


def note_no_room(session: Session, task: TaskState, node: int, reason: str) -> None:
    """Record why a node cannot be cleared for a task."""
    if session.trace.wants(5, task.gang.key):
        session.trace.note(RoomNotMade, task.gang.key, task.task.key, session.node_name(node), reason)


def may_give(session: Session, queue: Queue) -> bool:
    """Tell whether any task of a queue could be reclaimed; True also where only a question about the task itself can tell.

    Asking the queue first spares a question to every plugin for every task of a queue that has nothing to give. It is possible
    only where all plugins must agree; where a tier can overrule the protection of another, the queue alone decides nothing.
    """
    return session.policy.victim_rule != "all-agree" or bool(session.queue_surplus(queue).any())
