"""Label and field selectors of queries: how they are taken apart, also when somebody sends very long ones."""

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.errors import ClusterError
from phalanx.model.selectors import Requirement
from phalanx.store.selection import selection

LONG = 100_000
SLOW = re.compile(r",(?![^()]*\))")
"""Takes a list apart at the commas outside of parentheses, in quadratic time."""


def test_commas_between_parentheses_belong_to_a_set() -> None:
    found = selection(labels="app in (a, b),tier!=test , !old,example.com/gpu,size notin(s),age>3").labels
    assert found == (
        Requirement("app", "In", ("a", "b")), Requirement("tier", "NotIn", ("test",)), Requirement("old", "DoesNotExist"),
        Requirement("example.com/gpu", "Exists"), Requirement("size", "NotIn", ("s",)), Requirement("age", "Gt", ("3",)),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["app in (a", "app in a", "app=(a", "a b", "app=a b", "=a", "!", "app in (a),b c", "-app", "a>b"])
def test_what_cannot_be_understood_is_refused(text: str) -> None:
    with pytest.raises(ClusterError, match="unable to parse requirement"):
        selection(labels=text)


@given(st.text(alphabet="a(), ", max_size=30))
def test_any_text_is_taken_apart_at_the_commas_that_no_parenthesis_closes(text: str) -> None:
    parts = [part.strip() for part in SLOW.split(text) if part.strip()]
    if all(set(part) == {"a"} for part in parts):
        assert [each.key for each in selection(labels=text).labels] == parts
    else:
        with pytest.raises(ClusterError):
            selection(labels=text)


@pytest.mark.parametrize("text", [",", "a,", "(a,", "a),", "a=b,", "a in (b),"])
def test_a_selector_of_a_hundred_thousand_characters_takes_no_time(text: str) -> None:
    begun = time.process_time()
    with suppress(ClusterError):
        selection(labels=text * (LONG // len(text)))
    assert time.process_time() - begun < 1
