"""Changes of objects, as watches report them."""

from dataclasses import dataclass

from phalanx.model.kinds import Document, Kind

ADDED, MODIFIED, DELETED, BOOKMARK = "ADDED", "MODIFIED", "DELETED", "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one object, and what was there before."""

    version: int
    type: str
    kind: Kind
    object: Document
    before: Document | None = None
