"""The program `kubectl_complete-phalanx`: kubectl runs it to complete `kubectl phalanx ...`.

It gets the words that were typed, the last of them unfinished, and answers as kubectl's own completion does: a choice on each line,
with a tab before what it means, and at the end a colon and a number that tells whether files are choices too.
"""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, ShellComplete

from phalanx.cli import COMPLETE_VARIABLE, PLUGIN, main
from phalanx.cli.failures import tell_failure
from phalanx.cli.streams import OutputError, guarded_streams

FILES, NO_FILES = 0, 4
"""What may be completed besides: any file, or nothing."""


def complete(words: Sequence[str]) -> list[str]:
    """Return the lines of an answer."""
    *typed, unfinished = words or [""]
    found = ShellComplete(main, {}, PLUGIN, COMPLETE_VARIABLE).get_completions(list(typed), unfinished)
    choices = [_line(item) for item in found if item.type == "plain"]
    takes_files = any(item.type in ("file", "dir") for item in found)
    return [*choices, f":{FILES if takes_files else NO_FILES}"]


def _line(item: CompletionItem) -> str:
    return f"{item.value}\t{item.help}" if item.help else str(item.value)


def run() -> None:
    """Answer kubectl."""
    try:
        with guarded_streams():
            for line in complete(sys.argv[1:]):
                click.echo(line.replace("\n", " "))
    except OutputError as problem:
        sys.exit(tell_failure(problem, ()))
