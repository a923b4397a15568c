"""OpenAPI documents of both versions describe every kind, and what they refer to is there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.model.kinds import KINDS
from phalanx.web.openapi import INDEX, WHOLE, openapi_documents

GVK = "x-kubernetes-group-version-kind"
KINDS_THERE_ARE = {(kind.group, kind.version, kind.kind) for kind in KINDS}


def document(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(openapi_documents()[path])
    return found


def places() -> list[str]:
    return [entry["serverRelativeURL"].partition("?")[0] for entry in document(INDEX)["paths"].values()]


def references(part: object) -> Iterator[str]:
    """Yield what a document refers to."""
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def described(schemas: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(item["group"], item["version"], item["kind"]) for schema in schemas.values() for item in schema.get(GVK, ())}


def test_version_2_describes_every_kind_in_one_document() -> None:
    whole = document(WHOLE)
    assert (whole["swagger"], described(whole["definitions"])) == ("2.0", KINDS_THERE_ARE)


def test_version_3_describes_every_kind_in_the_document_of_its_api_version() -> None:
    assert set().union(*(described(document(place)["components"]["schemas"]) for place in places())) == KINDS_THERE_ARE


@pytest.mark.parametrize(("path", "start", "where"), [
    (WHOLE, "#/definitions/", ("definitions",)),
    *((place, "#/components/schemas/", ("components", "schemas")) for place in places()),
])  # fmt: skip
def test_everything_that_is_referred_to_is_in_the_same_document(path: str, start: str, where: tuple[str, ...]) -> None:
    whole = schemas = document(path)
    for name in where:
        schemas = schemas[name]
    assert {name.removeprefix(start) for name in references(whole)} <= set(schemas)
