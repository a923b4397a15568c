"""Tables of the API server: what `kubectl get` asks for, so that it shows the columns of each kind."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from phalanx.model.kinds import Document, Kind
from phalanx.web.columns import TableColumn, columns_of
from phalanx.web.server_columns import server_columns

VERSION = "meta.k8s.io/v1"


def wants_table(accept: str) -> bool:
    """Tell whether a client asks for a table in its Accept header."""
    accepted = [set(part.replace(" ", "").split(";")) for part in accept.split(",")]
    return any({"application/json", "as=Table", "v=v1", "g=meta.k8s.io"} <= form for form in accepted)


def table_of(kind: Kind, items: Iterable[Document], meta: Document, now: float) -> dict[str, Any]:
    """Return objects as a table; every row brings the metadata of its object."""
    columns = server_columns(kind, now) or [_titled(column) for column in columns_of(kind.kind, kind.api_version, now)]
    definitions = [_definition(column) for column in columns]
    rows = [
        {
            "cells": [column.cell(item) for column in columns],
            "object": {"apiVersion": VERSION, "kind": "PartialObjectMetadata", "metadata": item["metadata"]},
        }
        for item in items
    ]
    return {"kind": "Table", "apiVersion": VERSION, "metadata": meta, "columnDefinitions": definitions, "rows": rows}


def _titled(column: TableColumn) -> TableColumn:
    return replace(column, title=column.title.capitalize())


def _definition(column: TableColumn) -> dict[str, Any]:
    form = "name" if column.title == "Name" else ""
    return {"name": column.title, "type": "string", "format": form, "description": "", "priority": int(column.is_wide)}
