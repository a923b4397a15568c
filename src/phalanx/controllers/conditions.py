"""Conditions in the status of objects that several write: read with care, and changed without undoing what others wrote."""

from collections.abc import Iterable, Mapping

from phalanx.controllers.controller import Patch
from phalanx.controllers.objects import inside, key_of, meta_of
from phalanx.model.kinds import Document, Kind
from phalanx.model.moment import moment_text


def listed_conditions(document: Document, field: str = "conditions") -> list[Document]:
    """Return the conditions of an object that are well-formed."""
    found = inside(document, "status", field)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list | tuple) else []


def message_of(conditions: Iterable[Document], kind: str) -> str:
    """Return the message of the condition of a type; empty without one."""
    return next((str(item.get("message", "")) for item in conditions if item.get("type") == kind), "")


def condition(kind: str, status: str, reason: str, message: str, now: float) -> dict[str, str]:
    """Return a condition that holds since now."""
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment_text(int(now))}


def status_patch(kind: Kind, document: Document, status: Document) -> Patch:
    """Return the patch of a status that is refused if another writer was faster.

    A merge patch replaces a list as a whole, so it would undo the conditions that others have written since.
    """
    key, version = key_of(document), meta_of(document).get("resourceVersion")
    meta = {"metadata": {"resourceVersion": version}} if version else {}
    return Patch(kind, key.namespace, key.name, {**meta, "status": dict(status)}, is_status=True)
