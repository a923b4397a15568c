"""The control plane itself: what is in it, how its nodes and pods behave, and that it survives what tests do to it."""

import json
import secrets
from collections.abc import Iterator

import pytest

from phalanx.dev.kwok_nodes import Machines
from phalanx.dev.layout import CONTROLLERS, ETCD, KWOK, SERVER
from phalanx.dev.plane import ControlPlane, running
from phalanx.errors import PhalanxError
from phalanx.manifests.admission_policies import policy_documents
from phalanx.manifests.definitions import definition_documents
from tests.support.http_api import connection_to
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FIRST = 9001
"""The nodes of these tests are numbered from here on."""
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 2},
}  # fmt: skip


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    name = f"plane-{secrets.token_hex(4)}"
    api = Api(connection_to(str(plane.kubeconfig)), name)
    plane.create_namespace(name)
    yield api
    api.remove(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="module")
def node(plane: ControlPlane) -> Iterator[str]:
    plane.add_nodes(1, Machines(cpu="4", gpus=2), first=FIRST)
    yield f"node-{FIRST}"
    plane.kubectl("delete", "node", f"node-{FIRST}")


def phase(api: Api, name: str) -> str:
    return str(api.read(f"pods/{name}").body.get("status", {}).get("phase"))


def test_server_and_client_say_which_version_they_are(plane: ControlPlane) -> None:
    versions = json.loads(plane.kubectl("version", "-o", "json"))
    assert [versions[side]["gitVersion"] for side in ("clientVersion", "serverVersion")] == ["v1.36.3"] * 2


def test_everything_that_was_asked_for_runs(plane: ControlPlane) -> None:
    assert running(plane.folder) == [ETCD, SERVER, CONTROLLERS, KWOK]


def test_the_server_takes_every_definition_and_policy_of_ours(plane: ControlPlane) -> None:
    there = plane.kubectl(
        "get", "customresourcedefinitions,validatingadmissionpolicies,mutatingadmissionpolicies", "-o=name"
    ).split()
    assert {name.partition("/")[2] for name in there} >= {document["metadata"]["name"] for document in definition_documents()}
    assert {name.partition("/")[2] for name in there} >= {document["metadata"]["name"] for document in policy_documents()}


def test_kubernetes_own_groups_are_served(api: Api) -> None:
    assert api.read("scheduling.k8s.io/v1alpha2:podgroups").code == 200


def test_a_node_is_ready_and_offers_what_it_was_made_with(plane: ControlPlane, node: str) -> None:
    found = json.loads(plane.kubectl("get", "node", node, "-o", "json"))
    assert found["status"]["allocatable"] == {"cpu": "4", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "2"}
    assert [condition["status"] for condition in found["status"]["conditions"] if condition["type"] == "Ready"] == ["True"]
    assert "taints" not in found["spec"]


def test_a_node_that_is_not_ready_is_closed_to_pods(plane: ControlPlane, api: Api) -> None:
    name = f"/api/v1/nodes/{api.namespace}"
    made = api.make("/api/v1/nodes", {"metadata": {"name": api.namespace}})
    assert [taint["key"] for taint in made.body["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]
    api.patch(f"{name}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    plane.wait_for_nodes([api.namespace])
    api.remove(name)


def test_a_pod_gets_an_account_a_token_and_tolerations(api: Api) -> None:
    spec = api.pod("a")["spec"]
    assert spec["serviceAccountName"] == "default"
    assert [volume["name"].rpartition("-")[0] for volume in spec["volumes"]] == ["kube-api-access"]
    keys = {toleration["key"]: toleration["tolerationSeconds"] for toleration in spec["tolerations"]}
    assert keys == {"node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}


def test_accounts_have_the_certificate_of_the_server(api: Api) -> None:
    assert eventually(lambda: "ca.crt" in api.read("configmaps/kube-root-ca.crt").body.get("data", {}))


def test_controllers_use_accounts_of_their_own(plane: ControlPlane) -> None:
    accounts = plane.kubectl("get", "serviceaccounts", "-n", "kube-system", "-o=name").split()
    assert {f"serviceaccount/{name}" for name in ("job-controller", "statefulset-controller", "node-controller")} <= set(accounts)


def test_a_pod_runs_until_it_is_deleted(api: Api, node: str) -> None:
    api.pod("a")
    api.bind("a", node)
    assert eventually(lambda: phase(api, "a") == "Running")
    api.remove("pods/a")
    assert eventually(lambda: api.read("pods/a").code == 404)


@pytest.mark.parametrize("duration", ["1s", "1", "0d1s"])
def test_a_pod_that_says_how_long_it_runs_succeeds_then(api: Api, node: str, duration: str) -> None:
    api.pod("a")
    api.patch("pods/a", {"metadata": {"annotations": {"phalanx.dev/duration": duration}}})
    api.bind("a", node)
    assert eventually(lambda: phase(api, "a") == "Succeeded")
    (status,) = api.read("pods/a").body["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 0


def test_a_server_that_was_killed_comes_back_and_knows_nothing_that_etcd_forgot(plane: ControlPlane, api: Api) -> None:
    for name in ("a", "b"):
        api.settings(name)
    key = api.read("configmaps", limit=1).body["metadata"]["continue"]
    api.settings("c")
    plane.stop(SERVER, is_kill=True)
    assert not plane.process(SERVER).is_running()
    plane.compact()
    plane.start(SERVER)
    assert api.read("configmaps/a").code == 200
    assert api.read("configmaps", limit=1, **{"continue": key}).code == 410


def test_a_service_account_may_do_what_its_roles_allow_and_no_more(plane: ControlPlane, api: Api) -> None:
    api.make("serviceaccounts", {"metadata": {"name": "reader"}})
    namespace = ("-n", api.namespace)
    plane.kubectl("create", "role", "reader", "--verb=get", "--resource=configmaps", *namespace)
    plane.kubectl("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={api.namespace}:reader", *namespace)
    api.settings("a")
    reader = Api(connection_to(str(plane.kubeconfig_of(api.namespace, "reader"))), api.namespace)
    assert eventually(lambda: reader.read("configmaps/a").code == 200)
    assert reader.remove("configmaps/a").code == 403


def test_what_kubectl_is_refused_is_an_error_that_says_so(plane: ControlPlane) -> None:
    with pytest.raises(PhalanxError, match=r'kubectl get pod nobody: .*pods "nobody" not found'):
        plane.kubectl("get", "pod", "nobody")


def test_a_group_gets_the_defaults_of_our_definitions(api: Api) -> None:
    made = api.make("scheduling.volcano.sh/v1beta1:podgroups", GROUP)
    assert made.code == 201
    assert made.body["spec"]["queue"] == "default"
