"""The terminal of the stepping debugger: it reads commands, from a prompt or a script, and writes answers."""

import sys
from collections.abc import Iterator
from contextlib import suppress

import click
import msgspec

from phalanx.cli import output
from phalanx.cli.step_options import Dialogue
from phalanx.cli.streams import visible
from phalanx.stepping.answer import Answer
from phalanx.stepping.debugger import Debugger
from phalanx.stepping.stepped_session import SteppedSession
from phalanx.store.input_files import read_bytes

PROMPT = "(step) "
COMMENT = "#"


def hold(sessions: Iterator[SteppedSession], dialogue: Dialogue) -> None:
    """Step through sessions until somebody has enough: by command, by the end of the input, or by Ctrl-C."""
    debugger = Debugger(sessions, level=dialogue.level, gangs=dialogue.gangs)
    is_data = dialogue.form == "json"
    _write("", debugger.opening(), is_data=is_data)
    with suppress(KeyboardInterrupt, click.Abort):
        for line in _lines(dialogue, is_echoed=not is_data):
            answer = debugger.do(line)
            _write(line, answer, is_data=is_data)
            if answer.is_last:
                return


def _lines(dialogue: Dialogue, *, is_echoed: bool) -> Iterator[str]:
    """Yield what is typed; a script is shown as if it were."""
    if dialogue.script is None and sys.stdin.isatty():
        yield from _typed()
        return
    source = sys.stdin if dialogue.script is None else read_bytes(dialogue.script).decode(errors="replace").splitlines()
    for line in source:
        text = line.strip()
        if not text.startswith(COMMENT):
            if is_echoed:
                click.echo(visible(f"{PROMPT}{text}".rstrip()))
            yield text


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401  # lines can be edited and called back
    while True:
        try:
            yield input(PROMPT).strip()
        except EOFError:
            click.echo()
            return


def _write(line: str, answer: Answer, *, is_data: bool) -> None:
    if is_data:
        data = {"command": line, **answer.data} if line or not answer.data.get("session") else answer.data
        click.echo(msgspec.json.encode(data).decode())
    elif answer.lines:
        output.write_lines(answer.lines)
