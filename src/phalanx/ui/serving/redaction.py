"""Names that a reader may not see: sentences about a gang name others, which may be in namespaces that are none of his business."""

import re
from typing import Any

from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster

HIDDEN = "another namespace's"
_KEY = re.compile(r"\b([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/([A-Za-z0-9](?:[-A-Za-z0-9._@]*[A-Za-z0-9])?)")
"""Namespace and name of a gang or a pod in a sentence."""


def redacted(value: Any, scope: Scope, seen: SeenCluster) -> Any:  # Any: as JSON has it
    """Return a document without the names of what is in namespaces that a reader may not see."""
    if scope.namespaces is None:
        return value
    return _without(value, namespaces_of(seen) - scope.namespaces)


def namespaces_of(seen: SeenCluster) -> frozenset[str]:
    """Return the namespaces in which a cluster has gangs or pods on nodes."""
    others = (task.namespace for tasks in seen.snapshot.on_node.values() for task in tasks.values())
    return frozenset((*(key.partition("/")[0] for key in seen.gangs), *others))


def _without(value: Any, hidden: frozenset[str]) -> Any:
    if isinstance(value, str):
        return _KEY.sub(lambda found: HIDDEN if found[1] in hidden else found[0], value)
    if isinstance(value, dict):
        return {_without(key, hidden): _without(item, hidden) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without(item, hidden) for item in value]
    return value
