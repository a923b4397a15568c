"""Label and field selectors of queries: how they are taken apart, also when somebody sends very long ones."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.model.selectors import Requirement
from phalanx.store.selection import selection

LONG = 100_000
SLOW = re.compile(r",(?![^()]*\))")
"""Takes a list apart at the commas outside of parentheses, in quadratic time."""


def test_commas_between_parentheses_belong_to_a_set() -> None:
    found = selection(labels="app in (a, b),tier!=test , !old,gpu,(x=1").labels
    assert found == (
        Requirement("app", "In", ("a", "b")), Requirement("tier", "NotIn", ("test",)), Requirement("old", "DoesNotExist"),
        Requirement("gpu", "Exists"), Requirement("(x", "In", ("1",)),
    )  # fmt: skip


@given(st.text(alphabet="a(), ", max_size=30))
def test_any_text_is_taken_apart_at_the_commas_that_no_parenthesis_closes(text: str) -> None:
    parts = [part.strip() for part in SLOW.split(text) if part.strip()]
    assert [each.key for each in selection(labels=text).labels] == parts


@pytest.mark.parametrize("text", [",", "a,", "(a,", "a),", "a=b,", "a in (b),"])
def test_a_selector_of_a_hundred_thousand_characters_takes_no_time(text: str) -> None:
    begun = time.process_time()
    selection(labels=text * (LONG // len(text)))
    assert time.process_time() - begun < 1
