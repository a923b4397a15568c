"""Reservations and backfill: the first gangs in line that find no room have a start in time, and who goes ahead leaves it to them.

The law is that of EASY backfill. A gang that ends before a reserved start may use any room; any other is tried with the room taken
out of the books that the reserved gang will need then and that nobody who leaves before gives it. So what starts out of turn ends
before, or does not touch.

Who has a reserved start keeps it: the next session tries and plans for it before all others of its priority, though by then the
shares of queues may let others come first. What was left free for it would be for nothing otherwise. More important gangs need not
leave it anything. Each session makes its own plan: who has started out of turn has left every plan as possible as it was, so the
start is no later. Without known ends there is no plan; then a gang that has waited too long has nodes drained.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from math import inf

import numpy as np

from phalanx.actions.gang_line import Entry
from phalanx.actions.reserved_room import PlannedStart, RoomPlanner, Runs, drain
from phalanx.model.moment import moment_text
from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.model.task_status import Status
from phalanx.placement import Amounts
from phalanx.placement.fit import copies
from phalanx.placement.future_room import Booking, Releases, held_now
from phalanx.session.reservation import ReservationSettings, ReservedStart
from phalanx.session.session import Session
from phalanx.session.trace_events import GangHeldBack, StartReserved
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.run_times import RunTimesBook
from phalanx.state.verdict import Verdict

HELD_BACK = "RoomReserved"
RESERVED = "StartReserved"
LAST_TURN = 19
"""So often at most nodes are drained for a gang, and left to others: after that nobody believes that it helps."""
HoldKey = tuple[tuple[int, ...], tuple[int, ...], bool]
"""The starts that count, the reservations of others, and whether evictions are tried."""
NOBODY_LEAVES = Releases.of(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64))


class Reservations:
    """The reserved starts of one session, and what is held for them in the books at the moment."""

    def __init__(self, session: Session, settings: ReservationSettings) -> None:
        """Start without any."""
        self._session, self._settings = session, settings
        self.times = RunTimesBook(session.snapshot, is_predicted=settings.is_predicted)
        self.planner = RoomPlanner(session, self.times)
        self.made: list[ReservedStart] = []
        self._bookings: list[Booking] = []
        self._held_for: tuple[int, ...] = ()
        self._held: Amounts | None = None
        self._key: HoldKey | None = None
        self._amounts: dict[HoldKey, Amounts] = {}
        self._below_share: dict[Hashable, bool] = {}
        self._known_places: dict[Hashable, tuple[int, int]] = {}

    @classmethod
    def of(cls, session: Session) -> "Reservations | None":
        """Return the reservations of a session, made when first asked for; None where no plugin wants any."""
        known = session.read_state(cls)
        settings = session.read_state(ReservationSettings)
        if known is None and settings is not None:
            known = cls(session, settings)
            session.write_state(known)
        return known

    def before_all(self, line: Iterable[Entry]) -> list[Entry]:
        """Return the gangs that are tried before others: those that had a reserved start, then those that have waited too long.

        There are no more of them than starts are reserved, so shares of queues go on to decide about all others.
        """
        turns = {key: turn for turn, key in enumerate(self._session.snapshot.reserved)}
        found: list[tuple[int, int, float, Entry]] = []
        for entry in line:
            gang = entry.gang.gang
            if gang.key in turns:
                found.append((-gang.priority, 0, turns[gang.key], entry))
            elif self._is_starved(entry.gang):
                found.append((-gang.priority, 1, waiting_since(entry.gang) or 0.0, entry))
        return self._up_to_depth(sorted(found))

    def _up_to_depth(self, found: Iterable[tuple[int, int, float, Entry]]) -> list[Entry]:
        """Return as many gangs of each priority as have a reserved start, those that have waited too long if they may have one."""
        taken: list[Entry] = []
        count: Counter[int] = Counter()
        for priority, is_new, _, entry in found:
            if not is_new or (count[priority] < self._settings.depth and self._is_below_share(entry.gang)):
                count[priority] += 1
                taken.append(entry)
        return taken

    def _is_starved(self, gang: GangState) -> bool:
        bound = self._session.now - self._settings.starvation_seconds
        return gang.gang.created <= bound and (since := waiting_since(gang)) is not None and since <= bound

    def _is_below_share(self, gang: GangState) -> bool:
        """Tell whether a gang's queue deserves more than it has: a flood of gangs that have waited too long takes no more."""
        queue, task = self._session.queues[gang.gang.queue], _first_waiting(gang)
        if task is None:
            return False
        key = (queue.name, self._session.class_of(task.task.shape))
        if key not in self._below_share:
            self._below_share[key] = self._session.queue_preemptive(queue, [task]).ok
        return self._below_share[key]

    # --- holding -------------------------------------------------------------------------------------------------------

    def hold_for(self, gang: GangState, *, evicts: bool = False) -> None:
        """Take out of the books what this gang must leave to others; what was taken out for the gang before it comes back.

        A gang that `evicts` leaves them all that they will need: who should have left in time may be its victim.
        """
        if not self.made:
            return
        end = self._session.now + self.times.of(gang.gang.key).bound
        others = tuple(self._of_others(gang))
        needed = tuple(number for number in others if self.made[number].start < end)
        key = (needed, others, evicts)
        if key != self._key and (needed or self._key):
            self.release()
            self._hold(key)

    def _of_others(self, gang: GangState) -> Iterator[int]:
        """Yield the numbers of the reserved starts that a gang must respect: those of others that are not less important."""
        for number, each in enumerate(self.made):
            if each.gang != gang.gang.key and each.priority >= gang.gang.priority:
                yield number

    def _hold(self, key: HoldKey) -> None:
        if not key[0]:
            return
        if key not in self._amounts:
            self._amounts[key] = self._amounts_for(*key)
        self._key, self._held, self._held_for = key, self._amounts[key], key[0]
        self._change(self._held)

    def _amounts_for(self, needed: tuple[int, ...], others: tuple[int, ...], evicts: bool) -> Amounts:
        """Return what is held for some starts. Found once: what goes ahead later in the session can only make it less."""
        rows, nodes = self._session.ledger.future.shape
        bookings, moments = [self._bookings[number] for number in others], [self._bookings[number].start for number in needed]
        return held_now(bookings, moments, NOBODY_LEAVES if evicts else self.planner.releases(), (rows, nodes))

    def release(self) -> None:
        """Put everything back into the books."""
        if self._held is not None:
            self._change(-self._held)
        self._held, self._held_for, self._key = None, (), None

    def tell(self) -> None:
        """Leave on every gang with a reserved start when and where that is, and who goes ahead."""
        for each in self.made:
            verdict = Verdict.refuse("reservation", RESERVED, each.text, start=each.start, ahead=len(each.ahead))
            self._session.gangs[each.gang].verdicts.append(verdict)

    def _change(self, amounts: Amounts) -> None:
        nodes = np.flatnonzero(amounts.any(axis=0))
        if len(nodes):
            self._session.hold(amounts[:, nodes], nodes)

    # --- after a try ---------------------------------------------------------------------------------------------------

    def note_try(self, gang: GangState, queue: Queue, *, has_started: bool) -> None:
        """Learn what became of a gang that had its turn: it went ahead of those with a reserved start, or may get one itself."""
        if not has_started:
            self._consider(gang, queue)
            return
        for each in self.made:
            if each.priority >= gang.gang.priority:
                each.ahead.append(gang.gang.key)

    def _consider(self, gang: GangState, queue: Queue) -> None:
        """Reserve a start for a gang that found no room, if it is among the first; tell it if room is kept from it."""
        if self._held_for:
            self._note_held_back(gang)
        self.renew(gang, queue)

    def renew(self, gang: GangState, queue: Queue) -> None:
        """Reserve a start for a gang if it is among the first, and waits for room alone."""
        if any(each.gang == gang.gang.key for each in self.made) or not self._may_have_one(gang):
            return
        before = [self._bookings[number] for number in self._of_others(gang)]
        equals = sum(each.priority == gang.gang.priority for each in self.made)
        runs = self.planner.needed(gang)
        if equals >= self._settings.depth or not self._lacks_room_only(gang, queue, runs):
            return
        self.release()
        planned = self.planner.plan(gang, runs, before)
        if planned is None:
            self._drain_if_starved(gang, runs)
        elif planned.start > self._session.now:  # else it fits, and something else than room refuses it
            lower = self._without_lower(gang)
            self._reserve(gang, planned, is_drained=False)
            for other in lower:
                self.renew(other, self._session.queues[other.gang.queue])

    def _may_have_one(self, gang: GangState) -> bool:
        """Tell whether a gang may have a reserved start; one that is to have it when it has waited longer is asked again then."""
        if not self._settings.for_starved_alone or gang.gang.key in self._session.snapshot.reserved:
            return True
        since = waiting_since(gang)
        if since is None or gang.tally.ready or gang.tally.pipelined:
            return False
        due = since + self._settings.starvation_seconds
        if self._session.now < due < inf:
            self._session.decisions.look_again(due)
        return due <= self._session.now and self._is_below_share(gang)

    def _without_lower(self, gang: GangState) -> list[GangState]:
        """Take back the reserved starts of less important gangs, which have to be planned beside this one, and return these."""
        kept = [number for number, each in enumerate(self.made) if each.priority >= gang.gang.priority]
        if len(kept) == len(self.made):
            return []
        lower = [self._session.gangs[each.gang] for each in self.made if each.priority < gang.gang.priority]
        self.made, self._bookings = [self.made[number] for number in kept], [self._bookings[number] for number in kept]
        self._session.decisions.reservations[:] = self.made
        self._amounts.clear()
        return lower

    def plan(self, gang: GangState, freed: Amounts) -> PlannedStart | None:
        """Return when a gang could start beside the reserved starts of others; `freed` is in the books and does not count."""
        others = [self._bookings[number] for number in self._of_others(gang)]
        held = freed if self._held is None else freed - self._held
        return self.planner.plan(gang, self.planner.needed(gang), others, free=self._session.ledger.future - held)

    def _lacks_room_only(self, gang: GangState, queue: Queue, runs: Runs) -> bool:
        """Tell whether a gang waits for nodes alone: nothing of it runs or has a place, and its queue would let all of it in."""
        if gang.tally.pipelined or gang.tally.ready or self._session.gang_ready(gang).ok:
            return False
        if any(task.status is Status.PENDING and (task.task.nominated_node or task.task.is_gated) for task in gang.tasks):
            return False
        return bool(runs) and all(self._is_let_in(run, queue) for run in runs)

    def _is_let_in(self, run: list[TaskState], queue: Queue) -> bool:
        """Tell whether a queue has room for equal tasks, or lacks it only because the whole cluster has none."""
        session, shape = self._session, run[0].task.shape
        room = session.queue_room(queue, shape)
        if room.tasks >= len(run):
            return True
        with session.question() as trial:
            trial.pipeline(run[: room.tasks], [0] * room.tasks)
            refusal = session.queue_room(queue, shape).verdict.numbers
        names = session.snapshot.space.names
        if refusal.get("resource") not in names or "limit" not in refusal:
            return False
        return float(refusal["limit"]) >= float(session.ledger.allocatable[names.index(str(refusal["resource"]))].sum())

    def _drain_if_starved(self, gang: GangState, runs: Runs) -> None:
        """Keep nodes for a gang that has waited too long, for as long as it had waited then; others have as long a turn after that.

        Nobody knows whether those on the nodes ever end.
        """
        since, bound = waiting_since(gang), self._settings.starvation_seconds
        if since is None or bound == inf:
            return
        turn = int((self._session.now - since) // bound) if bound else 1
        if bound and turn <= LAST_TURN:
            self._session.decisions.look_again(since + (turn + 1) * bound)
        if turn % 2 == 0 or turn > LAST_TURN:
            return
        found = self._least_lack(gang, runs)
        if found is not None:
            self._reserve(gang, found, is_drained=True)

    def _least_lack(self, gang: GangState, runs: Runs) -> PlannedStart | None:
        """Return the nodes to drain for a gang."""
        ledger, demand = self._session.ledger, self.planner.demand(runs)
        best: tuple[float, PlannedStart] | None = None
        for name, domain in self.planner.domains(gang):
            found = drain(demand, domain, ledger.future, ledger.allocatable)
            if found is not None and (best is None or found[0] < best[0]):
                best = found[0], PlannedStart(self._session.now + self._settings.drain_seconds, found[1], name)
        return None if best is None else best[1]

    def _reserve(self, gang: GangState, planned: PlannedStart, *, is_drained: bool) -> None:
        session, key = self._session, gang.gang.key
        nodes = np.flatnonzero(planned.amounts.any(axis=0))
        end = inf if is_drained else planned.start + self.times.of(key).bound
        self._bookings.append(Booking(planned.start, end, nodes, planned.amounts[:, nodes]))
        names = tuple(session.node_name(int(node)) for node in nodes)
        made = ReservedStart(key, gang.gang.priority, planned.start, names, planned.domain, is_drained)
        self.made.append(made)
        session.decisions.reservations.append(made)
        session.decisions.look_again(planned.start)
        session.trace.note(StartReserved, gang.key, planned.start, list(names), planned.domain, is_drained)

    def _note_held_back(self, gang: GangState) -> None:
        """Tell a gang that it would have room if none were kept for others."""
        task = _first_waiting(gang)
        if task is None or gang.tally.pipelined or not self._session.policy.says_why:
            return
        needed = max(gang.gang.min_member - gang.tally.ready, 1)
        here, without = self._places(task.task.shape)
        if not here < needed <= without:
            return
        holder = self.made[self._held_for[0]]
        holder.held_back.append(gang.gang.key)
        when = "until it starts" if holder.is_drained else f"from {moment_text(int(holder.start))} on"
        text = f"room for it is kept for gang {holder.gang} {when}"
        gang.verdicts.append(Verdict.refuse("reservation", HELD_BACK, text, gang=holder.gang, start=holder.start))
        self._session.trace.note(GangHeldBack, gang.key, holder.gang, holder.start)

    def _places(self, shape: Shape) -> tuple[int, int]:
        """Return how many tasks of a shape find room now, and how many would if nothing were held; equal shapes share it."""
        key = (self._session.class_of(shape), self._session.version)
        if key not in self._known_places:
            assert self._held is not None
            node_view, request = self._session.node_view(shape), self._session.request_of(shape)
            nodes = np.flatnonzero(self._held.any(axis=0) & node_view.allowed)
            room, held = self._session.ledger.future[:, nodes], self._held[:, nodes]
            here = int(node_view.room(is_now=False).sum())
            self._known_places[key] = here, here + int((copies(room + held, request) - copies(room, request)).sum())
        return self._known_places[key]


def _first_waiting(gang: GangState) -> TaskState | None:
    return next((task for task in gang.tasks if task.status is Status.PENDING and not task.is_backfilled), None)


def waiting_since(gang: GangState) -> float | None:
    """Return since when a gang waits: since it was made, or since its waiting pods were; None when nobody says."""
    pods = [task.task.created for task in gang.tasks if task.status is Status.PENDING]
    since = max(gang.gang.created, min(pods, default=0.0))
    return since or None
