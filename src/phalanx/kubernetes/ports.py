"""Host ports: a node can open each only once."""

import numpy as np

from phalanx.model.shape import HostPort, Shape
from phalanx.placement import Mask
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind

TAKEN = "node(s) didn't have free ports for the requested pod ports"


class PortBook:
    """Which host ports are open on which nodes, terminating pods included."""

    def __init__(self, session: Session) -> None:
        """Read the ports of every pod on a node."""
        self._size = len(session.snapshot.nodes)
        self._users: dict[HostPort, dict[int, int]] = {}
        numbers = session.snapshot.nodes.number_by_name
        for name, tasks in session.snapshot.on_node.items():
            for task in tasks.values():
                if task.shape.host_ports and name in numbers:
                    self._enter(task.shape, numbers[name], 1)

    def _enter(self, shape: Shape, node: int, sign: int) -> None:
        for port in shape.host_ports:
            users = self._users.setdefault(port, {})
            users[node] = users.get(node, 0) + sign

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation."""
        sign = -1 if (operation.kind is OperationKind.EVICT) != undone else 1
        if operation.shape.host_ports:
            for node in operation.nodes:
                self._enter(operation.shape, node, sign)

    def taken(self, shape: Shape) -> Mask:
        """Mark the nodes where one of the task's ports is open already."""
        mask = np.zeros(self._size, dtype=np.bool_)
        for port, users in self._users.items():
            if any(port.conflicts(wanted) for wanted in shape.host_ports):
                mask[[node for node, count in users.items() if count > 0]] = True
        return mask
