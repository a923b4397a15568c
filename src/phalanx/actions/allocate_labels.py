"""The search for one value of a node label whose nodes have room for a gang that must stay together.

A value that can hold all waiting tasks comes before one that can hold only some; among the former the tightest, among the latter
the roomiest. Room that is there now comes before room that is being released.
"""

from phalanx.actions.allocate_tasks import TaskPlacer
from phalanx.model.queue import Queue
from phalanx.session.session import Session
from phalanx.session.statement import Statement
from phalanx.session.trace_events import GangPipelined, GangReady
from phalanx.session.trace_searches import DomainChosen, DomainLeft, DomainTried, NoDomain
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.label_domains import LabelDomain, label_domains
from phalanx.state.verdict import SearchScope


class LabelSearch:
    """Places gangs whose members must share a value of a node label."""

    def __init__(self, session: Session, placer: TaskPlacer) -> None:
        """Prepare for one run of an action, with its task loop."""
        self._session, self._placer = session, placer

    def allocate(self, gang: GangState, queue: Queue) -> bool:
        """Place the gang if the nodes of some value have room; tell whether it was committed.

        Where it could only be pipelined, other values are tried first; the first such value is the fallback.
        """
        subgroup = next(iter(gang.subgroups.values()))
        waiting = list(self._placer.tasks_left(subgroup))
        fallback: LabelDomain | None = None
        trace, domains = self._session.trace, self._in_order(gang, subgroup)
        if not domains:
            trace.note(NoDomain, gang.key, "allocate", f"no node has the label {gang.gang.label}")
        for domain in domains:
            trace.note(DomainTried, gang.key, f"{gang.gang.label}={domain.value}", "allocate")
            statement = self._place(subgroup, queue, domain, waiting)
            if statement is not None and self._session.gang_ready(gang).ok:
                trace.note(DomainChosen, gang.key, f"{gang.gang.label}={domain.value}")
                statement.commit()
                trace.note(GangReady, gang.key)
                return True
            if statement is not None:
                trace.note(DomainLeft, gang.key, f"{gang.gang.label}={domain.value}", "it could only be pipelined there")
                fallback = fallback or domain
                statement.discard()
        if fallback is not None and (statement := self._place(subgroup, queue, fallback, waiting)) is not None:
            statement.keep()
            trace.note(GangPipelined, gang.key)
        return False

    def _place(self, subgroup: SubGroupState, queue: Queue, domain: LabelDomain, waiting: list[TaskState]) -> Statement | None:
        self._placer.restore(subgroup, list(waiting))
        scope = SearchScope(label=subgroup.gang.gang.label, value=domain.value)
        return self._placer.place(subgroup, queue, within=domain.nodes, scope=scope)

    def _in_order(self, gang: GangState, subgroup: SubGroupState) -> list[LabelDomain]:
        waiting = self._placer.tasks_left(subgroup)
        node_view = self._session.node_view(waiting[-1].task.shape)
        domains = label_domains(gang, self._session.snapshot.nodes)
        room = {domain.value: node_view.room_in(domain.nodes) for domain in domains}

        def rank(domain: LabelDomain) -> tuple[bool, int, str]:
            is_short = room[domain.value] < len(waiting)
            return is_short, -room[domain.value] if is_short else room[domain.value], domain.value

        return sorted(domains, key=rank)
