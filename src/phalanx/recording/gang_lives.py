"""The lives of gangs in a recording: when each came, was whole, was interrupted and ended, and which pods it had.

A gang is whole while its minimum runs, as in a simulation; whoever compares both compares the same thing. Pods come and go while a
gang waits and is evicted: a *seat* of a gang is one of its pods together with those that took its place.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from phalanx.explain.gang_status import has_minimum
from phalanx.model.kinds import Document, object_key
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.state.cluster import ClusterState
from phalanx.state.gang_state import GangState


class Stand(StrEnum):
    """Where a pod stands."""

    THERE = "there"
    LEAVING = "leaving"
    GONE = "gone"
    FAILED = "failed"
    SUCCEEDED = "succeeded"


@dataclass(slots=True)
class Seat:
    """One of the pods of a gang, and those that took its place."""

    pod: Document
    """The first one, as it came."""
    arrived: float
    uid: str
    key: str
    """Of the pod that has the seat now."""
    stand: Stand = Stand.THERE
    since: float = 0.0
    """When it came to stand there."""
    node: str = ""
    running: float | None = None
    """Since when its pod runs."""
    has_lost_node: bool = False
    """Its pod left a node that was cordoned, not ready or gone: no scheduler evicted it."""
    is_preempted: bool = False
    """Its pod says that a scheduler evicted it."""
    ended: float | None = None
    failures: list[float] = field(default_factory=list)
    """When its pods failed, and others came in their place."""

    @property
    def is_vacant(self) -> bool:
        """Tell whether another pod may take the seat."""
        return self.stand in (Stand.LEAVING, Stand.GONE, Stand.FAILED)

    def set_stand(self, stand: Stand, now: float) -> None:
        """Note where the pod stands from now on."""
        if self.stand is not stand:
            self.stand, self.since = stand, now
            self.ended = now if stand in (Stand.SUCCEEDED, Stand.FAILED) else self.ended


class Ending(StrEnum):
    """What became of a gang by the end of the recording."""

    ENDED = "ended"
    """Its work is done, or somebody ended it while it ran."""
    RUNS = "runs"
    WAITS = "waits"
    DELETED = "deleted"
    """It went before it had started."""


@dataclass(slots=True)
class GangLife:
    """One gang from its arrival to its end; times in seconds since 1970."""

    key: GangKey
    number: int
    """How many gangs of this key there were before, and this one."""
    came: float
    """When its group or its first pod came."""
    ran_before: bool = False
    """It had pods on nodes when the recording began."""
    was_over: bool = False
    """It had ended before the recording began."""
    queue: str = ""
    groups: dict[tuple[str, str], Document] = field(default_factory=dict)
    """Its group objects as they were before it started."""
    seats: list[Seat] = field(default_factory=list)
    seat_by_uid: dict[str, Seat] = field(default_factory=dict)
    """Of every pod that has or had one."""
    spans: list[tuple[float, float | None]] = field(default_factory=list)
    """When it was whole, from and to."""
    evicted: int = 0
    displaced: int = 0
    """How many of its pods ran, left a node that was in order before their end, and came back."""
    is_closed: bool = False
    """What comes under its name from now on is another gang."""

    @property
    def name(self) -> str:
        """Namespace and name; a later gang of the same name has a number."""
        return self.key if self.number == 1 else f"{self.key}-{self.number}"

    @property
    def submitted(self) -> float:
        """When its first pod came, or its group while it has none."""
        return min((seat.arrived for seat in self.seats), default=self.came)

    @property
    def started(self) -> float | None:
        """When it was whole for the first time."""
        return self.spans[0][0] if self.spans else None

    @property
    def is_whole(self) -> bool:
        """Tell whether it is whole now."""
        return bool(self.spans) and self.spans[-1][1] is None

    @property
    def wait(self) -> float | None:
        """Seconds from its arrival to its first start; None if it never started."""
        return None if self.started is None else max(self.started - self.submitted, 0.0)

    @property
    def ending(self) -> Ending:
        """What became of it."""
        if self.is_whole:
            return Ending.RUNS
        has_any = any(seat.stand in (Stand.THERE, Stand.LEAVING) for seat in self.seats)
        if has_any or not (self.seats or self.is_closed):
            return Ending.WAITS
        return Ending.ENDED if self.spans else Ending.DELETED

    @property
    def finished(self) -> float | None:
        """When it ended; None if it has not."""
        return self.spans[-1][1] if self.ending is Ending.ENDED else None

    def patience(self) -> float | None:
        """Return the seconds from its arrival until somebody deleted it before it had started; None if nobody did."""
        if self.ending is not Ending.DELETED or not self.seats:
            return None
        return max(seat.since for seat in self.seats) - self.submitted

    def worked(self, now: float) -> float:
        """Return the seconds of its longest span, until now."""
        return max(((now if until is None else until) - since for since, until in self.spans), default=0.0)

    @property
    def lost(self) -> int:
        """How many of its pods a scheduler evicted, and nobody made again."""
        return sum(seat.is_preempted and seat.stand in (Stand.LEAVING, Stand.GONE, Stand.FAILED) for seat in self.seats)

    def duration(self) -> float | None:
        """Return how long its work took, from its last start to its end; None if it has not ended, or was evicted for good."""
        if self.finished is None or self.lost:
            return None
        return self.finished - self.spans[-1][0]

    def duration_of(self, seat: Seat) -> float | None:
        """Return how long one of its pods worked until it ended well; None if it did not."""
        starts = [since for since, _ in self.spans if seat.ended is not None and since <= seat.ended]
        if seat.stand is not Stand.SUCCEEDED or seat.ended is None or not starts:
            return None
        return seat.ended - max(starts[-1], seat.running or 0.0)

    # --- what is heard -----------------------------------------------------------------------------------------------

    def put_group(self, group: Document) -> None:
        """A group object came or changed; what happens to it once the gang has started is no part of what was submitted."""
        place = (group["apiVersion"], object_key(group))
        first = self.groups.setdefault(place, group)
        if not self.spans and first.get("spec") != group.get("spec"):
            self.groups[place] = {**first, "spec": group.get("spec")}

    def seat_of(self, pod: Document, now: float) -> tuple[Seat, float | None]:
        """Return the seat of a pod, a new one if need be; and how long the seat was vacant, if the pod took it over."""
        uid, key = pod["metadata"].get("uid", ""), object_key(pod)
        if uid in self.seat_by_uid:
            return self.seat_by_uid[uid], None
        vacant = min((seat for seat in self.seats if seat.is_vacant), key=lambda seat: _distance(seat, key, pod), default=None)
        if vacant is None:
            self.seats.append(Seat(pod, now, uid, key, since=now))
            self.seat_by_uid[uid] = self.seats[-1]
            return self.seats[-1], None
        for_seconds = now - vacant.since if vacant.stand is not Stand.LEAVING else 0.0
        if vacant.stand is Stand.FAILED:
            vacant.failures.append(vacant.since)
        elif vacant.running is not None and not vacant.has_lost_node:
            self.displaced += 1
        vacant.uid, vacant.key, vacant.running, vacant.ended = uid, key, None, None
        vacant.has_lost_node = vacant.is_preempted = False
        vacant.set_stand(Stand.THERE, now)
        self.seat_by_uid[uid] = vacant
        return vacant, for_seconds

    def look(self, state: ClusterState, now: float) -> None:
        """Note whether it is whole, and whether it is over."""
        gang, members = state.gang(self.key), state.members(self.key)
        is_whole = False
        if gang is not None:
            self.queue = gang.queue
            running = [task for task in members.values() if task.status is Status.RUNNING]
            at_work = [task for task in members.values() if task.status in (Status.RUNNING, Status.SUCCEEDED)]
            is_whole = bool(running) and has_minimum(GangState(gang, ((task, -1) for task in at_work)))
        if is_whole and not self.is_whole:
            self.spans.append((now, None))
        elif self.is_whole and not is_whole:
            self.spans[-1] = (self.spans[-1][0], now)
        is_done = bool(self.seats) and all(seat.stand is Stand.SUCCEEDED for seat in self.seats)
        self.is_closed = not members and (is_done or (bool(self.groups) and gang is None))


def _distance(seat: Seat, key: str, pod: Document) -> tuple[bool, bool]:
    """Return how unlike the last pod of a seat is another pod."""
    return seat.key != key, seat.pod["spec"].get("containers") != pod["spec"].get("containers")


class GangLives:
    """The lives of all gangs, by their keys."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lives: list[GangLife] = []
        self._current: dict[GangKey, GangLife] = {}

    def __iter__(self) -> Iterator[GangLife]:
        return iter(self.lives)

    def of(self, key: GangKey, now: float) -> GangLife:
        """Return the life of a gang that is there; a new one begins where the last one is over."""
        known = self._current.get(key)
        if known is None or known.is_closed:
            known = GangLife(key, 1 if known is None else known.number + 1, now)
            self._current[key] = known
            self.lives.append(known)
        return known

    def find(self, key: GangKey) -> GangLife | None:
        """Return the last life of a gang, whether or not it is over."""
        return self._current.get(key)
