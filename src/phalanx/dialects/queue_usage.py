"""How much queues used in the past, read from a document: our own form, or what Prometheus answers to a range query.

    queues:                                         data:
      research:                                       resultType: matrix
        gpu: [["2026-01-01T00:00:00Z", 8], …]         result:
    capacity:                                         - metric: {__name__: kai_queue_allocated_gpus, queue_name: research}
      gpu: [["2026-01-01T00:00:00Z", 16]]               values: [[1767225600, "8"], …]

A sample is a time, in seconds since 1970 or as Kubernetes writes it, and an amount: cores, bytes or devices.
"""

import math
from collections.abc import Mapping

from phalanx.dialects.field_values import seconds
from phalanx.errors import SnapshotError
from phalanx.model.queue_usage import RESOURCES, QueueHistory, Series

USED = {"kai_queue_allocated_cpu_cores": "cpu", "kai_queue_allocated_memory_bytes": "memory", "kai_queue_allocated_gpus": "gpu"}
"""KAI's metrics of what queues hold."""
CAPACITY = {"cpu": "cpu", "memory": "memory", "nvidia_com_gpu": "gpu", "gpu": "gpu"}
"""Values of the label `resource` in metrics of what nodes have."""
FORM = "write 'queues' with a list of [time, amount] per queue and resource, or give what Prometheus answers to a range query"


def history(document: object) -> QueueHistory:
    """Read one document."""
    if not isinstance(document, Mapping):
        raise SnapshotError(f"usage: expected a mapping, got {type(document).__name__}; {FORM}")
    if "data" in document:
        return _matrix(document)
    unknown = sorted(str(key) for key in document if key not in ("queues", "capacity"))
    if unknown or not document:
        raise SnapshotError(f"usage{f'.{unknown[0]}: unknown key' if unknown else ': empty'}; {FORM}")
    queues = _mapping(document.get("queues") or {}, "queues")
    used = {str(name): _amounts(entry, f"queues.{name}") for name, entry in queues.items()}
    return QueueHistory(used, _amounts(document.get("capacity") or {}, "capacity"))


def _amounts(value: object, where: str) -> dict[str, tuple[Series, ...]]:
    entry = _mapping(value, where)
    for name in entry:
        if name not in RESOURCES:
            raise SnapshotError(f"{where}.{name}: unknown resource; known: {', '.join(RESOURCES)}")
    return {str(name): (_series(samples, f"{where}.{name}"),) for name, samples in entry.items()}


def _series(value: object, where: str) -> Series:
    if not isinstance(value, list):
        raise SnapshotError(f"{where}: expected a list of [time, amount], got {type(value).__name__}")
    return tuple(sorted(_sample(item, f"{where}[{number}]") for number, item in enumerate(value)))


def _sample(value: object, where: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise SnapshotError(f"{where}: expected [time, amount], such as ['2026-01-01T00:00:00Z', 8]")
    moment, amount = value
    is_stamp = isinstance(moment, str) and not moment.replace(".", "", 1).isdecimal()
    when = seconds(moment, where=where) if is_stamp else _number(moment, where)
    return when, _number(amount, where)


def _number(value: object, where: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not (math.isfinite(number) and number >= 0):
        raise SnapshotError(f"{where}: {value!r} is not an amount; write a number of 0 or more")
    return number


def _mapping(value: object, where: str) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise SnapshotError(f"{where}: expected a mapping, got {type(value).__name__}")
    return value


# --- Prometheus ----------------------------------------------------------------------------------------------------------


def _matrix(document: Mapping[object, object]) -> QueueHistory:
    data = _mapping(document["data"], "data")
    result = data.get("result")
    if data.get("resultType") != "matrix" or not isinstance(result, list):
        raise SnapshotError(f"data.resultType: {data.get('resultType')!r} is no range of time; ask Prometheus with query_range")
    found = QueueHistory()
    for number, item in enumerate(result):
        where = f"data.result[{number}]"
        found = found.plus(_line(_mapping(item, where), where))
    return found


def _line(item: Mapping[object, object], where: str) -> QueueHistory:
    labels = _mapping(item.get("metric") or {}, f"{where}.metric")
    series = _series(item.get("values") or [], f"{where}.values")
    queue, name = labels.get("queue_name"), str(labels.get("__name__", ""))
    if queue is not None and name in USED:
        return QueueHistory({str(queue): {USED[name]: (series,)}})
    resource = CAPACITY.get(str(labels.get("resource", "")))
    if queue is None and resource is not None:
        return QueueHistory(capacity={resource: (series,)})
    raise SnapshotError(
        f"{where}.metric: neither what a queue holds nor what the cluster has; "
        f"ask for {', '.join(USED)}, or for 'sum by (resource) (kube_node_status_capacity)'"
    )
