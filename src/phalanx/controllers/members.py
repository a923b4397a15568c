"""Pods of gangs that pods alone make, as controllers find them."""

import msgspec

from phalanx.controllers.base import Key, View
from phalanx.dialects import schema
from phalanx.dialects.links import links_of
from phalanx.model.kinds import POD, Document


def gang_key(pod: Document, dialect: str) -> Key | None:
    """Return the gang that a pod names in a dialect; None without one, and for a pod that cannot be read."""
    try:
        read = msgspec.convert(pod, schema.Pod)
    except msgspec.ValidationError:
        return None
    names = [link.group for link in links_of(read.metadata, read.spec) if link.dialect == dialect]
    return Key(*names[0].split("/", 1)) if names else None


def members(view: View, key: Key, dialect: str) -> list[Document]:
    """Return the pods that name a gang, the oldest first."""
    found = [pod for pod in view.within(POD, key.namespace) if gang_key(pod, dialect) == key]
    return sorted(found, key=lambda pod: (str(pod["metadata"].get("creationTimestamp", "")), pod["metadata"]["name"]))


def has_started(pod: Document) -> bool:
    """Tell whether a pod was ever given a node."""
    return bool(pod["spec"].get("nodeName"))


def waits(pod: Document) -> bool:
    """Tell whether a pod waits for a node."""
    status = pod.get("status") or {}
    return not has_started(pod) and status.get("phase", "Pending") == "Pending"
