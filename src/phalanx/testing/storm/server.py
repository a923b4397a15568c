"""The API server of a storm: a memory store, kinds that come and go, and a backup that it can be set back to."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from phalanx.errors import ClusterError, Missing, Unreachable
from phalanx.model.kinds import Document, Kind, kind_of
from phalanx.store.memory import MemoryStore
from phalanx.web.discovery import documents


class Server:
    """Serves a store."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Serve every kind; the clock returns seconds since 1970."""
        self.store = MemoryStore(clock)
        self._documents = documents()
        self.hidden: set[str] = set()
        """Groups that are not served at the moment."""
        self.epoch = 0
        """How often the store was set back; no watch outlives that."""
        self._backups: list[MemoryStore] = []

    def serves(self, kind: Kind) -> bool:
        """Tell whether a kind is served."""
        return kind.group not in self.hidden

    def discovered(self, path: str) -> Document:
        """Return a document of the discovery."""
        group = path.split("/")[2] if path.startswith("/apis/") else ""
        if path not in self._documents or group in self.hidden:
            raise Missing(f"the server could not find {path}")
        found = self._documents[path]
        if path == "/apis":
            return {**found, "groups": [item for item in found["groups"] if item["name"] not in self.hidden]}
        return self._without_status(found) if self.store.without_status and "resources" in found else found

    def _without_status(self, found: Document) -> dict[str, Any]:
        names = {f"{kind.plural}/status" for kind in self.store.without_status if found["groupVersion"].startswith(kind.group)}
        return {**found, "resources": [item for item in found["resources"] if item["name"] not in names]}

    def checked(self, since: str) -> str:
        """Return the version from which to watch on; one that is still to come is refused."""
        if since.isdigit() and int(since) > self.store.history.version:
            text = f"Too large resource version: {since}, current: {self.store.history.version}"
            raise Unreachable(text, cause=("ResourceVersionTooLarge", "Too large resource version"))
        return since

    def collect_garbage(self) -> None:
        """Delete objects all of whose owners are gone, as Kubernetes does; owners may have been undone with a restore."""
        found = list(self.store.everything())
        uids = {item["metadata"]["uid"] for item in found}
        for item in found:
            meta = item["metadata"]
            owners = {owner.get("uid") for owner in meta.get("ownerReferences") or ()}
            if owners and not owners & uids and "deletionTimestamp" not in meta:
                with suppress(ClusterError):
                    self.store.delete(kind_of(item), meta.get("namespace", ""), meta["name"])

    # --- backups -----------------------------------------------------------------------------------------------------

    def back_up(self) -> None:
        """Keep the store as it is."""
        self._backups.append(self.store.trial())

    def set_back(self) -> None:
        """Make the store what the last backup holds; versions go back with it, and all watches end."""
        if self._backups:
            self.store.set_back(self._backups.pop())
            self.epoch += 1
