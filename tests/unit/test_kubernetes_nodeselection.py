"""Node selectors over all nodes, compared with the same question asked node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.kubernetes.nodeselection import NodeFinder, label_selector_mask, matching_nodes, selector_mask, term_mask
from phalanx.model.node import Node
from phalanx.model.resources import ResourceSpace
from phalanx.model.selectors import Labels, LabelSelector, NodeSelectorTerm, Requirement
from phalanx.placement import Mask
from phalanx.state.node_table import NodeTable


def table_of(**labels_by_name: Labels) -> NodeTable:
    return NodeTable([Node(name, labels=labels) for name, labels in labels_by_name.items()], ResourceSpace())


def names(table: NodeTable, mask: Mask) -> list[str]:
    assert mask.dtype == np.bool_
    return [table.names[number] for number in np.flatnonzero(mask)]


TABLE = table_of(
    a={"zone": "east", "disk": "ssd", "cores": "8"},
    b={"zone": "west", "disk": "ssd", "cores": "64"},
    c={"zone": "west", "cores": "many"},
    d={},
)


def term(*expressions: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions, fields)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (Requirement("zone", "In", ("west", "north")), ["b", "c"]),
        (Requirement("zone", "NotIn", ("west",)), ["a", "d"]),
        (Requirement("disk", "Exists"), ["a", "b"]),
        (Requirement("disk", "DoesNotExist"), ["c", "d"]),
        (Requirement("cores", "Gt", ("8",)), ["b"]),
        (Requirement("cores", "Lt", ("64",)), ["a"]),
        (Requirement("nowhere", "In", ("x",)), []),
        (Requirement("nowhere", "NotIn", ("x",)), ["a", "b", "c", "d"]),
    ],
)
def test_each_operator_marks_the_nodes_it_means(requirement: Requirement, expected: list[str]) -> None:
    assert names(TABLE, term_mask(term(requirement), TABLE)) == expected


def test_all_conditions_of_a_term_must_hold() -> None:
    both = term(Requirement("zone", "In", ("west",)), Requirement("disk", "Exists"))
    assert names(TABLE, term_mask(both, TABLE)) == ["b"]


def test_one_matching_term_is_enough() -> None:
    terms = (term(Requirement("zone", "In", ("east",))), term(Requirement("zone", "DoesNotExist")))
    assert names(TABLE, matching_nodes(terms, TABLE)) == ["a", "d"]


def test_no_terms_and_an_empty_term_match_no_node() -> None:
    assert names(TABLE, matching_nodes((), TABLE)) == []
    assert names(TABLE, matching_nodes((term(),), TABLE)) == []


def test_an_invalid_term_matches_no_node_and_spoils_no_other() -> None:
    invalid = term(Requirement("cores", "Gt", ("-1",)))
    assert names(TABLE, matching_nodes((invalid,), TABLE)) == []
    assert names(TABLE, matching_nodes((invalid, term(Requirement("disk", "Exists"))), TABLE)) == ["a", "b"]


def test_a_field_condition_looks_at_the_name_of_the_node() -> None:
    only_c = term(fields=(Requirement("metadata.name", "In", ("c",)),))
    not_c = term(Requirement("zone", "Exists"), fields=(Requirement("metadata.name", "NotIn", ("c",)),))
    unknown = term(fields=(Requirement("metadata.name", "In", ("z",)),))
    assert names(TABLE, term_mask(only_c, TABLE)) == ["c"]
    assert names(TABLE, term_mask(not_c, TABLE)) == ["a", "b"]
    assert names(TABLE, term_mask(unknown, TABLE)) == []


def test_a_field_condition_on_anything_else_is_invalid() -> None:
    assert names(TABLE, term_mask(term(fields=(Requirement("metadata.uid", "In", ("c",)),)), TABLE)) == []


def test_a_node_selector_wants_every_label_with_its_value() -> None:
    assert names(TABLE, selector_mask({"zone": "west", "disk": "ssd"}, TABLE)) == ["b"]
    assert names(TABLE, selector_mask({}, TABLE)) == ["a", "b", "c", "d"]


def test_an_empty_label_selector_marks_every_node() -> None:
    assert names(TABLE, label_selector_mask(LabelSelector(), TABLE)) == ["a", "b", "c", "d"]
    assert names(TABLE, label_selector_mask(LabelSelector().plus({"zone": "west"}), TABLE)) == ["b", "c"]


def test_a_table_without_nodes_gives_empty_masks() -> None:
    empty = table_of()
    assert matching_nodes((term(Requirement("zone", "Exists")),), empty).shape == (0,)
    assert selector_mask({"zone": "west"}, empty).shape == (0,)


@pytest.mark.parametrize("values", [("west",), ("east", "west"), ("north",)])
def test_the_finder_gives_the_numbers_of_the_same_nodes(values: tuple[str, ...]) -> None:
    terms = (term(Requirement("zone", "In", values)),)
    assert NodeFinder(TABLE).numbers(terms).tolist() == np.flatnonzero(matching_nodes(terms, TABLE)).tolist()


KEYS, VALUES = st.sampled_from(["k", "l"]), st.sampled_from(["1", "2", "x", ""])
REQUIREMENTS = st.builds(
    Requirement,
    KEYS,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
    st.lists(VALUES, max_size=2).map(tuple),
)


@given(st.lists(st.dictionaries(KEYS, VALUES), max_size=6), st.lists(REQUIREMENTS, max_size=3))
def test_masks_agree_with_asking_every_node(labels: list[dict[str, str]], requirements: list[Requirement]) -> None:
    table = table_of(**{f"n{number}": each for number, each in enumerate(labels)})
    selector = LabelSelector(tuple(requirements))
    assert label_selector_mask(selector, table).tolist() == [selector.matches(node.labels) for node in table.nodes]
    one = term(*requirements)
    expected = [one.is_valid and not one.is_empty and selector.matches(node.labels) for node in table.nodes]
    assert term_mask(one, table).tolist() == expected
    assert NodeFinder(table).numbers((one,)).tolist() == np.flatnonzero(expected).tolist()
