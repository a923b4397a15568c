"""What people may do on a real API server who have the cluster's role `edit` in one namespace: submit, and not rule over queues."""

import json
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.manifests.roles import edit_rules, view_rules
from phalanx.model.kinds import Kind, kind_at
from phalanx.store.patches import MERGE
from phalanx.store.paths import ResourcePath
from phalanx.testing import build
from tests.support.api_requests import BLOCKED, granted
from tests.support.http_api import Answer, Connection, connection_to
from tests.support.live_site import Site
from tests.support.store_contract import Api, eventually

pytestmark = pytest.mark.xdist_group("controlplane")
FORBIDDEN = 403
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


def viewer(plane: ControlPlane, site: Site) -> Connection:
    """Return how somebody asks who has our role for viewers and no other; everywhere, since queues are in no namespace."""
    subject = f"--serviceaccount={site.namespace()}:viewer"
    site.kubectl("create", "serviceaccount", "viewer")
    site.kubectl("create", "clusterrolebinding", site.namespace(), "--clusterrole=phalanx-view", subject)
    return in_force(plane, site, "viewer", "get")


def editor_alone(plane: ControlPlane, site: Site) -> Connection:
    """Return how somebody asks who has our role for editors and no other, in one namespace."""
    subject = f"--serviceaccount={site.namespace()}:editor"
    site.kubectl("create", "serviceaccount", "editor")
    site.kubectl("create", "rolebinding", "editor", "--clusterrole=phalanx-edit", subject)
    return in_force(plane, site, "editor", "create")


def in_force(plane: ControlPlane, site: Site, account: str, verb: str) -> Connection:
    """Return how an account asks, once its role is in force."""
    assert eventually(lambda: may(site, account, verb)), "the role is not in force"
    return connection_to(str(plane.kubeconfig_of(site.namespace(), account)))


def may(site: Site, account: str, verb: str) -> bool:
    """Tell whether the server lets an account; it is not asked as the account, whose requests are compared with its role."""
    where = {"namespace": site.namespace(), "verb": verb, "group": "scheduling.volcano.sh", "resource": "podgroups"}
    spec = {"user": f"system:serviceaccount:{site.namespace()}:{account}", "resourceAttributes": where}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = site.connection.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer.body["status"]["allowed"])


def kinds_in(rules: list[dict[str, Any]]) -> list[Kind]:
    """Return the kinds that some rules name."""
    return sorted({kind_at(item.group, item.resource) for item in granted(rules)}, key=lambda kind: kind.resource)


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


def test_whoever_views_reads_each_of_our_kinds(plane: ControlPlane, site: Site) -> None:
    asking = viewer(plane, site)
    for kind in kinds_in(view_rules()):
        place, one = ResourcePath(kind, site.namespace()), ResourcePath(kind, site.namespace(), "nothing")
        codes = {
            "list": asking.ask("GET", place.path).code, "get": asking.ask("GET", one.path).code,
            "watch": asking.ask("GET", place.path, watch="1", resourceVersion="none").code,  # no version: it ends at once
        }  # fmt: skip
        assert FORBIDDEN not in codes.values(), (kind, codes)
    site.kubectl("delete", f"clusterrolebinding/{site.namespace()}")


def test_whoever_edits_changes_each_of_our_kinds_that_has_a_namespace(plane: ControlPlane, site: Site) -> None:
    asking = editor_alone(plane, site)
    for kind in kinds_in(edit_rules()):
        meta = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "nothing"}}
        place, one = ResourcePath(kind, site.namespace()), ResourcePath(kind, site.namespace(), "nothing")
        codes = {
            "create": asking.ask("POST", place.path, meta, dryRun="All").code, "update": asking.ask("PUT", one.path, meta).code,
            "patch": asking.ask("PATCH", one.path, {}, form=MERGE).code, "delete": asking.ask("DELETE", one.path).code,
        }  # fmt: skip
        assert FORBIDDEN not in codes.values(), (kind, codes)


def test_the_server_asks_who_may_block_the_deletion_of_an_owner(editor: Api) -> None:
    """The roles of the scheduler have `finalizers` for this alone, and the log of requests does not show it."""
    owner = editor.make("configmaps", {"metadata": {"name": "owner"}}).body["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    meta = {"name": "owned", "ownerReferences": [{**reference, "blockOwnerDeletion": True}]}
    assert BLOCKED in said(editor.make("configmaps", {"metadata": meta}))
    assert editor.make("configmaps", {"metadata": {**meta, "ownerReferences": [reference]}}).code == 201
