"""The fields of Kubernetes' own kinds that we know are those of a real API server."""

import json
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.model.kinds import Kind
from phalanx.store.built_in_fields import POD_SPEC, SPECS, TOPS, Tree

pytestmark = pytest.mark.xdist_group("controlplane")
OLDER = {
    "workloadRef",
    "source",
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
}
"""Fields of versions before this one, which are read too; the last ones of requests for devices."""
SHARED = {"apiVersion", "kind", "metadata", "spec", "status"}


@pytest.fixture(scope="module")
def schemas(plane: ControlPlane) -> dict[str, Any]:
    """The schemas of all versions, by their names."""
    versions = {kind.api_version for kind in (*SPECS, *TOPS)}
    paths = [f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}" for version in sorted(versions)]
    found: dict[str, Any] = {}
    for path in paths:
        found |= json.loads(plane.kubectl("get", "--raw", path))["components"]["schemas"]
    return found


def of_kind(schemas: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Return the schema of a kind."""
    wanted = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return next(item for item in schemas.values() if wanted in item.get("x-kubernetes-group-version-kind", ()))


def resolved(schemas: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema refers to; of a list, that of its items."""
    if "items" in schema:
        return resolved(schemas, schema["items"])
    reference = schema.get("$ref") or next((item["$ref"] for item in schema.get("allOf", ()) if "$ref" in item), "")
    return schemas[reference.rpartition("/")[2]] if reference else schema


def differences(schemas: dict[str, Any], tree: Tree, schema: dict[str, Any], path: str) -> list[str]:
    """Return the fields that only one of both has, there and below."""
    real = resolved(schemas, schema).get("properties", {})
    if tree is None:
        return []
    found = [f"{path}.{name}" for name in sorted(tree.keys() ^ real.keys()) if name not in OLDER]
    for name in tree.keys() & real.keys():
        found += differences(schemas, tree[name], real[name], f"{path}.{name}")
    return found


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.kind)
def test_the_fields_of_a_spec_are_those_of_the_server(kind: Kind, schemas: dict[str, Any]) -> None:
    assert differences(schemas, SPECS[kind], of_kind(schemas, kind)["properties"]["spec"], "spec") == []


@pytest.mark.parametrize("kind", TOPS, ids=lambda kind: kind.kind)
def test_the_fields_of_kinds_without_a_spec_are_too(kind: Kind, schemas: dict[str, Any]) -> None:
    assert (TOPS[kind] or {}).keys() == of_kind(schemas, kind)["properties"].keys() - SHARED


def test_a_field_that_is_missing_here_is_found(schemas: dict[str, Any]) -> None:
    fewer = {name: tree for name, tree in POD_SPEC.items() if name != "nodeSelector"}
    spec = next(item for name, item in schemas.items() if name.endswith("core.v1.PodSpec"))
    assert differences(schemas, fewer, spec, "spec") == ["spec.nodeSelector"]
