"""Node selectors over all nodes at once: which nodes a set of terms, labels or requirements allows.

Node affinity, volumes and claims ask here. A condition is evaluated once per distinct label value, never once per node.
"""

from collections.abc import Iterable

import numpy as np

from phalanx.model.selectors import Labels, LabelSelector, NodeSelectorTerm, Requirement
from phalanx.model.shape import Shape
from phalanx.placement import Index, Mask
from phalanx.state.node_table import NodeTable


def allowed_nodes(shape: Shape, table: NodeTable) -> Mask:
    """Mark the nodes that the node selector and the required node affinity of a task allow."""
    mask = selector_mask(shape.node_selector, table)
    return mask if shape.node_terms is None else mask & matching_nodes(shape.node_terms, table)


def matching_nodes(terms: tuple[NodeSelectorTerm, ...], table: NodeTable) -> Mask:
    """Mark the nodes that some term matches; no terms match no node."""
    mask = np.zeros(len(table), dtype=np.bool_)
    for term in terms:
        mask |= term_mask(term, table)
    return mask


def term_mask(term: NodeSelectorTerm, table: NodeTable) -> Mask:
    """Mark the nodes that meet every condition of the term; an empty or invalid term matches no node."""
    if term.is_empty or not term.is_valid:
        return np.zeros(len(table), dtype=np.bool_)
    return _all_of(term.expressions, table) & _named(term.fields, table)


def selector_mask(labels: Labels, table: NodeTable) -> Mask:
    """Mark the nodes that carry every one of these labels with exactly this value."""
    mask = np.ones(len(table), dtype=np.bool_)
    for key, value in labels.items():
        mask &= table.label(key).where(frozenset((value,)).__contains__)
    return mask


def label_selector_mask(selector: LabelSelector, table: NodeTable) -> Mask:
    """Mark the nodes whose labels meet every requirement; an empty selector marks all."""
    return _all_of(selector.requirements, table)


def _all_of(requirements: Iterable[Requirement], table: NodeTable) -> Mask:
    mask = np.ones(len(table), dtype=np.bool_)
    for requirement in requirements:
        mask &= requirement_mask(requirement, table)
    return mask


def requirement_mask(requirement: Requirement, table: NodeTable) -> Mask:
    """Mark the nodes whose labels meet a condition."""
    column = table.label(requirement.key)
    match requirement.operator:
        case "In":
            return column.where(frozenset(requirement.values).__contains__)
        case "NotIn":
            return ~column.where(frozenset(requirement.values).__contains__)
        case "Exists":
            return column.present
        case "DoesNotExist":
            return ~column.present
    key = requirement.key
    return column.where(lambda value: requirement.matches({} if value is None else {key: value}))


def _named(fields: Iterable[Requirement], table: NodeTable) -> Mask:
    """Evaluate conditions on the name of the node."""
    mask = np.ones(len(table), dtype=np.bool_)
    for field in fields:
        listed = np.zeros(len(table), dtype=np.bool_)
        listed[[table.number_by_name[name] for name in field.values if name in table.number_by_name]] = True
        mask &= listed if field.operator == "In" else ~listed
    return mask


class NodeFinder:
    """Node numbers for many sets of terms. Made for local volumes: thousands of terms that each name one host."""

    def __init__(self, table: NodeTable) -> None:
        """Start with nothing looked up."""
        self._table = table
        self._numbers_by_value: dict[str, dict[str, Index]] = {}

    def numbers(self, terms: tuple[NodeSelectorTerm, ...]) -> Index:
        """Return the numbers of the nodes that some term matches, in ascending order."""
        if len(terms) == 1 and terms[0].is_valid and not terms[0].fields and len(terms[0].expressions) == 1:
            requirement = terms[0].expressions[0]
            # A volume of local-path or local-static names its host like this: one lookup in place of a mask over all nodes.
            if requirement.operator == "In" and len(requirement.values) == 1:
                return self._with_value(requirement.key, requirement.values[0])
        return np.flatnonzero(matching_nodes(terms, self._table))

    def _with_value(self, key: str, value: str) -> Index:
        if key not in self._numbers_by_value:
            self._numbers_by_value[key] = self._read(key)
        return self._numbers_by_value[key].get(value, np.empty(0, dtype=np.int64))

    def _read(self, key: str) -> dict[str, Index]:
        column = self._table.label(key)
        order = np.argsort(column.codes, kind="stable")
        ends = np.searchsorted(column.codes[order], np.arange(len(column.values) + 1))
        return {value: order[ends[code] : ends[code + 1]] for code, value in enumerate(column.values)}
