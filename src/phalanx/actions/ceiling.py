"""The most room that a gang could get inside its queue: what is free, and what all less important gangs of the queue hold.

A gang that asks for more needs no search. Only sums are looked at, so that the answer costs next to nothing.
"""

from collections.abc import Sequence

import numpy as np

from phalanx.core.session import Session
from phalanx.core.states import GangState, TaskState
from phalanx.placement import Amounts


class Ceiling:
    """Answers for all gangs of one action."""

    def __init__(self, session: Session) -> None:
        """Look at nobody yet."""
        self._session = session
        self._held: dict[str, list[tuple[int, Amounts]]] = {}

    def may_hold(self, gang: GangState, tasks: Sequence[TaskState]) -> bool:
        """Tell whether equal tasks of a gang could find room if everybody less important of its queue went, and anybody would."""
        gains = [held for priority, held in self._holdings(gang.gang.queue) if priority < gang.gang.priority and held.any()]
        if not gains:
            return False
        need = np.zeros(len(self._session.snapshot.space), dtype=np.int64)
        for task in tasks:
            need += self._session.request_of(task.task.shape).amounts
        room = np.maximum(self._session.ledger.future, 0).sum(axis=1)
        for held in gains:
            room += held
        return bool(np.all((room >= need) | (need == 0)))

    def _holdings(self, queue: str) -> list[tuple[int, Amounts]]:
        """Return what the gangs of a queue hold, by priority."""
        if queue not in self._held:
            space, found = self._session.snapshot.space, dict[int, Amounts]()
            for key, gang in self._session.snapshot.gangs.items():
                if gang.queue == queue:
                    held = found.setdefault(gang.priority, np.zeros(len(space), dtype=np.int64))
                    for name, amount in self._session.snapshot.gang_totals[key].allocated.items():
                        held[space.row_by_name[name]] += amount
            self._held[queue] = list(found.items())
        return self._held[queue]
