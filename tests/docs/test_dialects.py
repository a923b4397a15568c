"""The page that has all dialects side by side says what the engine does, and names tests that exist."""

import re
from pathlib import Path

import pytest

from tests.support import dialect_features as features

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
PAGE = features.PAGE.read_text(encoding="utf-8")
TEST = re.compile(r"`(test_\w+)`")
DEFINED = {
    name for file in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
}
SURPRISES = [line for line in PAGE.partition("## Surprising semantics")[2].splitlines() if re.match(r"\| \d", line)]


@pytest.mark.parametrize("feature", features.FEATURES, ids=lambda feature: str(feature.title))
def test_a_row_of_the_table_is_what_the_engine_does(feature: features.Feature) -> None:
    (row,) = [line for line in features.table_of(PAGE).splitlines() if line.startswith(f"| {feature.title} |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")[1:]]
    assert dict(zip(features.TITLES, cells, strict=True)) == {
        dialect: "yes" if feature.has(dialect) else "no" for dialect in features.TITLES
    }, "write it anew with: python -m tests.support.dialect_features"


def test_the_table_has_these_rows_and_no_others() -> None:
    head, _, *rows = features.table_of(PAGE).splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")] == ["feature", *features.TITLES.values()]
    assert [row.split("|")[1].strip() for row in rows] == [feature.title for feature in features.FEATURES]


def test_writing_the_table_changes_nothing_else() -> None:
    assert features.with_table(PAGE, features.table_of(PAGE)) == PAGE


def test_all_eighteen_surprises_are_there() -> None:
    assert [int(line.split("|")[1]) for line in SURPRISES] == list(range(1, 19))


@pytest.mark.parametrize("line", SURPRISES, ids=[line.split("|")[1].strip() for line in SURPRISES])
def test_a_surprise_names_what_others_do_what_we_do_and_a_test(line: str) -> None:
    _, others, ours, shown = (cell.strip() for cell in line.strip("|").split("|"))
    assert others
    assert ours
    assert TEST.findall(shown)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert set(TEST.findall(page.read_text())) <= DEFINED
