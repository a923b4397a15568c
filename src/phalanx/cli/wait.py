"""`phalanx wait`: wait until objects or gangs are in some state."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, cluster_options

EXAMPLES = """\b
Examples:
  phalanx wait gang/bert -n research --for=condition=Scheduled --timeout=10m
  phalanx wait pods --all -n research --for=jsonpath='{.status.phase}'=Running

\b
Exit status, as of kubectl wait:
  0  all of them are in that state
  1  failed: the time is over, or an object is not there
  2  invalid usage
"""


class WaitSeconds(click.ParamType[float]):
    """A duration such as 90s; 0 looks once, and a negative one waits for a week, as for kubectl."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # Any: as click passes it
        """Return the seconds."""
        from phalanx.model.duration import seconds_of

        text, week = str(value), 7 * 24 * 3600.0
        if text.startswith("-"):
            return week
        found = seconds_of(f"{text}s" if text.isdecimal() else text)
        if found is None:
            self.fail(f"{value!r} is not a duration; write for example 30s or 10m", param, ctx)
        return found


@dataclass(frozen=True, slots=True)
class WaitOptions:
    """What was typed."""

    kind: str
    names: tuple[str, ...]
    wanted: str
    is_all: bool
    labels: str
    timeout: float
    """In seconds."""


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), metavar="KIND[/NAME]")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="[NAME]...")
@click.option(
    "--for", "wanted", required=True, metavar="STATE",
    help="What to wait for: condition=NAME[=VALUE], jsonpath=PATH[=VALUE], create, or delete.",
)  # fmt: skip
@click.option("--all", "is_all", is_flag=True, help="Wait for all objects of the kind in the namespace.")
@click.option("-l", "--selector", "labels", default="", metavar="SELECTOR", help="Wait for the objects with matching labels.")
@click.option(
    "--timeout", type=WaitSeconds(), default="30s", show_default=True, metavar="DURATION",
    help="How long to wait; 0 looks once, a negative one waits for a week.",
)  # fmt: skip
@cluster_options("Namespace of the objects.")
@click.pass_context
def command(ctx: click.Context, /, reach: Reach, **options: Any) -> None:  # Any: as click read them
    """Wait until objects or gangs are in some state.

    Gangs have the conditions Scheduled (has its minimum), Running (and its pods run) and Completed, besides those of their group.
    """
    from phalanx.cli.wait_run import wait

    if not wait(reach, WaitOptions(**options)):
        ctx.exit(1)
