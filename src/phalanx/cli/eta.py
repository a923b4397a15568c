"""`phalanx eta`: when waiting gangs are expected to start; nothing is changed."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import Reach, cluster_options
from phalanx.cli.policy_options import PATH

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

FORMS = ("table", "json", "yaml")
NOT_EXPECTED = 3


@click.command(epilog=EXAMPLES)
@click.argument("gang", required=False, metavar="[NAMESPACE/NAME]")
@click.option("-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH",
              help="Files or directories to read instead of a cluster, or - for stdin; may be repeated.")  # fmt: skip
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the gang; any in which there is one by default.")
@cluster_options()
@click.option("--history", "histories", type=PATH, multiple=True, metavar="FILE",
              help="How long finished gangs took, one JSON object per line; may be repeated.")  # fmt: skip
@click.option("--write-history", "written", type=click.Path(dir_okay=False), metavar="FILE",
              help="Write how long the finished gangs of the input and of --history took to this file.")  # fmt: skip
@click.option("--assume", metavar="DURATION", help="Duration of gangs of which nothing is known, such as 4h or 30m..6h.")
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N", help="How many simulations to run."
)
@click.option("--horizon", default="7d", show_default=True, metavar="DURATION", help="How far to simulate.")
@click.option("--timeout", default="30s", show_default=True, metavar="DURATION", help="Start no more simulations after this time.")
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@click.option("--now", metavar="TIME", help="Time of the input, such as 2026-01-01T12:00:00Z; now by default.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True, help="Output format.")
@click.pass_context
def command(ctx: click.Context, /, reach: Reach, **options: Any) -> None:  # Any: as click read them
    """Estimate when waiting gangs start. Nothing is changed.

    Simulates the cluster on from its present state, many times: running gangs end after the durations that are known from
    annotations, from finished gangs like them, and from deadlines. Shows when half of the simulations had started a gang, when nine
    out of ten had, and which gangs have to finish first. Work that is submitted later is not foreseen.
    """
    from phalanx.cli.eta_run import answer

    asked = EtaOptions(reach=reach, **options)
    asked.refuse_clashes()
    if not answer(asked):
        ctx.exit(NOT_EXPECTED)


@dataclass(frozen=True, slots=True)
class EtaOptions:
    """What was typed."""

    reach: Reach
    gang: str | None
    files: tuple[str, ...]
    histories: tuple[str, ...]
    written: str | None
    assume: str | None
    seeds: int
    horizon: str
    timeout: str
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    now: str | None
    form: str

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        if self.config and self.profile:
            raise click.UsageError("--config and --profile exclude each other; a configuration may say 'profile: NAME' itself")
        if self.files and (self.reach.server or self.reach.kubeconfig or self.reach.context):
            raise click.UsageError("-f names files, and --server, --kubeconfig and --context a cluster; write one or the other")
        if (*self.files, *self.histories, self.config).count("-") > 1:
            raise click.UsageError("stdin can be read only once: one '-' at most")
        self.seconds("--horizon", self.horizon), self.seconds("--timeout", self.timeout)

    @staticmethod
    def seconds(option: str, text: str) -> float:
        """Return the seconds of an option."""
        from phalanx.sim.settings import seconds_in

        found = seconds_in(text)
        if not found:
            raise click.UsageError(f"{option}: {text!r} is not a duration; write for example 90s, 2h30m or 7d")
        return found
