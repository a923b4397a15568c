"""Objects for an embedded cluster: those of manifests whose kind it serves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.cli.output import note, warning
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ClusterError
from phalanx.model.kinds import kind_of
from phalanx.store.completion import ManifestObjects
from phalanx.store.input_files import Intake, take_in


@dataclass(frozen=True, slots=True)
class Served:
    """Objects, each with its namespace, and the cluster that they describe."""

    documents: list[dict[str, Any]]
    cluster: ObjectCluster


def served_objects(paths: Iterable[str]) -> Served:
    """Return the objects at the paths; a note says which are left out because nobody serves them."""
    return _served(take_in(paths))


def served_documents(documents: Sequence[dict[str, Any]], place: str) -> Served:
    """Return objects that stand nowhere but in memory, as if they had been read at a place."""
    intake = Intake(ObjectCluster(), ManifestObjects(documents))
    for document in documents:
        intake.enter(place, document)
    intake.refuse_problems()
    return _served(intake)


def _served(intake: Intake) -> Served:
    found = []
    for (place, _), document in zip(intake.documents, intake.complete, strict=True):
        try:
            kind = kind_of(document)
        except ClusterError as problem:
            note(f"{place}: left out: {problem}")
            continue
        meta = document["metadata"]
        own = {"namespace": meta.get("namespace") or "default"} if kind.is_namespaced else {}
        found.append({**document, "metadata": {**meta, **own}})
    for text in intake.warnings():
        warning(text)
    for text in intake.notes():
        note(text)
    return Served(found, intake.cluster)
