"""`phalanx explain`: why a gang waits, what would start it, and what if."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import Reach, cluster_options
from phalanx.cli.policy_options import PATH

EXAMPLES = """\b
Examples:
  phalanx explain research/bert -f cluster.yaml
  phalanx explain research/bert -f cluster.yaml --if 'queue/research.capability.nvidia.com/gpu=+4'

\b
Exit status:
  0  the gang has its minimum, or would get it
  1  failed: the input or the configuration is invalid, or there is no such gang
  2  invalid usage
  3  the gang has to wait
"""

GANG_WAITS = 3
SEARCH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """What was typed."""

    reach: Reach
    gang: str
    files: tuple[str, ...]
    config: str | None
    profile: str | None
    names: tuple[str, ...]
    now: str | None
    changes: tuple[str, ...]
    timeout: float
    form: str

    def refuse_clashes(self) -> None:
        """Refuse options that do not go together."""
        policy_options.refuse_two_policies(self.config, self.profile)
        policy_options.refuse_stdin_twice(*self.files, self.config)


@click.command(epilog=EXAMPLES)
@click.argument("gang", metavar="[NAMESPACE/]NAME")
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Files or directories to read, or - for stdin."
)
@policy_options.gang_namespace
@cluster_options()
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@click.option("--now", metavar="TIME", help="Time of the session, such as 2026-01-01T12:00:00Z; now by default.")
@click.option("--if", "changes", multiple=True, metavar="CHANGE", help="Explain as if this were so; may be repeated.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=SEARCH_SECONDS, show_default=True, metavar="SECONDS",
    help="How long to look for changes that would start the gang; 0 for not at all.",
)  # fmt: skip
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Explain why a gang waits and what would start it. Nothing is changed."""
    from phalanx.cli.explain_run import explain

    asked = ExplainOptions(**options)
    asked.refuse_clashes()
    if not explain(asked):
        ctx.exit(GANG_WAITS)
