"""Pods of every kind of owner on a real control plane: each gets the group that its owners ask for, and starts whole."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import operator_workloads as owners
from tests.support.live_site import Site
from tests.support.operator_workloads import Group, Workload
from tests.support.store_contract import eventually

pytestmark = pytest.mark.xdist_group("controlplane")
GROUPS = "scheduling.run.ai/v2alpha2:podgroups"
AT_ONCE, SELDOM_SECONDS = 8, 0.5
KINDS = list(owners.definitions())
NAMES = [kind["metadata"]["name"] for kind in KINDS]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def site(plane: ControlPlane) -> Iterator[Site]:
    with Site(plane) as site:
        site.make(build.node(f"place-{number}", cpu=64, memory="256Gi") for number in range(2))
        queues = (
            kai.queue("all", parent="", quota=-1),
            *(kai.queue(name, parent="all", quota=-1) for name in ("research", "default-queue")),
        )
        site.make([*queues, *map(kai.priority_class, kai.CLASSES)])
        yield site


@pytest.fixture
def log(plane: ControlPlane, site: Site, tmp_path: Path) -> Iterator[Path]:
    """The log of a scheduler that has run for a while when operators bring their kinds."""
    flags = ("--profile=kai", "--scheduler-name=kai-scheduler", f"--group-defaults={site.namespace()}/defaults")
    defaults = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "defaults"}, "data": owners.DEFAULTS}
    plane.scheduler_kubeconfig_for(site.namespace())
    with scheduling(plane, tmp_path, *flags) as log:
        await_plain_pod(site, "first")
        plane.apply([*KINDS, site.here(defaults)])
        try:
            assert eventually(lambda: are_served(site))
            yield log
        finally:
            remove_kinds(site)


def await_plain_pod(site: Site, name: str) -> None:
    """Wait until a pod without owners runs."""
    site.make([build.pod(name, cpu=1, spec={"schedulerName": "kai-scheduler"})])
    site.await_phases(name, {"Running": 1})


def are_served(site: Site) -> bool:
    found = known(site)
    return len(found) == len(KINDS) and all(_is_established(item) for item in found)


def known(site: Site) -> list[Document]:
    """Return those of the definitions that are there."""
    return [item for item in site.connection.ask("GET", DEFINITIONS).body["items"] if item["metadata"]["name"] in NAMES]


def remove_kinds(site: Site) -> None:
    for name in NAMES:
        site.connection.ask("DELETE", f"{DEFINITIONS}/{name}")
    assert eventually(lambda: not known(site))


def _is_established(definition: Document) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)


class Outcome:
    """What has become of workloads, asked for at one time for all."""

    def __init__(self, site: Site) -> None:
        groups = site.api().read(GROUPS).body["items"]
        self.pods, self._groups = site.pods(), {group["metadata"]["name"]: group for group in groups}

    def of(self, workload: Workload) -> tuple[list[Group], set[str]]:
        """Return the groups of a workload, and in which phases its pods are."""
        pods = [pod for pod in self.pods if pod["metadata"]["name"].startswith(f"{workload.name}-")]
        return owners.groups_found(pods, self._groups), {pod["status"]["phase"] for pod in pods}


def expected(workload: Workload) -> tuple[list[Group], set[str]]:
    return owners.in_order(workload.groups), {"Running"}


def differences(site: Site, workloads: Sequence[Workload]) -> dict[str, Any]:
    """Return what is not as expected, and the expectation, by the names of workloads."""
    outcome = Outcome(site)
    return {item.name: (outcome.of(item), expected(item)) for item in workloads if outcome.of(item) != expected(item)}


def test_pods_of_every_kind_get_their_groups_and_run_and_kinds_that_go_away_are_forgotten(site: Site, log: Path) -> None:
    workloads, api = owners.workloads(), site.api()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda workload: workload.tree.make(api), workloads))
    assert eventually(lambda: not differences(site, workloads), step=SELDOM_SECONDS), differences(site, workloads)
    before = len(log.read_text())
    remove_kinds(site)
    await_plain_pod(site, "last")
    lines = [line for line in log.read_text()[before:].splitlines() if "(re)initializing" not in line]
    assert [line for line in lines if any(name in line for name in NAMES)] == []


def indexed_job(name: str, size: int) -> Document:
    """Return a Job that starts whole or not at all, as somebody writes it who knows of no groups."""
    main = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "kai-scheduler", "restartPolicy": "Never", "containers": [main]}
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": {"phalanx.dev/min-member": str(size)}},
        "spec": {"parallelism": size, "completions": size, "completionMode": "Indexed", "template": {"spec": spec}},
    }  # fmt: skip


def test_the_pods_that_the_job_controller_makes_are_one_gang(plane: ControlPlane, site: Site, tmp_path: Path) -> None:
    with scheduling(plane, tmp_path, "--profile=kai", "--scheduler-name=kai-scheduler"):
        site.make([indexed_job("real", 3)])
        site.await_phases("real-", {"Running": 3})
    (group,) = [item for item in site.api().read(GROUPS).body["items"] if "-real-" in item["metadata"]["name"]]
    assert group["spec"]["minMember"] == 3
    assert {pod["metadata"]["annotations"]["pod-group-name"] for pod in site.pods("real-")} == {group["metadata"]["name"]}
