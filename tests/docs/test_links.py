"""Links between files lead somewhere. Those inside docs/ are checked when the documentation is built."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*/README.md"))
FILES = [*sorted(ROOT.glob("*.md")), ROOT / "changelog.d" / "README.md", *EXAMPLES]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_links_of_a_file_lead_somewhere(file: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)[^)]*\)", file.read_text())
    assert [target for target in targets if not (file.parent / target).exists()] == []


def test_the_readme_has_links() -> None:
    assert "](docs/" in (ROOT / "README.md").read_text()
