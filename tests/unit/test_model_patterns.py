"""Regular expressions that people write into objects."""

import pytest

from phalanx.errors import SnapshotError
from phalanx.model.patterns import compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^rack-1-", "rack-1-node-7", True),
        ("^rack-1-", "rack-17-node-7", False),
        ("ode", "rack-1-node-7", True),
        ("^rac?k$", "rak", True),
        ("^rack*$", "rac", True),
        ("^rack{0}$", "rac", True),
        ("^rack{2,3}", "rackk", True),
        ("^rack+$", "rac", False),
        ("^a|b$", "xb", True),
        ("(?i)^RACK", "rack", True),
        ("^(?i)RACK", "rack", True),
        ("^", "", True),
        ("", "anything", True),
        (r"^n\d$", "n\u0663", False),
        ("^n$", "n\n", False),
        ("^n.$", "n\ud800", True),
        ("ü", "für", True),
    ],
)
def test_a_pattern_is_searched_for_as_in_go(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern).is_in(text) is expected


def test_nothing_is_written_to_the_terminal_when_a_pattern_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    for pattern in ("(", "a(?=b)", "\ud800(", "((a{1000}){1000}"):
        with pytest.raises(SnapshotError, match="RE2's syntax"):
            compile_pattern(pattern)
    assert capfd.readouterr() == ("", "")
