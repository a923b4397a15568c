"""Words that the glossary marks as not used are used nowhere: not in the documentation, not in the help of the commands."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from phalanx import cli

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
EXAMPLES = sorted(ROOT.glob("examples/*/README.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *EXAMPLES]
FIGURES = sorted((ROOT / "docs" / "figures").glob("*.svg"))
TABLE = re.compile(r"^## Not used here\n.*?^\| --- \| --- \|\n(.*?)\n(?:\n|\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^(`{3,})(?!\{).*?^\1$|`[^`\n]+`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
"""Output of programs, names and addresses: they are what they are."""


def unused_words() -> list[str]:
    table = TABLE.search(GLOSSARY.read_text())
    assert table is not None, "the glossary has no table 'Not used here'"
    return [word.strip() for row in table[1].splitlines() for word in row.split("|")[1].split(",")]


def found_in(text: str) -> list[str]:
    """Return the unused words that a text has, outside code."""
    prose = " ".join(CODE.sub(" ", text).split())
    return re.findall(rf"\b(?:{'|'.join(map(re.escape, unused_words()))})\b", prose, re.IGNORECASE)


def helps(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    """Yield every command below this one with its help."""
    # A command keeps the help option of the first context that asks for it, so the context has the settings of the command.
    context = click.Context(command, info_name=path, **command.context_settings)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from helps(below, f"{path} {name}")


HELPS = dict(helps(cli.main, "phalanx"))


@pytest.mark.parametrize("page", [page for page in PAGES if page != GLOSSARY], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_the_words_of_the_glossary(page: Path) -> None:
    assert found_in(page.read_text()) == []


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: str(figure.name))
def test_a_figure_uses_the_words_of_the_glossary(figure: Path) -> None:
    assert found_in(re.sub(r"<style>.*?</style>|<[^>]*>", " ", figure.read_text(), flags=re.DOTALL)) == []


@pytest.mark.parametrize("path", HELPS)
def test_the_help_of_a_command_uses_the_words_of_the_glossary(path: str) -> None:
    assert found_in(HELPS[path]) == []


def test_the_glossary_is_read() -> None:
    assert {"promise", "set aside", "tell", "unless said otherwise"} <= set(unused_words())
    assert {"phalanx run", "phalanx dev cluster up"} <= set(HELPS)


def test_a_word_is_found_in_prose_and_not_in_code() -> None:
    assert found_in("It is Set\naside, as the event `told` says.\n\n```text\npromised\n```\n[x](promise.md)") == ["Set aside"]
