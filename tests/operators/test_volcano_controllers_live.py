"""Volcano's own controllers: what their lanes do not say."""

import json
from typing import Any

import pytest

from tests.operators.volcano_modes import MODES, volcano_job
from tests.support.operator_lane import GPUS, Lane
from tests.support.operator_mode import Order, for_modes

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), for_modes(MODES)]
GROUPS, QUEUES = "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"


def found(lane: Lane, resource: str) -> list[dict[str, Any]]:
    """Return the objects of a kind in the namespace."""
    items: list[dict[str, Any]] = json.loads(lane.kubectl("get", resource, "-o", "json"))["items"]
    return items


def test_the_definition_of_groups_has_no_status_subresource_and_groups_get_a_status(lane: Lane) -> None:
    versions = json.loads(lane.kubectl("get", "crd", GROUPS, "-o", "json"))["spec"]["versions"]
    assert not any("status" in (version.get("subresources") or {}) for version in versions)
    lane.submit(Order("train", 3, GPUS))
    lane.await_running("train", 3)
    lane.await_true(lambda: [item["status"]["phase"] for item in found(lane, GROUPS)] == ["Running"], lambda: found(lane, GROUPS))
    lane.await_true(lambda: found(lane, "vcjob")[0]["status"]["state"]["phase"] == "Running", lambda: found(lane, "vcjob"))


def test_counts_of_pods_and_limits_in_the_least_amounts_of_a_group_refuse_no_job(lane: Lane) -> None:
    lane.submit(Order("train", 3, GPUS))
    lane.await_running("train", 3)
    (group,) = found(lane, GROUPS)
    assert group["spec"]["minResources"].keys() >= {"count/pods", "limits.cpu", "requests.nvidia.com/gpu"}


def test_a_job_that_is_restarted_when_a_pod_fails_starts_again_as_a_whole(lane: Lane) -> None:
    lane.create(volcano_job(Order("train", 3, GPUS), policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    lane.await_running("train", 3)
    before = lane.running("train")
    lane.fail_one("train")
    lane.await_true(lambda: not before & lane.running("train"), lambda: lane.phases("train"))
    lane.await_all_running("train", 3)


def test_the_first_queues_are_there_though_only_the_scheduler_of_volcano_makes_them(lane: Lane) -> None:
    lane.submit(Order("train", 1, GPUS))
    lane.await_true(
        lambda: {item["metadata"]["name"] for item in found(lane, QUEUES)} == {"default", "root"}, lambda: found(lane, QUEUES)
    )
