"""Fields that a kind does not have: warned of for manifests, and by the API of an embedded cluster."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from phalanx.dialects import schema
from phalanx.model.kinds import NODE, POD, kind_of
from phalanx.store.input_files import take_in
from phalanx.store.memory import MemoryStore
from phalanx.store.unknown_fields import unknown_fields
from phalanx.store.warning_headers import warning_text
from tests.support.http_api import served

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def volcano(kind: str, group: str = "scheduling", version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}.volcano.sh/{version}", "kind": kind, "metadata": {"name": "g"}, "spec": spec}


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "main"}], **spec}}


def made(version: str, kind: str, **spec: Any) -> dict[str, Any]:
    found = {"apiVersion": version, "kind": kind, "metadata": {"name": "g"}}
    return {**found, "spec": spec} if spec else found


MISSPELT = {"spec": {"containers": [{"name": "main"}], "nodeSelectr": {}}}


def found(document: dict[str, Any]) -> list[str]:
    return unknown_fields(kind_of(document), document)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (volcano("PodGroup", minMembr=2), 'unknown field "spec.minMembr"; did you mean "minMember"?'),
        (volcano("PodGroup", networkTopology={"tier": 1}), 'unknown field "spec.networkTopology.tier"'),
        (volcano("PodGroup", subGroupPolicy=[{"name": "a"}, {"nam": "b"}]),
         'unknown field "spec.subGroupPolicy[1].nam"; did you mean "name"?'),
        ({**volcano("Queue"), "spce": {}}, 'unknown field "spce"; did you mean "spec"?'),
        ({**volcano("Queue"), "metadata": {"name": "q", "label": {}}}, 'unknown field "metadata.label"; did you mean "labels"?'),
        (volcano("Job", "batch", "v1alpha1", tasks=[{"template": pod(nodeSelectr={}) | {"metadata": {}}}]),
         'unknown field "spec.tasks[0].template.spec.nodeSelectr"; did you mean "nodeSelector"?'),
        (pod(nodeSelectr={"a": "b"}), 'unknown field "spec.nodeSelectr"; did you mean "nodeSelector"?'),
        (pod(containers=[{"name": "a"}, {"name": "b", "resources": {"request": {}}}]),
         'unknown field "spec.containers[1].resources.request"; did you mean "requests"?'),
        (pod(tolerations=[{"kee": "a"}]), 'unknown field "spec.tolerations[0].kee"; did you mean "key"?'),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taint": []}},
         'unknown field "spec.taint"; did you mean "taints"?'),
        (made("batch/v1", "Job", parallelsm=2), 'unknown field "spec.parallelsm"; did you mean "parallelism"?'),
        (made("batch/v1", "CronJob", jobTemplate={"spec": {"template": {"spec": {"nodeSelectr": {}}}}}),
         'unknown field "spec.jobTemplate.spec.template.spec.nodeSelectr"; did you mean "nodeSelector"?'),
        (made("apps/v1", "StatefulSet", volumeClaimTemplates=[{"spec": {"storageClasName": "x"}}]),
         'unknown field "spec.volumeClaimTemplates[0].spec.storageClasName"; did you mean "storageClassName"?'),
        (made("apps/v1", "DaemonSet", replicas=2), 'unknown field "spec.replicas"'),
        (made("v1", "PersistentVolumeClaim", storageClasName="x"),
         'unknown field "spec.storageClasName"; did you mean "storageClassName"?'),
        (made("policy/v1", "PodDisruptionBudget", minAvailble=1), 'unknown field "spec.minAvailble"; did you mean "minAvailable"?'),
        ({**made("scheduling.k8s.io/v1", "PriorityClass"), "globalDefaul": True},
         'unknown field "globalDefaul"; did you mean "globalDefault"?'),
        (made("resource.k8s.io/v1", "ResourceClaim", devices={"requests": [{"name": "r", "exactly": {"deviceClasName": "a"}}]}),
         'unknown field "spec.devices.requests[0].exactly.deviceClasName"; did you mean "deviceClassName"?'),
        (made("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"template": MISSPELT}}),
         'unknown field "spec.pytorchReplicaSpecs.Worker.template.spec.nodeSelectr"; did you mean "nodeSelector"?'),
        (made("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[{"template": {"spec": {"template": MISSPELT}}}]),
         'unknown field "spec.replicatedJobs[0].template.spec.template.spec.nodeSelectr"; did you mean "nodeSelector"?'),
    ],
)  # fmt: skip
def test_a_field_that_does_not_exist_is_named_and_so_is_the_one_that_was_meant(document: dict[str, Any], text: str) -> None:
    assert [item for item in found(document) if "template.apiVersion" not in item and "template.kind" not in item] == [text]


@pytest.mark.parametrize(
    "document",
    [
        volcano("PodGroup", minTaskMember={"worker": 2}, minResources={"cpu": 1, "example.com/anything": 2}),
        {**volcano("PodGroup"), "status": {"whatever": 1}},
        pod(nodeSelector={"any": "label"}, volumes=[{"name": "v", "emptyDir": {}}], schedulingGates=[{"name": "g"}]),
        pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "host", "labelSelector": {"matchLabels": {"any": "label"}}}]}}),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"any": "key"}},
        volcano("PodGroup", minMember="text") | {"spec": None},
        made("kubeflow.org/v1", "PyTorchJob", anything=1, template={"spec": {"anything": 1}}),
        made("serving.knative.dev/v1", "Service", template={"spec": {"containers": [], "containerConcurrency": 1}}),
        made("resource.k8s.io/v1beta1", "ResourceClaim", devices={"requests": [{"name": "r", "deviceClassName": "a"}]}),
    ],
)  # fmt: skip
def test_other_fields_and_kinds_are_left_alone(document: dict[str, Any]) -> None:
    assert found(document) == []


def names(*structs: type[msgspec.Struct]) -> dict[str, None]:
    return {info.encode_name: None for struct in structs for info in msgspec.structs.fields(struct)}


def test_what_we_read_of_pods_and_nodes_is_known() -> None:
    container = {**names(schema.Container), "resources": names(schema.ResourceRequirements)}
    spec = {**names(schema.PodSpec, schema.ShapeSpec), "containers": [container], "tolerations": [names(schema.TolerationRead)],
            "topologySpreadConstraints": [names(schema.Spread)]}  # fmt: skip
    assert unknown_fields(POD, {"metadata": names(schema.Meta), "spec": spec}) == []
    node = {"spec": {**names(schema.NodeSpec), "taints": [names(schema.TaintRead)]}, "status": names(schema.NodeStatus)}
    assert unknown_fields(NODE, node) == []


def test_manifests_are_warned_of_once_for_each_field(tmp_path: Path) -> None:
    groups = [volcano("PodGroup", minMembr=2) | {"metadata": {"name": name, "namespace": "n"}} for name in "abc"]
    stored = volcano("PodGroup", later=1) | {"metadata": {"name": "d", "uid": "1"}}
    file = tmp_path / "a.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [*groups, stored]}))
    (text,) = take_in([str(file)]).warnings()
    assert text == (
        f'unknown field "spec.minMembr" in PodGroup n/a ({file}, document 1, items[0]) and 2 other objects;'
        ' did you mean "minMember"?'
    )


def test_the_api_warns_of_what_is_created_and_patched_unless_it_is_asked_not_to() -> None:
    text = 'unknown field "spec.minMembr"; did you mean "minMember"?'
    with served(MemoryStore(lambda: 0.0)) as api:
        answers = [
            api.ask("POST", GROUPS, volcano("PodGroup", minMembr=2)),
            api.ask("PATCH", f"{GROUPS}/g", {"spec": {"minMembr": 3}}, form="application/merge-patch+json"),
            api.ask(
                "PATCH", f"{GROUPS}/g", {"spec": {"minMembr": 3}}, form="application/merge-patch+json", fieldValidation="Ignore"
            ),
            api.ask("DELETE", f"{GROUPS}/g"),
        ]
    assert [[warning_text(item) for item in answer.warnings] for answer in answers] == [[text], [text], [], []]
