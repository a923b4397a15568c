"""Usage over time, read from documents."""

from typing import Any

import pytest

from phalanx.dialects.queue_usage import history
from phalanx.errors import SnapshotError

START = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def test_our_own_form_is_read() -> None:
    found = history(
        {"queues": {"a": {"gpu": [["2026-01-01T00:00:00Z", 8]]}}, "capacity": {"gpu": [[START, 16], [START - 60, 12.5]]}}
    )
    assert found.used == {"a": {"gpu": (((START, 8.0),),)}}
    assert found.capacity == {"gpu": (((START - 60, 12.5), (START, 16.0)),)}
    assert found.measured == START


def matrix(*lines: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(lines)}}


def line(values: list[list[object]], **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": values}


def test_an_answer_of_prometheus_is_read() -> None:
    used = line([[START, "8"], [START + 60, "6.5"]], __name__="kai_queue_allocated_gpus", queue_name="a", instance="x")
    nodes = [line([[START, "8"]], __name__="kube_node_status_capacity", resource="nvidia_com_gpu", node=name) for name in "xy"]
    found = history(matrix(used, *nodes))
    assert found.used == {"a": {"gpu": (((START, 8.0), (START + 60, 6.5)),)}}
    assert found.capacity == {"gpu": (((START, 8.0),), ((START, 8.0),))}


@pytest.mark.parametrize(
    ("metric", "resource"), [("kai_queue_allocated_cpu_cores", "cpu"), ("kai_queue_allocated_memory_bytes", "memory")]
)
def test_the_metric_says_which_resource_it_is_about(metric: str, resource: str) -> None:
    assert list(history(matrix(line([[START, "1"]], __name__=metric, queue_name="a"))).used["a"]) == [resource]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "usage: expected a mapping, got list; write 'queues'"),
        ({}, "usage: empty; write 'queues'"),
        ({"queue": {}}, "usage.queue: unknown key; write 'queues'"),
        ({"queues": {"a": {"tpu": []}}}, "queues.a.tpu: unknown resource; known: cpu, memory, gpu"),
        ({"queues": {"a": {"gpu": 5}}}, "queues.a.gpu: expected a list of [time, amount], got int"),
        ({"queues": {"a": {"gpu": [[START]]}}}, "queues.a.gpu[0]: expected [time, amount], such as"),
        ({"queues": {"a": {"gpu": [["noon", 1]]}}}, "queues.a.gpu[0]: 'noon' is not a time"),
        ({"queues": {"a": {"gpu": [[START, -1]]}}}, "queues.a.gpu[0]: -1 is not an amount; write a number of 0 or more"),
        ({"queues": {"a": {"gpu": [[START, "NaN"]]}}}, "queues.a.gpu[0]: 'NaN' is not an amount"),
        ({"queues": {"a": {"gpu": [[START, True]]}}}, "queues.a.gpu[0]: True is not an amount"),
        (
            {"data": {"resultType": "vector", "result": []}},
            "data.resultType: 'vector' is no range of time; ask Prometheus with query_range",
        ),
        (
            matrix(line([[START, "1"]])),
            "data.result[0].metric: neither what a queue holds nor what the cluster has; ask for kai_queue",
        ),
        (matrix(line([[START, "1"]], __name__="up", queue_name="a")), "data.result[0].metric: neither"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(document: object, message: str) -> None:
    with pytest.raises(SnapshotError) as problem:
        history(document)
    assert str(problem.value).startswith(message)
