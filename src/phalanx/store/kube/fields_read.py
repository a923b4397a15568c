"""What is decoded of the objects that a server sends: of pods and nodes the fields that the scheduler reads, of all others
everything but managedFields, the record of who has written which field, which is often half of an object. BindRequests keep it,
since it says when a binder last tried.

The rest is skipped on the wire, and costs neither time nor memory. Objects that were read so must not be written back as a whole.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, TypedDict, TypeVar

import msgspec

from phalanx.model.kinds import BIND_REQUEST, NODE, POD, Kind

RECORD = "managedFields"
T = TypeVar("T")


class MetaParts(TypedDict, total=False):
    """What is read of metadata."""

    name: Any
    namespace: Any
    generateName: Any
    uid: Any
    resourceVersion: Any
    generation: Any
    creationTimestamp: Any
    deletionTimestamp: Any
    deletionGracePeriodSeconds: Any
    labels: Any
    annotations: Any
    ownerReferences: Any
    finalizers: Any


class ContainerParts(TypedDict, total=False):
    """What is read of a container."""

    name: Any
    image: Any
    resources: Any
    ports: Any
    env: Any
    restartPolicy: Any


class PodSpecParts(TypedDict, total=False):
    """What is read of what a pod asks for; bookmarks come as pods without containers."""

    containers: list[ContainerParts] | None
    initContainers: list[ContainerParts] | None
    overhead: Any
    resources: Any
    nodeSelector: Any
    affinity: Any
    tolerations: Any
    topologySpreadConstraints: Any
    volumes: Any
    resourceClaims: Any
    nodeName: Any
    priority: Any
    priorityClassName: Any
    preemptionPolicy: Any
    schedulerName: Any
    schedulingGates: Any
    schedulingGroup: Any
    restartPolicy: Any
    imagePullSecrets: Any
    terminationGracePeriodSeconds: Any
    activeDeadlineSeconds: Any


class PodStatusParts(TypedDict, total=False):
    """What is read of how a pod does."""

    phase: Any
    reason: Any
    message: Any
    qosClass: Any
    conditions: Any
    nominatedNodeName: Any
    startTime: Any
    initContainerStatuses: Any
    containerStatuses: Any
    resourceClaimStatuses: Any


class PodParts(TypedDict, total=False):
    """What is read of a pod."""

    apiVersion: Any
    kind: Any
    metadata: MetaParts
    spec: PodSpecParts | None
    status: PodStatusParts | None


class NodeStatusParts(TypedDict, total=False):
    """What is read of how a node does."""

    allocatable: Any
    capacity: Any
    conditions: Any
    images: Any


class NodeParts(TypedDict, total=False):
    """What is read of a node."""

    apiVersion: Any
    kind: Any
    metadata: MetaParts
    spec: Any
    status: NodeStatusParts | None


class ListAnswer(msgspec.Struct, Generic[T]):
    """A part of a list."""

    metadata: dict[str, Any]
    items: list[T] | None = None


class _ListMetadata(msgspec.Struct):
    """What is read of a part of a list before its objects."""

    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class RawWatchEvent(msgspec.Struct):
    """An event of a watch, whose object is decoded later, when its type is known."""

    type: str
    object: msgspec.Raw


_WATCH_EVENT, _LIST_METADATA = msgspec.json.Decoder(RawWatchEvent), msgspec.json.Decoder(_ListMetadata)
_WHOLE_PAGE, _WHOLE = msgspec.json.Decoder(ListAnswer[dict[str, Any]]), msgspec.json.Decoder(dict[str, Any])
_PAGES: Mapping[Kind | None, msgspec.json.Decoder[Any]] = MappingProxyType(
    {POD: msgspec.json.Decoder(ListAnswer[PodParts]), NODE: msgspec.json.Decoder(ListAnswer[NodeParts])}
)
_OBJECTS: Mapping[Kind | None, msgspec.json.Decoder[Any]] = MappingProxyType(
    {POD: msgspec.json.Decoder(PodParts), NODE: msgspec.json.Decoder(NodeParts)}
)
_RECORD_KEPT = frozenset({None, BIND_REQUEST})


def read_page(kind: Kind | None, body: bytes) -> ListAnswer[dict[str, Any]]:
    """Return a part of a list; without a kind everything is read."""
    if kind in _PAGES:
        found: ListAnswer[dict[str, Any]] = _PAGES[kind].decode(body)
        return found
    page = _WHOLE_PAGE.decode(body)
    for item in () if kind in _RECORD_KEPT else page.items or ():
        _drop_record(item)
    return page


def read_continuation(body: bytes) -> str:
    """Return where the next part of a list begins, without reading its objects; empty if this is the last, or no list at all."""
    try:
        return str(_LIST_METADATA.decode(body).metadata.get("continue") or "")
    except msgspec.DecodeError:
        return ""


def read_watch_event(line: bytes) -> RawWatchEvent:
    """Return an event of a watch."""
    return _WATCH_EVENT.decode(line)


def read_object(kind: Kind | None, body: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return one object; without a kind everything is read."""
    found: dict[str, Any] = _OBJECTS.get(kind, _WHOLE).decode(body)
    if kind in _OBJECTS:
        return found
    if kind not in _RECORD_KEPT:
        _drop_record(found)
    return found


def _drop_record(item: dict[str, Any]) -> None:
    meta = item.get("metadata")
    if isinstance(meta, dict):
        meta.pop(RECORD, None)
