"""`phalanx replay`: decides again what a recorded scheduler decided, or lets others decide about the same work."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.parallel_options import usable_processors
from phalanx.cli.step_options import Dialogue, refuse_script_without_step, step_options
from phalanx.cli.trace_options import LEVELS

EXAMPLES = """\b
Examples:
  phalanx replay /var/lib/phalanx/recording
  phalanx replay recording --profile kai

\b
Exit status:
  0    every decision is the same as it was then; with --to, --config and --profile: done
  1    failed: there is no recording, or nothing of it can be read
  2    invalid usage
  3    some decision is another one
  130  interrupted by Ctrl-C during the simulations of --config and --profile
"""

DIFFERS, INTERRUPTED = 3, 130
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """What was typed."""

    folder: str
    to: str | None
    config: str | None
    profile: str | None
    assumed: float | None
    form: str
    verbosity: str | None
    snapshot: str | None
    step: bool
    script: str | None
    at: str | None
    processes: int

    @property
    def dialogue(self) -> Dialogue:
        """How somebody steps through the sessions."""
        return Dialogue(self.script, self.form, int(self.verbosity or LEVELS[0]))

    @property
    def compares(self) -> bool:
        """Somebody else is to decide."""
        return bool(self.config or self.profile)

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together, before anything is read."""
        policy_options.refuse_two_policies(self.config, self.profile)
        refuse_script_without_step(self.step, self.script, self.form, ())
        if self.at and not self.step:
            raise click.UsageError("--at: says where stepping begins; add --step")
        if self.step and (self.to or self.compares):
            raise click.UsageError("--step goes through the recorded sessions; leave out --to, --config and --profile")
        if self.to and self.compares:
            raise click.UsageError(
                "--to writes what was submitted, whoever decides; leave out --config and --profile, and give them to 'simulate'"
            )
        if self.to and self.form != "table":
            raise click.UsageError("--to writes a file for 'simulate'; leave out -o")
        if self.verbosity and self.to:
            raise click.UsageError("-v traces a session that differs from the recorded one; leave out --to")
        if self.snapshot and (self.step or self.to or self.compares):
            raise click.UsageError(
                "--snapshot writes the cluster of a session that differs; leave out --step, --to, --config and --profile"
            )
        if self.assumed is not None and not (self.to or self.compares):
            raise click.UsageError("--assume is for simulations of the recorded work; use it with --to, --config or --profile")


@click.command(epilog=EXAMPLES)
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@click.option(
    "--to", type=click.Path(dir_okay=False, allow_dash=True), metavar="FILE",
    help="Write the recorded work to this file, for 'phalanx simulate'; - for stdout.",
)  # fmt: skip
@click.option(
    "--config", type=policy_options.PATH, metavar="FILE",
    help="Simulate the recorded work with this configuration, and compare gang by gang.",
)  # fmt: skip
@click.option("--profile", metavar="NAME", help="The same with a built-in profile.")
@click.option(
    "--assume", "assumed", type=policy_options.Duration(), metavar="DURATION",
    help="Duration of gangs without an end in the recording, if no gang in it has one.",
)  # fmt: skip
@click.option(
    "-v",
    "verbosity",
    type=click.Choice(LEVELS),
    help="Trace both sides of the first session that differs, or step at this level: 3 what happened, 5 everything.",
)
@click.option(
    "--snapshot", type=click.Path(dir_okay=False), metavar="FILE",
    help="Write the objects of the first session that differs to this file, for 'phalanx schedule'.",
)  # fmt: skip
@step_options
@click.option(
    "--at",
    metavar="TIME",
    help="With --step, begin with the first session from this time on, such as 03:12; the first one by default.",
)
@click.option(
    "--processes", type=click.IntRange(1, 256), default=usable_processors, show_default="all processors", metavar="N",
    help="Files of the recording that are replayed at a time.",
)  # fmt: skip
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Decide everything again that a recorded scheduler decided, and compare.

    A recording is written by 'phalanx run --record DIR', and by 'up' and 'simulate' in the same way. Decisions are compared byte
    for byte; the first one that differs is shown with what differs. What cannot be read of a recording is named and skipped.

    With --step, step through the sessions instead; 'help' lists the commands.

    With --config or --profile the recorded work is simulated twice, under the recorded configuration and under the other one, and
    waits and evictions are shown side by side with what was recorded; with -v also the first recorded session that the other one
    decides otherwise, with the traces of both. With --to it becomes a load for 'phalanx simulate'.

    To ask about a moment of a recording, use 'phalanx explain', 'schedule', 'try' or 'eta' with --log and --at.
    """
    asked = ReplayOptions(**options)
    asked.refuse_clashes()
    if asked.step:
        from phalanx.cli.replay_step import replayed_sessions
        from phalanx.cli.step import hold

        hold(replayed_sessions(asked.folder, asked.at), asked.dialogue)
    elif asked.to:
        from phalanx.cli.replay_load import write_load

        write_load(asked)
    elif asked.compares:
        from phalanx.cli.replay_compare import compare

        if not compare(asked):
            ctx.exit(INTERRUPTED)
    else:
        from phalanx.cli.replay_run import replay

        if not replay(asked):
            ctx.exit(DIFFERS)
