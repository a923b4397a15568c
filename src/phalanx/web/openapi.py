"""OpenAPI documents: what kinds look like and what requests may ask for, from which kubectl explains and checks objects.

Version 3 has a document for each API version, and an index of them; version 2 is one document with everything. Kubernetes' own
kinds come from the table of types, custom ones from their definitions. There are no descriptions: those of Kubernetes are not ours.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec

from phalanx.manifests.definitions import DEFINITION_BY_KIND
from phalanx.model.kinds import KINDS, Document, Kind
from phalanx.store import patches
from phalanx.store.kubernetes_types import FieldType, fields_of, type_of_kind
from phalanx.web.discovery import KUBERNETES
from phalanx.web.request import APPLIED

INDEX, WHOLE = "/openapi/v3", "/openapi/v2"
Schema = dict[str, Any]  # Any: as JSON has it
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
WHOLE_IN_PROTOBUF = b"\x0a\x032.0"
"""Version 2 for those who take nothing but protobuf, as older clients do: its version, and no schemas."""
SHARED, SCHEMAS, DEFINITIONS = "meta.v1.ObjectMeta", "#/components/schemas/", "#/definitions/"
INT_OR_STRING: Schema = {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
SCALARS: Mapping[str, Schema] = {
    "string": {"type": "string"}, "int32": {"type": "integer", "format": "int32"}, "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"}, "bool": {"type": "boolean"}, "bytes": {"type": "string", "format": "byte"},
    "any": {"type": "object"}, "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"}, "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "intOrString": INT_OR_STRING,
}  # fmt: skip
PARAMETERS = {
    "get": ("pretty",), "post": ("dryRun", "fieldManager", "fieldValidation"), "put": ("dryRun", "fieldManager", "fieldValidation"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
}  # fmt: skip
"""What may be asked in the query of each method."""


@cache
def openapi_documents() -> Mapping[str, bytes]:
    """Return all documents by their path."""
    found = {f"{INDEX}/{_place(version)}": _encoded(_document(version, SCHEMAS)) for version in _versions()}
    places = {
        path.removeprefix(f"{INDEX}/"): {"serverRelativeURL": f"{path}?hash={sha256(text).hexdigest()[:32].upper()}"}
        for path, text in found.items()
    }
    return {**found, INDEX: _encoded({"paths": places}), WHOLE: _encoded(_whole())}


def _encoded(document: Document) -> bytes:
    return msgspec.json.encode(document)


def _versions() -> list[str]:
    return sorted({kind.api_version for kind in KINDS})


def _place(version: str) -> str:
    return f"apis/{version}" if "/" in version else f"api/{version}"


def _kinds(version: str) -> list[Kind]:
    return [kind for kind in KINDS if kind.api_version == version]


def _document(version: str, prefix: str) -> Schema:
    kinds = _kinds(version)
    return {
        "openapi": "3.0.0", "info": _info(), "paths": {path: item for kind in kinds for path, item in _paths(kind, prefix)},
        "components": {"schemas": dict(_schemas(kinds, prefix))},
    }  # fmt: skip


def _whole() -> Schema:
    paths = {path: item for kind in KINDS for path, item in _paths(kind, DEFINITIONS)}
    return {"swagger": "2.0", "info": _info(), "paths": paths, "definitions": dict(_schemas(KINDS, DEFINITIONS))}


def _info() -> Schema:
    return {"title": "Phalanx", "version": f"v{'.'.join(KUBERNETES)}.0"}


# --- schemas -------------------------------------------------------------------------------------------------------------


def _schemas(kinds: "list[Kind] | tuple[Kind, ...]", prefix: str) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas of kinds and of all types below them."""
    waiting, done = [SHARED], set[str]()
    for kind in kinds:
        name = type_of_kind(kind)
        if name is None:
            yield _name(kind), _custom(kind, prefix)
        else:
            yield _name(kind), {**_typed(name, prefix), "x-kubernetes-group-version-kind": [_gvk(kind)]}
            done.add(name)
            waiting += [part.name for part in fields_of(name).values()]
    while waiting:
        name = waiting.pop()
        if name not in done and fields_of(name):
            done.add(name)
            yield _long(name), _typed(name, prefix)
            waiting += [part.name for part in fields_of(name).values()]


def _typed(name: str, prefix: str) -> Schema:
    known = fields_of(name)
    needed = [field for field, part in known.items() if part.is_required]
    properties = {field: _property(part, prefix) for field, part in known.items()}
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def _property(part: FieldType, prefix: str) -> Schema:
    inner = _single(part.name, prefix)
    if part.is_list:
        return {"type": "array", "items": inner, **_joined(part)}
    if part.shape == "{}":
        return {"type": "object", "additionalProperties": inner}
    if part.is_map:
        return {"type": "object", "additionalProperties": {"type": "array", "items": inner}}
    return inner


def _single(name: str, prefix: str) -> Schema:
    """Return the schema of a value; a type without fields has none that could be referred to."""
    if name in SCALARS:
        return dict(SCALARS[name])
    return {"$ref": f"{prefix}{_long(name)}"} if fields_of(name) else {"type": "object"}


def _joined(part: FieldType) -> Schema:
    found: Schema = {"x-kubernetes-list-type": "map" if part.keys else "set" if part.is_set else "atomic"}
    found |= {"x-kubernetes-list-map-keys": list(part.keys)} if part.keys else {}
    if part.merge_key is not None:
        found |= {"x-kubernetes-patch-strategy": "merge"}
        found |= {"x-kubernetes-patch-merge-key": part.merge_key} if part.merge_key else {}
    return found


def _custom(kind: Kind, prefix: str) -> Schema:
    definition = DEFINITION_BY_KIND.get(kind)
    schema: Schema = dict(definition.schema) if definition else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    own = {"apiVersion": SCALARS["string"], "kind": SCALARS["string"], "metadata": {"$ref": f"{prefix}{_long(SHARED)}"}}
    return {**schema, "properties": {**schema.get("properties", {}), **own}, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _name(kind: Kind) -> str:
    name = type_of_kind(kind)
    return _long(name) if name else ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _long(name: str) -> str:
    package = "io.k8s.apimachinery.pkg.apis" if name.startswith("meta.") else "io.k8s.api"
    return f"{package}.{name}"


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


# --- paths ---------------------------------------------------------------------------------------------------------------


def _paths(kind: Kind, prefix: str) -> Iterator[tuple[str, Schema]]:
    root = f"/{_place(kind.api_version)}"
    held = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.is_namespaced else f"{root}/{kind.plural}"
    if kind.is_namespaced:
        yield f"{root}/{kind.plural}", {"get": _operation(kind, "get", prefix, action="list")}
    yield held, {"get": _operation(kind, "get", prefix, action="list"), "post": _operation(kind, "post", prefix)}
    single = {method: _operation(kind, method, prefix) for method in ("get", "put", "patch", "delete")}
    yield f"{held}/{{name}}", single
    if kind.has_status:
        yield f"{held}/{{name}}/status", {method: single[method] for method in ("get", "put", "patch")}


def _operation(kind: Kind, method: str, prefix: str, *, action: str = "") -> Schema:
    is_new = prefix == SCHEMAS
    answer: Schema = {"$ref": f"{prefix}{_name(kind)}"} if action != "list" else {"type": "object"}
    done = {"description": "OK", **({"content": {"application/json": {"schema": answer}}} if is_new else {"schema": answer})}
    found = {
        "x-kubernetes-group-version-kind": _gvk(kind), "x-kubernetes-action": action or method,
        "parameters": [_parameter(name, is_new=is_new) for name in PARAMETERS[method]], "responses": {"200": done},
    }  # fmt: skip
    if method == "patch":
        forms = [*patches.FORMS, APPLIED] if kind.is_built_in else [patches.JSON, patches.MERGE, APPLIED]
        found |= (
            {"requestBody": {"content": {form: {"schema": {"type": "object"}} for form in forms}}}
            if is_new
            else {"consumes": forms}
        )
    return found


def _parameter(name: str, *, is_new: bool) -> Schema:
    kind = {"force": "boolean", "gracePeriodSeconds": "integer"}.get(name, "string")
    return {"name": name, "in": "query", **({"schema": {"type": kind, "uniqueItems": True}} if is_new else {"type": kind})}
