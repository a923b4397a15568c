"""`phalanx replay`: decides again what a recorded scheduler decided."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options

EXAMPLES = """\b
Examples:
  phalanx replay /var/lib/phalanx/recording
  phalanx replay recording -o json

\b
Exit status:
  0  every decision is the same as it was then
  1  failed: there is no recording, or nothing of it can be read
  2  invalid usage
  3  some decision is another one
"""

DIFFERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What was typed."""

    folder: str
    form: str
    verbosity: str | None


@click.command(epilog=EXAMPLES)
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@click.option(
    "-v",
    "verbosity",
    type=click.Choice(["3", "4", "5"]),
    help="Trace the first session that differs: 3 what happened, 5 everything.",
)
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Decide everything again that a recorded scheduler decided, and compare.

    A recording is written by 'phalanx run --record DIR', and by 'up' and 'simulate' in the same way. Decisions are compared byte
    for byte; the first one that differs is shown with what differs. What cannot be read of a recording is named and skipped.

    To ask about a moment of a recording, use 'phalanx explain', 'schedule', 'try' or 'eta' with --log and --at.
    """
    from phalanx.cli.replay_run import replay

    if not replay(ReplayOptions(**options)):
        ctx.exit(DIFFERS)
