"""The room of a node before and after a step that is about it."""

from phalanx.session.session import Session
from phalanx.session.trace import TraceEvent
from phalanx.session.trace_operations import NodeRoom
from phalanx.stepping.answer import Change
from phalanx.stepping.stepped_session import SteppedSession
from phalanx.stepping.watches import NODE_FIGURES, Value, node_figure


def node_of(event: TraceEvent) -> str:
    """Return the node that an event is about; empty if it is about none or about several."""
    return str(getattr(event, "node", ""))


def room_changes(session: SteppedSession, number: int, node: str) -> dict[str, Change]:
    """Return the books of a node before and after a step.

    Equal tasks are placed by one operation, and the books change before the first of them is told of: before a step is before its
    operation.
    """
    before, after = session.mark_before(_begin(session, number)), session.mark(number)

    def read(live: Session) -> dict[str, Value]:
        return {field: node_figure(live, node, field) for field in NODE_FIGURES}

    found = session.read([before, after], read)
    return {field: Change(found[before][field], found[after][field]) for field in NODE_FIGURES}


def _begin(session: SteppedSession, number: int) -> int:
    """Return the first step that tells of the same operation."""
    steps = session.steps
    while isinstance(steps[number - 1].event, NodeRoom) and number > 1:
        number -= 1
    first = steps[number - 1].event
    while number > 1 and type(steps[number - 2].event) is type(first) and steps[number - 2].event.gangs == first.gangs:
        number -= 1
    return number
