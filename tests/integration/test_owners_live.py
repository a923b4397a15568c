"""Owners that change a gang while it runs, on a real control plane: a Job of Kubernetes makes the pods and takes them away."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from tests.support.live_site import Site

pytestmark = pytest.mark.xdist_group("controlplane")
GROUPS = "podgroups.scheduling.volcano.sh"
GRACE_SECONDS = 2
BEYOND_SECONDS = GRACE_SECONDS + 3
ROOM = 4


@pytest.fixture(autouse=True)
def scheduler(plane: ControlPlane, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with scheduling(plane, tmp_path_factory.mktemp("run"), "--scheduler-name=phalanx"):
        site.make(map(node, range(ROOM)))
        yield


def node(number: int) -> Document:
    offers = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "1"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"gpu-{number}"}, "status": {"allocatable": offers}}


def job(count: int) -> list[Document]:
    """Return a group and a Job that runs so many pods at once, each on a GPU of its own, for ever."""
    meta: dict[str, Any] = {"annotations": {"scheduling.k8s.io/group-name": "ray"}}
    limits = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    spec = {"schedulerName": "phalanx", "restartPolicy": "Never", "containers": [{"name": "main", "image": "ray:1", **limits}]}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": {"minMember": count},
        "metadata": {"name": "ray", "annotations": {"phalanx.dev/staleness-grace": f"{GRACE_SECONDS}s"}},
    }  # fmt: skip
    wanted = {"parallelism": count, "completions": 100, "template": {"metadata": meta, "spec": spec}}
    return [group, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ray"}, "spec": wanted}]


def scale(site: Site, count: int, *, min_member: int) -> None:
    site.kubectl("patch", GROUPS, "ray", "--type=merge", f'--patch={{"spec": {{"minMember": {min_member}}}}}')
    site.kubectl("patch", "job", "ray", f'--patch={{"spec": {{"parallelism": {count}}}}}')


def running(site: Site) -> set[str]:
    return {pod["metadata"]["uid"] for pod in site.pods() if pod["status"]["phase"] == "Running"}


def conditions(site: Site) -> str:
    return site.kubectl("get", GROUPS, "ray", "-o=jsonpath={.status.conditions[*].type}")


def test_a_job_that_is_scaled_beyond_the_room_there_is_runs_on_and_what_is_missing_waits(site: Site) -> None:
    site.make(job(2))
    site.await_phases("", {"Running": 2})
    before = running(site)
    scale(site, 6, min_member=6)
    site.await_phases("", {"Running": 2, "Pending": 4})
    time.sleep(BEYOND_SECONDS)
    assert (running(site), site.phases().count("Pending")) == (before, 4)
    assert "Stale" not in conditions(site)
    scale(site, 4, min_member=4)
    site.await_phases("", {"Running": 4})
    assert before < running(site)


def test_a_job_that_is_scaled_down_while_its_minimum_stays_runs_on(site: Site) -> None:
    site.make(job(4))
    site.await_phases("", {"Running": 4})
    scale(site, 2, min_member=4)
    site.await_phases("", {"Running": 2})
    left = running(site)
    time.sleep(BEYOND_SECONDS)
    assert running(site) == left


def test_a_job_that_lost_a_pod_and_finds_no_room_for_another_starts_again_as_a_whole(site: Site) -> None:
    site.make(job(2))
    site.await_phases("", {"Running": 2})
    before = running(site)
    lost, place = min(site.bound().items())
    others = [site.node(f"gpu-{number}") for number in range(ROOM)]
    site.kubectl("cordon", *others)
    site.kubectl("delete", "pod", lost, "--wait=false")
    site.wait(lambda: not before & running(site), lambda: f"of {before} on {place} still run {before & running(site)}")
    site.kubectl("uncordon", *others)
    site.await_phases("", {"Running": 2})
