"""Give waiting jobs room that is free now or soon: what each is short of, then one task more at a time."""

from collections.abc import Mapping
from functools import partial

from phalanx.actions.kai.failed_jobs import FailedJobs
from phalanx.actions.kai.job_order import JobLine, waiting_jobs
from phalanx.actions.kai.placement import Placer, note_no_places
from phalanx.actions.placeholders import nominate_places_of_placeholders
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import next_tasks
from phalanx.kai.stamps import stamp_start
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.trace_searches import JobLeft, JobTried
from phalanx.state.gang_state import GangState


class KaiAllocateAction:
    """Places jobs in order; one that fails is passed over, so smaller ones behind it may start."""

    name = "allocate"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Try job after job; one that was placed and has tasks left comes again."""
        nominate_places_of_placeholders(session)
        line, placer, failed = JobLine(session, waiting_jobs(session, self.name)), Placer(session), FailedJobs(session)
        while (gang := line.pop()) is not None:
            if failed.attempt(gang, partial(self._try, session, placer, gang)) and any(
                task.status is Status.PENDING for task in gang.tasks
            ):
                line.push(gang)

    def _try(self, session: Session, placer: Placer, gang: GangState) -> bool:
        tasks = next_tasks(session, gang)
        shares = session.read_state(FairShares)
        if not tasks:
            return False
        session.trace.note(JobTried, gang.key, gang.gang.queue, self.name, len(tasks))
        if shares is not None:
            verdict = shares.capacity(gang, tasks)
            if not verdict.ok:
                gang.verdicts.append(verdict)
                session.trace.note(JobLeft, gang.key, self.name, verdict.message)
                return False
        is_new = not gang.tally.total(HOLDING)
        with session.statement() as statement:
            if placer.place(gang, tasks, statement):
                statement.commit()
                if is_new and gang.tally.total(HOLDING):
                    stamp_start(session.decisions, gang, session.now)
                return True
        note_no_places(session, gang, self.name, tasks)
        return False
