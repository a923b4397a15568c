"""`phalanx try`: what would become of a job if it were submitted now. The file has an underscore: `try` is a word of Python."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import Reach, cluster_options
from phalanx.cli.explain import SEARCH_SECONDS
from phalanx.cli.policy_options import PATH

EXAMPLES = """\b
Examples:
  phalanx try -f job.yaml
  phalanx try -f job.yaml --context my-cluster -o json
  phalanx try -f job.yaml --cluster cluster.yaml

\b
Exit status:
  0  everything starts, at once or when others have left
  1  failed: the input or the configuration is invalid, or nothing of it makes pods
  2  invalid usage
  3  a gang has to wait, or the API server would reject something
"""

FORMS = ("table", "json", "yaml")
WAITS = 3


@dataclass(frozen=True, slots=True)
class TryOptions:
    """What was typed."""

    reach: Reach
    files: tuple[str, ...]
    cluster_files: tuple[str, ...]
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    now: str | None
    changes: tuple[str, ...]
    timeout: float
    form: str

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        if self.config and self.profile:
            raise click.UsageError("--config and --profile exclude each other; a configuration may say 'profile: NAME' itself")
        if (*self.files, *self.cluster_files, self.config).count("-") > 1:
            raise click.UsageError("stdin can be read only once: one '-' at most")


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, required=True, metavar="PATH...",
    help="Files or directories with the objects to submit, or - for stdin.",
)  # fmt: skip
@click.option(
    "--cluster", "cluster_files", type=PATH, multiple=True, metavar="PATH...",
    help="Files or directories with the cluster; a live one by default.",
)  # fmt: skip
@cluster_options("Namespace of objects that name none.")
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@click.option("--now", metavar="TIME", help="Time of the session, such as 2026-01-01T12:00:00Z; now by default.")
@click.option("--if", "changes", multiple=True, metavar="CHANGE", help="Decide as if this were so; may be repeated.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=SEARCH_SECONDS, show_default=True, metavar="SECONDS",
    help="How long to look for changes that would start what waits; 0 for not at all.",
)  # fmt: skip
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True, help="Output format.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Decide about a job as if it were submitted now: where it would run, whom it would evict, or why it waits.

    Jobs, PyTorchJobs, RayClusters, Jobs of Volcano and other owners are taken, not only pods. Nothing is changed.
    """
    from phalanx.cli.try_run import try_out

    asked = TryOptions(**options)
    asked.refuse_clashes()
    if not try_out(asked):
        ctx.exit(WAITS)
