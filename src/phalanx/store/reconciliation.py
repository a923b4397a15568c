"""Controllers that run on a store in memory until nothing changes any more, for objects that nobody watches: those of manifests.

Time stands still: what a controller wants to look at again later is not looked at.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from phalanx.controllers.controller import Controller, Create, Delete, Key, Patch, RecordEvent, Write
from phalanx.dialects import schema
from phalanx.dialects.cluster import describe
from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import ClusterError, Exists, Missing, SnapshotError
from phalanx.model.bounds import MADE_PODS
from phalanx.model.kinds import POD, SILENT, Document, Kind, kind_of, object_key
from phalanx.model.watch_event import WatchEvent
from phalanx.store.memory import MemoryStore

MOST_LOOKS = 100
"""At one key by one controller; more can only be controllers that undo what others do."""
Place = tuple[Kind, str]


class Outlines(schema.Named):
    """What every object must have for anybody to do something with it."""

    spec: dict[str, Any] | None = None  # any: as each kind has it


class PodOutlines(schema.Named):
    """The same of a pod: what it asks for."""

    spec: schema.ShapeSpec


def refuse_outlines(document: Document) -> None:
    """Raise if the outlines of an object are wrong: nobody could complete or group it."""
    try:
        read_as(document, Outlines)
        if document.get("kind") == POD.kind:
            read_as(document, schema.Pod)
            read_as(document, PodOutlines)
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{describe(document)}: {readable(problem)}") from problem


def _takes_all(document: Document) -> None:
    """Refuse nothing."""


class Reconciliation:
    """Runs controllers on a store, and remembers what has changed and what went wrong."""

    def __init__(
        self, store: MemoryStore, controllers: Sequence[Controller], refuse: Callable[[Document], None] = _takes_all
    ) -> None:
        """Listen to a store whose first objects are there; `refuse` raises if a rule forbids an object to be created."""
        self._store, self._controllers, self._refuse = store, controllers, refuse
        self._queue: deque[tuple[Controller, Key]] = deque()
        self._waiting: set[tuple[str, Key]] = set()
        self._looks: Counter[tuple[str, Key]] = Counter()
        self._made = 0
        """How much controllers have created."""
        self._changed: dict[Place, Document | None] = {}
        """Each as it was before the first change; None if it is new."""
        self.refused: dict[str, str] = {}
        """By object, the answer of the API server."""
        self.problems: dict[str, None] = {}
        """Sentences, each once."""
        store.listen(self._hear)

    # --- what came of it -----------------------------------------------------------------------------------------------

    def documents(self) -> Iterator[Document]:
        """Yield the objects that were made or changed, as they are now, in the order in which they were first written."""
        for kind, place in self._changed:
            found = self._find(kind, place)
            if found is not None and kind.kind not in SILENT:
                yield found

    def is_new(self, document: Document) -> bool:
        """Tell whether an object was made here, and not only changed."""
        place = kind_of(document), object_key(document)
        return place in self._changed and self._changed[place] is None

    def removed(self) -> Iterator[Place]:
        """Yield the places of objects that were there before and are gone."""
        yield from (place for place, old in self._changed.items() if old is not None and self._find(*place) is None)

    def _find(self, kind: Kind, place: str) -> Document | None:
        namespace, _, name = place.rpartition("/")
        return self._store.find(kind, namespace, name)

    # --- running ---------------------------------------------------------------------------------------------------------

    def create(self, document: Document) -> Document | None:
        """Create an object; one that is refused is remembered, and None comes back."""
        try:
            refuse_outlines(document)
            self._refuse(document)
            return self._store.create(document)
        except (ClusterError, SnapshotError) as problem:
            self.refused.setdefault(describe(document), str(problem).removeprefix(f"{describe(document)}: "))
            return None

    def look_at(self, kind: Kind, document: Document) -> None:
        """Let every controller that is concerned look at an object."""
        for controller in self._controllers:
            if kind in controller.watches:
                for key in controller.concerns(self._store, kind, document):
                    self._enqueue(controller, key)

    def run(self) -> None:
        """Reconcile until no controller has anything left to write."""
        while self._queue:
            controller, key = self._queue.popleft()
            self._waiting.discard((controller.name, key))
            for write in controller.reconcile(self._store, key).writes:
                if not self._carry_out(write):
                    break

    def _hear(self, event: WatchEvent) -> None:
        place = object_key(event.object) if event.kind.is_namespaced else str(event.object["metadata"]["name"])
        self._changed.setdefault((event.kind, place), event.before)
        self.look_at(event.kind, event.object)

    def _enqueue(self, controller: Controller, key: Key) -> None:
        entry = (controller.name, key)
        if entry in self._waiting:
            return
        self._looks[entry] += 1
        if self._looks[entry] > MOST_LOOKS:
            self.problems[f"controller {controller.name} does not come to rest over {key.namespace}/{key.name}"] = None
            return
        self._waiting.add(entry)
        self._queue.append((controller, key))

    def _carry_out(self, write: Write) -> bool:
        """Write, and tell whether it was taken: after a refusal the rest of a reconciliation is left out."""
        match write:
            case Create(document):
                return self._has(document) or self._make(document)
            case Patch(kind, namespace, name, patch, is_status):
                return self._tried(
                    f"{kind.kind} {namespace}/{name}", lambda: self._store.patch(kind, namespace, name, patch, is_status=is_status)
                )
            case Delete(kind, namespace, name, uid):
                return self._tried(f"{kind.kind} {namespace}/{name}", lambda: self._store.delete(kind, namespace, name, uid=uid))
            case RecordEvent(about, _, message, True):
                own = f"{describe(about)}: "
                self.problems[message if message.startswith(own) else f"{own}{message}"] = None
        return True

    def _make(self, document: Document) -> bool:
        self._made += 1
        if self._made > MADE_PODS.most:
            raise SnapshotError(f"too much is made of the workloads: {MADE_PODS.text}")
        return self.create(document) is not None

    def _has(self, document: Document) -> bool:
        meta = document["metadata"]
        return self._store.find(kind_of(document), str(meta.get("namespace") or ""), str(meta.get("name") or "")) is not None

    def _tried(self, name: str, write: Callable[[], Document]) -> bool:
        try:
            write()
        except (Missing, Exists):
            return True  # somebody was faster, which is no fault
        except ClusterError as problem:
            self.refused.setdefault(name, str(problem))
            return False
        return True
