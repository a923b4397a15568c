"""What `phalanx convert` writes."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

import click

from phalanx.cli import output
from phalanx.dialects.convert import Converted, Lost, converted
from phalanx.errors import SnapshotError
from phalanx.store.input_files import NOT_UNDERSTOOD, documents_of, refuse_broken


def in_dialect(paths: Iterable[str], dialect: str) -> Converted:
    """Convert the objects at the paths; if one cannot be read, all are looked at once more to say where each mistake is."""
    documents = documents_of(paths)
    try:
        return converted([document for _, document in documents], dialect)
    except (SnapshotError, *NOT_UNDERSTOOD):
        refuse_broken(documents, [])
        raise


def write(found: Converted, form: str) -> None:
    """Write objects to stdout, and what is lost to both."""
    lines = list(_lines(found.lost))
    for line in lines:
        output.note(f"lost: {line}")
    if form == "json":
        lost = [asdict(item) for item in found.lost]
        output.write_data({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": found.objects, "lost": lost}, form)
        return
    for line in lines:
        click.echo(f"# lost: {line}")
    for number, item in enumerate(found.objects):
        if number:
            click.echo("---")
        output.write_data(item, form)


def _lines(lost: list[Lost]) -> Iterator[str]:
    """Yield a line for each thing that is lost; where many objects lose the same, one is named."""
    objects: dict[tuple[str, str], list[str]] = {}
    for item in lost:
        objects.setdefault((item.field, item.why), []).append(item.object)
    for (field, why), names in objects.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{others}: {field}: {why}"
