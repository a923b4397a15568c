"""Pods and the gangs that they name, for controllers of gangs that have no group object."""

from collections.abc import Collection

from phalanx.controllers.controller import Key, View
from phalanx.controllers.objects import key_of
from phalanx.dialects.group_references import may_name, named_groups
from phalanx.model.kinds import POD, Document


def gang_keys(pod: Document) -> dict[str, Key]:
    """Return the gangs that a pod names, by dialect, also of a pod that cannot be read otherwise."""
    namespace = key_of(pod).namespace or "default"
    return {dialect: Key(namespace, name) for dialect, name in named_groups(pod).items()}


def gang_key(pod: Document, dialect: str) -> Key | None:
    """Return the gang that a pod names in a dialect; None without one."""
    return gang_keys(pod).get(dialect)


def members(view: View, key: Key, dialects: Collection[str]) -> list[Document]:
    """Return the pods that name a gang in one of these dialects, the oldest first."""
    likely = (pod for pod in view.within(POD, key.namespace) if may_name(pod, key.name))
    found = [pod for pod in likely if key in map(gang_keys(pod).get, dialects)]
    return sorted(found, key=lambda pod: (str(pod["metadata"].get("creationTimestamp", "")), pod["metadata"]["name"]))


def has_started(pod: Document) -> bool:
    """Tell whether a pod was ever given a node."""
    return bool(pod["spec"].get("nodeName"))


def waits(pod: Document) -> bool:
    """Tell whether a pod waits for a node."""
    status = pod.get("status") or {}
    return not has_started(pod) and status.get("phase", "Pending") == "Pending"
