"""Roll back the gang that came last to a node that holds more than it offers.

No session places more on a node than it has room for, but binds of another one may land: of a leader that the machine stopped while
its requests were on the wire, or of two that led for a moment. Real kubelets refuse most of such pods (OutOfcpu); until then,
and where they do not, two gangs share what one of them was promised. The gang that came last goes as a whole, as if its binds had
been refused, and waits for another place. One that can do without the pods on this node loses only those.

A node may also hold too much because it shrank: a device plugin lost a GPU, or its owner reserves more for the system. Those who
work there must not pay for it. Nobody writes down what a node offered when a pod was bound, so the action acts only where nothing
speaks against a double bind. When in doubt, what runs is left running:

- Whoever has to go says when it was bound, and that was within the last two minutes (`window`). A double bind is seen within
  seconds, by the next leader within the length of a lease. A node that shrinks does so at any time, mostly long after the last
  bind, and should it happen within the window, two minutes of work are lost.
- Whoever has to go came last. Where a pod of another scheduler, a static pod or one of a DaemonSet came after it, that one is too
  much, and it is not ours.
- Without them the node has room for all others, and with them alone too. Otherwise it offers less than when they were bound.

Binds that nobody has answered yet may still be refused: a node with some is looked at when they are answered.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from phalanx.model.resources import readable
from phalanx.model.task import Task
from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Amounts
from phalanx.session.arguments import Arguments
from phalanx.session.session import Session
from phalanx.session.trace_events import GangRolledBack
from phalanx.state.gang_state import TaskState
from phalanx.state.overcommitment import ROLLED_BACK, Arrival, arrivals, bound_at, excess, over_committed
from phalanx.state.snapshot import EMPTY
from phalanx.state.staleness import evictable_members, is_whole_without
from phalanx.state.verdict import Verdict


class RelieveAction:
    """Rolls back gangs that were bound to nodes without room for them."""

    name = "relieve"

    def __init__(self, arguments: Mapping[str, object]) -> None:
        """Read the settings."""
        settings = Arguments(self.name, arguments)
        self._window_seconds = settings.grace("window", "2m")
        settings.done()

    def run(self, session: Session) -> None:
        """Look at nodes one after the other: a gang that goes because of one may relieve others."""
        for number in over_committed(session.ledger).tolist():
            session.decisions.may_change_with_time()
            node = _FullNode(session, number, session.now - self._window_seconds)
            for arrival in node.too_much():
                self._roll_back(session, arrival, node)

    def _roll_back(self, session: Session, arrival: Arrival, node: "_FullNode") -> None:
        text = f"rolled back: {node.text}, and gang {arrival.gang.key} came last"
        session.trace.note(GangRolledBack, arrival.gang.key, node.text)
        arrival.gang.verdicts.append(Verdict.refuse(self.name, ROLLED_BACK, text, node=node.name))
        with session.statement() as statement:
            for victim in node.victims(arrival):
                statement.evict(victim, action=self.name, preemptor="", reason=text)
            statement.commit()


class _FullNode:
    """A node that holds more than it offers."""

    def __init__(self, session: Session, number: int, since: float) -> None:
        self._session, self._number, self._since = session, number, since
        self.name = session.node_name(number)
        self.text = self._text()

    def _excess(self) -> Amounts:
        found: Amounts = excess(self._session.ledger)[:, self._number]
        return found

    def _text(self) -> str:
        """Say what it holds: ``node n3 holds 16 of 8 cpu``."""
        offers, names, too_much = self._offers(), self._session.snapshot.space.names, self._excess()
        parts = [
            f"{readable(names[row], offers[row] + too_much[row])} of {readable(names[row], offers[row])} {names[row]}"
            for row in np.flatnonzero(too_much).tolist()
        ]
        return f"node {self.name} holds {', '.join(parts)}"

    def _offers(self) -> Amounts:
        found: Amounts = self._session.ledger.allocatable[:, self._number]
        return found

    def _asks(self, task: Task) -> Amounts:
        return self._session.request_of(task.shape).amounts

    # --- who has to go -----------------------------------------------------------------------------------------------

    def too_much(self) -> list[Arrival]:
        """Return the fewest gangs without which it is relieved, the last ones first; none where that is not ours to do."""
        found: list[Arrival] = []
        for arrival in self._arrivals():
            found.append(arrival)
            if not self._left(found):
                return self._fewest(found)
        return []

    def _fewest(self, found: list[Arrival]) -> list[Arrival]:
        """Spare gangs that need not go, those that came first before the others."""
        for arrival in reversed(found):
            others = [other for other in found if other is not arrival]
            found = found if self._left(others) else others
        return found

    def _left(self, found: Sequence[Arrival]) -> bool:
        """Tell whether it still holds too much when the pods of these gangs have left it."""
        gone = sum((self._asks(pod.task) for arrival in found for pod in arrival.pods), np.zeros_like(self._offers()))
        return bool((self._excess() > gone).any())

    def _arrivals(self) -> Iterator[Arrival]:
        """Yield the gangs that may have to go, the last one first, up to one of which we cannot tell that it came too late."""
        holders = [task for task in self._session.snapshot.on_node.get(self.name, EMPTY).values() if self._takes(task)]
        if any(task.status is Status.BINDING for task in holders):
            return
        foreign = max((bound_at(task) for task in holders if not self._is_ours(task)), default=0.0)
        pods = [pod for pod in self._session.running_on(self._number) if self._takes(pod.task)]
        for arrival in arrivals([pod for pod in pods if self._is_ours(pod.task)]):
            if arrival.moment < self._since or arrival.moment <= foreign or not self._had_room(arrival):
                return
            yield arrival

    def _takes(self, task: Task) -> bool:
        """Tell whether a task holds some of what the node has too little of."""
        return task.status in HOLDING and bool(self._asks(task)[self._excess() > 0].any())

    def _is_ours(self, task: Task) -> bool:
        ours = self._session.snapshot.surroundings.schedulers
        is_known = task.gang is not None and self._session.gang(task.gang) is not None
        return is_known and (not ours or task.scheduler in ours)

    def _had_room(self, arrival: Arrival) -> bool:
        """Tell whether the node could hold these pods if nobody else were there, and nothing protects them."""
        asks = sum((self._asks(pod.task) for pod in arrival.pods), np.zeros_like(self._offers()))
        victims = self.victims(arrival)
        is_free = len(self._session.evictable(victims[0], victims, "heal")) == len(victims)
        return is_free and bool((asks <= self._offers())[self._excess() > 0].all())

    def victims(self, arrival: Arrival) -> Sequence[TaskState]:
        """Return who goes: only pods on this node where the gang can do without them, otherwise all of it."""
        left, few = self._excess(), list[TaskState]()
        for pod in arrival.pods:
            if not left.any():
                break
            few.append(pod)
            left = np.maximum(left - self._asks(pod.task), 0)
        return few if is_whole_without(arrival.gang, few) else evictable_members(arrival.gang)
