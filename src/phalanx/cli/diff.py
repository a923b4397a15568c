"""`phalanx diff`: what `phalanx apply` would change."""

import click

from phalanx.cli.connection import Reach, cluster_options

EXAMPLES = """\b
Examples:
  phalanx diff -f examples/deadlock
  cat jobs.yaml | phalanx diff -f -

\b
Exit status, as of kubectl diff:
  0  nothing would change
  1  something would
  2  failed, or invalid usage
"""

PATH = click.Path(allow_dash=True)
DIFFERENT, FAILED = 1, 2


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Files or directories to read, or - for stdin."
)
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@cluster_options("Namespace of objects that have none.")
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], more_files: tuple[str, ...], reach: Reach) -> None:
    """Show what 'phalanx apply' would change, object by object. Nothing is changed.

    The cluster is asked what each object would become, by a dry run.
    """
    from phalanx.cli.failures import FAILED as ERROR
    from phalanx.cli.failures import tell_failure

    paths = (*files, *more_files)
    if not paths:
        raise click.UsageError("nothing to read: name files or folders with -f, or stdin with -f -")
    from phalanx.cli.diff_run import diff

    try:
        found = diff(reach, paths)
    except Exception as problem:  # 1 means that something would change
        status = tell_failure(problem, ctx.find_root().obj)
        ctx.exit(FAILED if status == ERROR else status)
    ctx.exit(FAILED if found.refused else DIFFERENT if found.different else 0)
