"""The oldest and the newest Kubernetes: what everybody needs works on both, and new features are found where they are served."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.programs import KUBERNETES_RELEASES
from phalanx.manifests.definitions import definition_documents
from phalanx.model.kinds import KINDS
from phalanx.testing import build
from tests.support import coscheduling_gangs as sigs
from tests.support import native_groups as native
from tests.support.live_site import Site
from tests.versions.checks import NATIVE, NOT_SERVED

pytestmark = [
    pytest.mark.xdist_group("versions"),
    pytest.mark.timeout(300),
    pytest.mark.parametrize("release", KUBERNETES_RELEASES, scope="module"),
]
GROUPS = "podgroups.scheduling.volcano.sh"
OWN = ("", "apps", "batch", "coordination.k8s.io", "policy", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io")
"""API groups of Kubernetes itself that every installation may have."""
QUEUE = "default"


def gang(name: str, tasks: int) -> list[dict[str, Any]]:
    """Return a gang of pods that each fill more than half a node."""
    return [dict(item) for item in build.gang(name, tasks=tasks, cpu=3)]


def volcano_job(name: str, tasks: int) -> dict[str, Any]:
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "3"}}}
    task = {"name": "worker", "replicas": tasks, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    spec = {"schedulerName": "volcano", "queue": QUEUE, "minAvailable": tasks, "tasks": [task]}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def group(site: Site, name: str) -> dict[str, Any]:
    return site.get(GROUPS, name)


def said(site: Site, name: str) -> list[str]:
    """Return the reasons of events about an object."""
    items = site.api().read("events").body["items"]
    return [item["reason"] for item in items if item["involvedObject"]["name"] == name]


def served(plane: ControlPlane) -> set[str]:
    return set(plane.kubectl("api-versions").split())


def read_of_kubernetes() -> Iterator[str]:
    """Yield the API versions of Kubernetes itself that are read."""
    for kind in KINDS:
        if kind.group in OWN:
            yield f"{kind.group}/{kind.version}".lstrip("/")


@pytest.mark.check("starts")
def test_the_server_is_of_its_release_takes_all_definitions_and_lacks_what_the_page_says(
    ground: ControlPlane, site: Site, release: str
) -> None:
    assert json.loads(ground.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"] == release
    there = ground.kubectl("get", "customresourcedefinitions", "-o", "name").split()
    assert {name.partition("/")[2] for name in there} >= {item["metadata"]["name"] for item in definition_documents()}
    assert set(read_of_kubernetes()) - served(ground) == NOT_SERVED[release]


@pytest.mark.check("rules")
def test_all_definitions_are_accepted_with_their_rules(ground: ControlPlane, site: Site, release: str) -> None:
    ground.apply(definition_documents())


@pytest.mark.check("binds")
def test_a_gang_that_fits_starts_and_its_group_says_so(site: Site, release: str) -> None:
    site.make(gang("train", 3))
    site.await_phases("train-", {"Running": 3})
    site.wait(lambda: group(site, "train")["status"]["phase"] == "Running", lambda: group(site, "train"))


@pytest.mark.check("holds")
def test_a_gang_that_does_not_fit_starts_no_pod_and_is_told_why(site: Site, release: str) -> None:
    site.make(gang("large", 4))
    site.wait(lambda: "FailedScheduling" in said(site, "large"), lambda: said(site, "large"))
    conditions = group(site, "large")["status"]["conditions"]
    assert [(item["type"], item["reason"]) for item in conditions] == [("Unschedulable", "NotEnoughResources")]
    assert site.bound("large-") == {}


@pytest.mark.check("job")
def test_a_volcano_job_gets_its_pods_and_they_start(site: Site, release: str) -> None:
    site.make([volcano_job("train", 3)])
    site.await_phases("train-", {"Running": 3})


@pytest.mark.check("quarantine")
def test_a_pod_that_names_two_groups_is_told_so_and_others_start(site: Site, release: str) -> None:
    torn = build.pod("torn", group="one", cpu=1)
    torn["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "two"}
    site.make([build.pod_group("one"), sigs.pod_group(sigs.COSCHEDULING, "two", {"minMember": 1}), torn, *gang("train", 3)])
    site.await_phases("train-", {"Running": 3})
    site.wait(lambda: "Misconfigured" in reasons(site, "torn"), lambda: site.pods("torn"))
    assert site.bound("torn") == {}


def reasons(site: Site, name: str) -> list[str]:
    """Return the reasons of the conditions of a pod."""
    return [item.get("reason", "") for pod in site.pods(name) for item in pod["status"].get("conditions", ())]


@pytest.mark.check("native")
def test_a_gang_of_kubernetes_own_starts_where_such_groups_are_served(ground: ControlPlane, site: Site, release: str) -> None:
    if NATIVE in NOT_SERVED[release]:
        pytest.skip(f"{release} does not serve {NATIVE}")
    site.make(native.gang("own", tasks=3, cpu=3))
    site.await_phases("own-", {"Running": 3})
