"""Gangs whose pods are made by the controllers of Kubernetes, as users have them: they start whole, whoever makes them."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from benchmarks import job_pods

from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from tests.support.http_api import connection_to
from tests.support.live_gangs import OWNERS, Owner, Ranks
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST, SIZE = 60001, 4
ROOM = {RACK: "rack-60001"}
NODES = tuple(f"node-{number}" for number in range(FIRST, FIRST + 2))
OF_JOBS = {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"}
ZONE = "topology.kubernetes.io/zone"
"""The label that a pod gets from its node when it is bound."""
INDEX = "batch.kubernetes.io/job-completion-index"
LABELS: dict[Owner, set[str]] = {
    "nobody": set(),
    "Job": OF_JOBS,
    "indexed Job": OF_JOBS | {INDEX},
    "StatefulSet": {"apps.kubernetes.io/pod-index", "controller-revision-hash", "statefulset.kubernetes.io/pod-name"},
    "Deployment": {"pod-template-hash"},
}
"""What controllers write on pods, beside the labels of the template."""
KINDS: dict[Owner, str] = {
    "nobody": "", "Job": "Job", "indexed Job": "Job", "StatefulSet": "StatefulSet", "Deployment": "ReplicaSet",
}  # fmt: skip


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    """A namespace, and two nodes with room for two pods each."""
    name = f"workloads-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    plane.add_nodes(len(NODES), Machines(cpu="2", per_rack=1), first=FIRST)
    for node in NODES:
        plane.kubectl("label", "node", node, f"{RACK}={ROOM[RACK]}", "--overwrite")
    yield api
    for place in (*(f"nodes/{node}" for node in NODES), f"namespaces/{name}"):
        api.remove(f"/api/v1/{place}")


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with scheduling(plane, tmp_path_factory.mktemp("run"), f"--scheduler-name={api.namespace}"):
        yield


def members(api: Api, gang: Ranks) -> list[dict[str, Any]]:
    return list(api.read("pods", labelSelector=f"gang={gang.name}").body["items"])


@contextmanager
def submitted(plane: ControlPlane, api: Api, gang: Ranks) -> Iterator[None]:
    """Let a gang be there, and leave its room to the next one."""
    gang.submit(plane)
    try:
        yield
    finally:
        for document in gang.members():
            plane.kubectl("delete", document["kind"], document["metadata"]["name"], "-n", api.namespace, "--wait=false")
    assert eventually(lambda: not members(api, gang))


def waits(api: Api, gang: Ranks) -> bool:
    """Tell whether all pods are there and one that finds no room says so."""
    pods = members(api, gang)
    reasons = {item.get("reason") for pod in pods for item in pod["status"].get("conditions", ())}
    return len(pods) == SIZE and "Unschedulable" in reasons


def phases(api: Api, gang: Ranks) -> list[str]:
    return [pod["status"]["phase"] for pod in members(api, gang)]


@pytest.mark.usefixtures("scheduler")
@pytest.mark.parametrize("owner", OWNERS)
def test_a_gang_waits_whole_and_starts_whole_whoever_makes_its_pods(plane: ControlPlane, api: Api, owner: Owner) -> None:
    name = f"{owner.lower().replace(' ', '-')}-{secrets.token_hex(2)}"
    gang = Ranks(api.namespace, name, SIZE, api.namespace, node_labels=ROOM, owner=owner)
    plane.kubectl("cordon", NODES[1])
    with submitted(plane, api, gang):
        assert eventually(lambda: waits(api, gang)), members(api, gang)
        assert gang.bound(api) == 0
        plane.kubectl("uncordon", NODES[1])
        assert eventually(lambda: phases(api, gang) == ["Running"] * SIZE), phases(api, gang)
        check_what_controllers_wrote(members(api, gang), owner)


def check_what_controllers_wrote(pods: list[dict[str, Any]], owner: Owner) -> None:
    """Check that these are pods as a cluster has them, and no pods of a laboratory."""
    for pod in pods:
        meta, spec = pod["metadata"], pod["spec"]
        assert set(meta["labels"]) == {"gang", ZONE} | LABELS[owner]
        assert [item["kind"] for item in meta.get("ownerReferences", ())] == [KINDS[owner]] * bool(KINDS[owner])
        assert (INDEX in meta["annotations"]) == (owner == "indexed Job")
        assert (spec["serviceAccountName"], len(spec["volumes"])) == ("default", 1)
    assert len({pod["spec"]["volumes"][0]["name"] for pod in pods}) == SIZE


def written(pod: dict[str, Any]) -> dict[str, Any]:
    """Return what the Job controller writes on a pod, without names that are made by chance and without its finalizer."""
    meta, spec = pod["metadata"], pod["spec"]
    environment = [container["env"][-1]["valueFrom"]["fieldRef"]["fieldPath"] for container in spec["containers"]]
    labels = {key: value for key, value in meta["labels"].items() if key not in ("gang", ZONE)}
    return {
        "labels": labels, "index": meta["annotations"][INDEX], "owners": meta["ownerReferences"], "prefix": meta["generateName"],
        "environment": environment, "hostname": spec["hostname"], "restarts": spec["restartPolicy"],
        "volumes": len(spec["volumes"]),
    }  # fmt: skip


def test_pods_of_benchmarks_are_those_that_a_job_would_make(plane: ControlPlane, api: Api) -> None:
    gang = Ranks(api.namespace, f"model-{secrets.token_hex(2)}", 1, "nobody", owner="indexed Job")
    with submitted(plane, api, gang):
        assert eventually(lambda: len(members(api, gang)) == 1)
        (real,), owner = members(api, gang), api.read(f"batch/v1:jobs/{gang.name}").body
        (pod,) = gang.pods()
        made = api.make("pods", job_pods.of_job(pod, owner, 0), dryRun="All")
        assert (made.code, written(made.body)) == (201, written(real))
