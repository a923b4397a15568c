"""Regular expressions that people write into objects, such as the members of a HyperNode or `matches` in CEL.

They are RE2's, as in Volcano and in the API server, whose language (Go) has the same syntax. The time to search grows with the
length of the text and never faster, whatever the pattern. Python's own engine tries alternatives one after the other, and
`^(a+)+b$` on a name of 63 letters keeps it busy for longer than any cluster lives. The price is a smaller language: a pattern
with a backreference or a look-around is refused.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from phalanx.errors import SnapshotError

LONGEST_PATTERN = 1000
"""Characters; the API server takes 253 in a HyperNode."""
MEMORY_BYTES = 1 << 20
"""What one compiled pattern may take; a text that would need more is searched more slowly, but as surely."""
KEPT_PATTERNS = 1024
SYNTAX = "write it in RE2's syntax, without look-around and backreferences, and with at most 1000 repetitions"
_BEGINNING = re.compile(r"\^([A-Za-z0-9-]*)([*?{]?)")


class Pattern:
    """A compiled regular expression."""

    __slots__ = ("_fixed_prefix", "_search")

    def __init__(self, search: Callable[[bytes], object], beginning: str) -> None:
        """Take what finds the pattern in a text, and the letters with which every text begins that has it."""
        self._search, self._fixed_prefix = search, beginning

    def is_in(self, text: str) -> bool:
        """Tell whether the pattern is found anywhere in the text."""
        # Of 10,000 nodes a rack's ^rack-17- concerns few; asking RE2 about the others takes eight times as long.
        return text.startswith(self._fixed_prefix) and self._search(_bytes(text)) is not None


@lru_cache(maxsize=KEPT_PATTERNS)
def compile_pattern(text: str) -> Pattern:
    """Return the compiled pattern; one that RE2 does not read raises an error that says what to write."""
    import re2  # 10 ms that most clusters never need

    if len(text) > LONGEST_PATTERN:
        raise SnapshotError(f"it has {len(text)} characters; write at most {LONGEST_PATTERN}")
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MEMORY_BYTES
    try:
        return Pattern(re2.compile(_bytes(text), options).search, _fixed_prefix(text))
    except re2.error as problem:
        raise SnapshotError(f"{_message_of(problem)}; {SYNTAX}") from problem


def _bytes(text: str) -> bytes:
    """Return the text as RE2 takes it; half a surrogate, which JSON can hold, is a character like any other."""
    return text.encode(errors="surrogatepass")


def _message_of(problem: Exception) -> str:
    (said,) = problem.args
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _fixed_prefix(text: str) -> str:
    """Return letters with which every text begins that has the pattern, as many as can be seen easily."""
    found = _BEGINNING.match(text)
    if found is None or "|" in text:
        return ""
    return found[1][:-1] if found[2] else found[1]
