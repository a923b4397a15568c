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
@click.option("-f", "--filename", "files", type=PATH, multiple=True, metavar="PATH...", help="Read files, folders, or - for stdin.")
@click.argument("more_files", type=PATH, nargs=-1, metavar="[PATH]...")
@click.option("--to", "dialect", type=click.Choice(DIALECTS), required=True, help="The words to say them in.")
@click.option("-o", "--output", "form", type=click.Choice(FORMS), default="yaml", show_default=True, help="Form of the objects.")
def command(files: tuple[str, ...], more_files: tuple[str, ...], dialect: str, form: str) -> None:
    """Write groups and pods of any dialect as another one says them. Nothing is changed anywhere.

    Objects that are no part of a gang stay as they are. What the other dialect has no word for is said on stderr, and stands in the
    output: as comments at the top of YAML, and under `lost` in JSON.
    """
    from phalanx.cli.convert_run import in_dialect, write

    paths = files + more_files
    if not paths:
        raise click.UsageError("nothing to read: name files or folders with -f, or stdin with -f -")
    write(in_dialect(paths, dialect), form)
