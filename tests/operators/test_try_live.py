"""`phalanx try` says what becomes of a workload: as somebody who may only read, before it is submitted to its real operator."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import wait_until
from phalanx.dev.replicas import scheduling
from phalanx.manifests.roles import reader_documents, service_account
from tests.support.operator_lane import GPUS
from tests.support.real_operators import kuberay, training_operator

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300)]
READERS, NAMESPACE = "readers", "ml"
WAIT_SECONDS, STILL_SECONDS = 40.0, 4.0


@pytest.fixture(scope="module", autouse=True)
def neighbours(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("operators")
    plane.create_namespace(NAMESPACE)
    with kuberay(plane, folder), training_operator(plane, folder), scheduling(plane, folder, "--scheduler-name=phalanx"):
        yield


@pytest.fixture(scope="module")
def reader(plane: ControlPlane) -> Path:
    """The kubeconfig of an account with the role that `phalanx manifests reader` prints, and no other."""
    plane.create_namespace(READERS)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": READERS}}
    plane.apply([account, *reader_documents([service_account(READERS, "guest")])])
    return plane.kubeconfig_of(READERS, "guest")


def template(container: str, gpus: int) -> dict[str, Any]:
    worker = {"name": container, "image": "registry.example/train:1", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    return {"spec": {"schedulerName": "phalanx", "restartPolicy": "Never", "containers": [worker]}}


def workload(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": f"try-{kind.lower()}", "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def job(gpus: int) -> dict[str, Any]:
    made = workload("batch/v1", "Job", {"parallelism": 3, "completions": 3, "template": template("main", gpus)})
    return {**made, "metadata": {**made["metadata"], "annotations": {"scheduling.volcano.sh/group-min-member": "3"}}}


def pytorch_job(gpus: int) -> dict[str, Any]:
    roles = {"Master": 1, "Worker": 2}
    replicas = {role: {"replicas": count, "template": template("pytorch", gpus)} for role, count in roles.items()}
    return workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})


def ray_cluster(gpus: int) -> dict[str, Any]:
    head = {"rayStartParams": {}, "template": template("ray-head", gpus)}
    counts = {"replicas": 2, "minReplicas": 2, "maxReplicas": 4}
    workers = {"groupName": "small", **counts, "rayStartParams": {}, "template": template("ray-worker", gpus)}
    return workload("ray.io/v1", "RayCluster", {"rayVersion": "2.46.0", "headGroupSpec": head, "workerGroupSpecs": [workers]})


def tried(reader: Path, file: Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "phalanx", "try", "-f", str(file), "--kubeconfig", str(reader), "-o", "json", "--timeout", "0"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return done.returncode, json.loads(done.stdout)


def node_of_pods(plane: ControlPlane) -> dict[str, str]:
    found = json.loads(plane.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in found}


def delete(plane: ControlPlane, document: dict[str, Any]) -> None:
    plane.kubectl("delete", "-n", NAMESPACE, "--wait=true", "--timeout=60s", document["kind"].lower(), document["metadata"]["name"])
    assert wait_until(lambda: not node_of_pods(plane), WAIT_SECONDS), node_of_pods(plane)


@pytest.mark.parametrize("make", [job, pytorch_job, ray_cluster])
def test_a_workload_that_would_start_starts_on_the_same_nodes(make: Any, plane: ControlPlane, reader: Path, tmp_path: Path) -> None:
    document = make(2)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document))
    code, answer = tried(reader, tmp_path / "job.yaml")
    (gang,) = answer["gangs"]
    assert (code, gang["starts"]) == (0, True), answer
    assert not node_of_pods(plane)
    plane.apply([document])
    assert wait_until(lambda: _bound(plane) == len(gang["nodes"]), WAIT_SECONDS), node_of_pods(plane)
    assert Counter(node_of_pods(plane).values()) == Counter(gang["nodes"].values())
    delete(plane, document)


@pytest.mark.parametrize("make", [job, pytorch_job, ray_cluster])
def test_a_workload_that_would_wait_waits_for_the_same_reason(make: Any, plane: ControlPlane, reader: Path, tmp_path: Path) -> None:
    document = make(3)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(document))
    code, answer = tried(reader, tmp_path / "job.yaml")
    (gang,) = answer["gangs"]
    assert (code, gang["starts"]) == (3, False), answer
    assert f"no node is that large: the largest has {GPUS} nvidia.com/gpu" in gang["why"]
    plane.apply([document])
    assert wait_until(lambda: len(node_of_pods(plane)) == 3, WAIT_SECONDS)
    assert not wait_until(lambda: _bound(plane) > 0, STILL_SECONDS)
    assert _why(plane) == gang["why"]
    delete(plane, document)


def _bound(plane: ControlPlane) -> int:
    return sum(map(bool, node_of_pods(plane).values()))


def _why(plane: ControlPlane) -> str:
    """Return what `phalanx get gangs` shows, once the scheduler has said it."""
    command = [
        sys.executable,
        "-m",
        "phalanx",
        "get",
        "gangs",
        "-n",
        NAMESPACE,
        "--kubeconfig",
        str(plane.kubeconfig),
        "-o",
        "json",
    ]
    (gang,) = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["items"]
    return str(gang["why"])
