"""Which new pods the LimitRanges of their namespace refuse, as the API server does when they are created.

Judged are the least and the most that a container may ask for; ratios, and the sums over the containers of a pod, are not.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.errors import Forbidden, SnapshotError
from phalanx.model.kinds import LIMIT_RANGE, Document
from phalanx.model.quantity import to_milli
from phalanx.store.completion import ClusterObjects

CONTAINER = "Container"
CONTAINERS = ("initContainers", "containers")
Amounts = Mapping[str, Any]


def refuse_by_limit_ranges(pod: Document, objects: ClusterObjects) -> None:
    """Raise what the API server answers if a container of a complete pod asks for more or less than it may."""
    for found in objects.within(LIMIT_RANGE, str(pod["metadata"].get("namespace") or "default")):
        items = [item for item in (found.get("spec") or {}).get("limits") or () if item.get("type") == CONTAINER]
        problems = [text for item in items for container in _containers(pod) for text in _faults(item, container)]
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise Forbidden(f'pods "{pod["metadata"].get("name", "")}" is forbidden: {text}')


def _containers(pod: Document) -> Iterator[Document]:
    return (container for group in CONTAINERS for container in pod["spec"].get(group) or ())


def _faults(item: Document, container: Document) -> Iterator[str]:
    resources = container.get("resources") or {}
    requests, limits = (resources.get(name) or {} for name in ("requests", "limits"))
    try:
        yield from _too_little(item.get("min") or {}, requests, limits)
        yield from _too_much(item.get("max") or {}, requests, limits)
    except SnapshotError:
        return  # whoever reads the pod or the LimitRange says that it is no amount


def _too_little(least: Amounts, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in least.items():
        rule = f"minimum {name} usage per Container is {bound}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        for word, amounts in (("request", requests), ("limit", limits)):
            if name in amounts and _milli(amounts[name]) < _milli(bound):
                yield f"{rule}, but {word} is {amounts[name]}"


def _too_much(most: Amounts, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in most.items():
        rule = f"maximum {name} usage per Container is {bound}"
        if name not in limits:
            yield f"{rule}.  No limit is specified"
        for word, amounts in (("limit", limits), ("request", requests)):
            if name in amounts and _milli(amounts[name]) > _milli(bound):
                yield f"{rule}, but {word} is {amounts[name]}"


def _milli(amount: Any) -> int:  # Any: a text or a number
    return to_milli(str(amount))
