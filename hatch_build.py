"""Puts a bill of materials into the wheel: what the program needs, in which versions, with the hashes of the lock.

It is written in CycloneDX's JSON beside the wheel, and into it as .dist-info/sboms/. It follows from pyproject.toml and
locks/runtime.txt alone, so that the same sources give the same file; for that it has no date.
"""

import json
import re
import tomllib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LOCK = Path("locks") / "runtime.txt"
SPEC = "1.6"
_PACKAGE = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PARENT = re.compile(r"^\s+#\s+(?:via\s+)?([A-Za-z0-9._-]+)$")


@dataclass(slots=True)
class LockedPackage:
    """A package of the lock."""

    name: str
    version: str
    marker: str = ""
    """Where it is needed at all; empty: everywhere."""
    hashes: list[str] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    """Packages that need it."""

    @property
    def url(self) -> str:
        """As bills of materials name a package."""
        return f"pkg:pypi/{self.name}@{self.version}"


class BillOfMaterials(BuildHookInterface[Any]):
    """Runs before a wheel is packed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file and name it to the builder; an editable installation has none."""
        if version == "editable":
            return
        root, own = Path(self.root), self.metadata.version
        file = Path(self.directory) / f"phalanx-{own}.cdx.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(bill_text(root, own), encoding="utf-8")
        build_data["sbom_files"].append(str(file))


def bill_text(root: Path, version: str) -> str:
    """Return the bill of materials of the sources in a folder."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = list(locked_packages((root / LOCK).read_text(encoding="utf-8")))
    return json.dumps(_bill(project, version, locked), indent=2) + "\n"


def locked_packages(text: str) -> Iterator[LockedPackage]:
    """Yield the packages of a lock file."""
    package: LockedPackage | None = None
    for line in text.splitlines():
        if found := _PACKAGE.match(line):
            if package is not None:
                yield package
            package = LockedPackage(found["name"], found["version"], found["marker"] or "")
        elif package is not None:
            package.hashes += _HASH.findall(line)
            package.parents += [name for name in _PARENT.findall(line) if name != "via"]
    if package is not None:
        yield package


def direct_names(project: Mapping[str, Any]) -> set[str]:
    """Return the packages that the project itself names, as an index spells them."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", item)[0]).lower() for item in project["dependencies"]}


def _bill(project: Mapping[str, Any], version: str, locked: list[LockedPackage]) -> dict[str, Any]:
    name = project["name"]
    own = f"pkg:pypi/{name}@{version}"
    body = {
        "metadata": {
            "component": {
                "type": "application", "bom-ref": own, "name": name, "version": version, "purl": own,
                "description": project["description"], "licenses": [{"license": {"id": project["license"]}}],
            },
        },
        "components": list(map(_component, locked)),
        "dependencies": list(_dependencies(own, direct_names(project), locked)),
    }  # fmt: skip
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": SPEC, "serialNumber": f"urn:uuid:{number}", "version": 1, **body}


def _component(package: LockedPackage) -> dict[str, Any]:
    """Return a package; its hashes are those of the files of which one is installed."""
    marker = {"properties": [{"name": "python:marker", "value": package.marker}]} if package.marker else {}
    return {
        "type": "library", "bom-ref": package.url, "name": package.name, "version": package.version, "purl": package.url,
        "scope": "required", "hashes": [{"alg": "SHA-256", "content": item} for item in package.hashes], **marker,
    }  # fmt: skip


def _dependencies(own: str, direct: set[str], locked: list[LockedPackage]) -> Iterator[dict[str, Any]]:
    yield {"ref": own, "dependsOn": [package.url for package in locked if package.name in direct]}
    for package in locked:
        yield {"ref": package.url, "dependsOn": [other.url for other in locked if package.name in other.parents]}
