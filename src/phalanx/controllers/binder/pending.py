"""What is asked of the binder: a request, the pod that it is for, and how far it got."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from phalanx.controllers.controller import Key, View
from phalanx.controllers.objects import group_named, inside, is_leaving, key_of, meta_of
from phalanx.dialects.bind_requests import bind_request
from phalanx.dialects.cluster import describe
from phalanx.dialects.kinds.kai import KaiBindRequest
from phalanx.dialects.kinds.reader import reader_of
from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError
from phalanx.model.bind_request import SUCCEEDED, BindRequest
from phalanx.model.kinds import BIND_REQUEST, POD, Document, split_key
from phalanx.model.moment import moment_of

MOST_ATTEMPTS = 3
"""Of a request that names no limit: what passes by itself, such as a conflict or a server that starts anew, passes within these
six seconds; more of them would only keep the room from others."""
ALONE, BROKEN, UNBOUND = "pod/", "request/", "unbound/"
"""How the names of keys begin that stand for a pod without a group, for a request that cannot be read, and for one whose pod has no
node though it has succeeded."""


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """One request that has not succeeded, with its pod."""

    request: BindRequest
    document: Document
    pod: Document

    @property
    def key(self) -> Key:
        """The key of the request."""
        return key_of(self.document)

    @property
    def pod_key(self) -> Key:
        """The key of the pod."""
        return key_of(self.pod)

    @property
    def node(self) -> str:
        """Where the pod shall go."""
        return self.request.node

    @property
    def created(self) -> float:
        """When it was asked."""
        return moment_of(str(meta_of(self.document).get("creationTimestamp", ""))) or 0.0

    @property
    def is_bound(self) -> bool:
        """Tell whether the pod has a node."""
        return bool(inside(self.pod, "spec", "nodeName"))

    @property
    def is_leaving(self) -> bool:
        """Tell whether the pod is being deleted."""
        return is_leaving(self.pod)

    @property
    def is_open(self) -> bool:
        """Tell whether there is still something to do."""
        return not self.request.has_failed

    @property
    def is_used_up(self) -> bool:
        """Tell whether it failed as often as it may."""
        limit = MOST_ATTEMPTS if self.request.most_attempts is None else max(self.request.most_attempts, 1)
        return self.request.failed_attempts >= limit

    @property
    def not_before(self) -> float:
        """When to try again: at once, or after 2, 4, 8 seconds and so on since the last failure."""
        return self.request.latest + 2.0 ** min(self.request.failed_attempts, 62) if self.request.failed_attempts else 0.0

    @property
    def reason(self) -> str:
        """What went wrong last; empty when nothing did."""
        return str(inside(self.document, "status", "reason") or "")


def read_request(document: Document) -> BindRequest:
    """Read a request; a wrong one is an error that names it."""
    try:
        return bind_request(read_as(document, reader_of(KaiBindRequest)))
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{describe(document)}: {readable(problem)}") from problem
    except SnapshotError as problem:
        raise SnapshotError(f"{describe(document)}: {problem}") from problem


def circle_of(pod: Document) -> Key:
    """Return the key of those who are bound together with a pod: its group, or itself."""
    key = key_of(pod)
    return Key(key.namespace, group_named(pod) or f"{ALONE}{key.name}")


def _ask(view: View, document: Document) -> Ask | None:
    """Return a request with its pod; None if that is gone or another one, or if the request cannot be read."""
    try:
        request = read_request(document)
    except SnapshotError:
        return None
    pod = view.find(POD, *split_key(request.task))
    if pod is None or request.owner_uid not in ("", meta_of(pod).get("uid")):
        return None
    return Ask(request, document, pod)


def asks_of(view: View, circle: Key) -> list[Ask]:
    """Return the requests of those who are bound together that have not succeeded, in the order of their keys."""
    return [ask for ask in _asks(view, circle.namespace) if circle_of(ask.pod) == circle]


def open_asks(view: View) -> Iterable[Ask]:
    """Return the requests of all namespaces with which something is still to do."""
    return (ask for ask in _asks(view) if ask.is_open)


def _asks(view: View, namespace: str = "") -> Iterator[Ask]:
    """Yield requests that have not succeeded; the many that have are not even read."""
    for document in view.within(BIND_REQUEST, namespace):
        ask = None if inside(document, "status", "phase") == SUCCEEDED else _ask(view, document)
        if ask is not None:
            yield ask
