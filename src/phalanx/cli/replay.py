"""`phalanx replay`: decides again what a recorded scheduler decided."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.step_options import Dialogue, refuse_script_without_step, step_options
from phalanx.cli.trace_options import LEVELS

EXAMPLES = """\b
Examples:
  phalanx replay /var/lib/phalanx/recording
  phalanx replay recording -o json
  phalanx replay recording --step --at 03:12

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
    step: bool
    script: str | None
    at: str | None

    @property
    def dialogue(self) -> Dialogue:
        """How somebody steps through the sessions."""
        return Dialogue(self.script, self.form, int(self.verbosity or LEVELS[0]))

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        refuse_script_without_step(self.step, self.script, self.form, ())
        if self.at and not self.step:
            raise click.UsageError("--at: says where stepping begins; add --step")


@click.command(epilog=EXAMPLES)
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@click.option(
    "-v",
    "verbosity",
    type=click.Choice(LEVELS),
    help="Trace the first session that differs, or step at this level: 3 what happened, 5 everything.",
)
@step_options
@click.option(
    "--at",
    metavar="TIME",
    help="With --step, begin with the first session from this time on, such as 03:12; the first one by default.",
)
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Decide everything again that a recorded scheduler decided, and compare.

    A recording is written by 'phalanx run --record DIR', and by 'up' and 'simulate' in the same way. Decisions are compared byte
    for byte; the first one that differs is shown with what differs. What cannot be read of a recording is named and skipped.

    With --step, step through the sessions instead; 'help' lists the commands.

    To ask about a moment of a recording, use 'phalanx explain', 'schedule', 'try' or 'eta' with --log and --at.
    """
    asked = ReplayOptions(**options)
    asked.refuse_clashes()
    if asked.step:
        from phalanx.cli.replay_step import replayed_sessions
        from phalanx.cli.step import hold

        hold(replayed_sessions(asked.folder, asked.at), asked.dialogue)
        return
    from phalanx.cli.replay_run import replay

    if not replay(asked):
        ctx.exit(DIFFERS)
