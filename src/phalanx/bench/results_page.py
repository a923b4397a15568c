"""The page of results, `benchmarks/RESULTS.md`: every benchmark writes its own section and leaves the others as they are.

A section lies between two comments with its name. What stands outside of them is written by people: what is measured, and what the
figures mean.
"""

from pathlib import Path

from phalanx.errors import PhalanxError


def write_section(path: Path, name: str, text: str) -> None:
    """Put a text in place of the section of this name; a page that has none gets it at its end."""
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(with_section(page, name, text), encoding="utf-8")


def with_section(page: str, name: str, text: str) -> str:
    """Return a page with another text in a section."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    section = f"{begin}\n\n{text.strip()}\n\n{end}"
    if begin not in page:
        return f"{page.rstrip()}\n\n{section}\n".lstrip()
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise PhalanxError(f"section {name!r} of the results has no end; write {end!r} after it")
    return f"{before}{section}{after}"
