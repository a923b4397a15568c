"""The page on compatibility names the versions that the code reads and is tested with, and every annotation of ours."""

import re
import tomllib
from pathlib import Path

from phalanx.dev.programs import KUBERNETES, OLD_KUBERNETES
from phalanx.model.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "compatibility.md").read_text()
OURS = re.compile(r"\"(phalanx\.dev/(?!v\d)[a-z-]+)\"")


def rows(head: str) -> list[list[str]]:
    """Return the cells of all tables with this head."""
    tables = [part.partition("\n\n")[0] for part in PAGE.split(f"\n| {head} |\n")[1:]]
    return [[cell.strip() for cell in line.strip("|").split("|")] for table in tables for line in table.splitlines()[1:]]


def test_the_page_has_every_api_version_that_is_read() -> None:
    named = [name for _, names in rows("project | API versions that are read") for name in re.findall(r"`(.*?)`", names)]
    read = {f"{kind.group}/{version}".lstrip("/") for kind in KINDS for version in (kind.version, *kind.other_versions)}
    assert sorted(named) == sorted(read)


def test_the_page_has_every_annotation_and_label_of_ours_once() -> None:
    found = {name for file in (ROOT / "src").rglob("*.py") for name in OURS.findall(file.read_text())}
    assert sorted(row[0] for row in rows("name | meaning")) == sorted(f"`{name}`" for name in found)


def test_the_page_names_the_versions_that_are_tested() -> None:
    tested = dict(rows("| version"))
    assert tested["tested with every change, with a real API server, etcd and controllers"] == KUBERNETES.removeprefix("v")
    assert tested["oldest, with a few tests on a real API server: see [versions of Kubernetes](versions.md)"] == OLD_KUBERNETES[1:]
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    declared = [line.rpartition(" ")[2] for line in classifiers if re.search(r":: 3\.\d+$", line)]
    assert tested["declared"] == ", ".join(declared)
