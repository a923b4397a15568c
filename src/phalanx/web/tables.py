"""Tables of the API server: what `kubectl get` asks for, so that it shows the columns of each kind."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from phalanx.errors import ClusterError
from phalanx.model.kinds import Document, Kind
from phalanx.web.columns import TableColumn, columns_of
from phalanx.web.server_columns import server_columns

VERSION = "meta.k8s.io/v1"
METADATA, WHOLE, NOTHING = INCLUDED = ("Metadata", "Object", "None")
"""What a row can bring of its object."""


def wants_table(accept: str) -> bool:
    """Tell whether a client asks for a table in its Accept header."""
    accepted = [set(part.replace(" ", "").split(";")) for part in accept.split(",")]
    return any({"application/json", "as=Table", "v=v1", "g=meta.k8s.io"} <= form for form in accepted)


def included_in_rows(asked: str) -> str:
    """Return what every row has to bring of its object; clients that sort rows ask for all of it."""
    if asked not in ("", *INCLUDED):
        problem = "must be 'Metadata', 'Object', 'None', or empty"
        raise ClusterError(f'includeObject: Invalid value: "{asked}": {problem}')
    return asked or METADATA


def table_of(kind: Kind, items: Iterable[Document], meta: Document, now: float, included: str = METADATA) -> dict[str, Any]:
    """Return objects as a table."""
    columns = server_columns(kind, now) or [_titled(column) for column in columns_of(kind.kind, kind.api_version, now)]
    definitions = [_definition(column) for column in columns]
    rows = [{"cells": [column.cell(item) for column in columns], "object": _part(item, included)} for item in items]
    return {"kind": "Table", "apiVersion": VERSION, "metadata": meta, "columnDefinitions": definitions, "rows": rows}


def _part(item: Document, included: str) -> Document | None:
    if included == NOTHING:
        return None
    return item if included == WHOLE else {"apiVersion": VERSION, "kind": "PartialObjectMetadata", "metadata": item["metadata"]}


def _titled(column: TableColumn) -> TableColumn:
    return replace(column, title=column.title.capitalize())


def _definition(column: TableColumn) -> dict[str, Any]:
    form = "name" if column.title == "Name" else ""
    return {"name": column.title, "type": "string", "format": form, "description": "", "priority": int(column.is_wide)}
