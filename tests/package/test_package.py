"""The wheel and the source archive: what is in them, and whether the program runs where nothing else is installed.

The wheel goes into an empty environment without any network: pip installs it alone, and what it declares to depend on is linked
from the environment of the tests. So a dependency that is used and not declared is missing there, as it would be for a user; a
download of all of them would take fifteen seconds and fail whenever the index does.
"""

import json
import os
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from phalanx import __version__

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "phalanx"
WHEEL, ARCHIVE = f"phalanx-{__version__}-py3-none-any.whl", f"phalanx-{__version__}.tar.gz"
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PHALANX_", "KUBE"))}

IMPORT_ALL = """
import ast, importlib, importlib.util, pathlib, pkgutil, phalanx
for module in pkgutil.walk_packages(phalanx.__path__, "phalanx."):
    if not module.name.startswith(("phalanx.testing.", "phalanx.__main__")):  # for tests, which install more; the program itself
        found = importlib.import_module(module.name)
        for node in ast.walk(ast.parse(pathlib.Path(found.__file__).read_text())):  # some are imported late, inside functions
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert importlib.util.find_spec(name.partition(".")[0]), f"{module.name}: no {name}"
"""


def run(*command: str | Path, folder: Path, status: int = 0) -> str:
    """Run a command to its end, without our sources, and return what it prints."""
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == status, f"{command}: ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, target: Path, kind: str) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", target, folder=source)
    return target / {"wheel": WHEEL, "sdist": ARCHIVE}[kind]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("dist"), "wheel")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, unpacked."""
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(build(ROOT, folder, "sdist")) as archive:
        archive.extractall(folder, filter="data")
    return folder / ARCHIVE.removesuffix(".tar.gz")


def contents(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# --- what is in them -----------------------------------------------------------------------------------------------------


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    ours = {
        str(file.relative_to(ROOT / "src")) for file in SOURCES.rglob("*") if file.is_file() and "__pycache__" not in file.parts
    }
    names = {name for name in contents(wheel) if not name.startswith(f"phalanx-{__version__}.dist-info/")}
    assert names == ours
    assert {Path(name).suffix for name in names} >= {".py", ".yaml", ".js", ".css", ".html", ".typed"}


def test_the_source_archive_builds_the_same_wheel(wheel: Path, unpacked: Path, tmp_path: Path) -> None:
    assert contents(build(unpacked, tmp_path, "wheel")) == contents(wheel)


def test_the_source_archive_has_what_a_developer_needs(unpacked: Path) -> None:
    needed = ("Makefile", "constraints.txt", "CHANGELOG.md", "LICENSE", ".ci/run", "tests/conftest.py", "docs/index.md",
              "examples/deadlock", "deploy/chart/Chart.yaml", "scripts/check", "changelog.d/README.md",
              "hatch_build.py", "locks/runtime.txt")  # fmt: skip
    assert [name for name in needed if not (unpacked / name).exists()] == []


def test_the_wheel_has_a_bill_of_what_it_needs(wheel: Path) -> None:
    name = f"phalanx-{__version__}.cdx.json"
    inside = contents(wheel)[f"phalanx-{__version__}.dist-info/sboms/{name}"]
    assert inside == (wheel.parent / name).read_bytes()
    bill = json.loads(inside)
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", __version__)
    parts = {item["bom-ref"]: item for item in bill["components"]}
    installed = {canonicalize_name(found.name): found.version for found in needed_by(distribution("phalanx"))}
    assert installed.items() <= {item["name"]: item["version"] for item in parts.values()}.items()
    assert all(item["purl"] == ref and item["hashes"] for ref, item in parts.items())


def test_the_bill_says_who_needs_what(wheel: Path) -> None:
    bill = json.loads((wheel.parent / f"phalanx-{__version__}.cdx.json").read_text())
    needs = {item["ref"]: set(item["dependsOn"]) for item in bill["dependencies"]}
    own, parts = bill["metadata"]["component"]["bom-ref"], {item["bom-ref"] for item in bill["components"]}
    needed = map(Requirement, distribution("phalanx").requires or ())
    direct = {canonicalize_name(item.name) for item in needed if "extra" not in str(item.marker)}
    assert {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in needs[own]} == direct
    assert needs.keys() == {own} | parts
    assert set().union(*needs.values()) == parts, "every part is needed by somebody"


# --- whether it runs -----------------------------------------------------------------------------------------------------


def needed_by(about: Distribution, extras: frozenset[str] = frozenset()) -> Iterator[Distribution]:
    """Yield what a distribution declares to depend on, and what that depends on, as they are installed here."""
    for needed in map(Requirement, about.requires or ()):
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            found = distribution(needed.name)
            yield found
            yield from needed_by(found, frozenset(needed.extras))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment in which nothing but the wheel is installed, and what it needs."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, with_pip=False, symlinks=True)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    run(*pip, "install", "--no-index", "--no-deps", wheel, folder=folder)
    (packages,) = folder.glob("lib/*/site-packages")
    (installed,) = distributions(name="phalanx", path=[str(packages)])
    for needed in {found.name: found for found in needed_by(installed)}.values():
        for file in {file.parts[0] for file in needed.files or ()} - {".."}:
            (packages / file).symlink_to(str(needed.locate_file(file)))
    run(*pip, "check", folder=folder)
    return folder / "bin"


def test_the_program_comes_from_the_wheel(programs: Path, tmp_path: Path) -> None:
    where = run(programs / "python", "-c", "import phalanx; print(phalanx.__file__)", folder=tmp_path)
    assert where.startswith(str(programs.parent))
    with pytest.raises(AssertionError, match="No module named 'pytest'"):
        run(programs / "python", "-c", "import pytest", folder=tmp_path)


def test_every_module_finds_what_it_imports(programs: Path, tmp_path: Path) -> None:
    run(programs / "python", "-W", "error", "-c", IMPORT_ALL, folder=tmp_path)


@pytest.mark.parametrize("name", ["phalanx", "kubectl-phalanx"])
def test_the_programs_say_their_version(programs: Path, tmp_path: Path, name: str) -> None:
    assert run(programs / name, "--version", folder=tmp_path) == f"phalanx {__version__}\n"


def test_it_schedules_an_example(programs: Path, tmp_path: Path) -> None:
    shown = run(programs / "phalanx", "schedule", "-f", ROOT / "examples" / "deadlock", folder=tmp_path, status=3)
    assert "2 gangs: 1 starts, 1 waits; 3 pods placed on 3 nodes" in shown


def test_it_simulates_an_example_and_writes_the_page(programs: Path, tmp_path: Path) -> None:
    run(programs / "phalanx", "simulate", ROOT / "examples" / "deadlock", "--report", "page.html", folder=tmp_path)
    assert "</html>" in (tmp_path / "page.html").read_text()


COMMANDS = ("manifests all", "config show --profile kai", "config list", "run --help", "dev cluster down --dir lab")


@pytest.mark.parametrize("command", COMMANDS)
def test_its_other_commands_have_the_files_they_need(programs: Path, tmp_path: Path, command: str) -> None:
    run(programs / "phalanx", *command.split(), folder=tmp_path)
