"""The options of commands that let somebody step through sessions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from phalanx.cli.policy_options import PATH

AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])  # Any: a command, whatever it takes

_step = click.option("--step", is_flag=True, help="Step through the session; 'help' lists the commands.")
_script = click.option(
    "--script",
    type=PATH,
    metavar="FILE",
    help="With --step, read the commands from this file; from the terminal or stdin by default.",
)


def step_options(command: AnyCommand) -> AnyCommand:
    """Add the options."""
    return _step(_script(command))


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Where commands come from, how answers are written, and which steps count."""

    script: str | None
    form: str
    level: int
    gangs: tuple[str, ...] = ()


def refuse_script_without_step(is_stepped: bool, script: str | None, form: str, sources: Sequence[str | None]) -> None:
    """Refuse what does not go with stepping, or only with it."""
    if script and not is_stepped:
        raise click.UsageError("--script: it has the commands of --step; add --step")
    if is_stepped and form == "yaml":
        raise click.UsageError("--step: the output is a table or json, one object for each command")
    if is_stepped and script is None and "-" in sources:
        raise click.UsageError("--step: stdin has the cluster, so the commands must come from a file; add --script FILE")
