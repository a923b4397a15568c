"""What the process asks of an API server: answered over HTTP (`store/kube/client.py`), or by a memory store (`sim/`)."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phalanx.model.kinds import Document, Kind
from phalanx.store import patches

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects, and the version from which to watch on."""

    items: list[dict[str, Any]]
    version: str
    begun: float | None = None
    """When it was requested, by the event loop, if that was before somebody asked for it."""


@dataclass(frozen=True, slots=True)
class ListingPage:
    """A part of the objects of a kind, and how many are still to come."""

    items: list[dict[str, Any]]
    version: str
    remaining: int = 0
    """As the server counts them; 0 also where it does not."""


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch, as it is on the wire."""

    type: str
    object: dict[str, Any]


class ApiClient(Protocol):
    """A client of the Kubernetes API; a refusal is raised as one of our errors."""

    served: Mapping[Kind, Kind]
    """Kinds that are served in another version than the one we name, or whose status is written in another way."""
    may_write: Callable[[], bool]
    """Asked at the last moment before a request goes out that changes something; if not, it is not sent."""
    heard: Callable[[float, float], None]
    """Called with the clock of the server at every answer, in whole seconds since 1970, and how many seconds the answer took."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Document:
        """Return one object."""
        ...

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        """Return all objects of a kind."""
        ...

    def changes(
        self, kind: Kind, namespace: str = "", *, since: str, seconds: int, fields: str = ""
    ) -> AsyncGenerator[Sequence[Change], None]:
        """Yield changes after a version, as many at once as have come, until the server ends the watch after some seconds.

        None at all come first, as soon as the server listens to us.
        """
        ...

    async def version(self) -> Document:
        """Return what the server says it is."""
        ...

    async def document(self, path: str, *, accept: str = JSON) -> Document:
        """Return what is at a path that names no object of ours, such as /apis, in one of the forms that we accept."""
        ...

    async def create(self, document: Document) -> Document:
        """Add an object."""
        ...

    async def replace(self, document: Document) -> Document:
        """Write an object anew."""
        ...

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, *, form: str = patches.MERGE, is_status: bool = False
    ) -> Document:
        """Change parts of an object, or of its status."""
        ...

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> Document:
        """Remove an object; what it owns follows."""
        ...

    async def bind(
        self, namespace: str, name: str, node: str, *, uid: str = "", annotations: Mapping[str, str] | None = None
    ) -> None:
        """Give a pod a node, and annotations with it."""
        ...

    async def evict(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete a pod as far as disruption budgets allow."""
        ...
