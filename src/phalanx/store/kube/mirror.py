"""The local copy of the API server's objects that controllers and sessions read, filled by reflectors.

Objects come from three sources in no fixed order: watches, new lists, and the answers to our own writes. Of two versions of an
object the older one always loses, so that no reader sees an object go back in time: a bind that we have written must not look
unwritten because an event from before it comes in later. Versions of one kind are compared as
numbers. Only where the server itself has gone back, restored from a backup, do readers see that too.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from phalanx.model.kinds import BIND_REQUEST, Document, Kind
from phalanx.model.watch_event import ADDED, DELETED, MODIFIED, WatchEvent

Place = tuple[str, str]
Listener = Callable[[WatchEvent], None]
MOST_GONE = 4096
"""So many deleted objects are remembered: the answer to a write that was under way may still bring one of them."""


class Mirror:
    """Objects by kind, namespace and name, with their owners."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with nothing; the clock returns seconds since 1970."""
        self._clock = clock
        self._objects: dict[Kind, dict[Place, Document]] = {}
        self._names: dict[Kind, dict[str, list[str]]] = {}
        """The names of a kind in each namespace, in order."""
        self._owned: dict[tuple[str, Kind], dict[Place, None]] = {}
        self._gone: dict[str, None] = {}
        """The uids of objects that have gone lately, the latest last."""
        self._listeners: list[Listener] = []
        self.hidden: set[Kind] = set()
        """Kinds that we are not allowed to read."""
        self.unserved: frozenset[Kind] = frozenset()
        """Kinds that the server does not know, of those that are followed."""

    def listen(self, listener: Listener) -> None:
        """Call a listener with every change from now on."""
        self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        """Call a listener no more."""
        self._listeners.remove(listener)

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock()

    def find(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """Return one object, or None."""
        return self._objects.get(kind, {}).get((namespace if kind.is_namespaced else "", name))

    def within(self, kind: Kind, namespace: str = "") -> list[Document]:
        """Return the objects of a kind in a namespace, or everywhere, in the order of their keys."""
        objects, names = self._objects.get(kind, {}), self._names.get(kind, {})
        spaces = [namespace] if namespace and kind.is_namespaced else sorted(names)
        return [objects[space, name] for space in spaces for name in names.get(space, ())]

    def owned(self, uid: str, kind: Kind) -> list[Document]:
        """Return the objects of a kind that name this owner, in the order of their keys."""
        objects = self._objects.get(kind, {})
        return [objects[place] for place in sorted(self._owned.get((uid, kind), ()))]

    def is_hidden(self, kind: Kind) -> bool:
        """Tell whether we are not allowed to read a kind, so that its objects may well exist."""
        return kind in self.hidden

    def is_served(self, kind: Kind) -> bool:
        """Tell whether the server knows a kind that is followed."""
        return kind not in self.unserved

    def everything(self) -> Iterable[Document]:
        """Yield every object."""
        for objects in self._objects.values():
            yield from objects.values()

    def count(self, kind: Kind) -> int:
        """Return how many objects of a kind there are."""
        return len(self._objects.get(kind, ()))

    def newest(self, kind: Kind) -> int:
        """Return the highest version of an object of a kind; 0 if there is none."""
        return max(map(_version, self._objects.get(kind, {}).values()), default=0)

    # --- changes -----------------------------------------------------------------------------------------------------

    def put(self, kind: Kind, document: dict[str, Any]) -> None:
        """Enter an object, unless a newer version of it is known, or that it was deleted."""
        self._put(kind, document)

    def _put(self, kind: Kind, document: dict[str, Any], *, is_last_word: bool = False) -> None:
        meta = document["metadata"]
        if kind is not BIND_REQUEST:  # the times of BindRequests are read from them
            meta.pop("managedFields", None)
        place = _place(kind, document)
        before = self._objects.setdefault(kind, {}).get(place)
        is_older = before is not None and _is_newer(before, document, is_last_word=is_last_word)
        if meta.get("uid") in self._gone or is_older:
            return
        # Another object of the same name: its deletion was missed, or is still to come. Listeners must see the old one go.
        if before is not None and before["metadata"].get("uid") != meta.get("uid"):
            self.remove(kind, before)
            before = None
        self._enter(kind, place, document, before)
        self._notify(ADDED if before is None else MODIFIED, kind, document, before)

    def remove(self, kind: Kind, document: Document) -> None:
        """Remove an object, unless another one of its name is there by now."""
        place = _place(kind, document)
        before = self._objects.get(kind, {}).get(place)
        if before is None or before["metadata"].get("uid") != document["metadata"].get("uid"):
            return
        self._leave(kind, place, before)
        self._notify(DELETED, kind, document, before)

    def replace(self, kind: Kind, documents: Iterable[dict[str, Any]], *, version: str = "", was_set_back: bool = False) -> bool:
        """Enter a complete list of a kind; objects that are not in it are gone, unless they are newer than the list.

        Those come from answers to our own writes that overtook the list; the watch that follows it will bring them again. Where the
        server was set back to an earlier state, nothing is newer than the list. Returns whether it was: some object is older than
        we know it, and we know it from before the list.
        """
        seen, newest, is_older = set[Place](), int(version) if version.isdigit() and not was_set_back else math.inf, False
        for document in documents:
            place = _place(kind, document)
            before = self.find(kind, *place)
            goes_back = bool(version) and before is not None and _goes_back(before, document) and _version(before) <= newest
            is_older = is_older or goes_back
            seen.add(place)
            self._put_listed(kind, document, is_last_word=was_set_back or goes_back)
        known = self._objects.get(kind, {}).items()
        for before in [item for place, item in known if place not in seen and _version(item) <= newest]:
            self.remove(kind, before)
            if was_set_back:  # it may be one that we made while the list was on its way: the watch brings it again
                self._gone.pop(before["metadata"].get("uid", ""), None)
        return was_set_back or is_older

    def replace_one(self, kind: Kind, place: Place, documents: Iterable[dict[str, Any]], *, was_set_back: bool = False) -> None:
        """Enter the list of a single object; if the list is empty, it is gone."""
        found = list(documents)
        for document in found:
            self._put_listed(kind, document, is_last_word=was_set_back)
        before = self.find(kind, *place)
        if not found and before is not None:
            self.remove(kind, before)

    def _put_listed(self, kind: Kind, document: dict[str, Any], *, is_last_word: bool) -> None:
        """Enter an object of a list: it exists, even if it was taken for deleted because its kind was not served for a while."""
        self._gone.pop(document["metadata"].get("uid", ""), None)
        self._put(kind, document, is_last_word=is_last_word)

    def _enter(self, kind: Kind, place: Place, document: Document, before: Document | None) -> None:
        self._objects[kind][place] = document
        if before is None:
            insort(self._names.setdefault(kind, {}).setdefault(place[0], []), place[1])
        elif before["metadata"].get("ownerReferences") == document["metadata"].get("ownerReferences"):
            return
        else:
            self._disown(kind, place, before)
        for uid in _owners(document):
            self._owned.setdefault((uid, kind), {})[place] = None

    def _leave(self, kind: Kind, place: Place, before: Document) -> None:
        del self._objects[kind][place]
        self._forget(before["metadata"].get("uid", ""))
        names = self._names[kind][place[0]]
        names.remove(place[1])
        if not names:
            del self._names[kind][place[0]]
        self._disown(kind, place, before)

    def _forget(self, uid: str) -> None:
        if uid:
            self._gone[uid] = None
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]

    def _disown(self, kind: Kind, place: Place, before: Document) -> None:
        for uid in _owners(before):
            places = self._owned[uid, kind]
            del places[place]
            if not places:
                del self._owned[uid, kind]

    def _notify(self, type_: str, kind: Kind, document: Document, before: Document | None) -> None:
        event = WatchEvent(_version(document), type_, kind, document, before)
        for listener in self._listeners:
            listener(event)


def _owners(document: Document) -> list[str]:
    references: Iterable[Mapping[str, Any]] = document["metadata"].get("ownerReferences") or ()
    return list(dict.fromkeys(str(reference.get("uid", "")) for reference in references))


def _place(kind: Kind, document: Document) -> Place:
    meta = document["metadata"]
    return str(meta.get("namespace", "")) if kind.is_namespaced else "", str(meta["name"])


def _is_newer(before: Document, document: Document, *, is_last_word: bool) -> bool:
    """Tell whether the known version is not older; objects without versions, such as metrics, are always replaced."""
    if (is_last_word and before != document) or _is_of_other_history(before, document):
        return False
    return 0 < _version(document) <= _version(before)


def _goes_back(before: Document, document: Document) -> bool:
    return _version(document) < _version(before) or _is_of_other_history(before, document)


def _is_of_other_history(before: Document, document: Document) -> bool:
    """Tell whether the server was set back in between: of two objects with one name, each has versions of its own otherwise."""
    is_other = before["metadata"].get("uid") != document["metadata"].get("uid")
    return is_other and _version(document) == _version(before) > 0


def _version(document: Document) -> int:
    text = document["metadata"].get("resourceVersion") or ""
    return int(text) if text.isdigit() else 0
