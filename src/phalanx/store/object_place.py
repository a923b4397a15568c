"""Where objects are: the namespace and name of each, and the key of both among the objects of its kind."""

from phalanx.model.kinds import Document, Kind


def key_at(kind: Kind, namespace: str, name: str) -> str:
    """Return the key of a place."""
    return f"{namespace or 'default'}/{name}" if kind.is_namespaced else name


def key_of(kind: Kind, document: Document) -> str:
    """Return the key of an object."""
    return key_at(kind, *place_of(kind, document))


def place_of(kind: Kind, document: Document) -> tuple[str, str]:
    """Return the namespace and name of an object; the namespace is empty where its kind has none."""
    meta = document.get("metadata", {})
    return (str(meta.get("namespace") or "default") if kind.is_namespaced else "", str(meta.get("name", "")))
