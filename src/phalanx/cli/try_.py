"""`phalanx try`: what would become of a job if it were submitted now. The file has an underscore: `try` is a word of Python."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import cluster_options
from phalanx.cli.policy_options import PATH, SessionOptions

EXAMPLES = """\b
Examples:
  phalanx try -f job.yaml --context my-cluster -o json
  phalanx try -f job.yaml --cluster cluster.yaml

\b
Exit status:
  0  everything starts, at once or when others have left
  1  failed: the input or the configuration is invalid, or nothing of it makes pods
  2  invalid usage
  3  a gang has to wait, or the API server would reject something
"""

WAITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TryOptions(SessionOptions):
    """What was typed; the files are to be submitted."""

    more_files: tuple[str, ...]
    cluster_files: tuple[str, ...]
    changes: tuple[str, ...]
    timeout: float

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything to submit: `-f a b` names two files."""
        return self.files + self.more_files

    @property
    def sources(self) -> tuple[str | None, ...]:
        """Everything that is read, each of which may be stdin."""
        return (*self.paths, *self.cluster_files, self.config)


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, required=True, metavar="PATH...",
    help="Files or directories with the objects to submit, or - for stdin.",
)  # fmt: skip
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@click.option(
    "--cluster", "cluster_files", type=PATH, multiple=True, metavar="PATH",
    help="File or directory with the cluster, or - for stdin; may be repeated. A live cluster by default.",
)  # fmt: skip
@cluster_options("Namespace of objects that name none.")
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@policy_options.moment
@click.option("--if", "changes", multiple=True, metavar="CHANGE", help="Decide as if this change were made; may be repeated.")
@policy_options.search_timeout
@policy_options.form
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
