"""Give waiting jobs room that is free now or soon: what each is short of, then one task more at a time."""

from collections.abc import Mapping
from functools import partial

from phalanx.actions.kai.failed_jobs import FailedJobs
from phalanx.actions.kai.job_order import JobLine, waiting_jobs
from phalanx.actions.kai.placement import Placer, note_no_places
from phalanx.actions.placeholders import nominate_places_of_placeholders
from phalanx.kai.fair_shares import FairShares
from phalanx.kai.podsets import leaf_name, next_tasks
from phalanx.kai.stamps import stamp_start
from phalanx.model.task_status import HOLDING, Status
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.trace_searches import JobLeft, JobTried
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.verdict import YES


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
        """Place what the job needs next; where it can do without the sub-groups that found no place, it goes on with others."""
        without: set[str] = set()
        while tasks := next_tasks(session, gang, without=without):
            session.trace.note(JobTried, gang.key, gang.gang.queue, self.name, len(tasks), len(session.decisions.binds))
            if not self._has_quota(session, gang, tasks):
                return False
            if self._place(session, placer, gang, tasks):
                return True
            blocked = {leaf_name(task) for task in tasks if task.error is not None}
            if blocked <= without:
                return False
            without |= blocked
        return False

    def _has_quota(self, session: Session, gang: GangState, tasks: list[TaskState]) -> bool:
        shares = session.read_state(FairShares)
        verdict = shares.capacity(gang, tasks) if shares is not None else YES
        if not verdict.ok:
            gang.verdicts.append(verdict)
            session.trace.note(JobLeft, gang.key, self.name, verdict.message)
        return verdict.ok

    def _place(self, session: Session, placer: Placer, gang: GangState, tasks: list[TaskState]) -> bool:
        is_new = not gang.tally.total(HOLDING)
        with session.statement() as statement:
            if placer.place(gang, tasks, statement):
                statement.commit()
                if is_new and gang.tally.total(HOLDING):
                    stamp_start(session.decisions, gang, session.now)
                return True
        note_no_places(session, gang, self.name, tasks)
        return False
