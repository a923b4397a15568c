"""`phalanx eta`: when waiting gangs are expected to start; nothing is changed."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import GangName, Reach, cluster_options
from phalanx.cli.policy_options import PATH, Duration, SessionOptions

EXAMPLES = """\b
Examples:
  phalanx eta research/whisper
  phalanx eta -f examples/when-does-it-start --now 2026-01-05T09:00:00Z

\b
Exit status:
  0  every gang that was asked for starts within the horizon in most of the simulations, or runs already
  1  failed: the input, the history or the configuration is invalid
  2  invalid usage
  3  some gang does not, or nobody can know
"""

NOT_EXPECTED = 3
RECENT, NONE = "recent", "none"


@click.command(epilog=EXAMPLES)
@click.argument("gang", type=GangName(), required=False, metavar="[[NAMESPACE/]NAME]")
@policy_options.cluster_files
@policy_options.gang_namespace
@cluster_options()
@click.option("--history", "histories", type=PATH, multiple=True, metavar="FILE",
              help="How long finished gangs took, one JSON object per line; may be repeated.")  # fmt: skip
@click.option("--write-history", "written", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write how long the finished gangs of the input and of --history took to this file.")  # fmt: skip
@click.option("--assume", metavar="DURATION", help="Duration of gangs of which nothing is known, such as 4h or 30m..6h.")
@click.option("--arrivals", type=click.Choice((RECENT, NONE)), default=RECENT, show_default=True,
              help="Gangs that are submitted later and delay those that wait: like those of the last day, or none.")  # fmt: skip
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many simulations to run, and a quarter as many with arrivals.",
)
@click.option("--horizon", type=Duration(), default="7d", show_default=True, metavar="DURATION", help="How far to simulate.")
@click.option(
    "--timeout", type=Duration(), default="30s", show_default=True, metavar="DURATION",
    help="Start no more simulations after this time.",
)  # fmt: skip
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@policy_options.moment
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, reach: Reach, **options: Any) -> None:  # Any: as click read them
    """Estimate when waiting gangs start. Nothing is changed.

    Simulates the cluster on from its present state, many times: running gangs end after the durations that are known from
    annotations, from finished gangs like them, and from deadlines. Shows when half of the simulations had started a gang, and which
    gangs have to finish first; and by when nine out of ten had, if gangs are submitted later as in the last day.
    """
    from phalanx.cli.eta_run import answer

    asked = EtaOptions(reach=reach, **options)
    asked.refuse_clashes()
    if not answer(asked):
        ctx.exit(NOT_EXPECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtaOptions(SessionOptions):
    """What was typed."""

    gang: str | None
    histories: tuple[str, ...]
    written: str | None
    assume: str | None
    arrivals: str
    seeds: int
    horizon: float
    timeout: float

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Everything that is read, each of which may be stdin."""
        return (*self.files, *self.histories, self.config)

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        SessionOptions.refuse_clashes(self)  # a class with slots is made twice, and super() means the first
        if self.files and (self.reach.server or self.reach.kubeconfig or self.reach.context):
            raise click.UsageError("-f names files, and --server, --kubeconfig and --context a cluster; write one or the other")
