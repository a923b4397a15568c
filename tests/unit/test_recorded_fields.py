"""What is kept of objects in recordings: all that sessions read, and no secrets."""

import json
from dataclasses import astuple
from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster, places_read, structs_read
from phalanx.dialects.recorded_fields import MOST_BY_HAND, _keeper, is_recorded, recorded
from phalanx.errors import SnapshotError
from phalanx.testing import build
from tests.support.recordings import kept

PLANTED = "hunter2-planted"


@pytest.fixture(params=[False, True], ids=["first", "later"], autouse=True)
def _begun(request: pytest.FixtureRequest) -> None:
    """Let the objects of each test be the first of their kind, and let them be later ones, which are taken by types."""
    _keeper.cache_clear()
    if request.param:
        for version, kind in (("v1", "Pod"), ("v1", "Node")):
            for _ in range(MOST_BY_HAND):
                recorded({"apiVersion": version, "kind": kind, "metadata": {}})


def secretive_pod() -> dict[str, Any]:
    """Return a pod with a secret in every place in which people put one."""
    container = {
        "name": "main", "image": "train:1", "command": [PLANTED], "args": [f"--password={PLANTED}"],
        "env": [{"name": "TOKEN", "value": PLANTED}], "envFrom": [{"secretRef": {"name": PLANTED}}],
        "lifecycle": {"preStop": {"exec": {"command": [PLANTED]}}}, "livenessProbe": {"httpGet": {"path": PLANTED}},
        "volumeMounts": [{"name": "data", "mountPath": PLANTED}], "workingDir": PLANTED,
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}, "securityContext": {"seLinuxOptions": {"user": PLANTED}},
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "train-0", "namespace": "research", "uid": "u", "labels": {"app": "train"},
            "annotations": {
                "scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker", "gpu-fraction": "0.5",
                "kubectl.kubernetes.io/last-applied-configuration": PLANTED, "vault.hashicorp.com/agent-inject-secret": PLANTED,
                "example.com/token": PLANTED, "note": PLANTED, "evil-volcano.sh.example.com/x": PLANTED,
            },
            "managedFields": [{"manager": PLANTED}],
        },
        "spec": {
            "containers": [container], "initContainers": [{**container, "name": "init"}], "ephemeralContainers": [container],
            "volumes": [
                {"name": "data", "secret": {"secretName": PLANTED}}, {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {
                    "metadata": {"annotations": {"example.com/token": PLANTED}}, "spec": {"volumeName": PLANTED},
                }}},
            ],
            "imagePullSecrets": [{"name": PLANTED}], "hostAliases": [{"hostnames": [PLANTED]}], "schedulerName": "phalanx",
            "tolerations": [{"key": "gpu", "operator": "Exists"}], "serviceAccountName": PLANTED,
        },
        "status": {
            "phase": "Pending", "message": PLANTED,
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": PLANTED}],
            "containerStatuses": [{"name": "main", "state": {"waiting": {"message": PLANTED}}}],
        },
    }  # fmt: skip


def test_no_planted_secret_is_kept() -> None:
    assert json.dumps(secretive_pod()).count(PLANTED) > 25
    assert PLANTED not in json.dumps(kept(secretive_pod()))


@pytest.mark.parametrize("wrong", [PLANTED, [PLANTED], {PLANTED: PLANTED}, 7, None])
@pytest.mark.parametrize(
    "place", ["metadata.annotations", "spec.containers", "spec.tolerations", "spec", "status", "spec.affinity"]
)
def test_no_secret_is_kept_where_something_else_belongs(place: str, wrong: object) -> None:
    pod = secretive_pod()
    *outer, last = place.split(".")
    inner = pod
    for name in outer:
        inner = inner[name]
    inner[last] = wrong
    assert PLANTED not in json.dumps(kept(pod))


def test_what_sessions_read_is_kept() -> None:
    found = kept(secretive_pod())
    assert found["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": "worker", "gpu-fraction": "0.5",
    }  # fmt: skip
    assert found["metadata"]["labels"] == {"app": "train"}
    assert found["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}
    assert found["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert found["spec"]["volumes"] == [
        {"name": "data"}, {"name": "claim", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "scratch", "ephemeral": {}},
    ]  # fmt: skip


def test_a_pod_is_read_the_same_from_what_is_kept() -> None:
    whole, read = ObjectCluster(), ObjectCluster()
    whole.put(secretive_pod())
    read.put(kept(secretive_pod()))
    (task,), (again,) = ([*cluster.state._tasks.values()] for cluster in (whole, read))
    known = {key: text for key, text in task.annotations.items() if key in again.annotations}
    assert (task.key, task.gang, task.role, known) == (again.key, again.gang, again.role, again.annotations)
    assert astuple(task.shape) == astuple(again.shape)


def test_every_kind_that_is_read_is_recorded_and_secrets_are_not() -> None:
    assert all(is_recorded(*place) for place in places_read())
    assert all(structs_read(place) for place in places_read()), "whoever reads a kind says by which struct"
    for kind in ("Secret", "ConfigMap", "ServiceAccount", "Event", "Job"):
        assert recorded({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "data": {"x": PLANTED}}) is None


def test_a_broken_object_is_as_broken_afterwards() -> None:
    node = {**build.node("a"), "status": {"allocatable": "all of it"}}
    for document in (node, kept(node)):
        with pytest.raises(SnapshotError, match=r"status\.allocatable"):
            ObjectCluster().put(document)
