"""`phalanx convert`: gangs from one dialect to another."""

import click

EXAMPLES = """\b
Examples:
  phalanx convert -f examples/role-minima --to yunikorn
  kubectl get pods,podgroups.scheduling.volcano.sh -n research -o yaml | phalanx convert -f - --to kai
"""

DIALECTS = ("volcano", "kai", "coscheduling", "koordinator", "native", "yunikorn", "kueue", "gates")
FORMS = ("yaml", "json")
PATH = click.Path(allow_dash=True)


@click.command(epilog=EXAMPLES)
@click.option(
    "-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Files or directories to read, or - for stdin."
)
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@click.option("--to", "dialect", type=click.Choice(DIALECTS), required=True, help="Dialect to convert to.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="yaml", show_default=True, help="Output format.")
def command(files: tuple[str, ...], more_files: tuple[str, ...], dialect: str, form: str) -> None:
    """Convert gangs, groups and pods, from any dialect to another. The cluster is not changed.

    Objects that do not belong to a gang are copied unchanged. What the other dialect cannot express is reported on stderr and in
    the output: as comments at the top of YAML, and under `lost` in JSON.
    """
    from phalanx.cli.convert_run import write
    from phalanx.dialects.convert import converted
    from phalanx.store.input_files import documents_of

    paths = files + more_files
    if not paths:
        raise click.UsageError("nothing to read: name files or folders with -f, or stdin with -f -")
    write(converted([document for _, document in documents_of(paths)], dialect), form)
