"""`phalanx shadow`: what a shadow beside other schedulers has seen, and what we would have made of it."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options

EXAMPLES = """\b
Examples:
  phalanx shadow report phalanx-shadow
  phalanx shadow report recording --recorded-profile volcano --html report.html

\b
Exit status:
  0    done
  1    failed: there is no recording, or nothing of it can be read
  2    invalid usage
  130  interrupted by Ctrl-C during the simulations
"""

INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowOptions:
    """What was typed."""

    folder: str
    config: str | None
    profile: str | None
    recorded_profile: str | None
    assumed: float | None
    html: str | None
    form: str


recorded_profile = click.option(
    "--recorded-profile", metavar="NAME",
    help="Built-in profile that resembles the scheduler of the recording; by default chosen by the schedulerName of its pods, "
    "or that of the recording where phalanx decided.",
)  # fmt: skip


@click.group(
    no_args_is_help=True,
    epilog="\b\nExamples:\n  phalanx run --shadow --context my-cluster\n  phalanx shadow report phalanx-shadow",
)
def command() -> None:
    """Show what a shadow beside other schedulers has seen."""


@command.command("report", epilog=EXAMPLES, short_help="Compare what other schedulers did with what we would have done.")
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@click.option(
    "--config", type=policy_options.PATH, metavar="FILE", help="Decide by this configuration; by that of the recording by default."
)
@click.option("--profile", metavar="NAME", help="The same with a built-in profile.")
@recorded_profile
@click.option(
    "--assume", "assumed", type=policy_options.Duration(), metavar="DURATION",
    help="Duration of gangs without an end in the recording, if no gang in it has one.",
)  # fmt: skip
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write the same as an HTML page to this file too.")
@policy_options.form
@click.pass_context
def report(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Compare what other schedulers did in a recorded cluster with what we would have done.

    The recording is that of 'phalanx run --shadow' or 'phalanx record', and may still be written. Shows gangs that were
    half-started or in a deadlock, gangs that waited although there was room, and what becomes of every gang if all of the recorded
    work is simulated under our rules, with durations as they were measured. What is not known, and how far simulations are from
    what happened, is said.
    """
    from phalanx.cli.shadow_report import write_report

    asked = ShadowOptions(**options)
    policy_options.refuse_two_policies(asked.config, asked.profile)
    if not write_report(asked):
        ctx.exit(INTERRUPTED)
