"""Volcano's own controllers and definitions, unpatched, with our scheduler in the place of Volcano's."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.operator_lanes import GPUS, Lane, lane_of, needs, template, workload
from tests.support.real_operators import volcano_controllers

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), needs("vc-controller-manager")]
GROUPS = "podgroups.scheduling.volcano.sh"
QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"},
    "spec": {"weight": 1, "reclaimable": True},
}  # fmt: skip
"""What Volcano's scheduler makes at its first start; its controllers make no groups without."""


@pytest.fixture(scope="module", params=["phalanx", "volcano"], ids=["profile-phalanx", "profile-volcano"])
def lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    flags = (f"--profile={request.param}", "--controllers=-volcano")
    with lane_of(volcano_controllers, tmp_path_factory.mktemp("volcano"), *flags) as lane:
        lane.apply([QUEUE])
        yield lane


def volcano_job(name: str, pods: int, gpus: int = GPUS) -> dict[str, Any]:
    """Return a Job of Volcano's, with the queue that Volcano's webhook writes where there is none."""
    amounts = {"nvidia.com/gpu": str(gpus), "cpu": "1"}
    pod = template(restartPolicy="Never")
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    task = {"name": "worker", "replicas": pods, "template": pod}
    spec = {"schedulerName": "phalanx", "queue": "default", "minAvailable": pods, "tasks": [task]}
    return workload("batch.volcano.sh/v1alpha1", "Job", name, spec)


def group_of(lane: Lane, name: str) -> dict[str, Any]:
    """Return the group that Volcano's controller made for a Job."""
    (group,) = [item for item in lane.listed(GROUPS) if item["metadata"]["name"].startswith(f"{name}-")]
    return group


def test_the_definition_of_groups_has_no_status_subresource(lane: Lane) -> None:
    assert "status" not in lane.subresources(GROUPS)


def test_a_job_starts_whole_on_an_idle_cluster_and_leaves_nothing(lane: Lane) -> None:
    train = volcano_job("train", 3)
    with lane.submitted(train):
        lane.await_running("train-", 3)
        assert group_of(lane, "train")["spec"]["minResources"].keys() >= {"count/pods", "limits.cpu", "requests.nvidia.com/gpu"}
        lane.wait(lambda: group_of(lane, "train").get("status", {}).get("phase") == "Running", lambda: group_of(lane, "train"))
        lane.wait(lambda: lane.current(train)["status"]["state"]["phase"] == "Running", lambda: lane.current(train))


def test_of_two_jobs_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with lane.submitted(volcano_job("one", 3), volcano_job("two", 3)):
        _, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        assert "nvidia.com/gpu" in lane.why(waits)
        assert group_of(lane, waits.rstrip("-"))["status"]["phase"] in ("Pending", "Inqueue")


def test_a_job_that_no_node_is_large_enough_for_is_told_so_and_starts_nothing(lane: Lane) -> None:
    with lane.submitted(volcano_job("huge", 2, gpus=GPUS + 1)):
        lane.wait(lambda: "nvidia.com/gpu" in lane.why("huge"), lane.gangs)
        lane.check_none_starts("huge-")
