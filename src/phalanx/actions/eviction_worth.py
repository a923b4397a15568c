"""Whether evictions give more than they destroy: what victims lose against what the preemptor would wait without them.

How long it would wait is known where run times are. Where they are not, evictions are worth what they cost.
"""

from collections.abc import Sequence
from math import inf

from phalanx.actions.reservations import Reservations
from phalanx.actions.reserved_room import PlannedStart, RoomPlanner
from phalanx.model.moment import moment_text
from phalanx.placement import Amounts
from phalanx.session.eviction_cost import EvictionCostSettings
from phalanx.session.session import Session
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.lost_work import weight_of
from phalanx.state.run_times import RunTimesBook
from phalanx.state.verdict import Verdict

SECONDS = 1000
"""Thousandths of GPU seconds in one."""
HOUR = 3600
WAITS_INSTEAD = "EvictionCostsMore"


class EvictionWorth:
    """Compares for the gangs of one action."""

    def __init__(self, session: Session, settings: EvictionCostSettings) -> None:
        """Start without any comparison."""
        self._session, self._most_lost = session, settings.most_lost
        self._reservations = Reservations.of(session)
        self._planner = RoomPlanner(session, RunTimesBook(session.snapshot)) if self._reservations is None else None
        self._starts: dict[tuple[str, int], float] = {}
        self.refusals: dict[str, Verdict] = {}
        """By gang: why it waits instead of evicting somebody."""

    @classmethod
    def of(cls, session: Session) -> "EvictionWorth | None":
        """Return a comparison for an action; None where anything may be lost."""
        settings = session.read_state(EvictionCostSettings)
        return None if settings is None or settings.most_lost == inf else cls(session, settings)

    def permits(self, gang: GangState, tasks: Sequence[TaskState], lost: int, freed: Amounts) -> bool:
        """Tell whether a gang may evict for these tasks; `freed` is what its victims leave, which is in the books already."""
        start = self._start(gang, freed)
        gained = (start - self._session.now) * sum(weight_of(task.task.shape) for task in tasks)
        if start == inf or lost <= self._most_lost * gained:
            return True
        text = (
            f"its victims would lose {_hours(lost)} of work, and it would gain {_hours(gained)}: "
            f"it can start at {moment_text(int(start))} without evictions"
        )
        self.refusals[gang.key] = Verdict.refuse(
            "evictioncost", WAITS_INSTEAD, text, lost=lost / SECONDS, gained=gained / SECONDS, start=start
        )  # fmt: skip
        return False

    def _start(self, gang: GangState, freed: Amounts) -> float:
        """Return when a gang could start without evictions; asked once as long as no others are decided."""
        key = (gang.key, len(self._session.decisions.evictions))
        if key not in self._starts:
            planned = self._planned(gang, freed)
            self._starts[key] = inf if planned is None else planned.start
        return self._starts[key]

    def _planned(self, gang: GangState, freed: Amounts) -> PlannedStart | None:
        if self._reservations is not None:
            return self._reservations.plan(gang, freed)
        if self._planner is None:
            return None
        return self._planner.plan(gang, self._planner.needed(gang), free=self._session.ledger.future - freed)


def _hours(work: float) -> str:
    return f"{work / SECONDS / HOUR:.2g} GPU h"
