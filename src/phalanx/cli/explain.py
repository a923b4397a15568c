"""`phalanx explain`: why a gang waits, what would start it, and what if."""

from dataclasses import dataclass
from typing import Any

import click

from phalanx.cli import policy_options
from phalanx.cli.connection import GangName, cluster_options
from phalanx.cli.policy_options import SessionOptions

EXAMPLES = """\b
Examples:
  phalanx explain research/bert
  phalanx explain research/bert -f cluster.yaml --if 'queue/research.capability.nvidia.com/gpu=+4'

\b
Exit status:
  0  the gang has its minimum, or would get it
  1  failed: the input or the configuration is invalid, or there is no such gang
  2  invalid usage
  3  the gang has to wait
"""

GANG_WAITS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions(SessionOptions):
    """What was typed."""

    gang: str
    changes: tuple[str, ...]
    timeout: float


@click.command(epilog=EXAMPLES)
@click.argument("gang", type=GangName(), metavar="[NAMESPACE/]NAME")
@policy_options.cluster_files
@policy_options.gang_namespace
@cluster_options()
@policy_options.config
@policy_options.profile
@policy_options.scheduler_names
@policy_options.moment
@click.option("--if", "changes", multiple=True, metavar="CHANGE", help="Explain as if this change were made; may be repeated.")
@policy_options.search_timeout
@policy_options.form
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:  # Any: as click read them
    """Explain why a gang waits and what would start it. Nothing is changed."""
    from phalanx.cli.explain_run import explain

    asked = ExplainOptions(**options)
    asked.refuse_clashes()
    if not explain(asked):
        ctx.exit(GANG_WAITS)
