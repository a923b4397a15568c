"""A cluster in which nobody waits, and custom resources as other projects define them, on a real API server."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from tests.support.live_site import Site

pytestmark = pytest.mark.xdist_group("controlplane")
GROUPS = "podgroups.scheduling.volcano.sh"
ZONE, PREEMPTABLE = "volcano.sh/revocable-zone", "volcano.sh/preemptable"


def node(name: str, **labels: str) -> Document:
    offers = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": offers}}


def group(name: str, min_member: int) -> dict[str, Any]:
    spec = {"minMember": min_member, "queue": "default"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def pods(name: str, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        meta = {"name": f"{name}-{number}", "annotations": {"scheduling.k8s.io/group-name": name}}
        containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}


def phase(site: Site, name: str) -> str:
    return site.kubectl("get", GROUPS, name, "-o=jsonpath={.status.phase}")


def await_phase(site: Site, name: str, expected: str) -> None:
    site.wait(lambda: phase(site, name) == expected, lambda: f"{name} is {phase(site, name)!r}, not {expected!r}")


def test_a_group_whose_owner_waits_for_admission_is_admitted_where_nobody_else_waits(
    plane: ControlPlane, site: Site, tmp_path: Path
) -> None:
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx"):
        site.make([node("a"), group("first", 2), *pods("first", 2)])
        site.await_phases("first", {"Running": 2})
        await_phase(site, "first", "Running")
        site.make([group("second", 2)])
        await_phase(site, "second", "Inqueue")


def test_a_group_whose_minimum_counts_quotas_too_is_admitted_under_the_profile_of_volcano(
    plane: ControlPlane, site: Site, tmp_path: Path
) -> None:
    job = group("job", 1)
    job["spec"]["minResources"] = {"cpu": "1", "count/pods": "1", "limits.cpu": "1", "requests.memory": "1Gi"}
    with scheduling(plane, tmp_path, "--scheduler-name=volcano", "--profile=volcano", "--controllers=-volcano"):
        site.make([node("a"), job])
        await_phase(site, "job", "Inqueue")


def test_what_runs_where_it_may_not_any_more_has_to_go_although_nobody_waits(
    plane: ControlPlane, site: Site, tmp_path: Path
) -> None:
    hour = (datetime.now(UTC).hour + 6) % 24
    window = {f"tdm.revocable-zone.{site.namespace()}": f"{hour:02}:00-{hour:02}:30", "tdm.evict.period": "1s"}
    policy = {"actions": "allocate, shuffle", "tiers": [{"plugins": [{"name": "gang"}, {"name": "tdm", "arguments": window}]}]}
    config = tmp_path / "scheduler.yaml"
    config.write_text(yaml.safe_dump(policy))
    with scheduling(plane, tmp_path, "--scheduler-name=phalanx", f"--config={config}"):
        site.make([node("own"), group("first", 2), *pods("first", 2)])
        site.await_phases("first", {"Running": 2})
        (lent,) = pods("lent", 1)
        lent["spec"]["nodeName"], lent["metadata"]["annotations"] = "lent", {PREEMPTABLE: "true", ZONE: "*"}
        site.make([node("lent", **{ZONE: site.namespace()}), lent])
        site.wait(lambda: not site.pods("lent"), lambda: f"the pod on the lent node is {site.phases('lent')}")
        assert site.phases("first") == ["Running", "Running"]


@contextmanager
def without_status(plane: ControlPlane, name: str) -> Iterator[None]:
    """Let a custom resource have no status subresource, as Volcano's own definition of PodGroups."""

    def set_subresources(value: str) -> None:
        patch = f'[{{"op": "replace", "path": "/spec/versions/0/subresources", "value": {value}}}]'
        plane.kubectl("patch", "customresourcedefinition", name, "--type=json", f"--patch={patch}")

    set_subresources("{}")
    try:
        yield
    finally:
        set_subresources('{"status": {}}')


def test_the_status_of_groups_is_written_where_their_definition_has_no_place_of_its_own_for_it(
    plane: ControlPlane, site: Site, tmp_path: Path
) -> None:
    with without_status(plane, GROUPS):
        site.wait(lambda: "podgroups/status" not in served(plane), lambda: "the status subresource is still served")
        with scheduling(plane, tmp_path, "--scheduler-name=phalanx") as log:
            site.make([node("a"), group("second", 2), group("first", 2), *pods("first", 2)])
            await_phase(site, "first", "Running")
            await_phase(site, "second", "Inqueue")
        assert log.read_text().count(f"{GROUPS} have no status subresource: their status is written with the object") == 1
    site.wait(lambda: "podgroups/status" in served(plane), lambda: "the status subresource is not served again")


def served(plane: ControlPlane) -> str:
    return plane.kubectl("get", "--raw", "/apis/scheduling.volcano.sh/v1beta1")
