"""The lock files name all that is shipped, in the versions that are tested, with hashes, and nothing else."""

import re
import runpy
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hatch_build import LockedPackage, bill_text, direct_names, locked_packages
from phalanx import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WANTED = {"runtime": PROJECT["project"]["dependencies"], "build": PROJECT["build-system"]["requires"]}
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())


def text(name: str) -> str:
    return (ROOT / "locks" / f"{name}.txt").read_text()


def locked(name: str) -> dict[str, LockedPackage]:
    return {package.name: package for package in locked_packages(text(name))}


def needed(requirements: Iterable[str]) -> set[str]:
    """Return what requirements need here, by what is installed."""
    found: set[str] = set()
    for item in map(Requirement, requirements):
        if item.marker is None or item.marker.evaluate({"extra": ""}):
            found |= {canonicalize_name(item.name)} | needed(distribution(item.name).requires or ())
    return found


@pytest.mark.parametrize("name", WANTED)
def test_a_lock_has_what_is_needed_and_nothing_else(name: str) -> None:
    elsewhere = {package.name for package in locked(name).values() if package.marker}
    assert needed(WANTED[name]) <= {*locked(name)}, "run 'make lock'"
    assert {*locked(name)} - elsewhere <= needed(WANTED[name]), "run 'make lock'"


@pytest.mark.parametrize("name", WANTED)
def test_versions_are_those_that_are_tested_and_that_the_project_allows(name: str) -> None:
    pins = {canonicalize_name(package): version for package, version in PINS.items()}
    assert {package.name: package.version for package in locked(name).values()}.items() <= pins.items(), "run 'make lock'"
    for item in map(Requirement, WANTED[name]):
        assert item.specifier.contains(locked(name)[canonicalize_name(item.name)].version)


@pytest.mark.parametrize("name", WANTED)
def test_every_package_has_hashes_and_no_line_names_an_index(name: str) -> None:
    assert [package.name for package in locked(name).values() if not package.hashes] == []
    lines = [line.strip() for line in text(name).splitlines() if not line.startswith("# Written by scripts/lock")]
    known = re.compile(r"[\w.-]+==\S+( ; [^\\]+)? \\|--hash=sha256:[0-9a-f]{64}( \\)?|#( via)?( +-c constraints\.txt| +[\w.-]+)?")
    assert [line for line in lines if not known.fullmatch(line)] == []


# --- the bill of materials -----------------------------------------------------------------------------------------------


def test_the_bill_follows_from_the_sources_alone() -> None:
    assert bill_text(ROOT, __version__) == bill_text(ROOT, __version__)
    assert str(ROOT) not in bill_text(ROOT, __version__)
    assert "://" not in bill_text(ROOT, __version__)


def test_names_are_read_as_an_index_spells_them() -> None:
    assert direct_names({"dependencies": ["Google_RE2>=1.1", "aiohttp[speedups]<4", "x ; python_version<'3'"]}) == {
        "google-re2", "aiohttp", "x",
    }  # fmt: skip


# --- the audit -----------------------------------------------------------------------------------------------------------

GOOD = {"name": "click", "version": "8.5.1", "vulns": []}
BAD = {"name": "yarl", "version": "1.25.1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.26"]}]}
SKIPPED = {"name": "numpy", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("packages", "code", "line"),
    [
        ([GOOD], 0, "audit: 1 packages checked, no known vulnerability"),
        ([GOOD, SKIPPED], 2, "audit: 1 of 2 packages were not checked: no database answers"),
        ([], 2, "audit: 0 of 0 packages were not checked: no database answers"),
        ([GOOD, SKIPPED, BAD], 1, "audit: 1 known vulnerabilities"),
    ],
)
def test_what_was_not_checked_is_not_taken_for_good(packages: list[dict[str, Any]], code: int, line: str) -> None:
    found, lines = runpy.run_path(str(ROOT / "scripts" / "audit"))["verdict"](packages)
    assert (found, lines[0]) == (code, line)


def test_an_audit_without_a_report_is_none() -> None:
    answered = runpy.run_path(str(ROOT / "scripts" / "audit"))["answered"]
    assert answered("Traceback") is None
    assert answered('{"dependencies": []}') == []
