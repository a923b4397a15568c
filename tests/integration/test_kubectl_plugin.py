"""`kubectl phalanx` as people type it: the real kubectl, a real API server, and a user who may look at one namespace."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.programs import path_of
from phalanx.model.kinds import GROUP_KINDS
from tests.support.http_api import connection_to
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "kubectl-phalanx": "import sys; sys.argv[0] = 'kubectl-phalanx'; from phalanx.cli import main; main()",
    "kubectl_complete-phalanx": "from phalanx.cli.kubectl_complete import run; run()",
}
SEEN = ",".join(["pods", "events", *(kind.resource for kind in GROUP_KINDS)])


class Desk:
    """A folder with the programs that kubectl looks for, and the kubeconfig of somebody."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        for name, program in PROGRAMS.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}" "$@"\n')
            (folder / name).chmod(0o755)
        (folder / "kubectl").symlink_to(path_of("kubectl"))
        path = f"{folder}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT / "src")}

    def types(self, *words: str) -> tuple[int, str, str]:
        """Run kubectl; return its exit status, its output and its complaints."""
        done = subprocess.run(["kubectl", *words], env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def node(plane: ControlPlane) -> Iterator[str]:
    """A node on which nothing starts; pods on one that does not exist would be collected."""
    name = f"silent-{secrets.token_hex(4)}"
    connection = connection_to(str(plane.kubeconfig))
    assert connection.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}}).code == 201
    yield name
    connection.ask("DELETE", f"/api/v1/nodes/{name}")


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    """A namespace with a gang of three of which two pods are there, and an account that may look at it."""
    name = f"plugin-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "train"}, "spec": spec}
    assert api.make("scheduling.k8s.io/v1alpha2:podgroups", group).code == 201
    for number in range(2):
        api.pod(f"train-{number}", schedulingGroup={"podGroupName": "train"})
    api.make("serviceaccounts", {"metadata": {"name": "looker"}})
    plane.kubectl("create", "role", "looker", "--verb=get,list", f"--resource={SEEN}", "-n", name)
    plane.kubectl("create", "rolebinding", "looker", "--role=looker", f"--serviceaccount={name}:looker", "-n", name)
    yield api
    api.remove(f"/api/v1/namespaces/{name}")


@pytest.fixture
def desk(plane: ControlPlane, api: Api, tmp_path: Path) -> Desk:
    return Desk(tmp_path, plane.kubeconfig_of(api.namespace, "looker"))


def test_a_user_of_one_namespace_sees_its_gangs_and_why_they_wait(api: Api, desk: Desk) -> None:
    look = ("phalanx", "get", "-n", api.namespace)
    assert eventually(lambda: desk.types(*look)[0] == 0), desk.types(*look)
    assert re.search(r"^train +native +default +Waits +3 +0 +0 .* 2 of 3 pods are there", desk.types(*look)[1], re.MULTILINE)
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/9 nodes are available"}
    api.patch("pods/train-0/status", {"status": {"conditions": [told]}})
    described = desk.types("phalanx", "describe", "train", "-n", api.namespace)[1]
    assert re.search(r"^Why: +1 pod: 0/9 nodes are available$", described, re.MULTILINE)
    assert re.search(r"^  train-0 +Pending +Unschedulable: 0/9 nodes are available$", described, re.MULTILINE)


def test_a_gang_that_has_nodes_shows_them(api: Api, desk: Desk, node: str) -> None:
    api.pod("train-2", schedulingGroup={"podGroupName": "train"})
    for number in range(3):
        api.bind(f"train-{number}", node)
    look = ("phalanx", "get", "gang", "train", "-n", api.namespace, "-o", "jsonpath={.status} {.placed} {.members[*].node}")
    assert eventually(lambda: desk.types(*look)[1] == f"Bound 3 {node} {node} {node}"), desk.types(*look)


def test_what_may_not_be_seen_is_an_error_that_says_so(desk: Desk) -> None:
    status, shown, complaint = desk.types("phalanx", "get", "gangs", "-A")
    assert (status, shown) == (1, "")
    assert "cannot list resource" in complaint


def test_kubectl_completes_what_is_typed(desk: Desk) -> None:
    assert desk.types("__complete", "phalanx", "get", "ga")[1] == "gangs\n:4\n"


def test_kubectl_explains_a_gang_of_a_file(desk: Desk) -> None:
    status, shown, complaint = desk.types("phalanx", "explain", "resnet", "-f", str(ROOT / "examples" / "deadlock"))
    assert (status, complaint) == (3, "")
    assert shown.startswith("research/resnet waits: 0 of 3 tasks fit; ")
