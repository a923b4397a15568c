"""The chart on a real API server: it takes everything, and the roles allow the scheduler all that it does."""

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.kwok_nodes import RACK, Machines
from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import Replica
from phalanx.manifests.install import FOLDER
from tests.support import same_gang as speech
from tests.support.helm import rendered
from tests.support.http_api import connection_to
from tests.support.live_gangs import Ranks
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
SYSTEM = "phalanx-system"
INSTALLED = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "CustomResourceDefinition",
             "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
             "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ConfigMap")  # fmt: skip
FIRST = 40001
ROOM = {RACK: "rack-10001"}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "mesh"},
    "spec": {
        "schedulerName": "phalanx", "minAvailable": 2, "plugins": {"ssh": [], "env": [], "svc": []},
        "tasks": [{"name": "worker", "replicas": 2, "template": {"spec": {
            "nodeSelector": ROOM, "containers": [{"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "1"}}}],
        }}}],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def chart() -> list[dict[str, Any]]:
    return rendered(DEPLOY / "chart")


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"rbac-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    api.make("/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
    plane.add_nodes(4, Machines(cpu="60", per_rack=4), first=FIRST)
    yield api
    for place in (*(f"nodes/node-{number}" for number in range(FIRST, FIRST + 4)), f"namespaces/{name}"):
        api.remove(f"/api/v1/{place}")


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, api: Api, chart: list[dict[str, Any]]) -> Iterator[Replica]:
    """A scheduler with the arguments, the configuration and the account of the chart; others run as that account, so it stays."""
    plane.apply(item for item in chart if item["kind"] in INSTALLED)
    (settings,) = (item for item in chart if item["kind"] == "ConfigMap")
    for file, text in settings["data"].items():
        (plane.folder / file).write_text(text)
    (pod,) = (item["spec"]["template"]["spec"] for item in chart if item["kind"] == "Deployment")
    _, *words = (word.replace(FOLDER, str(plane.folder)) for word in pod["containers"][0]["args"])
    kubeconfig = plane.kubeconfig_of(SYSTEM, pod["serviceAccountName"])
    with Replica(plane.folder, "chart", [*words, "--kubeconfig", str(kubeconfig)]) as replica:
        yield replica


def dry_run(plane: ControlPlane, text: str) -> str:
    """Return what the server says that it would do with manifests."""
    return plane.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", text=text)


def test_the_server_takes_the_whole_chart(plane: ControlPlane, api: Api, chart: list[dict[str, Any]]) -> None:
    told = dry_run(plane, json.dumps({"apiVersion": "v1", "kind": "List", "items": chart}))
    assert len(told.splitlines()) == len(chart)


def test_the_server_takes_what_the_command_prints(plane: ControlPlane, api: Api) -> None:
    done = subprocess.run([sys.executable, "-m", "phalanx", "manifests", "all"], capture_output=True, text=True, check=True)
    assert "deployment.apps/phalanx serverside-applied (server dry run)" in dry_run(plane, done.stdout)


def test_the_server_takes_what_kustomize_makes(plane: ControlPlane, api: Api) -> None:
    text = plane.kubectl("kustomize", str(DEPLOY / "kustomize" / "base"))
    assert "deployment.apps/phalanx serverside-applied (server dry run)" in dry_run(plane, text)


def here(api: Api, document: dict[str, Any]) -> dict[str, Any]:
    """Return an object as it is in the namespace of these tests, pods on nodes of theirs."""
    found = {**document, "metadata": {**document["metadata"], "namespace": api.namespace}}
    if document["kind"] == "Pod":
        containers = [{**container, "image": "train:1"} for container in document["spec"]["containers"]]
        found["spec"] = {**document["spec"], "containers": containers, "schedulerName": "phalanx", "nodeSelector": ROOM}
    return found


def phases(api: Api, start: str) -> list[str]:
    pods = api.read("pods").body["items"]
    return [pod["status"]["phase"] for pod in pods if pod["metadata"]["name"].startswith(start)]


@pytest.mark.parametrize("dialect", speech.DIALECTS)
def test_the_roles_are_enough_for_a_gang_of_each_dialect(dialect: str, plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    name = f"{dialect}-{secrets.token_hex(4)}"
    for document in speech.gang(dialect, name, tasks=2, cpu=1):
        plane.create([here(api, dict(document))])
    assert eventually(lambda: phases(api, name) == ["Running"] * 2), scheduler.logged()
    assert eventually(lambda: bool(events(api, f"{name}-0", "Scheduled")))


def test_the_roles_are_enough_for_a_job_with_ssh(plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    plane.create([here(api, JOB)])
    assert eventually(lambda: phases(api, "mesh-worker") == ["Running"] * 2)
    assert eventually(lambda: api.read("secrets/mesh-ssh").code == 200)


def test_the_roles_are_enough_to_preempt(plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        api.make("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": f"{api.namespace}-{name}"}, "value": value})
    room = {"kubernetes.io/hostname": f"node-{FIRST}"}
    low, high = (
        Ranks(api.namespace, name, 1, "phalanx", cpu="31", node_labels=room, priority_class=f"{api.namespace}-{name}")
        for name in ("low", "high")
    )
    plane.create([low.group(), *low.pods()])
    assert eventually(lambda: phases(api, "low-") == ["Running"])
    plane.create([high.group(), *high.pods()])
    assert eventually(lambda: (phases(api, "low-"), phases(api, "high-")) == ([], ["Running"]))


def test_the_roles_are_enough_to_say_why_a_gang_waits(plane: ControlPlane, api: Api, scheduler: Replica) -> None:
    for document in speech.gang("volcano", "huge", tasks=2, cpu=1000):
        plane.create([here(api, dict(document))])
    assert eventually(lambda: bool(events(api, "huge", "FailedScheduling")))
    assert eventually(lambda: any(item["reason"] == "Unschedulable" for item in conditions(api, "huge-0")))


def events(api: Api, name: str, reason: str) -> list[Any]:
    return list(api.read("events", fieldSelector=f"involvedObject.name={name},reason={reason}").body["items"])


def conditions(api: Api, pod: str) -> list[dict[str, Any]]:
    return list(api.read(f"pods/{pod}").body["status"].get("conditions", ()))


def test_nothing_was_forbidden(scheduler: Replica) -> None:
    assert [line for line in scheduler.logged().splitlines() if "forbidden" in line.lower() or "Traceback" in line] == []
