"""Evictions that know gangs: room is made for a whole gang in one network domain, by taking what other gangs can spare first and
whole gangs after that, never a part that would leave a gang broken.

There are two ways to choose victims, a setting of the actions. *bundles* is Volcano's: victims of a whole domain in one order, as
many as it takes, wide domains first. It evicts more than needed, because the order does not know on which nodes the gang will be:
1,400 tasks for the gang of 200 in `phalanx bench evict`, where 800 are enough. *fewest* is ours (`victim_search.py`): narrow
domains first, where `allocate` would have put the gang.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from heapq import heappop
from itertools import product
from math import prod

import numpy as np

from phalanx.actions.domain_trace import domain_name, note_domains
from phalanx.actions.dry_run import calm_gangs, gang_heap, refuse_line, starving_gangs, waiting_tasks, why_refused, why_spared
from phalanx.actions.eviction_bounds import EvictionBounds, Shortage
from phalanx.actions.eviction_domains import narrow_domains
from phalanx.actions.eviction_worth import EvictionWorth
from phalanx.actions.gang_places import dominant_share
from phalanx.actions.hopeless_trace import why_hopeless
from phalanx.actions.needed_tasks import missing_roles, tasks_needed
from phalanx.actions.node_costs import NodeCostTable
from phalanx.actions.queue_heap import Heap
from phalanx.actions.reservations import Reservations
from phalanx.actions.victim_bundles import VictimBundle, VictimBundles
from phalanx.actions.victim_search import RoomRequest, VictimSearch
from phalanx.actions.victim_survey import NEVER_PREEMPTS, SearchRule, record_no_victims
from phalanx.errors import ConfigError
from phalanx.model.queue import Queue
from phalanx.placement import Mask
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.task_filters import own_filters
from phalanx.session.task_order import pending_tasks
from phalanx.session.trace_events import GangSkipped, QueueNext, QueueOverused
from phalanx.session.trace_searches import DomainChosen, DomainLeft, DomainTried, MayNotEvict, NoTaskLeft
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.label_domains import label_domains
from phalanx.state.verdict import YES, Verdict

NO_VICTIMS = "no victims there make room for enough of its tasks"
MOST_CHOICES = 64
"""So many choices of members that make a gang whole are tried at most, if members differ; beyond that only the smallest."""


class GangEvictionAction:
    """What gangpreempt and gangreclaim share."""

    name = ""
    purpose = ""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        self.most_domains = settings.integer("maxDomains", 8)
        self.allows_whole = settings.switch("allowWholeBundle", True)
        self.victims = settings.text("victims", "bundles")
        if self.victims not in ("bundles", "fewest"):
            raise ConfigError(f"action {self.name!r}, argument 'victims': {self.victims!r} is unknown; write 'bundles' or 'fewest'")
        settings.done()

    def run(self, session: Session) -> None:
        """Work through the queues in order, and through their starving gangs."""
        self.cost_table, self.bounds = NodeCostTable(), session.book(EvictionBounds)
        self.reservations, self.worth = Reservations.of(session), EvictionWorth.of(session)
        heaps = gang_heap(session, starving_gangs(session, self.name, skips_topology=False))
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted(heaps):
            queues.push(session.queues[name])
        for calm in calm_gangs(session):
            _Attempt(session, calm, session.queues[calm.gang.queue], self).record_no_victims()
        while len(queues) and not session.is_moot:
            queue = queues.pop()
            overused = session.queue_overused(queue) if self.purpose == "reclaim" else YES
            if not overused.ok:
                session.trace.note(QueueOverused, queue.name, overused.plugin, overused.message)
                refuse_line(heaps[queue.name], self.name, overused)
                continue
            gangs = heaps[queue.name]
            session.trace.note(QueueNext, self.name, queue.name, len(gangs))
            while gangs and not session.is_moot:
                gang: GangState = heappop(gangs)[-1]
                if session.gang_starving(gang).ok:
                    if self.reservations is not None:
                        self.reservations.hold_for(gang, evicts=True)
                    _Attempt(session, gang, queue, self).run()
        if self.reservations is not None:
            self.reservations.release()


class GangPreemptAction(GangEvictionAction):
    """Makes room inside a queue."""

    name = "gangpreempt"
    purpose = "preempt"


class GangReclaimAction(GangEvictionAction):
    """Makes room between queues."""

    name = "gangreclaim"
    purpose = "reclaim"


class _Attempt:
    """One gang's search for a domain that can be cleared for it."""

    def __init__(self, session: Session, gang: GangState, queue: Queue, action: GangEvictionAction) -> None:
        self._session, self._gang, self._queue, self._action = session, gang, queue, action
        self._tree = session.snapshot.hypernodes

    def run(self) -> None:
        if self._is_hopeless() or not self._makes_room(self._waiting()):
            self.record_no_victims()

    def _makes_room(self, waiting: list[TaskState]) -> bool:
        """Search for victims and decide their evictions; tell whether there are any."""
        if not waiting:
            self._session.trace.note(NoTaskLeft, self._gang.key, self._action.name)
            return False
        if self._action.victims == "fewest":
            choices = member_choices(self._session, self._gang, waiting)
            return any(self._may_take_all(needed) and self._makes_room_somewhere(needed) for needed in choices)
        if not self._may_take_together(waiting):
            return False
        return any(self._evict_bundles(domain, name, hypernode, waiting) for name, hypernode, domain in self._domains())

    def _makes_room_somewhere(self, needed: list[TaskState]) -> bool:
        return any(self._make_room(domain, name, needed) for name, _, domain in self._domains())

    def record_no_victims(self) -> None:
        """Leave on the gang why nobody is evicted for it."""
        if not self._session.policy.says_why:
            return
        waiting = (task for task in pending_tasks(self._gang.tasks) if not task.is_backfilled)
        task = min(waiting, key=lambda task: task.task.key, default=None)
        if task is None:
            return
        rule = SearchRule(
            self._action.name, self._action.purpose, "evictable",
            lambda victim: why_spared(self._session, victim, self._gang, self._action.purpose), takes_wholes=True,
        )  # fmt: skip
        worth = self._action.worth
        refusal = None if worth is None else worth.refusals.get(self._gang.key)
        record_no_victims(self._session, task, rule, refusal or self._eligibility(task))

    def _is_hopeless(self) -> bool:
        """Tell whether a gang of equal tasks may take nothing, or asks for more than evictions could free; False for other gangs.

        It is asked before anything is sorted or searched: on a full cluster the gangs that cannot win come back in every session.
        """
        tasks = [task for task in pending_tasks(self._gang.tasks) if not task.is_backfilled]
        if self._action.victims != "fewest" or len({task.task.shape for task in tasks}) != 1:
            return False
        if not all(task.task.may_preempt for task in tasks):
            return False
        if not self._may_take(tasks[0]):
            self._note_hopeless(tasks, None)
            return True
        needed = tasks_needed(self._gang, tasks)
        shortage = self._action.bounds.shortage(self._gang, needed, self._action.purpose) if needed else None
        if shortage is not None:
            self._note_hopeless(needed, shortage)
        return shortage is not None

    def _note_hopeless(self, tasks: list[TaskState], shortage: Shortage | None) -> None:
        """Record why nothing is searched; without a shortage it is that nothing may be taken for the first task."""
        session, gang = self._session, self._gang
        if not session.trace.wants(GangSkipped.at_level, gang.key):
            return
        if shortage is None:
            reason = f"task {tasks[0].task.key}: {why_refused(self._eligibility(tasks[0]))}"
        else:
            reason = why_hopeless(session, gang, tasks, self._action.purpose, shortage)
        session.trace.note(GangSkipped, gang.key, self._action.name, reason)

    def _make_room(self, domain: Mask, name: str, needed: list[TaskState]) -> bool:
        room_request = RoomRequest(self._gang, self._queue, self._action.purpose, self._action.name)
        search = VictimSearch(self._session, room_request, self._action.cost_table, self._action.bounds, self._action.worth)
        is_made = search.make_room(domain, needed)
        self._note_end(name, is_made)
        return is_made

    def _note_end(self, domain: str, is_made: bool) -> None:
        if is_made:
            self._session.trace.note(DomainChosen, self._gang.key, domain)
        else:
            self._session.trace.note(DomainLeft, self._gang.key, domain, NO_VICTIMS)

    def _waiting(self) -> list[TaskState]:
        """Return the tasks to serve: all that wait for room, or those of the first sub-group when the gang is whole already."""
        tasks = [task for task in waiting_tasks(self._session, self._gang)[::-1] if not task.is_backfilled]
        if tasks and self._session.gang_ready(self._gang).ok:
            return [task for task in tasks if task.subgroup is tasks[0].subgroup]
        return tasks

    def _may_take_together(self, tasks: list[TaskState]) -> bool:
        """Tell whether room may be made for all tasks at once: what the queue deserves must cover them together."""
        if not all(task.task.may_preempt for task in tasks):
            return False
        return self._action.purpose == "preempt" or self._session.queue_preemptive(self._queue, tasks).ok

    def _may_take_all(self, tasks: list[TaskState]) -> bool:
        """Tell whether room may be made for all tasks; one of each kind is asked for, equal ones get the same answer."""
        kinds = {(task.task.shape, task.task.may_preempt): task for task in tasks}
        return all(self._may_take(task) for task in kinds.values())

    def _may_take(self, task: TaskState) -> bool:
        """Tell whether a task may have room made for it; for one without requests no share of a queue is counted."""
        reason = why_refused(self._eligibility(task))
        if reason:
            self._session.trace.note(MayNotEvict, self._gang.key, task.task.key, self._action.purpose, reason)
        return not reason

    def _eligibility(self, task: TaskState) -> Verdict:
        if not task.task.may_preempt:
            return NEVER_PREEMPTS
        if self._action.purpose == "preempt" or task.task.is_best_effort:
            return YES
        return self._session.queue_preemptive(self._queue, [task])

    def _domains(self) -> Iterator[tuple[str, int, Mask]]:
        """Yield the domains to try, each with its name and its HyperNode."""
        for name, hypernode, nodes in self._all_domains():
            self._session.trace.note(DomainTried, self._gang.key, name, self._action.name)
            yield name, hypernode, nodes

    def _all_domains(self) -> Iterator[tuple[str, int, Mask]]:
        """Yield the domains: wide ones first for bundles, narrow ones first for fewest victims."""
        label = self._gang.gang.label
        if label:
            for part in label_domains(self._gang, self._session.snapshot.nodes)[: self._action.most_domains]:
                yield f"{label}={part.value}", self._tree.top, part.nodes
            return
        if self._action.victims == "bundles":
            gradients = self._session.hypernode_gradients(self._gang, self._tree.top, "evict")[::-1]
        else:
            gradients = narrow_domains(self._session, self._gang)
        note_domains(self._session, self._gang, self._action.name, gradients)
        for hypernode in [number for gradient in gradients for number in gradient][: self._action.most_domains]:
            domain = np.zeros(len(self._session.snapshot.nodes), dtype=np.bool_)
            domain[self._tree.members[hypernode]] = True
            yield domain_name(self._tree, hypernode), hypernode, domain

    def _evict_bundles(self, domain: Mask, name: str, hypernode: int, waiting: list[TaskState]) -> bool:
        """Evict bundles one after the other until the gang fits into the domain; tell whether it did, and decide it if so."""
        finder = VictimBundles(self._session, self._gang, self._action.purpose, allows_whole=self._action.allows_whole)
        with self._session.statement() as statement:
            bundles = finder.bundles(domain, waiting)
            for number, bundle in enumerate(bundles, 1):
                reason = self._reason(bundle, f"number {number} of {len(bundles)} bundles in the order of victims")
                for task in bundle.tasks:
                    statement.evict(task, action=self._action.name, preemptor=self._gang.key, reason=reason)
                if self._has_places(domain, waiting) and self._try(domain, waiting, statement):
                    self._note_end(name, True)
                    statement.commit()
                    for subgroup in self._subgroups(waiting):
                        subgroup.nominated_hypernode = self._tree.names[hypernode]
                    return True
            if statement.operations and self._has_room(domain, waiting):
                # It fails again, but as the last attempt with everybody gone: its tasks remember how far they got, for `explain`.
                self._try(domain, waiting, statement)
        self._note_end(name, False)
        return False

    def _has_places(self, domain: Mask, waiting: list[TaskState]) -> bool:
        """Tell whether placing the tasks could work, by sums; for equal tasks that other pods do not matter to, by places."""
        shape = waiting[0].task.shape
        if not self._has_room(domain, waiting):
            return False
        if self._session.is_local(shape) and len({self._session.class_of(task.task.shape) for task in waiting}) == 1:
            return self._session.node_view(shape).room_in(domain) >= self._smallest_subgroup(waiting)
        return True

    def _has_room(self, domain: Mask, waiting: list[TaskState]) -> bool:
        # As in Volcano, room that is pipelined to others is not subtracted here. It only costs an attempt that fails.
        ledger = self._session.ledger
        room = (ledger.idle + ledger.releasing)[:, domain].sum(axis=1)
        need = sum(self._session.request_of(task.task.shape).amounts for task in waiting)
        return bool(np.all((room >= need) | (need == 0)))

    def _smallest_subgroup(self, waiting: list[TaskState]) -> int:
        """Return the size of the smallest sub-group; no fewer tasks are ever placed."""
        return min(Counter(task.subgroup.id for task in waiting).values())

    def _try(self, domain: Mask, waiting: list[TaskState], statement: Statement) -> bool:
        """Place tasks of the gang; tell whether it then has a place for enough of them."""
        mark = statement.checkpoint()
        for subgroup in self._subgroups(waiting):
            self._place([task for task in waiting if task.subgroup is subgroup], domain, statement)
            if statement.checkpoint() > mark and self._session.gang_pipelined(self._gang):
                return True
        statement.rollback(mark)
        return False

    def _subgroups(self, waiting: list[TaskState]) -> list[SubGroupState]:
        found = {task.subgroup.id: task.subgroup for task in waiting}
        return sorted(found.values(), key=self._session.subgroup_key)

    def _place(self, tasks: list[TaskState], domain: Mask, statement: Statement) -> None:
        """Pipeline each task onto the best node of the domain, as far as the queue has room; all of them or none."""
        mark = statement.checkpoint()
        for task in tasks:
            has_quota = self._session.queue_room(self._queue, task.task.shape).tasks > 0
            node = self._best_node(task, domain) if has_quota else None
            if node is None:
                statement.rollback(mark)
                return
            statement.pipeline([task], [node])

    def _best_node(self, task: TaskState, domain: Mask) -> int | None:
        if not self._session.prefilter(task).ok:
            return None
        node_view = self._session.node_view(task.task.shape)
        own = own_filters(self._session, task, domain & node_view.feasible)
        for _, mask in node_view.groups(within=own.narrow(domain)):
            if mask.any():
                return node_view.best(mask, extra=self._session.task_scores(task, mask))
        return None

    def _reason(self, bundle: VictimBundle, rank: str) -> str:
        what = "its gang keeps its minimum" if bundle.is_safe else "its whole gang goes"
        what = f"{what}; let go by {', '.join(bundle.voters)}; {rank}"
        if self._action.purpose == "preempt":
            mine, its = self._gang.gang.priority, bundle.tasks[0].gang.gang.priority
            return f"preempted by gang {self._gang.key} (priority {mine} over {its}); {what}"
        theirs = bundle.tasks[0].gang.gang.queue
        return f"reclaimed from queue {theirs} for gang {self._gang.key} of queue {self._queue.name}; {what}"


def member_choices(session: Session, gang: GangState, waiting: list[TaskState]) -> Iterator[list[TaskState]]:
    """Yield the ways to make the gang whole: the first tasks in their order, then, if tasks differ, others, small ones first."""
    first = tasks_needed(gang, waiting)
    if not first:
        return  # nobody who waits could make a sub-group whole
    yield first
    if len(first) < len(waiting):
        yield from _other_member_choices(session, gang, waiting, len(first))


def _other_member_choices(session: Session, gang: GangState, waiting: list[TaskState], count: int) -> Iterator[list[TaskState]]:
    groups: dict[tuple[Hashable, str], list[TaskState]] = {}
    for task in waiting:
        groups.setdefault((session.class_of(task.task.shape), task.task.role), []).append(task)
    if len({kind for kind, _ in groups}) == 1:
        return  # any choice needs the same room as the first one
    small_first = sorted(groups.values(), key=lambda tasks: dominant_share(session, tasks[0].task.shape))
    if prod(len(tasks) + 1 for tasks in small_first) > MOST_CHOICES:
        yield tasks_needed(gang, [task for tasks in small_first for task in tasks])
        return
    for parts in sorted(product(*(range(len(tasks) + 1) for tasks in small_first)), reverse=True):
        chosen = [task for tasks, part in zip(small_first, parts, strict=True) for task in tasks[:part]]
        if len(chosen) == count and all(_count(chosen, role) >= missing for role, missing in missing_roles(gang).items()):
            yield chosen


def _count(tasks: list[TaskState], role: str) -> int:
    return sum(task.task.role == role for task in tasks)
