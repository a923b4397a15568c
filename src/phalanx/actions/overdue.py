"""Evict gangs that run longer than they may, in queues with the annotation `phalanx.dev/overdue: evict`, and in no others."""

from collections.abc import Mapping

from phalanx.model.duration import age_text
from phalanx.model.task import GangKey
from phalanx.model.task_status import EVICTABLE
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.trace_events import GangOverdue
from phalanx.state.overdue import overdue_in_evicting_queues
from phalanx.state.run_times import RunTimesBook


class OverdueAction:
    """Evicts gangs that are past their maximum run time where their queue says so."""

    name = "overdue"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Evict the gangs of such queues; another session is held when the next one is due."""
        times = RunTimesBook(session.snapshot)
        for key in overdue_in_evicting_queues(session.snapshot):
            self._evict(session, key, f"{age_text(times.of(key).maximum)} ({times.of(key).limit})")

    def _evict(self, session: Session, key: GangKey, limit: str) -> None:
        gang = session.gang(key)
        victims = [] if gang is None else [task for task in gang.tasks if task.status in EVICTABLE]
        if not victims or len(session.evictable(victims[0], victims, "heal")) < len(victims):
            return
        reason = f"gang {key} runs longer than its maximum of {limit}, and its queue evicts such gangs"
        session.trace.note(GangOverdue, key, reason)
        with session.statement() as statement:
            for task in victims:
                statement.evict(task, action=self.name, preemptor="", reason=reason)
            statement.commit()
