"""Victims in bundles: what a gang can spare, and the rest of it, which goes as a whole or not at all."""

from dataclasses import dataclass, field
from functools import cmp_to_key

import numpy as np

from phalanx.actions.dry_run import Running, candidates_on, why_spared
from phalanx.model.task_status import EVICTABLE, READY
from phalanx.placement import Amounts, Mask
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.state.gang_state import GangState, TaskState


@dataclass(slots=True)
class VictimBundle:
    """Tasks of one gang that are evicted together; those inside the domain make room there."""

    gang: GangState
    is_safe: bool
    tasks: list[TaskState]
    value: float = np.inf
    """What the domain gains for what the gang loses, higher is better; infinite for safe bundles, which cost their gang nothing."""
    voters: list[str] = field(default_factory=list)
    """The plugins that let its tasks go."""


class VictimBundles:
    """Collects bundles in a domain for one gang that starves."""

    def __init__(self, session: Session, preemptor: GangState, purpose: str, *, allows_whole: bool) -> None:
        """Collect for this gang; `purpose` is preempt or reclaim, `allows_whole` lets bundles break their gang."""
        self._session, self._preemptor, self._purpose, self._allows_whole = session, preemptor, purpose, allows_whole

    def bundles(self, domain: Mask, waiting: list[TaskState]) -> list[VictimBundle]:
        """Return the bundles in the order in which they are given up, as far as the plugins agree."""
        need = self._sum(waiting)
        made = [bundle for gang in self._victim_gangs(domain, waiting[0]) for bundle in self._split(gang, domain, need)]
        made.sort(key=cmp_to_key(self._compare))
        # All are asked about together, in their order: what the first take from a queue the next have to leave to it.
        candidates = [task for bundle in made for task in bundle.tasks]
        allowed = set(map(id, self._session.evictable(waiting[0], candidates, self._purpose))) if candidates else set()
        return [kept for bundle in made if (kept := self._filtered(bundle, allowed)) is not None]

    def _victim_gangs(self, domain: Mask, preemptor: TaskState) -> list[GangState]:
        found: dict[str, GangState] = {}
        for node in np.flatnonzero(domain).tolist():
            for task in candidates_on(self._session, node, preemptor, self._why_spared):
                found[task.gang.key] = task.gang
        return [found[key] for key in sorted(found)]

    def _may_go(self, task: TaskState) -> bool:
        return not self._why_spared(task)

    def _why_spared(self, task: Running) -> Spared | None:
        return why_spared(self._session, task, self._preemptor, self._purpose)

    def _split(self, gang: GangState, domain: Mask, need: Amounts) -> list[VictimBundle]:
        """Return what a gang can spare in the domain, and the rest of it: a gang that goes whole gives all it has anywhere."""
        movable = [task for task in gang.tasks if task.node >= 0 and self._is_movable(task)]
        movable.sort(key=lambda task: (task.task.priority, task.task.uid))
        local = [task for task in movable if domain[task.node]]
        safe = self._spare(gang, local)
        rest = self._rest(gang, movable) if gang.gang.goes_whole and local else [task for task in local if task not in safe]
        bundles = [VictimBundle(gang, True, safe)] if safe else []
        if self._allows_whole and rest:
            bundles.append(
                VictimBundle(gang, False, rest, self._value_of(rest, [task for task in gang.tasks if task.node >= 0], need))
            )
        return bundles

    def _rest(self, gang: GangState, movable: list[TaskState]) -> list[TaskState]:
        """Return all of a gang that only goes as a whole, or nothing if a part of it may not go."""
        return movable if len(movable) == sum(task.status in EVICTABLE for task in gang.tasks) else []

    def _is_movable(self, task: TaskState) -> bool:
        return task.status in EVICTABLE and self._may_go(task)

    def _spare(self, gang: GangState, local: list[TaskState]) -> list[TaskState]:
        """Return tasks that a gang can lose and stay whole; all of them when it is broken already."""
        left = 0 if gang.gang.goes_whole else gang.tally.ready - gang.gang.min_member
        if left < 0:
            return local
        roles = {role: tally.total(READY) - gang.gang.role_minima[role] for role, tally in gang.role_tallies.items()}
        spare = []
        for task in local:
            role_left = roles.get(task.task.role, 1) if gang.gang.roles_count else 1
            if left > 0 and role_left > 0:
                spare.append(task)
                left -= 1
                if task.task.role in roles:
                    roles[task.task.role] -= 1
        return spare

    def _value_of(self, inside: list[TaskState], everywhere: list[TaskState], need: Amounts) -> float:
        """Return the part of the need that a bundle covers, relative to all that its gang loses; 0 when it loses nothing."""
        local, total = self._sum(inside), self._sum(everywhere)
        rows = np.flatnonzero(need)
        gain = float(sum(min(local[row], need[row]) / need[row] for row in rows))
        cost = float(sum(total[row] / need[row] for row in rows))
        return gain / cost if cost else 0.0

    def _sum(self, tasks: list[TaskState]) -> Amounts:
        total = np.zeros(len(self._session.snapshot.space), dtype=np.int64)
        for task in tasks:
            total += self._session.request_of(task.task.shape).amounts
        return total

    def _filtered(self, bundle: VictimBundle, allowed: set[int]) -> VictimBundle | None:
        """Return the bundle without tasks that plugins protect; None when none is left, or when a whole gang would be cut."""
        kept = [task for task in bundle.tasks if id(task) in allowed]
        if not kept or (not bundle.is_safe and len(kept) < len(bundle.tasks)):
            return None
        return VictimBundle(bundle.gang, bundle.is_safe, kept, bundle.value, self._session.voters())

    def _compare(self, left: VictimBundle, right: VictimBundle) -> int:
        if left.is_safe != right.is_safe:
            return -1 if left.is_safe else 1
        if order := self._order(left, right):
            return order
        if left.value != right.value:
            return -1 if left.value > right.value else 1
        return -1 if left.gang.key < right.gang.key else 1

    def _order(self, left: VictimBundle, right: VictimBundle) -> int:
        mine, its = left.gang, right.gang
        if self._purpose == "reclaim" and mine.gang.queue != its.gang.queue:
            return self._session.victim_queue_compare(mine.gang.queue, its.gang.queue, self._preemptor.gang.queue)
        if self._purpose == "preempt" and mine is not its:
            keys = self._session.gang_key(mine), self._session.gang_key(its)
            return 0 if keys[0] == keys[1] else (-1 if keys[0] > keys[1] else 1)
        return 0
