"""The threat model names tests that there are, and those that look at the roles."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explanation/threat-model.md").read_text()
NAMED = re.findall(r"`((?:unit|integration|properties|scenarios|package)/test_\w+\.py)`", PAGE)


def test_every_test_that_is_named_is_there() -> None:
    assert len(NAMED) > 20
    assert [name for name in NAMED if not (ROOT / "tests" / name).is_file()] == []


def test_every_attempt_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and PAGE.index(line) > PAGE.index("## What a tenant")]
    attempts = [row for row in rows if not row.startswith(("| attempt", "| actor", "| ---"))]
    assert len(attempts) > 20
    assert [row for row in attempts if not re.search(r"`\w+/test_\w+\.py` \|$", row)] == []


def test_as_many_exceptions_are_explained_as_there_are() -> None:
    text = (ROOT / "tests/integration/test_roles_used_live.py").read_text()
    entries = re.search(r"^NEVER_LOGGED.*?^}", text, re.MULTILINE | re.DOTALL)
    assert entries is not None
    assert len(re.findall(r'^    "', entries[0], re.MULTILINE)) == 4
    assert "The exceptions are four" in PAGE
