"""The page on stepping has every command, breakpoint and watch of the program."""

import re
from pathlib import Path

from phalanx.stepping.breakpoints import FORMS
from phalanx.stepping.commands import COMMANDS
from phalanx.stepping.watches import GANG_FIGURES, NODE_FIGURES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "step.md").read_text()


def first_cells(title: str) -> list[str]:
    section = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None, title
    return re.findall(r"^\| (`.*?`.*?) \| ", section[1].replace("\\|", "¦"), re.MULTILINE)


def test_every_command_is_on_the_page_with_its_meaning() -> None:
    rows = [
        f"| `{command.form}` | {', '.join(f'`{word}`' for word in command.short)} | {command.meaning} |" for command in COMMANDS
    ]
    assert [row for row in rows if row not in PAGE.replace("\\|", "|")] == []
    assert len(first_cells("Commands")) == len(COMMANDS)


def test_every_breakpoint_is_on_the_page() -> None:
    assert [cell.strip("`") for cell in first_cells("Breakpoints")] == list(FORMS)


def test_every_watch_is_on_the_page() -> None:
    cells = " ".join(first_cells("Watches"))
    assert set(re.findall(r"\.([a-z]+)`", cells)) == {*NODE_FIGURES, *GANG_FIGURES, "allocated", "deserved"}
