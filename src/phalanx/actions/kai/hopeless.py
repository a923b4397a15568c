"""Jobs for which no scenario can make room: they need more than the nodes would have if all who may give had left.

A scenario evicts some of them, and places the job on what is free then. That is never more than with all of them gone, so one look
at all nodes tells what otherwise thousands of scenarios do: with each task more of the job the search for victims begins anew.

That room only falls while an action goes on: who is evicted leaves what he held, and who is placed takes some. So a room that was
counted earlier is too large at most, and whoever has no place in it has none. It is counted anew only after a search that failed
although there seemed to be room; where one scenario after the other works, counting thousands of victims each time took most of the
time.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from phalanx.actions.kai.solver import NO_PLACE, TOO_FEW_GPUS
from phalanx.actions.kai.victim_order import holders
from phalanx.model.resources import GPU
from phalanx.model.shape import Shape
from phalanx.placement import Amounts
from phalanx.placement.fit import copies
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState

Victims = Callable[[], list[GangState]]


@dataclass(slots=True)
class _Counted:
    """The room without the victims of a group, as it was in a version of the session."""

    room: Amounts | None
    version: int
    has_failed: bool = False
    """A search that it gave hope for was in vain."""


class RoomWithoutVictims:
    """What all nodes would have without the jobs that may give, for one action; counted once for jobs with the same victims."""

    def __init__(self, session: Session) -> None:
        """Start with nothing counted."""
        self._session = session
        self._rooms: dict[Hashable, _Counted] = {}

    def why_hopeless(self, tasks: Sequence[TaskState], group: Hashable, victims: Victims) -> str:
        """Say why these tasks have no place even without the victims; empty if they may have one.

        `group` stands for the victims: in the same state of the session they are the same for the same group.
        """
        room = self._room(group, victims)
        if room is None or any(task.task.shape.gpu_share is not None for task in tasks):
            return ""  # parts of devices are not in the ledger
        counts = Counter(task.task.shape for task in tasks)
        short = next((shape for shape, count in counts.items() if not self._has_places(room, shape, count)), None)
        return "" if short is None else self._reason(room, short, counts[short])

    def note_failure(self, group: Hashable) -> None:
        """A search was in vain that was not hopeless by the room of its group."""
        if group in self._rooms:
            self._rooms[group].has_failed = True

    def _room(self, group: Hashable, victims: Victims) -> Amounts | None:
        known, version = self._rooms.get(group), self._session.version
        if known is None or (known.has_failed and known.version != version):
            room = self._counted(task for gang in victims() for task in holders(gang))
            known = self._rooms[group] = _Counted(room, version)
        return known.room

    def _counted(self, tasks: Iterable[TaskState]) -> Amounts | None:
        """Return what is free and what these tasks hold, by node; None if one of them holds a part of a device."""
        room: Amounts = self._session.ledger.future.copy()
        for task in tasks:
            if task.task.shape.gpu_share is not None:
                return None
            for row, amount in self._session.request_of(task.task.shape).rows:
                room[row, task.node] += amount
        return room

    def _has_places(self, room: Amounts, shape: Shape, count: int) -> bool:
        return int(np.minimum(copies(room, self._session.request_of(shape)), count).sum()) >= count

    def _reason(self, room: Amounts, shape: Shape, count: int) -> str:
        row, amount = self._session.snapshot.space.row_by_name.get(GPU), shape.request.get(GPU, 0)
        is_short = row is not None and amount > 0 and int((room[row].clip(min=0) // amount).sum()) < count
        return TOO_FEW_GPUS if is_short else NO_PLACE
