"""`phalanx resume`: let a suspended job make its pods again."""

import click

from phalanx.cli.connection import KindName, ObjectName, Reach, cluster_options

EXAMPLES = """\b
Examples:
  phalanx resume bert -n research
  phalanx resume vcjob/train job/evaluate
"""


@click.command(epilog=EXAMPLES)
@click.argument("kind", type=KindName(), metavar="[KIND]")
@click.argument("names", nargs=-1, type=ObjectName(), metavar="NAME...")
@cluster_options("Namespace of the objects.")
@click.pass_context
def command(ctx: click.Context, kind: str, names: tuple[str, ...], reach: Reach) -> None:
    """Resume suspended jobs: their pods are made again, and scheduled like new ones.

    A name without a kind is a gang or the job that owns it. What can be resumed is what 'phalanx suspend' can suspend.
    """
    from phalanx.cli.suspend_run import carry_out

    if not carry_out(reach, kind, names, suspends=False):
        ctx.exit(1)
