"""The page on stepping has every command, breakpoint and watch of the program."""

import re
from pathlib import Path

from phalanx.stepping.breakpoints import FORMS
from phalanx.stepping.commands import COMMANDS
from phalanx.stepping.watches import GANG_FIGURES, NODE_FIGURES
from phalanx.testing import build
from tests.support.stepped_sessions import data, debugger

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference" / "step.md").read_text()
TUTORIAL = (DOCS / "tutorial" / "step-through-a-session.md").read_text()
POLICY = build.policy(actions="enqueue, allocate, preempt, reclaim", tiers=[["priority", "gang", "predicates", "nodeorder"]])


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


def test_what_is_typed_in_place_of_a_breakpoint_of_volcano_is_understood() -> None:
    rows = re.findall(r"^\| .* \|$", TUTORIAL.partition("## From breakpoints in Volcano's source")[2], re.MULTILINE)[2:]
    typed = {text for row in rows for text in re.findall(r"`((?:break|watch|show|order) [^`]*)`", row.rpartition(" | ")[2])}
    assert len(rows) > 20
    assert len(typed) > 20
    cluster = build.cluster(nodes=1, policy=POLICY)
    cluster.submit(build.gang("train", tasks=2, gpus=1))
    for text in sorted(typed):
        answer = data(debugger(cluster), text.replace("NAMESPACE/NAME", "default/train"))
        assert "error" not in answer, text
