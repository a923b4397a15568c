"""The port of `phalanx run` with TLS and tokens on a real API server: who gets in, what he sees, and which certificate is shown."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from phalanx.dev.plane import INSTALLED, ControlPlane
from phalanx.dev.replicas import Replica
from phalanx.manifests.install_settings import NAME
from phalanx.manifests.roles import review_rules, service_account
from tests.support.page_certificates import AUTHORITY, certificate, trusting
from tests.support.store_contract import eventually

pytestmark = pytest.mark.xdist_group("controlplane")
RBAC = "rbac.authorization.k8s.io"
FOREIGN = trustme.CA()
METRICS = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def role(name: str, rules: list[dict[str, Any]], subject: dict[str, str]) -> list[dict[str, Any]]:
    """Return a role and its binding."""
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": reference, "subjects": [subject],
        },
    ]  # fmt: skip


@pytest.fixture(scope="module")
def namespace(plane: ControlPlane) -> Iterator[str]:
    """Where those live who want to read metrics."""
    name = f"port-{secrets.token_hex(4)}"
    plane.create_namespace(name)
    plane.apply(role(name, METRICS, service_account(name, "scraper")))
    for account in ("scraper", "stranger"):
        plane.kubectl("create", "serviceaccount", account, "-n", name)
    yield name
    plane.kubectl("delete", "--wait=false", f"clusterrole/{name}", f"clusterrolebinding/{name}", f"namespace/{name}")


def token(plane: ControlPlane, namespace: str, account: str) -> str:
    return plane.kubectl("create", "token", account, "-n", namespace).strip()


@pytest.fixture
def replica(plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Replica]:
    words = ["--kubeconfig", str(plane.scheduler_kubeconfig), "--no-leader-elect", "--authentication", "token"]
    with Replica(tmp_path, "safe", [*words, *certificate(tmp_path, AUTHORITY)], tls=trusting(AUTHORITY)) as replica:
        yield replica


@pytest.fixture
def may_review(plane: ControlPlane) -> Iterator[None]:
    """The scheduler may ask the API server about tokens, as with the chart's value `http.authentication: token`."""
    plane.apply(role("phalanx-review", review_rules(), service_account(INSTALLED.namespace, NAME)))
    yield
    plane.kubectl("delete", "clusterrole/phalanx-review", "clusterrolebinding/phalanx-review")


def test_tokens_decide_who_reads_metrics(plane: ControlPlane, namespace: str, may_review: None, replica: Replica) -> None:
    scraper, stranger = (token(plane, namespace, account) for account in ("scraper", "stranger"))
    assert eventually(lambda: replica.ask("/metrics", scraper)[0] == 200), replica.ask("/metrics", scraper)
    assert "phalanx_build_info" in replica.ask("/metrics", scraper)[1]
    assert replica.ask("/configz", scraper)[0] == 403
    code, text = replica.ask("/metrics", stranger)
    assert (code, f"system:serviceaccount:{namespace}:stranger may not get /metrics" in text) == (403, True)
    assert replica.ask("/metrics", f"{scraper[:-8]}AAAAAAAA")[0] == 401
    assert {path: replica.ask(path)[0] for path in ("/metrics", "/configz", "/livez", "/readyz")} == {
        "/metrics": 401, "/configz": 401, "/livez": 200, "/readyz": 200,
    }  # fmt: skip
    plane.kubectl("delete", "serviceaccount", "scraper", "-n", namespace)
    assert eventually(lambda: replica.ask("/metrics", scraper)[0] == 401, seconds=25.0), "the token of nobody still opens"


def waiting_gang(namespace: str) -> list[dict[str, Any]]:
    """Return a gang that no cluster has room for."""
    asks = {"resources": {"requests": {"cpu": "100000"}}}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": {"minMember": 1, "queue": "default"}}
    spec = {"schedulerName": "phalanx", "containers": [{"name": "main", "image": "train", **asks}]}
    meta = {"name": "huge", "namespace": namespace}
    annotations = {"scheduling.k8s.io/group-name": "huge"}
    return [
        {**group, "metadata": meta},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "annotations": annotations}, "spec": spec},
    ]


def test_the_page_shows_somebody_what_kubectl_would(
    plane: ControlPlane, namespace: str, may_review: None, replica: Replica
) -> None:  # fmt: skip
    foreign = f"foreign-{secrets.token_hex(4)}"
    plane.create_namespace(foreign)
    for place in (namespace, foreign):
        plane.apply(waiting_gang(place))
    plane.kubectl("create", "role", "look", "-n", namespace, "--verb=list", "--resource=pods,podgroups.scheduling.volcano.sh")
    plane.kubectl("create", "rolebinding", "look", "-n", namespace, "--role=look", f"--serviceaccount={namespace}:reader")
    plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    reader, stranger = (token(plane, namespace, account) for account in ("reader", "stranger"))

    def seen(shown: str) -> set[str]:
        code, text = replica.ask("/ui/api/gangs", shown)
        return {f"{code}"} if code != 200 else {key for key in json.loads(text)["columns"]["gang"] if key.endswith("/huge")}

    assert eventually(lambda: seen(plane.token) == {f"{namespace}/huge", f"{foreign}/huge"}), replica.ask(
        "/ui/api/gangs", plane.token
    )
    assert seen(reader) == {f"{namespace}/huge"}
    assert replica.ask(f"/ui/api/gang?gang={foreign}/huge", reader)[0] == 404
    assert (seen(stranger), seen("")) == ({"403"}, {"401"})
    plane.kubectl("delete", "--wait=false", f"namespace/{foreign}")


def test_without_the_right_to_ask_nobody_gets_in(plane: ControlPlane, namespace: str, replica: Replica) -> None:
    assert replica.ask("/metrics", plane.token)[0] == 503
    assert replica.ask("/livez")[0] == 200


def test_a_renewed_certificate_is_shown_without_a_restart(replica: Replica, tmp_path: Path) -> None:
    certificate(tmp_path, FOREIGN)
    other = Replica(replica.folder, replica.name, replica.arguments, tls=trusting(FOREIGN))
    assert eventually(other.is_ready, seconds=20.0)
    assert not replica.is_ready()
