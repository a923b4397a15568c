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


OPERATOR = "not a valid selector operator; write one of In, NotIn, Exists, DoesNotExist"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


def on_nodes(**expression: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", **expression}]}]}}}}


def near(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def spread(**more: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **more}]}


def tolerating(**toleration: Any) -> dict[str, Any]:
    return {"tolerations": [toleration]}


TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
NEAR = f"spec.affinity.podAntiAffinity.{REQUIRED}[0]"
SPREAD = "spec.topologySpreadConstraints[0]"
MISPLACED: list[tuple[dict[str, Any], str]] = [
    (
        tolerating(key="a", operator="Exist"),
        'spec.tolerations[0].operator: Unsupported value: "Exist": supported values: "Equal", "Exists"',
    ),
    (tolerating(key="a", operator="Exists", value="b"), "value must be empty when `operator` is 'Exists'"),
    (
        tolerating(effect="NoSchedule"),
        'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty',
    ),
    (on_nodes(operator="in", values=["b"]), f'{TERMS}[0].matchExpressions[0].operator: Invalid value: "in": {OPERATOR}, Gt, Lt'),
    (on_nodes(operator="In"), f"{TERMS}[0].matchExpressions[0].values: Required value: must be specified when"),
    (on_nodes(operator="Exists", values=["b"]), f"{TERMS}[0].matchExpressions[0].values: Forbidden: may not be specified when"),
    (
        on_nodes(operator="Gt", values=["1", "2"]),
        f"{TERMS}[0].matchExpressions[0].values: Required value: must be specified single",
    ),
    ({"affinity": {"nodeAffinity": {REQUIRED: {}}}}, f"{TERMS}: Required value: must have at least one node selector term"),
    (
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "a"}]}}]}}},
        f'{PREFERRED}[0].preference.matchExpressions[0].operator: Invalid value: "": {OPERATOR}',
    ),
    (near(labelSelector={"matchLabels": {"a": "b"}}), f"{NEAR}.topologyKey: Required value: can not be empty"),
    (
        near(topologyKey="zone", labelSelector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
        f'{NEAR}.labelSelector.matchExpressions[0].operator: Invalid value: "Gt": {OPERATOR}',
    ),
    (
        {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {}}]}}},
        f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: Required value: can not be empty",
    ),
    (spread(maxSkew=0), f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero"),
    (spread(topologyKey=""), f"{SPREAD}.topologyKey: Required value: can not be empty"),
    (
        spread(whenUnsatisfiable="Never"),
        f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"',
    ),
]
WELL_PLACED: list[dict[str, Any]] = [
    tolerating(operator="Exists"),
    tolerating(key="a"),
    tolerating(key="a", operator="Gt", value="1"),
    on_nodes(operator="Gt", values=["1"]),
    on_nodes(operator="In", values=["b"]),
    on_nodes(operator="DoesNotExist"),
    near(topologyKey="zone"),
    spread(),
]


def with_spec(**more: Any) -> dict[str, Any]:
    made = pod({})
    return {**made, "spec": {**made["spec"], **more}}


@pytest.mark.parametrize(("spec", "text"), MISPLACED)
def test_rules_about_nodes_that_mean_nothing_are_refused_in_manifests_and_by_the_store(
    tmp_path: Path, spec: dict[str, Any], text: str
) -> None:
    with pytest.raises(SnapshotError) as caught:
        take_in([in_file(tmp_path, with_spec(**spec))])
    assert text in str(caught.value)
    with pytest.raises(Invalid) as refused:
        MemoryStore(lambda: 0.0).create(with_spec(**spec))
    assert text in str(refused.value)


@pytest.mark.parametrize("spec", WELL_PLACED)
def test_other_rules_about_nodes_are_taken(tmp_path: Path, spec: dict[str, Any]) -> None:
    assert len(take_in([in_file(tmp_path, with_spec(**spec))]).documents) == 1
    MemoryStore(lambda: 0.0).create(with_spec(**spec))


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
