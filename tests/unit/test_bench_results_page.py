"""The page of results: a benchmark replaces its own section, and nothing else."""

from pathlib import Path

import pytest

from phalanx.bench.results_page import with_section, write_section
from phalanx.errors import PhalanxError

ROOT = Path(__file__).resolve().parents[2]
PAGE = "# Results\n\n<!-- core: begin -->\n\nold\n\n<!-- core: end -->\n\nThe end.\n"


def test_a_section_replaces_the_one_of_its_name() -> None:
    assert with_section(PAGE, "core", "new\n") == PAGE.replace("old", "new")


def test_a_section_that_is_not_there_is_added_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    write_section(path, "core", "first")
    write_section(path, "evict", "second")
    write_section(path, "core", "third")
    assert [line for line in path.read_text().splitlines() if line and not line.startswith("<")] == ["third", "second"]


def test_a_section_without_an_end_is_not_overwritten() -> None:
    with pytest.raises(PhalanxError, match="section 'core' of the results has no end"):
        with_section("<!-- core: begin -->\nsomething else", "core", "new")


@pytest.mark.parametrize("name", ["core", "backlog", "evict", "explain", "eta", "footprint", "race"])
def test_the_page_has_a_section_for_every_benchmark(name: str) -> None:
    page = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    assert page.count(f"<!-- {name}: begin -->") == page.count(f"<!-- {name}: end -->") == 1
