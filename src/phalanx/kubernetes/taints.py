"""Taints and tolerations: which nodes are closed to a task, and which it would rather avoid."""

from collections.abc import Iterable

from phalanx.model.shape import Shape, Taint, Toleration
from phalanx.placement import Counts, Mask
from phalanx.state.node_table import NodeTable

UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
OF_UNREADY_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Keys of the taints of nodes that are not ready."""
CLOSING = ("NoSchedule", "NoExecute")


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether this toleration covers the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Tell whether some toleration covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(shape: Shape, taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """Return the closing taints that the task does not tolerate."""
    return tuple(taint for taint in taints if taint.effect in CLOSING and not is_tolerated(shape.tolerations, taint))


def closed_by_taint(shape: Shape, table: NodeTable) -> Mask:
    """Mark nodes with a closing taint that the task does not tolerate."""
    return table.where_taints(lambda taints: bool(untolerated(shape, taints)))


def closed_by_cordon(shape: Shape, table: NodeTable) -> Mask:
    """Mark nodes that are marked unschedulable, unless the task tolerates that."""
    return table.unschedulable & (not is_tolerated(shape.tolerations, UNSCHEDULABLE))


def taints_to_avoid(shape: Shape, table: NodeTable) -> Counts:
    """Count per node the PreferNoSchedule taints that the task does not tolerate."""
    mild = tuple(toleration for toleration in shape.tolerations if toleration.effect in ("", "PreferNoSchedule"))
    return table.count_taints(
        lambda taints: sum(taint.effect == "PreferNoSchedule" and not is_tolerated(mild, taint) for taint in taints)
    )
