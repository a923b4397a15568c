"""What we know of Kubernetes' own types is what a real API server publishes of them."""

import json
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.model.kinds import KINDS, Kind
from phalanx.store.kubernetes_types import FieldType, fields_of, type_of_kind

pytestmark = pytest.mark.xdist_group("controlplane")
OURS = [kind for kind in KINDS if type_of_kind(kind) is not None]
Schemas = dict[str, Any]


@pytest.fixture(scope="module")
def schemas(plane: ControlPlane) -> Schemas:
    """The schemas of all versions, by their names."""
    versions = sorted({kind.api_version for kind in OURS})
    paths = [f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}" for version in versions]
    found: Schemas = {}
    for path in paths:
        found |= json.loads(plane.kubectl("get", "--raw", path))["components"]["schemas"]
    return found


def of_kind(schemas: Schemas, kind: Kind) -> Schemas:
    """Return the schema of a kind."""
    wanted = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return next(item for item in schemas.values() if wanted in item.get("x-kubernetes-group-version-kind", ()))


def resolved(schemas: Schemas, schema: Schemas) -> Schemas:
    """Return what a schema refers to; of a list or a map, that of its items."""
    inner = schema.get("items") or schema.get("additionalProperties")
    if inner:
        return resolved(schemas, inner)
    reference = schema.get("$ref") or next((item["$ref"] for item in schema.get("allOf", ()) if "$ref" in item), "")
    return schemas[reference.rpartition("/")[2]] if reference else schema


def differences(schemas: Schemas, name: str, schema: Schemas, path: str) -> list[str]:
    """Return where a type and a schema differ: fields, and the keys of lists; there and below."""
    real, ours = resolved(schemas, schema).get("properties", {}), fields_of(name)
    found = [f"{path}.{field}" for field in sorted(ours.keys() ^ real.keys())]
    for field in ours.keys() & real.keys():
        found += [f"{path}.{field}: keys"] if list(ours[field].keys) != _keys(real[field], ours[field]) else []
        found += differences(schemas, ours[field].name, real[field], f"{path}.{field}") if fields_of(ours[field].name) else []
    return found


def _keys(schema: Schemas, ours: FieldType) -> list[str]:
    return list(schema.get("x-kubernetes-list-map-keys", ())) if ours.is_list else []


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.kind)
def test_a_kind_has_the_fields_of_the_server(kind: Kind, schemas: Schemas) -> None:
    assert differences(schemas, type_of_kind(kind) or "", of_kind(schemas, kind), kind.kind) == []


def test_every_kind_of_kubernetes_is_known() -> None:
    assert [kind.resource for kind in KINDS if kind.is_built_in and type_of_kind(kind) is None] == ["nodes.metrics.k8s.io"]


def test_a_field_that_is_missing_here_is_found(schemas: Schemas) -> None:
    spec = next(item for name, item in schemas.items() if name.endswith("core.v1.PodSpec"))
    more = {**spec, "properties": {**spec["properties"], "colour": {"type": "string"}}}
    assert differences(schemas, "core.v1.PodSpec", more, "spec") == ["spec.colour"]
