"""Tasks that no node could ever take, however much were free: what to change is the task, or the nodes."""

from phalanx.explain.reason_text import amount_text
from phalanx.model.resources import PODS, Resources
from phalanx.state.snapshot import Snapshot


def oversize(request: Resources, snapshot: Snapshot) -> str:
    """Say of which resource no node has as much as is asked for, empty or not; empty when some node has enough of each."""
    for name, amount in sorted(request.items()):
        row = snapshot.space.row_by_name.get(name)
        if row is None or name == PODS or not len(snapshot.nodes):
            continue
        most = int(snapshot.nodes.allocatable[row].max())
        if 0 < most < amount:
            return f"no node is that large: the largest has {amount_text(name, most)} {name}"
    return ""
