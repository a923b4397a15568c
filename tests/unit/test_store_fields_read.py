"""What is read of the objects that a server sends."""

from typing import Any, get_type_hints

import msgspec
import pytest

from phalanx.dialects import schema
from phalanx.model.kinds import BIND_REQUEST, NODE, POD, QUEUE, Kind
from phalanx.store.kube import fields_read as needed

RECORD = {"managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]}
META = {"name": "a", "labels": {"team": "x"}}
CONTAINER = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "1"}}}
SENT: dict[Kind, dict[str, Any]] = {
    POD: {
        "metadata": {**META, **RECORD},
        "spec": {"containers": [{**CONTAINER, "volumeMounts": [{"name": "data"}]}], "nodeName": "n0", "dnsPolicy": "Default"},
        "status": {"phase": "Running", "hostIP": "10.0.0.1"},
    },
    NODE: {
        "metadata": {**META, **RECORD},
        "spec": {"taints": []},
        "status": {"capacity": {"cpu": "4"}, "nodeInfo": {"arch": "arm"}},
    },
    QUEUE: {"metadata": {**META, **RECORD}, "spec": {"weight": 1, "new": True}},
    BIND_REQUEST: {"metadata": {**META, **RECORD}, "spec": {"podName": "a"}},
}
READ: dict[Kind, dict[str, Any]] = {
    POD: {"metadata": META, "spec": {"containers": [CONTAINER], "nodeName": "n0"}, "status": {"phase": "Running"}},
    NODE: {"metadata": META, "spec": {"taints": []}, "status": {"capacity": {"cpu": "4"}}},
    QUEUE: {"metadata": META, "spec": {"weight": 1, "new": True}},
    # The times of a binder's attempts are read from the record.
    BIND_REQUEST: {"metadata": {**META, **RECORD}, "spec": {"podName": "a"}},
}


@pytest.mark.parametrize("kind", SENT)
def test_what_nobody_looks_at_is_left_out(kind: Kind) -> None:
    body = msgspec.json.encode(SENT[kind])
    assert needed.read_object(kind, body) == READ[kind]
    assert needed.read_object(None, body) == SENT[kind]


@pytest.mark.parametrize("kind", SENT)
def test_lists_are_read_as_their_objects_are(kind: Kind) -> None:
    body = msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": [SENT[kind]]})
    assert needed.read_page(kind, body) == needed.ListAnswer({"resourceVersion": "7"}, [READ[kind]])
    assert needed.read_page(None, body).items == [SENT[kind]]


@pytest.mark.parametrize(
    ("struct", "parts"),
    [
        (schema.Meta, needed.MetaParts),
        (schema.Container, needed.ContainerParts),
        (schema.ShapeSpec, needed.PodSpecParts),
        (schema.PodSpec, needed.PodSpecParts),
        (schema.PodStatus, needed.PodStatusParts),
        (schema.NodeStatus, needed.NodeStatusParts),
    ],
)
def test_what_a_session_reads_is_not_left_out(struct: type[msgspec.Struct], parts: type) -> None:
    assert {field.encode_name for field in msgspec.structs.fields(struct)} <= get_type_hints(parts).keys()


@pytest.mark.parametrize("spec", [None, {"containers": None}, {"containers": [], "initContainers": None}])
def test_bookmarks_are_pods_with_next_to_nothing(spec: dict[str, Any] | None) -> None:
    sent = {"kind": "Pod", "metadata": {"resourceVersion": "7", "creationTimestamp": None}, "spec": spec, "status": {}}
    assert needed.read_object(POD, msgspec.json.encode(sent)) == sent
