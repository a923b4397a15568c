"""What other tests let the scheduler do seldom or never, so that all that its roles allow is asked for once.

Each step waits until the API server has logged the requests in question. `test_roles_used_live.py`, the last of all, compares.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from phalanx.controllers.objects import PROBLEM
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import launch
from phalanx.dev.replicas import scheduling
from phalanx.manifests.permissions import permissions
from phalanx.manifests.roles import page_documents, page_rules, reader_documents, service_account, shadow_rules
from phalanx.model.kinds import Document, Kind
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support.api_requests import Access, RequestLog, granted
from tests.support.http_api import Connection
from tests.support.live_site import Site
from tests.support.page_certificates import AUTHORITY, certificate, trusting
from tests.support.shadow_account import SHADOW, shadow_kubeconfig
from tests.support.store_contract import eventually

pytestmark = pytest.mark.xdist_group("controlplane")
RUN = "phalanx-system/phalanx"
RACK = "example.com/rack"
VOLCANO_JOBS, HYPERNODES, QUEUES = "jobs.batch.volcano.sh", "hypernodes.topology.volcano.sh", "queues.scheduling.volcano.sh"
GROUPS = {
    "native": "podgroups.scheduling.k8s.io", "coscheduling": "podgroups.scheduling.x-k8s.io",
    "koordinator": "podgroups.scheduling.sigs.k8s.io",
}  # fmt: skip
SECONDS = 30.0


# --- kinds that nobody serves here ---------------------------------------------------------------------------------------


def is_served(connection: Connection, kind: Kind) -> bool:
    place = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    found = connection.ask("GET", place)
    return found.code == 200 and any(item["name"] == kind.plural for item in found.body["resources"])


def stub(kind: Kind) -> dict[str, Any]:
    """Return a definition of a kind that takes any object."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": kind.group, "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural, "listKind": f"{kind.kind}List", "singular": kind.kind.lower()},
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": schema}],
        },
    }  # fmt: skip


@pytest.fixture(scope="module")
def log(plane: ControlPlane) -> RequestLog:
    return RequestLog(plane.folder)


@pytest.fixture(scope="module")
def everything(plane: ControlPlane) -> Iterator[None]:
    """All kinds are served that some permission names."""
    with Site(plane) as site:
        kinds = {access.kind for access in permissions()}
        missing = [kind for kind in kinds if not is_served(site.connection, kind)]
        plane.apply(map(stub, missing))
        assert eventually(lambda: all(is_served(site.connection, kind) for kind in missing), seconds=SECONDS)
        yield
        plane.kubectl("delete", "crd", "--wait=false", *(f"{kind.plural}.{kind.group}" for kind in missing))


@pytest.fixture
def site(plane: ControlPlane, everything: None) -> Iterator[Site]:
    with Site(plane) as site:
        yield site


@pytest.fixture
def scheduler(plane: ControlPlane, everything: None, tmp_path: Path) -> Iterator[None]:
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx", f"--hypernode-level={RACK}"):
        yield


def access(text: str) -> Access:
    """Return what `patch pods/status` and `delete jobs.batch.volcano.sh` say."""
    verb, _, place = text.partition(" ")
    resource, _, group = place.partition(".")
    return Access(group, resource, verb)


def await_requests(log: RequestLog, *texts: str) -> None:
    """Wait until the scheduler has asked for all of this."""
    await_all(log, {access(text) for text in texts}, RUN)


def await_all(log: RequestLog, wanted: set[Access], account: str) -> None:
    """Wait until an account has asked for all of this."""
    is_asked = eventually(lambda: wanted <= log.asked_by(account), seconds=SECONDS)
    assert is_asked, f"not asked: {', '.join(map(str, sorted(wanted - log.asked_by(account))))}"


# --- steps ---------------------------------------------------------------------------------------------------------------


def test_every_kind_is_listed_and_watched(log: RequestLog, scheduler: None) -> None:
    named = {Access(item.kind.group, item.resource, verb) for item in permissions() for verb in item.verbs}
    await_all(log, {item for item in named if item.verb in ("list", "watch")}, RUN)


def test_hypernodes_follow_labels(site: Site, log: RequestLog, scheduler: None) -> None:
    site.make(build.node(name, cpu=4, labels={RACK: rack}) for name, rack in (("a", "a"), ("b", "b"), ("c", "b")))
    await_requests(log, f"create {HYPERNODES}")
    site.kubectl("label", "node", site.node("c"), f"{RACK}=a", "--overwrite")
    await_requests(log, f"patch {HYPERNODES}")
    site.kubectl("label", "node", site.node("b"), f"{RACK}=a", "--overwrite")
    await_requests(log, f"delete {HYPERNODES}")
    member = {"type": "Node", "selector": {"exactMatch": {"name": "nowhere"}}}
    hypernode = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": f"broken-{site.node('x')}"},
    }
    site.make([{**hypernode, "spec": {"tier": 1, "members": [member]}}])
    await_requests(log, "patch hypernodes/status.topology.volcano.sh")


def job(**more: Any) -> Document:
    """Return a Job of Volcano with all that needs objects besides pods."""
    volume = {
        "mountPath": "/data",
        "volumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    found: Document = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "mesh"},
        "spec": {
            "schedulerName": "phalanx", "minAvailable": 1, "plugins": {"ssh": [], "svc": []}, "volumes": [volume],
            "tasks": [{"name": "worker", "replicas": 1, "template": template()}], **more,
        },
    }  # fmt: skip
    return found


def template(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [container], "restartPolicy": "Never"}}


def test_a_job_has_objects_that_a_restarted_scheduler_finds_again(
    plane: ControlPlane, site: Site, log: RequestLog, tmp_path: Path
) -> None:
    site.make([build.node("a", cpu=8)])
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx"):
        site.make([job()], "apply")
        await_requests(log, "create secrets", "create configmaps", "create services", "create persistentvolumeclaims",
                       "create networkpolicies.networking.k8s.io")  # fmt: skip
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx"):
        await_requests(log, "get secrets", "get configmaps", "get networkpolicies.networking.k8s.io")
        wider = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 2}]
        site.kubectl("patch", VOLCANO_JOBS, "mesh", "--type=json", "-p", json.dumps(wider))
        await_requests(log, "patch configmaps")


def test_a_job_that_ended_goes(site: Site, log: RequestLog, scheduler: None) -> None:
    task = {"name": "worker", "replicas": 1, "template": template({"phalanx.dev/duration": "1s"})}
    site.make([build.node("a", cpu=8), job(tasks=[task], plugins={}, volumes=[], ttlSecondsAfterFinished=0)])
    await_requests(log, f"delete {VOLCANO_JOBS}")


def test_a_broken_cron_job_says_so(site: Site, log: RequestLog, scheduler: None) -> None:
    spec = {"schedule": "0 3 * * *", "timeZone": "Atlantis/Capital", "jobTemplate": {"spec": job()["spec"]}}
    cron = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}
    site.make([cron])
    await_requests(log, "patch cronjobs.batch.volcano.sh")


def bind_request(pod: str, node: str) -> Document:
    """Return a request that has been mended: what was wrong with it is still written on it."""
    spec = {"podName": pod, "selectedNode": node, "receivedResourceType": "Regular"}
    meta = {"name": pod, "annotations": {PROBLEM: "spec.selectedNode: missing"}}
    return {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": meta, "spec": spec}


def test_volumes_are_reserved_and_requested(site: Site, log: RequestLog, scheduler: None) -> None:
    name = f"late-{site.namespace()}"
    late = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}  # fmt: skip
    amount = {"accessModes": ["ReadWriteOnce"], "storageClassName": name}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
              "spec": {**amount, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}}  # fmt: skip
    claims = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claim},
         "spec": {**amount, "resources": {"requests": {"storage": size}}}}
        for claim, size in (("there", "1Gi"), ("made", "5Gi"))
    ]  # fmt: skip
    try:
        site.kubectl("create", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": [late, volume]}))
        pods = [with_claim(str(claim["metadata"]["name"])) for claim in claims]  # type: ignore[index]  # a literal
        requests = [bind_request(pod["metadata"]["name"], site.node("a")) for pod in pods]
        site.make([build.node("a", cpu=8), *claims, *pods, *requests])
        await_requests(
            log, "patch persistentvolumes", "patch persistentvolumeclaims", "patch bindrequests.scheduling.run.ai"
        )  # fmt: skip
    finally:
        site.kubectl("delete", "--wait=false", "--ignore-not-found", f"pv/{name}", f"storageclass/{name}")


def with_claim(claim: str) -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return build.pod(f"pod-{claim}", cpu=1, spec={"schedulerName": "kai-scheduler", "volumes": [volume]})


def test_a_queue_is_closed_with_its_parent(site: Site, log: RequestLog, scheduler: None) -> None:
    parent, child = (f"{word}-{site.namespace()}" for word in ("company", "team"))
    site.make([build.queue(parent), build.queue(child, parent=parent)])
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": parent}
    command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "close"}}
    site.make([{**command, "action": "CloseQueue", "target": target}])
    await_requests(log, f"patch {QUEUES}")


@pytest.mark.parametrize("dialect", GROUPS)
def test_pods_are_grouped_in_each_dialect(dialect: str, plane: ControlPlane, site: Site, log: RequestLog, tmp_path: Path) -> None:
    spec = template()
    spec["spec"] |= {"schedulerName": "phalanx", **({"schedulingGroup": {"podGroupName": "work"}} if dialect == "native" else {})}
    work = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": {"parallelism": 2, "template": spec}}
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx", f"--group-as={dialect}"):
        site.make([build.node("a", cpu=8), *map(kai.priority_class, kai.CLASSES), work])
        await_requests(log, f"create {GROUPS[dialect]}")
        site.kubectl("label", "job", "work", "team=blue")  # groups carry the labels of their owners
        await_requests(log, f"patch {GROUPS[dialect]}")
        site.kubectl("patch", "job", "work", "--type=merge", "-p", '{"spec": {"suspend": true}}')
        await_requests(log, f"delete {GROUPS[dialect]}")


# --- those who only read -------------------------------------------------------------------------------------------------


@contextmanager
def running(log: Path, *words: str) -> Iterator[Path]:
    """Run a command beside the block, and yield what it says; it has to end in order."""
    with log.open("wb") as file, launch((sys.executable, "-m", "phalanx", *words), stdout=file, stderr=file) as process:
        try:
            yield log
        finally:
            process.terminate()
        assert process.wait(timeout=SECONDS) == 0, log.read_text()


def test_a_shadow_follows_every_kind_that_its_role_names(
    plane: ControlPlane, everything: None, log: RequestLog, tmp_path: Path
) -> None:
    options = ("--kubeconfig", str(shadow_kubeconfig(plane)), "--record", str(tmp_path / "recording"))
    with running(tmp_path / "shadow.log", "run", "--shadow", *options):
        await_all(log, granted(shadow_rules()), SHADOW)


def test_a_page_for_others_follows_every_kind_that_its_role_names(
    plane: ControlPlane, site: Site, log: RequestLog, tmp_path: Path
) -> None:
    space, host = site.namespace(), "127.0.0.2"  # not the address at which anybody may read
    site.kubectl("create", "serviceaccount", "page")
    role, binding = page_documents([service_account(space, "page")])
    plane.apply([role, {**binding, "metadata": {"name": space}}])
    site.make([build.node("a", cpu=8), *build.gang("train", tasks=2, cpu=1)])
    options = ("--kubeconfig", str(plane.kubeconfig_of(space, "page")), "--host", host, *certificate(tmp_path, AUTHORITY, host))
    with running(tmp_path / "page.log", "ui", *options) as file:
        await_all(log, {item for item in granted(page_rules()) if item.verb == "watch"}, "/page")
        (address,) = re.findall(rf"https://{host}:\d+", file.read_text())
        page = Connection(address, {"Authorization": f"Bearer {plane.token}"}, trusting(AUTHORITY))
        about = f"/ui/api/gang-events?gang={space}/train"
        assert eventually(lambda: page.ask("GET", about).code == 200), page.ask("GET", about)
        await_all(log, granted(page_rules()), "/page")
    plane.kubectl("delete", f"clusterrole/{role['metadata']['name']}", f"clusterrolebinding/{space}")


def test_commands_that_only_read_work_with_the_role_of_a_reader(plane: ControlPlane, site: Site, tmp_path: Path) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": site.namespace()}}
    role, binding = reader_documents([service_account(site.namespace(), "guest")])
    binding = {**binding, "metadata": {"name": site.namespace()}}
    plane.apply([account, role, binding])
    site.make([build.node("a", cpu=8), *build.gang("train", tasks=2, cpu=1)])
    (tmp_path / "job.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": build.gang("more", cpu=1)}))
    reader = plane.kubeconfig_of(site.namespace(), "guest")
    here = ("-n", site.namespace())
    for words in (("schedule",), ("explain", "train", *here), ("eta", "train", *here), ("try", "-f", str(tmp_path / "job.yaml"))):
        refused = forbidden(words, reader)
        assert not refused, f"{words[0]}: {refused}"
    plane.kubectl("delete", f"clusterrolebinding/{site.namespace()}")


def forbidden(words: Sequence[str], kubeconfig: Path) -> str:
    """Run a command and return what it was not allowed to do."""
    command = [sys.executable, "-m", "phalanx", *words, "--kubeconfig", str(kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return "".join(line for line in done.stderr.splitlines() if "may not" in line or "forbidden" in line)
