"""The page on the trace: each line that it promises is printed by a session, at the level that it says; every kind is on it."""

import re
from pathlib import Path

import pytest

from tests.support.traced_clusters import FAMILIES, events, lines

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "trace.md").read_text()
PLACEHOLDER = re.compile(r"<[a-z ]+>|\.\.\.")


def rows(title: str) -> list[list[str]]:
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None, f"the page has no section '{title}'"
    table = [line for line in section[1].splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1:]]


def matches(pattern: str, text: str) -> bool:
    """Tell whether a line is one of the page: <words> stand for something, three dots for anything."""
    parts = [re.escape(part) for part in PLACEHOLDER.split(pattern)]
    fillers = [".*" if mark == "..." else ".+" for mark in PLACEHOLDER.findall(pattern)]
    return re.fullmatch("".join(part + filler for part, filler in zip(parts, [*fillers, ""], strict=True)), text) is not None


def promised(title: str) -> list[tuple[str, int]]:
    return [(line.strip("`"), int(level)) for *_, line, level in rows(title)]


def is_printed(pattern: str, level: int, families: tuple[str, ...]) -> bool:
    return any(level == shown and matches(pattern, text) for family in families for shown, text in lines(family))


@pytest.mark.parametrize(("pattern", "level"), promised("From Volcano's log"))
def test_a_line_beside_one_of_volcano_is_printed_by_its_family(pattern: str, level: int) -> None:
    assert is_printed(pattern, level, ("volcano",))


def why_at_another_level(there: str, level: int) -> str | None:
    """Say why a line has a lower level than Volcano's, as the row does; None for one that is too late, or that says nothing."""
    levels, _, reason = there.partition("; ")
    known = [] if levels == "–" else [int(each) for each in levels.split(", ")]
    if not known or level in known:
        return "the same level"
    return reason if reason and level < min(known) else None


@pytest.mark.parametrize(
    ("words", "there", "level"), [(words, there, int(level)) for words, there, _, level in rows("From Volcano's log")]
)
def test_a_line_beside_one_of_volcano_has_its_level_or_the_row_says_why_not(words: str, there: str, level: int) -> None:
    assert why_at_another_level(there, level), words


def test_a_level_that_is_too_late_or_has_no_reason_is_found() -> None:
    assert why_at_another_level("3", 4) is None
    assert why_at_another_level("3; ours is more", 4) is None
    assert why_at_another_level("5", 3) is None


@pytest.mark.parametrize(("pattern", "level"), promised("In the profile kai"))
def test_a_line_of_the_profile_kai_is_printed(pattern: str, level: int) -> None:
    assert is_printed(pattern, level, ("kai",))


def test_a_line_that_nobody_prints_is_found() -> None:
    assert not is_printed("try gang <gang> of queue <queue> twice", 3, ("volcano",))
    assert not is_printed("try gang <gang> of queue <queue>", 4, ("volcano",))


def levels_by_event() -> dict[str, set[int]]:
    """Return the levels at which each kind is printed, by the name that JSON has; the unit tests see that every kind is."""
    found: dict[str, set[int]] = {}
    for event in (event for family in FAMILIES for event in events(family)):
        found.setdefault(event.event, set()).add(event.level)
    return found


def test_the_page_has_every_kind_with_its_levels_in_order() -> None:
    table = {event.strip("`"): {int(level) for level in levels.split(",")} for event, levels, _ in rows("Kinds")}
    assert table == levels_by_event()
    assert list(table) == sorted(table)
