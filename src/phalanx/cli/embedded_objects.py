"""Objects for an embedded cluster: those of manifests whose kind it serves."""

from collections.abc import Iterable
from typing import Any

from phalanx.cli.output import note
from phalanx.errors import ClusterError
from phalanx.model.kinds import kind_of
from phalanx.store.input_files import documents_of


def served_objects(paths: Iterable[str]) -> list[dict[str, Any]]:
    """Return the objects at the paths, each with its namespace; a note names those left out, whose kind is not served."""
    found = []
    for place, document in documents_of(paths):
        try:
            kind = kind_of(document)
        except ClusterError as problem:
            note(f"{place}: left out: {problem}")
            continue
        meta = document["metadata"]
        own = {"namespace": meta.get("namespace") or "default"} if kind.is_namespaced else {}
        found.append({**document, "metadata": {**meta, **own}})
    return found
