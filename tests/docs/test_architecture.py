"""The architecture page says what the code does: its packages, their layers, and who imports whom."""

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
IMPORTS = re.findall(r"`(\w+) → (\w+)`", PAGE)
CALLS = re.findall(r"`(\w+) ⇢ (\w+)`", PAGE)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("phalanx", cache_dir=None)


def has_import(graph: grimp.ImportGraph, importer: str, imported: str) -> bool:
    return graph.direct_import_exists(importer=f"phalanx.{importer}", imported=f"phalanx.{imported}", as_packages=True)


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def packages_in_the_table() -> list[tuple[str, str]]:
    return re.findall(r"^\| (\d+) \| `(\w+)` \| \S", section("Packages"), re.MULTILINE)


def layers() -> list[list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (ordered,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [layer.split(" | ") for layer in ordered]


def test_every_package_is_in_the_table_once(graph: grimp.ImportGraph) -> None:
    packages = {module.removeprefix("phalanx.") for module in graph.find_children("phalanx")} - {"__main__"}
    assert sorted(name for _, name in packages_in_the_table()) == sorted(packages)


def test_the_table_has_the_layers_that_are_enforced_in_their_order() -> None:
    enforced = [(str(number), name) for number, layer in enumerate(layers(), start=1) for name in layer]
    assert packages_in_the_table() == enforced


@pytest.mark.parametrize(("importer", "imported"), sorted(set(IMPORTS) - {("A", "B")}))
def test_an_arrow_is_an_import(graph: grimp.ImportGraph, importer: str, imported: str) -> None:
    assert has_import(graph, importer, imported)


@pytest.mark.parametrize(("caller", "called"), sorted(set(CALLS) - {("A", "B")}))
def test_a_call_against_the_layers_goes_to_a_package_that_imports_the_caller(
    graph: grimp.ImportGraph, caller: str, called: str
) -> None:
    assert has_import(graph, called, caller)
    assert not has_import(graph, caller, called)


def test_a_step_names_packages_that_exist_and_an_arrow_of_one_of_them() -> None:
    known = {name for _, name in packages_in_the_table()}
    steps = re.findall(r"^\| [\d, to]+ \| ([^|]*) \| [^|]* \| ([^|]*) \|$", section("The way of one pod"), re.MULTILINE)
    assert len(steps) > 15
    for named, arrows in steps:
        packages = set(re.findall(r"`(\w+)`", named))
        ends = {name for arrow in re.findall(r"`(\w+) [→⇢] (\w+)`", arrows) for name in arrow}
        assert packages <= known
        assert packages <= ends, f"{packages} and the arrows {arrows}"
