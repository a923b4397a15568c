"""`phalanx convert`: gangs from one dialect to another."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from phalanx.cli.progress import show_progress

if TYPE_CHECKING:
    from phalanx.dialects.convert import Converted, Lost
    from phalanx.store.input_files import Placed

EXAMPLES = """\b
Examples:
  phalanx convert -f examples/role-minima --to yunikorn
  kubectl get pods,podgroups.scheduling.volcano.sh -n research -o yaml | phalanx convert -f - --to kai
"""

DIALECTS = ("volcano", "kai", "coscheduling", "koordinator", "native", "yunikorn", "kueue", "gates")
FORMS = ("yaml", "json")
BETWEEN_NEWS = 1000
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

    paths = files + more_files
    if not paths:
        raise click.UsageError("nothing to read: name files or folders with -f, or stdin with -f -")
    _write(in_dialect(paths, dialect), form)
    _tell("")


def in_dialect(paths: Iterable[str], dialect: str) -> "Converted":
    """Convert the objects at the paths; if one cannot be read, all are looked at once more to say where each mistake is."""
    from phalanx.dialects.convert import converted
    from phalanx.errors import SnapshotError
    from phalanx.store.input_files import NOT_UNDERSTOOD, documents_of, refuse_broken

    _tell("reading")
    documents = documents_of(paths)
    _tell(f"converting {len(documents):,} objects")
    try:
        return converted([document for _, document in documents], dialect)
    except (SnapshotError, *NOT_UNDERSTOOD):
        refuse_broken(documents, list(_broken_jobs(documents)))
        raise
    finally:
        _tell("")


def _broken_jobs(documents: "Iterable[Placed]") -> Iterator[str]:
    """Say where Jobs are that cannot be written out; a session does not read them, so nobody else does."""
    from phalanx.dialects.convert import converted
    from phalanx.dialects.convert.jobs import is_job
    from phalanx.errors import SnapshotError

    for place, document in documents:
        try:
            converted([document] if is_job(document) else [], DIALECTS[0])
        except SnapshotError as problem:
            yield f"{place}: {problem}"


def _write(found: "Converted", form: str) -> None:
    """Write objects to stdout, and what is lost to both."""
    from dataclasses import asdict

    from phalanx.cli import output

    lines = list(_lines(found.lost))
    for line in lines:
        output.note(f"lost: {line}")
    if form == "json":
        lost = [asdict(item) for item in found.lost]
        output.write_data({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": found.objects, "lost": lost}, form)
        return
    for line in lines:
        output.say(f"# lost: {line}")
    for number, item in enumerate(found.objects):
        if number % BETWEEN_NEWS == 0:
            _tell(f"written {number:,} of {len(found.objects):,} objects")
        if number:
            click.echo("---")
        output.write_data(item, form)


def _tell(text: str) -> None:
    """Show how far it has got, unless the objects themselves go to the terminal."""
    if sys.stderr.isatty() and not sys.stdout.isatty():
        show_progress(text)


def _lines(lost: "list[Lost]") -> Iterator[str]:
    """Yield a line for each thing that is lost; where many objects lose the same, one is named."""
    objects: dict[tuple[str, str], list[str]] = {}
    for item in lost:
        objects.setdefault((item.field, item.why), []).append(item.object)
    for (field, why), names in objects.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{others}: {field}: {why}"
