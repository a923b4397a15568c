"""The options of `phalanx run` in the reference are those of the program."""

import re
from pathlib import Path

import click

from phalanx.cli.run import command

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command-line.md"


def test_every_option_of_run_is_in_the_reference_and_nothing_else() -> None:
    section = re.search(r"^## phalanx run\n(.*?)^## ", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert section is not None
    cells = re.findall(r"^\| (`-[^|]*) \|", section[1], re.MULTILINE)
    written = {name for cell in cells for name in re.findall(r"`(-[^`]*)`", cell)}
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert written == {name for option in options for name in (*option.opts, *option.secondary_opts)}
