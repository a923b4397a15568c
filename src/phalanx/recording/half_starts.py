"""Gangs that hold nodes for nothing: some of their pods have a place, but fewer than their minimum.

A gang is *half-started* from then on until it has its minimum or holds nothing any more. One that was whole and has lost members is
not meant. Whoever schedules needs a moment to bind a gang, so what is shorter than `GRACE_SECONDS` is no half-start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from phalanx.explain.gang_status import has_minimum
from phalanx.model.gang import Gang
from phalanx.model.held_amount import held_amount
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import HOLDING, READY
from phalanx.recording.use_over_time import COUNTED
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot

GRACE_SECONDS = 30.0


@dataclass(slots=True)
class HalfStart:
    """One gang that held nodes without its minimum, in seconds since 1970."""

    gang: GangKey
    since: float
    seen: float
    """Until when it was so, as far as was seen."""
    placed: int
    minimum: int
    held: dict[str, float]
    """What its pods hold now, by resource."""
    held_seconds: dict[str, float] = field(default_factory=dict)
    """The same times seconds, in all of the time."""
    is_over: bool = False

    @property
    def seconds(self) -> float:
        """How long it has been so."""
        return self.seen - self.since

    def last_until(self, now: float) -> None:
        """It has been so until now."""
        for resource, amount in self.held.items():
            self.held_seconds[resource] = self.held_seconds.get(resource, 0.0) + amount * (now - self.seen)
        self.seen = now


class HalfStarts:
    """Follows the gangs of a cluster, look by look."""

    def __init__(self) -> None:
        """Begin before the first look."""
        self.current: dict[GangKey, HalfStart] = {}
        self._was_whole: set[GangKey] = set()

    def look(self, snapshot: Snapshot) -> list[HalfStart]:
        """Look at the cluster; return the half-starts that are over."""
        halves = {key: half for key in snapshot.gangs if (half := self._half(key, snapshot)) is not None}
        self._was_whole &= snapshot.gangs.keys()
        over = []
        for key, half in list(self.current.items()):
            half.last_until(snapshot.now)
            if key not in halves:
                half.is_over = True
                over.append(self.current.pop(key))
        for key, half in halves.items():
            known = self.current.setdefault(key, half)
            known.placed, known.minimum, known.held = half.placed, half.minimum, half.held
        return over

    def lasting(self, now: float) -> list[HalfStart]:
        """Return those that are no matter of a moment."""
        return [half for half in self.current.values() if now - half.since >= GRACE_SECONDS]

    def _half(self, key: GangKey, snapshot: Snapshot) -> HalfStart | None:
        gang, members = snapshot.gangs[key], snapshot.members_of(key)
        holding = [task for task in members.values() if task.status in HOLDING]
        if not holding:
            self._was_whole.discard(key)  # whatever comes now is another start
            return None
        if key in self._was_whole:
            return None
        if _is_whole(gang, members):
            self._was_whole.add(key)
            return None
        return HalfStart(key, snapshot.now, snapshot.now, len(holding), gang.min_member, _held(holding))


def _is_whole(gang: Gang, members: Mapping[TaskKey, Task]) -> bool:
    return has_minimum(GangState(gang, ((task, -1) for task in members.values() if task.status in READY)))


def _held(tasks: Iterable[Task]) -> dict[str, float]:
    everybody = list(tasks)
    return {resource: sum(held_amount(task, resource) for task in everybody) for resource in COUNTED}
