"""Patterns: looking at the beginning of a text first never changes the answer."""

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from phalanx.errors import SnapshotError
from phalanx.model.patterns import compile_pattern

PIECES = ["^", "$", "a", "b", "-", "1", ".", "*", "+", "?", "{2}", "{0,1}", "(", ")", "(?i)", "[ab]", "|", "A"]
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=8).map(lambda pieces: "^" + "".join(pieces))
TEXTS = st.text("abAB-1", max_size=6)


@given(PATTERNS, TEXTS)
def test_a_pattern_is_found_where_python_finds_it(pattern: str, text: str) -> None:
    try:
        found, expected = compile_pattern(pattern), re.compile(pattern)
    except (SnapshotError, re.error):
        assume(False)
        return
    assert found.is_in(text) == (expected.search(text) is not None)
