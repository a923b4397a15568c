"""What the API server refuses in the containers of a pod: names that are none or that two have, and requests above limits."""

from collections.abc import Iterator, Mapping
from typing import Any

from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document
from phalanx.model.quantity import to_milli
from phalanx.store.metadata_rules import label_fault
from phalanx.store.value_rules import CONTAINERS


def container_faults(spec: Document, path: str) -> Iterator[str]:
    """Yield what is wrong with the containers of a pod."""
    names: set[str] = set()
    for group in CONTAINERS:
        for place, container in enumerate(spec.get(group) or ()):
            where, name = f"{path}.{group}[{place}]", str(container.get("name") or "")
            if not name:
                yield f"{where}.name: Required value"
            elif name in names:
                yield f'{where}.name: Duplicate value: "{name}"'
            elif fault := label_fault(name):
                yield f'{where}.name: Invalid value: "{name}": {fault}'
            names.add(name)
            yield from _requests_above_limits(container.get("resources") or {}, f"{where}.resources.requests")


def _requests_above_limits(resources: Mapping[str, Any], path: str) -> Iterator[str]:  # Any: as found in the object
    limits = resources.get("limits") or {}
    for name, amount in (resources.get("requests") or {}).items():
        if name in limits and _is_more(str(amount), str(limits[name])):
            yield f'{path}: Invalid value: "{amount}": must be less than or equal to {name} limit of {limits[name]}'


def _is_more(amount: str, limit: str) -> bool:
    try:
        return to_milli(amount) > to_milli(limit)
    except SnapshotError:
        return False  # whoever reads the object says that it is no amount
