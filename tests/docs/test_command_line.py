"""The options of commands in the reference are those of the program."""

import re
from pathlib import Path

import click
import pytest

from phalanx.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"


@pytest.mark.parametrize(
    "name",
    [
        "schedule",
        "explain",
        "try",
        "eta",
        "pending",
        "run",
        "shadow report",
        "record",
        "replay",
        "ui",
        "suspend",
        "resume",
        "queue open",
        "queue close",
    ],
)
def test_every_option_is_in_the_reference_and_nothing_else(name: str) -> None:
    page = PAGE.read_text()
    title = name if f"\n## phalanx {name}\n" in page else name.split()[0]
    section = re.search(rf"^## phalanx {title}\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    assert section is not None
    cells = re.findall(r"^\| (`-[^|]*) \|", section[1], re.MULTILINE)
    written = {option for cell in cells for option in re.findall(r"`(-[^`]*)`", cell)}
    command: click.Command | None = main
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command, info_name="phalanx"), word)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert written == {word for option in options for word in (*option.opts, *option.secondary_opts)}
