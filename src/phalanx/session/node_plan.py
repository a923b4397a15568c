"""Where the next tasks of a class go, found for many of them at once.

Gangs are tried one after the other, and each asks for places of its own. Where gangs of one class follow each other, each would
look at the node again that the one before has taken, which costs as much as placing hundreds of tasks in one run. So more places
are found than are asked for, and the rest is kept for who comes next. It is used only if the books are exactly as the run left
them: the tasks that asked took their places, or gave them back, and nothing else has happened. Then the next tasks would find the
same places by looking, because a run is equal to placing its tasks one by one.
"""

from typing import TYPE_CHECKING

from phalanx.session.statement import Operation, OperationKind

if TYPE_CHECKING:
    from phalanx.session.node_view import NodeView
    from phalanx.session.session import Session

MOST_AHEAD = 1024
"""Places found at once, at most, beyond what is asked for."""


class NodePlan:
    """Places with room now for the tasks of one node view to come."""

    __slots__ = ("_given", "_length", "_nodes", "_session", "_version")

    def __init__(self, session: "Session") -> None:
        """Start with no plan; it does not hold its view, which would then stay in memory until the collector comes."""
        self._session = session
        self._nodes: list[int] = []
        """The places left, the next one last; those that were given last are not among them."""
        self._given: list[int] = []
        self._length = 0
        self._version = -1

    def place(self, view: "NodeView", count: int) -> tuple[list[int], list[int]]:
        """Choose nodes for up to `count` tasks on all nodes of its view, as `NodeView.place` does."""
        holds = self._holds()
        if not holds or len(self._nodes) < count:
            return self._look(view, count, ahead=min(2 * self._length, MOST_AHEAD) if holds else 0)
        return self._give(count), []

    def known(self, count: int) -> list[int] | None:
        """Return the nodes of the next tasks if that needs no look at all."""
        return self._give(count) if self._holds() and len(self._nodes) >= count else None

    def _holds(self) -> bool:
        """Tell whether nothing but the places that were given changed the books; those not taken are the next ones again."""
        if self._session.version == self._version:
            self._nodes.extend(reversed(self._given))
            self._given = []
            return True
        operation = self._session.latest
        return operation is not None and self._took_all(operation)

    def _took_all(self, operation: Operation) -> bool:
        is_last = operation.version_before == self._version and operation.version_after == self._session.version
        return is_last and operation.nodes is self._given and operation.kind is OperationKind.ALLOCATE

    def _look(self, view: "NodeView", count: int, *, ahead: int) -> tuple[list[int], list[int]]:
        """Find places anew. The more often a plan holds the further it looks; where classes take turns it never looks ahead."""
        view.refresh()
        self._length = max(count, ahead)
        now, later = view.place(self._length)
        self._nodes = now[::-1]
        given = self._give(min(count, len(now)))
        return given, later[: count - len(given)]

    def _give(self, count: int) -> list[int]:
        self._version = self._session.version
        self._given = self._nodes[: -count - 1 : -1]
        del self._nodes[len(self._nodes) - count :]
        return self._given
