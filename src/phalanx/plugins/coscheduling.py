"""Waiting as Coscheduling's users know it: a time limit, a pause after a failure, and places that are held, or not, until all fit.

Pessimistic, a gang holds nothing until all of its minimum fits. Optimistic, members that found a place keep it as their
nominated node until the others have one or the time is up. What must be remembered between two sessions stands on the group: since
when it waits, and when it last failed. A gang that pods alone make has no such place: its time runs from its creation, once.
"""

import math

from phalanx.errors import ConfigError
from phalanx.model.gang import Gang
from phalanx.model.moment import moment_of, moment_text
from phalanx.model.resources import PODS, add, quantity_text
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Amounts
from phalanx.session.arguments import Arguments
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES, Verdict

WAITS_SINCE, LAST_FAILURE = "phalanx.dev/waits-since", "phalanx.dev/last-failure"
OPTIMISTIC, PESSIMISTIC = "optimistic", "pessimistic"
EVICTING = frozenset({"preempt", "reclaim", "gangpreempt", "gangreclaim"})


class CoschedulingPlugin:
    """Limits how long a gang waits, lets it pause after a failure, and says whether it holds places meanwhile."""

    name = "coscheduling"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the settings."""
        settings = Arguments(self.name, policy.arguments)
        self._permit_seconds = settings.at_least("permitWaitingTimeSeconds", 60, 0)
        self._backoff_seconds = settings.at_least("podGroupBackoffSeconds", 0, 0)
        self._reject_percentage = settings.integer("podGroupRejectPercentage", 10)
        self._is_optimistic = settings.choice("reservation", PESSIMISTIC, (OPTIMISTIC, PESSIMISTIC)) == OPTIMISTIC
        settings.done()
        self._free: Amounts | None = None
        """What all nodes together have, for the early check; counted once in a session."""
        if not 0 <= self._reject_percentage <= 100:
            where = f"plugin {self.name!r}, argument 'podGroupRejectPercentage'"
            raise ConfigError(f"{where}: {self._reject_percentage} is not a percentage; write a whole number from 0 to 100")

    # --- order -------------------------------------------------------------------------------------------------------

    def gang_order(self, session: Session, gang: GangState) -> tuple[bool, int, float, str]:
        """Gangs that hold places first, then higher priority, then those that failed or came longest ago, then by name."""
        noun = gang.gang
        return not self._holds(session, gang), -noun.priority, _moment(noun, LAST_FAILURE) or noun.created, noun.key

    def _holds(self, session: Session, gang: GangState) -> bool:
        return self.tolerated_gap(session, gang) is not None and any(task.task.nominated_node for task in gang.tasks)

    # --- who may be tried --------------------------------------------------------------------------------------------

    def gang_valid(self, session: Session, gang: GangState) -> Verdict:
        """Refuse a gang whose time is up, that pauses, that would hold places for gated members, or that asks for too much."""
        if self._is_over(session, gang.gang):
            return self._timeout(gang)
        left = _moment(gang.gang, LAST_FAILURE) + self._backoff_seconds - session.now
        if left > 0:
            session.decisions.look_again(session.now + left)
            message = f"it failed and pauses, tried again in {math.ceil(left)} s"
            return Verdict.refuse(self.name, "GroupBackoff", message, seconds=left)
        gated = sum(task.task.is_gated and task.status is Status.PENDING for task in gang.tasks)
        if gated and gang.valid - gated < gang.gang.min_member and self.tolerated_gap(session, gang) is not None:
            return self._gated(gang, gated)
        return self._enough_in_all(session, gang)

    def _limit(self, gang: Gang) -> float | None:
        return gang.schedule_timeout_seconds or self._permit_seconds or None

    def _deadline(self, gang: Gang) -> float | None:
        """Return when the time of a gang is up; None while it does not run, or without a limit."""
        since, limit = _moment(gang, WAITS_SINCE) if gang.has_object else gang.created, self._limit(gang)
        return None if limit is None or not since else since + limit

    def _is_over(self, session: Session, gang: Gang) -> bool:
        deadline = self._deadline(gang)
        return gang.has_object and deadline is not None and session.now >= deadline

    def _timeout(self, gang: GangState) -> Verdict:
        limit, kept = self._limit(gang.gang) or 0.0, sum(bool(task.task.nominated_node) for task in gang.tasks)
        what = f"gives back {kept} places that it kept and " if kept else ""
        then = f"in {self._backoff_seconds:g} s" if self._backoff_seconds else "in the next session"
        message = f"not whole within {limit:g} s; it {what}is tried again {then}"
        return Verdict.refuse(self.name, "ScheduleTimeout", message, seconds=limit, kept=kept)

    def _gated(self, gang: GangState, gated: int) -> Verdict:
        needed, have = gang.gang.min_member, gang.valid - gated
        names = sorted({name for task in gang.tasks if task.status is Status.PENDING for name in task.task.gates})
        message = f"{gated} members are held back by scheduling gates ({', '.join(names)}), and {needed} are needed; {have} are not"
        return Verdict.refuse(self.name, "GatedMembers", message, gated=gated, needed=needed)

    def _enough_in_all(self, session: Session, gang: GangState) -> Verdict:
        """Refuse a gang whose minResources are more than all nodes together have left, or have, where others can be evicted."""
        if not gang.gang.checks_min_resources or not gang.gang.min_resources:
            return YES
        may_evict = bool(EVICTING.intersection(session.policy.actions))
        room, rows = self._room(session, may_evict=may_evict), session.snapshot.space.row_by_name
        own = {} if may_evict else _held_by(gang)
        for name, wanted in {**gang.gang.min_resources, PODS: gang.gang.min_member}.items():
            have = own.get(name, 0) + (int(room[rows[name]]) if name in rows else 0)
            if have < wanted:
                return self._too_little(name, wanted, have, "there are" if may_evict else "free are")
        return YES

    def _room(self, session: Session, *, may_evict: bool) -> Amounts:
        if self._free is None:
            snapshot = session.snapshot
            taken = 0 if may_evict else snapshot.used - snapshot.releasing
            self._free = (snapshot.nodes.allocatable - taken).sum(axis=1)
        return self._free

    def _too_little(self, name: str, wanted: int, have: int, verb: str) -> Verdict:
        message = f"its minResources ask for {quantity_text(name, wanted)} {name} in all, {verb} {quantity_text(name, have)}"
        return Verdict.refuse(self.name, "MinResources", message, resource=name, wanted=wanted, have=have)

    # --- holding -----------------------------------------------------------------------------------------------------

    def tolerated_gap(self, session: Session, gang: GangState) -> int | None:
        """Let a gang keep places, if it may at all and while its time runs, as long as not too much of it lacks."""
        noun = gang.gang
        deadline = self._deadline(noun)
        is_over = deadline is not None and session.now >= deadline
        if is_over or gang.has_subgroups or gang.allowed_tier is not None or not (self._is_optimistic or noun.keeps_places):
            return None
        return noun.min_member if noun.keeps_places else noun.min_member * self._reject_percentage // 100

    def close(self, session: Session) -> None:
        """Pipeline the tasks of gangs that keep their places; write on groups since when they wait and when they failed."""
        for gang in filter(self._concerns, session.gangs.values()):
            if any(verdict.reason == "ScheduleTimeout" for verdict in gang.verdicts):
                self._stamp(session, gang, WAITS_SINCE, None)
                self._stamp(session, gang, LAST_FAILURE, session.now)
                session.decisions.look_again(session.now + self._backoff_seconds)
            elif gang.tasks and session.gang_ready(gang).ok:
                self._stamp(session, gang, WAITS_SINCE, None)
                self._stamp(session, gang, LAST_FAILURE, None)
            elif any(map(_was_tried, gang.tasks)):
                self._go_on_waiting(session, gang)

    def _concerns(self, gang: GangState) -> bool:
        noun = gang.gang
        has_stamps = WAITS_SINCE in noun.annotations or LAST_FAILURE in noun.annotations
        return has_stamps or bool(self._limit(noun) or self._backoff_seconds or self._is_optimistic)

    def _go_on_waiting(self, session: Session, gang: GangState) -> None:
        for task in [task for task in gang.tasks if task.status is Status.ALLOCATED]:
            gang.move(task, Status.PIPELINED)
            task.is_kept = True
        if self._limit(gang.gang) is not None and not _moment(gang.gang, WAITS_SINCE):
            self._stamp(session, gang, WAITS_SINCE, session.now)
        if self._backoff_seconds and not gang.tally.pipelined:
            self._stamp(session, gang, LAST_FAILURE, session.now)
            session.decisions.look_again(session.now + self._backoff_seconds)
        since, limit = _moment(gang.gang, WAITS_SINCE) or session.now, self._limit(gang.gang)
        if limit is not None and since + limit > session.now:
            session.decisions.look_again(since + limit)

    def _stamp(self, session: Session, gang: GangState, key: str, moment: float | None) -> None:
        text = None if moment is None else moment_text(moment)
        if gang.gang.has_object and gang.gang.annotations.get(key) != text:
            session.decisions.stamp(gang.gang.key, key, text)


def _moment(gang: Gang, key: str) -> float:
    """Return the moment that an annotation of a group holds; 0 without one."""
    text = gang.annotations.get(key)
    return 0.0 if text is None else moment_of(text) or 0.0


def _was_tried(task: TaskState) -> bool:
    has_place = task.status is Status.ALLOCATED or task.status is Status.PIPELINED
    return has_place or task.attempt is not None or task.error is not None or task.refusal is not None


def _held_by(gang: GangState) -> dict[str, int]:
    held: dict[str, int] = {}
    for task in gang.tasks:
        if task.status in HOLDING:
            held = add(held, task.task.shape.request)
    return held
