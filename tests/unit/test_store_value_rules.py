"""Values of pods and nodes that the API server refuses: in manifests and in the store alike."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from phalanx.errors import Invalid, SnapshotError
from phalanx.store.input_files import take_in
from phalanx.store.memory import MemoryStore

NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}
SUPPORTED = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'


def node(effect: str = "NoSchedule", gpus: str = "8") -> dict[str, Any]:
    return {**NODE, "spec": {"taints": [{"key": "a", "effect": effect}]}, "status": {"allocatable": {"nvidia.com/gpu": gpus}}}


def pod(amounts: dict[str, Any], group: str = "containers", field: str = "limits", effect: str = "") -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {field: amounts}}
    spec = {"containers": [], group: [container], "tolerations": [{"key": "a", "operator": "Exists", "effect": effect}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}


def job(amounts: dict[str, Any]) -> dict[str, Any]:
    task = {"name": "w", "replicas": 1, "template": {"spec": pod(amounts)["spec"]}}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"},
            "spec": {"minAvailable": 1, "tasks": [task]}}  # fmt: skip


NOT_NEGATIVE = "must be greater than or equal to 0"
WRONG = [
    (node(gpus="-1"), f'Node "n0" is invalid: status.allocatable[nvidia.com/gpu]: Invalid value: "-1": {NOT_NEGATIVE}'),
    (pod({"cpu": "-5"}), f'Pod "p" is invalid: spec.containers[0].resources.limits[cpu]: Invalid value: "-5": {NOT_NEGATIVE}'),
    (job({"example.com/nic": "500m"}), 'Job "j" is invalid: spec.tasks[0].template.spec.containers[0].resources.limits'
     '[example.com/nic]: Invalid value: "500m": must be an integer'),
    (node("Maybe"), f'Node "n0" is invalid: spec.taints[0].effect: Unsupported value: "Maybe": {SUPPORTED}'),
    (node(gpus="7.5"), 'Node "n0" is invalid: status.allocatable[nvidia.com/gpu]: Invalid value: "7.5": must be an integer'),
    (pod({"nvidia.com/gpu": "0.5"}),
     'Pod "p" is invalid: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "0.5":'
     " must be an integer; write a whole number, or share a GPU: annotation gpu-fraction on the pod, and no GPU in its resources"),
    (pod({"example.com/nic": "500m"}, "initContainers", "requests"),
     'Pod "p" is invalid: spec.initContainers[0].resources.requests[example.com/nic]: Invalid value: "500m": must be an integer'),
    (pod({}, effect="NoSchedul"), f'Pod "p" is invalid: spec.tolerations[0].effect: Unsupported value: "NoSchedul": {SUPPORTED}'),
]  # fmt: skip
RIGHT = [
    job({"nvidia.com/gpu": 1}),
    node(), node("PreferNoSchedule"), pod({"nvidia.com/gpu": "2000m"}), pod({"cpu": "0.5", "memory": "0.5Gi"}),
    pod({"nvidia.com/gpu": 1}), pod({}, effect="NoExecute"),
]  # fmt: skip


def in_file(tmp_path: Path, document: dict[str, Any]) -> str:
    file = tmp_path / "objects.json"
    file.write_bytes(msgspec.json.encode(document))
    return str(file)


@pytest.mark.parametrize(("document", "text"), WRONG)
def test_a_manifest_with_such_a_value_is_refused(tmp_path: Path, document: dict[str, Any], text: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        take_in([in_file(tmp_path, document)])
    assert str(caught.value).endswith(text)


@pytest.mark.parametrize(("document", "text"), WRONG)
def test_the_store_refuses_such_an_object(document: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid) as caught:
        MemoryStore(lambda: 0.0).create(document)
    assert str(caught.value) == text


def test_the_store_refuses_such_a_change() -> None:
    store = MemoryStore(lambda: 0.0)
    store.create(node())
    with pytest.raises(Invalid, match="Unsupported value"):
        store.replace(node("Maybe"))


@pytest.mark.parametrize("document", RIGHT)
def test_other_values_are_taken(tmp_path: Path, document: dict[str, Any]) -> None:
    assert len(take_in([in_file(tmp_path, document)]).documents) == 1
    MemoryStore(lambda: 0.0).create(document)


def test_what_is_no_list_of_containers_is_left_to_the_reader(tmp_path: Path) -> None:
    broken = {**pod({}), "spec": {"containers": ["main"]}}
    with pytest.raises(SnapshotError, match=r"spec\.containers\[0\]"):
        take_in([in_file(tmp_path, broken)])
