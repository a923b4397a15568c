"""What people may do on a real API server who have the cluster's role `edit` in one namespace: submit, and not rule over queues."""

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.testing import build
from tests.support.api_requests import BLOCKED
from tests.support.http_api import Answer, connection_to
from tests.support.live_site import Site
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
RBAC = "rbac.authorization.k8s.io"
COMMANDS, QUEUES = "bus.volcano.sh/v1alpha1:commands", "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "scheduling.volcano.sh/v1beta1:podgroups"


@pytest.fixture
def editor(plane: ControlPlane, site: Site) -> Api:
    """Somebody who may edit one namespace."""
    site.kubectl("create", "serviceaccount", "ada")
    site.kubectl("create", "rolebinding", "ada", "--clusterrole=edit", f"--serviceaccount={site.namespace()}:ada")
    kubeconfig: Path = plane.kubeconfig_of(site.namespace(), "ada")
    api = Api(connection_to(str(kubeconfig)), site.namespace())
    assert eventually(lambda: api.read(GROUPS).code == 200), "our role is not aggregated to edit yet"
    return api


def command(kind: str, name: str, action: str) -> dict[str, Any]:
    group = {"Queue": "scheduling.volcano.sh/v1beta1", "Job": "batch.volcano.sh/v1alpha1"}[kind]
    meta = {"generateName": "command-"}
    target = {"apiVersion": group, "kind": kind, "name": name}
    return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "action": action, "target": target}


def said(answer: Answer) -> str:
    return json.dumps(answer.body)


def test_whoever_edits_a_namespace_closes_no_queue(plane: ControlPlane, site: Site, editor: Api) -> None:
    refused = editor.make(COMMANDS, command("Queue", "default", "CloseQueue"))
    assert (refused.code, "a command to a queue needs the permission to update that queue" in said(refused)) == (422, True)
    assert editor.make(COMMANDS, command("Job", "train", "AbortJob")).code == 201
    site.kubectl("create", "clusterrole", site.namespace(), "--verb=update", "--resource=queues.scheduling.volcano.sh")
    site.kubectl(
        "create", "clusterrolebinding", site.namespace(), f"--clusterrole={site.namespace()}",
        f"--serviceaccount={site.namespace()}:ada",
    )  # fmt: skip
    assert eventually(lambda: editor.make(COMMANDS, command("Queue", "nowhere", "CloseQueue")).code == 201)
    site.kubectl("delete", f"clusterrole/{site.namespace()}", f"clusterrolebinding/{site.namespace()}")


def test_whoever_edits_a_namespace_makes_no_queues_topology_or_bind_requests(editor: Api) -> None:
    queue = build.queue("mine")
    hypernode = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "mine"}}
    request = {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": {"name": "mine"},
               "spec": {"podName": "a", "selectedNode": "b"}}  # fmt: skip
    assert {
        "queue": editor.make(QUEUES, queue).code,
        "hypernode": editor.make("/apis/topology.volcano.sh/v1alpha1/hypernodes", {**hypernode, "spec": {"tier": 1}}).code,
        "bind request": editor.make("scheduling.run.ai/v1alpha2:bindrequests", request).code,
        "queues read": editor.read(QUEUES).code,
    } == {"queue": 403, "hypernode": 403, "bind request": 403, "queues read": 403}


def test_the_server_asks_who_may_block_the_deletion_of_an_owner(editor: Api) -> None:
    """The roles of the scheduler have `finalizers` for this alone, and the log of requests does not show it."""
    owner = editor.make("configmaps", {"metadata": {"name": "owner"}}).body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    meta = {"name": "owned", "ownerReferences": [{**reference, "blockOwnerDeletion": True}]}
    assert BLOCKED in said(editor.make("configmaps", {"metadata": meta}))
    assert editor.make("configmaps", {"metadata": {**meta, "ownerReferences": [reference]}}).code == 201
