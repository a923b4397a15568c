"""Bodies in Kubernetes' protobuf become the documents that JSON would have been."""

import pytest

from phalanx.errors import ClusterError
from phalanx.web.protobuf import MARK, decoded


def varint(value: int) -> bytes:
    value %= 1 << 64
    found = b""
    while value >= 128:
        found, value = found + bytes([value % 128 + 128]), value // 128
    return found + bytes([value])


def part(number: int, value: bytes | int | str) -> bytes:
    """Return a field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(version: str, kind: str, *parts: bytes) -> bytes:
    return MARK + part(1, part(1, version) + part(2, kind)) + part(2, b"".join(parts))


NAMED = part(1, part(1, "it") + part(2, "") + part(8, b""))
"""Metadata with a name; what is empty is on the wire too."""


def test_empty_values_are_left_out_unless_they_mean_something() -> None:
    spec = part(1, 0) + part(7, 0) + part(6, b"")
    found = decoded(body("batch/v1", "Job", NAMED, part(2, spec)))
    assert found == {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "it"},
        "spec": {"parallelism": 0, "backoffLimit": 0, "template": {}},
    }  # fmt: skip


def test_maps_and_bytes_are_read() -> None:
    found = decoded(body("v1", "Secret", NAMED, part(2, part(1, "word") + part(2, "secret"))))
    assert found["data"] == {"word": "c2VjcmV0"}


def test_parts_that_json_shows_in_the_place_of_their_holder_are_read() -> None:
    volume = part(1, "data") + part(2, part(19, part(1, part(1, "settings"))))
    spec = part(1, volume) + part(2, part(1, "main") + part(8, part(2, part(1, "cpu") + part(2, part(1, "500m")))))
    found = decoded(body("v1", "Pod", NAMED, part(2, spec)))["spec"]
    assert found["volumes"] == [{"name": "data", "configMap": {"name": "settings"}}]
    assert found["containers"] == [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]


def test_numbers_or_texts_times_and_negative_numbers_are_read() -> None:
    budget = decoded(body("policy/v1", "PodDisruptionBudget", NAMED, part(2, part(1, part(1, 1) + part(3, "50%")))))
    assert budget["spec"] == {"minAvailable": "50%"}
    other = decoded(body("policy/v1", "PodDisruptionBudget", NAMED, part(2, part(1, part(1, 0) + part(2, 3)))))
    assert other["spec"] == {"minAvailable": 3}
    value = decoded(body("scheduling.k8s.io/v1", "PriorityClass", part(1, part(1, "it") + part(8, part(1, 60))), part(2, -5)))
    assert (value["value"], value["metadata"]["creationTimestamp"]) == (-5, "1970-01-01T00:01:00Z")


def test_how_to_delete_is_read_in_every_version() -> None:
    found = decoded(body("apps/v1", "DeleteOptions", part(1, 0), part(4, "Background")))
    assert (found["gracePeriodSeconds"], found["propagationPolicy"]) == (0, "Background")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "does not begin with"),
        (MARK + b"\x0a\xff", "cannot be read as protobuf"),
        (MARK + b"\xff" * 12, "more than ten bytes"),
        (body("v1", "Nothing"), "the server could not find the requested resource"),
        (body("v1", "ConfigMap", part(1, 5)), "a number stands where"),
        (body("v1", "ConfigMap", part(1, part(1, b"\xff"))), "cannot be read as protobuf"),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        decoded(data)
