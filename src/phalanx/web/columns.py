"""The columns in which each kind of object is shown: by `phalanx get`, and to kubectl as a table of the API server."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from phalanx.dialects.group_references import first_named
from phalanx.manifests.definitions import AGE, DEFINITIONS, PrinterColumn
from phalanx.model.duration import age_text

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A title and how to read a cell of an object."""

    title: str
    cell: Callable[[Document], object]
    is_wide: bool = False
    """Shown with -o wide only."""
    is_sentence: bool = False
    """Shown behind all others, as it may be long."""


def at(path: str, default: object = "") -> Callable[[Document], object]:
    """Return how to read the value at a path such as spec.queue."""

    def read(document: Document) -> object:
        value: object = document
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return default if value is None else value

    return read


def age(since: str, now: float) -> str:
    """Return how long ago a time was: 45s, 12m, 3h20m, 5d."""
    if not since:
        return "<unknown>"
    return age_text(now - datetime.fromisoformat(since).timestamp())


def _pod_status(pod: Document) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return "Terminating"
    if pod.get("spec", {}).get("schedulingGates"):
        return "Gated"
    return str(pod.get("status", {}).get("phase", ""))


def _group_status(group: Document) -> str:
    """Return the phase of a group; Kubernetes' own have a condition instead."""
    status = group.get("status") or {}
    conditions = status.get("conditions") or ()
    own: Document = next((item for item in conditions if str(item.get("type", "")).startswith("PodGroup")), {})
    return str(status.get("phase") or own.get("reason") or "Pending")


def _node_status(node: Document) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    is_down = any(item.get("type") == "Ready" and item.get("status") != "True" for item in conditions)
    return ("NotReady" if is_down else "Ready") + (",Cordoned" if node.get("spec", {}).get("unschedulable") else "")


def _gpus(node: Document) -> str:
    return str((node.get("status", {}).get("allocatable") or {}).get("nvidia.com/gpu", "0"))


def _about(event: Document) -> str:
    involved = event.get("involvedObject", {})
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _labels(document: Document) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((document["metadata"].get("labels") or {}).items()))


GANGS_GROUP = "phalanx.dev"
BY_KIND: dict[str, tuple[TableColumn, ...]] = {
    "Gang": (
        TableColumn("DIALECT", at("dialect")),
        TableColumn("QUEUE", at("queue")),
        TableColumn("STATUS", at("status")),
        TableColumn("MIN", at("minimum")),
        TableColumn("PLACED", at("placed")),
        TableColumn("RUNNING", at("running")),
        TableColumn("REASON", at("reason"), is_wide=True),
        TableColumn("WHY", at("why"), is_sentence=True),
    ),
    "Pod": (
        TableColumn("STATUS", _pod_status),
        TableColumn("NODE", at("spec.nodeName")),
        TableColumn("GANG", first_named),
        TableColumn("PRIORITY", at("spec.priority"), is_wide=True),
        TableColumn("SCHEDULER", at("spec.schedulerName"), is_wide=True),
    ),
    "Node": (
        TableColumn("STATUS", _node_status),
        TableColumn("CPU", at("status.allocatable.cpu")),
        TableColumn("MEMORY", at("status.allocatable.memory")),
        TableColumn("GPUS", _gpus),
        TableColumn("LABELS", _labels, is_wide=True),
    ),
    "PodGroup": (
        TableColumn("STATUS", _group_status),
        TableColumn("MIN", at("spec.schedulingPolicy.gang.minCount")),
        TableColumn("PRIORITY", at("spec.priorityClassName"), is_wide=True),
    ),
    "Namespace": (TableColumn("STATUS", at("status.phase")),),
    "PriorityClass": (TableColumn("VALUE", at("value")), TableColumn("DEFAULT", at("globalDefault", False))),
    "PodDisruptionBudget": (
        TableColumn("MIN", at("spec.minAvailable", "-")),
        TableColumn("MAX-UNAVAILABLE", at("spec.maxUnavailable", "-")),
    ),
    "Event": (
        TableColumn("TYPE", at("type")),
        TableColumn("REASON", at("reason")),
        TableColumn("OBJECT", _about),
        TableColumn("MESSAGE", at("message"), is_sentence=True),
    ),
}


_DEFINED = {(found.kind.group, found.kind.kind): found.columns for found in DEFINITIONS}


def _printed(column: PrinterColumn, now: float) -> TableColumn:
    """Return a column of a definition."""
    read = at(column.path.removeprefix("."))
    cell = (lambda item: age(str(read(item)), now) if read(item) else "") if column.type == "date" else read
    return TableColumn(column.name.upper(), cell, is_wide=column.is_wide)


def columns_of(kind: str, api_version: str, now: float, *, is_wide: bool = True) -> list[TableColumn]:
    """Return all columns of a kind in their order: its name, its own, its age, and what may be long.

    A kind that has a CustomResourceDefinition has the columns of the definition, as a real API server shows them.
    """
    own = [column for column in _own_columns(kind, api_version.rpartition("/")[0], now) if is_wide or not column.is_wide]
    plain = [column for column in own if not column.is_sentence]
    sentences = [column for column in own if column.is_sentence]
    return [TableColumn("NAME", at("metadata.name")), *plain, TableColumn("AGE", lambda item: _age(item, now)), *sentences]


def _own_columns(kind: str, group: str, now: float) -> Iterable[TableColumn]:
    if (group, kind) in _DEFINED:
        return [_printed(column, now) for column in _DEFINED[group, kind] if column is not AGE]
    return BY_KIND.get(kind, ()) if _is_kubernetes(group) else ()


def _is_kubernetes(group: str) -> bool:
    """Tell whether a group is one of Kubernetes or our own; kinds of others may have the same names."""
    return "." not in group or group.endswith(".k8s.io") or group == GANGS_GROUP


def _age(item: Document, now: float) -> str:
    return age(item["metadata"].get("creationTimestamp", ""), now)
