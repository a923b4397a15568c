"""Give waiting gangs nodes: a gang gets its minimum or nothing, then its further tasks one by one.

Queues are served in turn, gangs in order, tasks in order. A gang without sub-groups and without a hard network constraint
takes the flat path below; the others search network domains (`allocate_domains.py`) or values of a node label
(`allocate_labels.py`) with the same task loop.
"""

from collections.abc import Mapping
from functools import cmp_to_key
from itertools import chain, count

from phalanx.actions.allocate_domains import DomainSearch
from phalanx.actions.allocate_labels import LabelSearch
from phalanx.actions.allocate_tasks import TaskPlacer
from phalanx.actions.gang_line import Entry, GangLine, lines_by_queue
from phalanx.actions.gang_runs import GangRuns
from phalanx.actions.nominated import keep_nominated, nominated_tasks, retake_places
from phalanx.actions.placeholders import nominate_places_of_placeholders
from phalanx.actions.queue_heap import Heap
from phalanx.actions.reservations import Reservations
from phalanx.model.queue import Queue
from phalanx.session.arguments import Arguments
from phalanx.session.plugin_trace import note_added, note_line
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.task_order import pending_tasks
from phalanx.session.trace_events import (
    GangPipelined,
    GangReady,
    GangsAhead,
    GangSkipped,
    GangTried,
    QueueNext,
    QueueOverused,
    QueuesOrdered,
)
from phalanx.state.gang_state import GangState
from phalanx.state.staleness import is_stale
from phalanx.state.verdict import Verdict


class AllocateAction:
    """Places gangs on free room, or pipelines them onto room that is being released."""

    name = "allocate"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        enabled = settings.switch("predicateErrorCacheEnable", True)
        self.remembers_failed_roles = settings.switch("enablePredicateErrorCache", enabled)
        had_other_name = settings.switch("promisedFirst", False)
        self._keeps_nominated = settings.switch("nominatedFirst", False) or had_other_name
        self._completes_broken = settings.switch("brokenFirst", False)
        settings.done()

    def run(self, session: Session) -> None:
        """Serve queues in turn until no gang is left to try.

        A queue is compared anew each time it comes up: what it was just given counts. One that is overused is out for good.
        """
        nominate_places_of_placeholders(session)
        gangs_by_queue = self._gangs_by_queue(session)
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted(gangs_by_queue):
            queues.push(session.queues[name])
        if session.trace.level >= 3:
            in_order = sorted((session.queues[name] for name in gangs_by_queue), key=cmp_to_key(session.queue_compare))
            session.trace.note(QueuesOrdered, [queue.name for queue in in_order])
        allocator = _GangAllocator(session, TaskPlacer(session, remembers_failed_roles=self.remembers_failed_roles))
        if self._keeps_nominated:
            allocator.keep_places(gangs_by_queue)
            allocator.keep_all_nominated(gangs_by_queue)
        if self._completes_broken:
            allocator.complete_broken(gangs_by_queue)
        allocator.try_reserved(gangs_by_queue)
        while len(queues):
            queue = queues.pop()
            overused = session.queue_overused(queue)
            if not overused.ok:
                session.trace.note(QueueOverused, queue.name, overused.plugin, overused.message)
                _record_refusal(gangs_by_queue[queue.name], overused)
                continue
            gangs = gangs_by_queue[queue.name]
            if gangs:
                session.trace.note(QueueNext, self.name, queue.name, len(gangs))
                allocator.try_next(gangs, queue, is_alone=not len(queues))
                queues.push(queue)
        allocator.release()

    def _gangs_by_queue(self, session: Session) -> dict[str, GangLine]:
        candidates = [gang for gang in session.gangs.values() if self._is_candidate(session, gang)]
        if session.trace.level >= GangsAhead.at_level:
            note_line(session, self.name, candidates)
        return lines_by_queue(session, candidates)

    def _is_candidate(self, session: Session, gang: GangState) -> bool:
        if gang.phase in ("", "Pending"):
            if "enqueue" in session.policy.actions:
                session.trace.note(GangSkipped, gang.key, self.name, "not admitted yet")
                return False
            gang.phase = "Inqueue"
        verdict = session.gang_valid(gang)
        if not verdict.ok:
            gang.verdicts.append(verdict)
            session.trace.note(GangSkipped, gang.key, self.name, verdict.message)
            return False
        if not any(not task.is_backfilled for task in pending_tasks(gang.tasks)):
            return False
        if session.trace.level:
            note_added(session, gang)
        return True


def _record_refusal(gangs: GangLine, verdict: Verdict) -> None:
    """Record on gangs of a queue that is passed over why they were not tried."""
    for entry in gangs:
        entry.gang.verdicts.append(verdict)


class _GangAllocator:
    """Places gangs one by one; a gang that was committed and has tasks left goes back in line."""

    def __init__(self, session: Session, placer: TaskPlacer) -> None:
        self._session, self._placer = session, placer
        self._domains = DomainSearch(session, placer)
        self._labels = LabelSearch(session, placer)
        self._runs = GangRuns(session, placer)
        self._reservations = Reservations.of(session)
        self._number = count(1 << 40)  # who comes again is behind all equals that have not had a turn

    def keep_all_nominated(self, gangs_by_queue: dict[str, GangLine]) -> None:
        """Place gangs on their nominated nodes before anybody else can take the room, be it their queue's turn or not.

        Their victims are gone or going: if others took the room now, victims would be evicted again, for nothing.
        """
        for name, gangs in gangs_by_queue.items():
            nominated = sorted(entry for entry in gangs if nominated_tasks(entry.gang))
            gangs.remove([entry for entry in nominated if not self._stays_in_line(entry.gang, self._session.queues[name])])

    def keep_places(self, gangs_by_queue: dict[str, GangLine]) -> None:
        """Let gangs that may keep places without being whole take their nominated nodes again.

        All of them do before any looks for more places: otherwise the first could take what another one holds.
        """
        entries = [entry for gangs in gangs_by_queue.values() for entry in gangs if nominated_tasks(entry.gang)]
        holders = sorted(entry for entry in entries if self._session.tolerated_gap(entry.gang) is not None)
        kept = [(entry, retake_places(self._session, entry.gang, self._queue_of(entry.gang))) for entry in holders]
        for entry, statement in kept:
            if not (self._complete(entry.gang, statement) and self._placer.has_tasks_left(entry.gang)):
                gangs_by_queue[entry.gang.gang.queue].remove([entry])

    def _complete(self, gang: GangState, held: Statement) -> bool:
        """Look for the places that a gang still lacks; tell whether it is whole now."""
        more = self._placer.place(next(iter(gang.subgroups.values())), self._queue_of(gang))
        if more is None:
            held.discard()
            return False
        held.merge(more)
        return self._commit_or_keep(gang, held)

    def _queue_of(self, gang: GangState) -> Queue:
        return self._session.queues[gang.gang.queue]

    def complete_broken(self, gangs_by_queue: dict[str, GangLine]) -> None:
        """Try gangs that run below a minimum before those that have not started, be it their queue's turn or not."""
        for entry in sorted(entry for gangs in gangs_by_queue.values() for entry in gangs if is_stale(entry.gang)):
            queue = self._queue_of(entry.gang)
            if self._session.queue_overused(queue).ok:
                gangs_by_queue[queue.name].remove([entry])
                self._try(entry.gang, gangs_by_queue[queue.name], queue)

    def try_reserved(self, gangs_by_queue: dict[str, GangLine]) -> None:
        """Try gangs that had a reserved start before all that are not more important, be it their queue's turn or not."""
        if self._reservations is None:
            return
        for entry in self._reservations.before_all(chain.from_iterable(gangs_by_queue.values())):
            gang, queue = entry.gang, self._queue_of(entry.gang)
            line = gangs_by_queue[queue.name]
            if not self._session.queue_overused(queue).ok:
                continue
            if line.first.gang.priority <= gang.gang.priority:
                line.remove([entry])
                self._try(gang, line, queue)
            else:  # who is more important in its queue has its turn before; nobody else gets its start
                self._reservations.renew(gang, queue)

    def _stays_in_line(self, gang: GangState, queue: Queue) -> bool:
        """Place a gang on its nominated nodes; True when that fails, or when it has more tasks to place in its turn."""
        if not keep_nominated(self._session, gang, queue):
            return True
        return self._session.gang_ready(gang).ok and self._placer.has_tasks_left(gang)

    def try_next(self, gangs: GangLine, queue: Queue, *, is_alone: bool) -> None:
        """Try the first gang of a queue; if no other queue waits, perhaps together with those behind it that are like it."""
        has_reserved = self._reservations is not None and bool(self._reservations.made)
        if has_reserved or not self._runs.place(gangs, queue, is_alone=is_alone):
            self._try(gangs.pop(), gangs, queue)

    def _try(self, gang: GangState, gangs: GangLine, queue: Queue) -> None:
        self._session.trace.note(GangTried, gang.key, queue.name, len(self._session.decisions.binds))
        if self._reservations is not None:
            self._reservations.hold_for(gang)
        if gang.gang.label:
            committed = self._labels.allocate(gang, queue)
        elif uses_domains(gang):
            committed = self._domains.allocate(gang, queue)
        else:
            committed = self._allocate_flat(gang, queue)
        if self._reservations is not None:
            self._reservations.note_try(gang, queue, has_started=committed)
        if committed and self._placer.has_tasks_left(gang):
            gangs.push(Entry(self._session.gang_key(gang), next(self._number), gang))

    def release(self) -> None:
        """Leave the books as they are, with nothing held for anybody, and tell gangs of their reserved starts."""
        if self._reservations is not None:
            self._reservations.release()
            self._reservations.tell()

    def _allocate_flat(self, gang: GangState, queue: Queue) -> bool:
        subgroup = next(iter(gang.subgroups.values()))
        statement = self._placer.place(subgroup, queue)
        return statement is not None and self._commit_or_keep(gang, statement)

    def _commit_or_keep(self, gang: GangState, statement: Statement) -> bool:
        """Commit what was placed if that makes the gang ready, and tell whether it does.

        Otherwise the places stay taken until the session ends: the gang is pipelined, and nobody behind it may use them.
        """
        if self._session.gang_ready(gang).ok:
            statement.commit()
            self._session.trace.note(GangReady, gang.key)
            return True
        statement.keep()
        self._session.trace.note(GangPipelined, gang.key)
        return False


def uses_domains(gang: GangState) -> bool:
    """Tell whether the gang needs the search over network domains and sub-groups."""
    return gang.has_subgroups or gang.allowed_tier is not None
