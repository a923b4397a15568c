"""Gangs whose members must share a value of a node label: one rack, one zone. Each value makes a domain of nodes."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from phalanx.model.task_status import HOLDING, Status
from phalanx.placement import Mask
from phalanx.state.gang_state import GangState
from phalanx.state.node_table import LabelColumn, NodeTable

PLACED = (*HOLDING, Status.PIPELINED)


@dataclass(frozen=True, slots=True)
class LabelDomain:
    """The nodes with one value of a label."""

    value: str
    nodes: Mask


def label_domains(gang: GangState, nodes: NodeTable) -> list[LabelDomain]:
    """Return the domains that are open to a gang: all, or where members are already, the one with most of them first."""
    column = nodes.label(gang.gang.label)
    places = _members_by_code(gang, column)
    codes = [code for code, _ in places.most_common()] if places else range(len(column.values))
    return [LabelDomain(column.values[code], column.codes == code) for code in codes if code >= 0]


def closed_by_label(gang: GangState, nodes: NodeTable) -> Mask:
    """Mark the nodes that have no value of the label, or another one than those where members are."""
    column = nodes.label(gang.gang.label)
    places = _members_by_code(gang, column)
    if not places:
        return ~column.present
    return ~np.isin(column.codes, [code for code in places if code >= 0])


def _members_by_code(gang: GangState, column: LabelColumn) -> Counter[int]:
    """Count the placed members of each value; those on nodes without the label under -1."""
    return Counter(int(column.codes[task.node]) for task in gang.tasks if task.node >= 0 and task.status in PLACED)
