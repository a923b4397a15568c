"""Admit waiting gangs: a gang whose group asks for minimum resources is admitted only when the plugins see room for them.

Where an owner creates pods only for admitted groups, this keeps thousands of pods that could not start out of the cluster.
"""

from collections.abc import Mapping

from phalanx.actions.gang_line import GangLine, lines_by_queue
from phalanx.actions.queue_heap import Heap
from phalanx.model.queue import Queue
from phalanx.session.arguments import Arguments
from phalanx.session.plugin_trace import note_added, note_lines
from phalanx.session.session import Session
from phalanx.session.trace_events import GangAdmitted, GangNotAdmitted, QueueLine, QueueNext
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict


class EnqueueAction:
    """Turns Pending gangs into Inqueue ones, queue by queue."""

    name = "enqueue"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings; there are none."""
        Arguments(self.name, arguments).done()

    def run(self, session: Session) -> None:
        """Ask for each waiting gang once; a refusal does not hold up the next one."""
        waiting = self._waiting_gangs(session)
        queues = Heap[Queue](session.queue_comes_first)
        for name in sorted({gang.gang.queue for gang in session.gangs.values()}):
            queues.push(session.queues[name])
        while len(queues):
            queue = queues.pop()
            gangs, is_alone = waiting.get(queue.name), not len(queues)
            while gangs:
                session.trace.note(QueueNext, self.name, queue.name, len(gangs))
                self._consider(session, gangs.pop())
                if not is_alone:
                    queues.push(queue)
                    break

    def _waiting_gangs(self, session: Session) -> dict[str, GangLine]:
        waiting = [gang for gang in session.gangs.values() if gang.phase in ("", "Pending")]
        for gang in waiting if session.trace.level else ():
            note_added(session, gang)
        if session.trace.level >= QueueLine.at_level:
            note_lines(session, self.name, waiting)
        return lines_by_queue(session, waiting)

    def _consider(self, session: Session, gang: GangState) -> None:
        if gang.gang.min_resources is not None:
            vote = session.gang_enqueueable(gang)
            if vote.value <= 0:
                gang.verdicts.append(vote.verdict)
                self._note_refusal(session, gang, vote.verdict)
                return
            votes = session.enqueue_votes(gang) if session.trace.wants(4, gang.key) else {}
            session.gang_enqueued(gang)
            session.trace.note(GangAdmitted, gang.key, votes)
        else:
            session.trace.note(GangAdmitted, gang.key, {})
        gang.phase = "Inqueue"

    def _note_refusal(self, session: Session, gang: GangState, verdict: Verdict) -> None:
        if session.trace.wants(4, gang.key):
            asked, votes = dict(gang.gang.min_resources or {}), session.enqueue_votes(gang)
            session.trace.note(GangNotAdmitted, gang.key, verdict.message, asked, dict(verdict.numbers), votes)
