"""Why consolidation, reclaim or preempt found no victims for a job: a verdict on the job and, where it is traced, job by job."""

from collections.abc import Callable, Collection, Mapping

from phalanx.actions.kai.victim_order import holders
from phalanx.kai.podsets import is_preemptible
from phalanx.session.session import Session
from phalanx.session.spared import Spared
from phalanx.session.trace_searches import NoVictimsFound, SparedGang
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import YES, Verdict

WORTH_NAMING = (Spared.TOO_YOUNG, Spared.ENOUGH_MOVED, Spared.NOT_LOWER)
"""Reasons for which a job gives nothing that may pass, the nearest to giving first."""


class SteadyJobs:
    """The running jobs that cannot be preempted: one of each queue, found once for an action."""

    def __init__(self, session: Session) -> None:
        """Look at all jobs that hold something."""
        self._by_queue: dict[str, GangState] = {}
        for gang in session.gangs.values():
            if not is_preemptible(gang) and holders(gang):
                self._by_queue.setdefault(gang.gang.queue, gang)

    def first(self, own: str, queues: Collection[str] | None) -> GangState | None:
        """Return a job of its own queue, or of the others where `queues` is None."""
        if queues is not None:
            return self._by_queue.get(own)
        return next((gang for name, gang in self._by_queue.items() if name != own), None)


class FailedSearch:
    """A search of one action for one job, after it has failed."""

    def __init__(self, session: Session, gang: GangState, action: str, steady: SteadyJobs, queues: list[str]) -> None:
        """Keep what was searched for; `queues` are those whose jobs may give."""
        self._session, self._gang, self._action, self._steady, self._queues = session, gang, action, steady, queues

    def cause(self, stays: Mapping[Spared, GangState], unfair: Verdict, refusal: str) -> Verdict:
        """Return the cause: what was wrong with the last scenario, or why a job gives nothing, one for each reason."""
        if refusal and refusal == unfair.message:
            return unfair
        if refusal:
            return Verdict.refuse(self._action, "StillNoRoom", f"even without those that may go {refusal}")
        for reason in WORTH_NAMING:
            if reason in stays:
                return self._about(stays[reason], self._verdict(stays[reason], reason))
        steady = self._steady.first(self._gang.gang.queue, self._queues if self._action == "preempt" else None)
        if steady is not None:
            return self._about(steady, self._verdict(steady, Spared.NOT_PREEMPTABLE))
        return Verdict.refuse(self._action, "NobodyRuns", "no job runs that could give")

    def verdict(self, cause: Verdict) -> Verdict:
        """Return the verdict on the job."""
        numbers = {**cause.numbers, "cause": cause.reason, "purpose": self._action, "in_reach": 1}
        return Verdict.refuse(self._action, "NoVictims", cause.message, **numbers)

    def note(self, cause: Verdict, why_spared: Callable[[GangState], Spared | None]) -> None:
        """Record who may give and who does not, job by job."""
        others = [gang for gang in self._session.gangs.values() if gang is not self._gang and holders(gang)]
        answers = [(gang, self._why_stays(gang, why_spared)) for gang in others]
        stays = [
            SparedGang(gang.key, gang.gang.queue, verdict.plugin, verdict.reason, verdict.message, dict(verdict.numbers))
            for gang, verdict in answers
            if not verdict.ok
        ]
        may_go = [gang.key for gang, verdict in answers if verdict.ok]
        self._session.trace.note(
            NoVictimsFound, self._gang.key, self._action, cause.reason, cause.message, may_go, stays, None
        )  # fmt: skip

    def _why_stays(self, victim: GangState, why_spared: Callable[[GangState], Spared | None]) -> Verdict:
        reason = why_spared(victim)
        if reason is not None and reason in (Spared.OTHER_QUEUE, Spared.SAME_QUEUE):
            return self._verdict(victim, reason)
        if not is_preemptible(victim):
            return self._verdict(victim, Spared.NOT_PREEMPTABLE)
        return self._verdict(victim, reason) if reason else YES

    def _verdict(self, victim: GangState, reason: Spared) -> Verdict:
        return reason.verdict(self._action, victim.gang, self._gang.gang)

    def _about(self, victim: GangState, verdict: Verdict) -> Verdict:
        text = f"{victim.key} {verdict.message}"
        return Verdict.refuse(verdict.plugin, verdict.reason, text, **{**verdict.numbers, "victim": victim.key})
