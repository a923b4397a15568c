"""Tables of the API server: what `kubectl get` asks for, so that it shows the columns of each kind."""

from collections.abc import Iterable
from typing import Any

from phalanx.store.kinds import Document, Kind
from phalanx.web.columns import BY_KIND, age

VERSION = "meta.k8s.io/v1"


def wants_table(accept: str) -> bool:
    """Tell whether a client would rather have a table."""
    wishes = [set(part.replace(" ", "").split(";")) for part in accept.split(",")]
    return any({"application/json", "as=Table", "v=v1", "g=meta.k8s.io"} <= wish for wish in wishes)


def table_of(kind: Kind, items: Iterable[Document], meta: Document, now: float) -> dict[str, Any]:
    """Return objects as a table; every row brings the metadata of its object."""
    columns = BY_KIND.get(kind.kind, ())
    definitions = [
        _definition("Name", is_name=True),
        *(_definition(column.title.capitalize(), priority=int(column.is_wide)) for column in columns),
        _definition("Age"),
    ]
    rows = [
        {
            "cells": [item["metadata"]["name"], *(column.cell(item) for column in columns), _age(item, now)],
            "object": {"apiVersion": VERSION, "kind": "PartialObjectMetadata", "metadata": item["metadata"]},
        }
        for item in items
    ]
    return {"kind": "Table", "apiVersion": VERSION, "metadata": meta, "columnDefinitions": definitions, "rows": rows}


def _definition(name: str, *, priority: int = 0, is_name: bool = False) -> dict[str, Any]:
    return {"name": name, "type": "string", "format": "name" if is_name else "", "description": "", "priority": priority}


def _age(item: Document, now: float) -> str:
    return age(item["metadata"].get("creationTimestamp", ""), now)
