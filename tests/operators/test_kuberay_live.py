"""KubeRay: what its lanes do not say."""

import json

import pytest

from tests.operators.ray_modes import MODES, alone
from tests.support.operator_lane import GPUS, NODES, Lane
from tests.support.operator_mode import Order, for_modes

# Where KubeRay makes the groups, it counts the workers itself.
WITHOUT_GROUPS = [mode for mode in MODES if not mode.flags]
pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), for_modes(WITHOUT_GROUPS)]


@pytest.mark.parametrize(
    ("counts", "pods"),
    [({"minReplicas": 2, "maxReplicas": 5}, 3), ({"replicas": 5, "minReplicas": 0, "maxReplicas": NODES - 1}, NODES)],
    ids=["least", "most"],
)
def test_a_cluster_has_as_many_workers_as_their_bounds_allow(lane: Lane, counts: dict[str, int], pods: int) -> None:
    document = alone(Order("train", pods, GPUS))
    (group,) = document["spec"]["workerGroupSpecs"]
    document["spec"]["workerGroupSpecs"] = [{**{key: group[key] for key in ("groupName", "rayStartParams", "template")}, **counts}]
    lane.create(document)
    lane.await_running("train", pods)
    (gang,) = lane.gangs("train").values()
    assert (gang["status"], gang["minimum"]) == ("Runs", pods), gang


def test_the_pod_that_empties_redis_starts_when_its_cluster_is_deleted(lane: Lane) -> None:
    document = alone(Order("train", 3, GPUS))
    document["spec"]["gcsFaultToleranceOptions"] = {"redisAddress": "redis:6379"}
    lane.create(document)
    lane.await_running("train", 3)
    lane.kubectl("delete", lane.mode.address("train"), "--wait=false")
    lane.await_true(lambda: len(lane.pods("train-redis-cleanup")) == 1, lane.gangs)
    lane.await_running("train-redis-cleanup", 1)
    (pod,) = lane.pods("train-redis-cleanup")
    lane.kubectl(
        "patch", "pod", pod["metadata"]["name"], "--subresource=status", "-p", json.dumps({"status": {"phase": "Succeeded"}})
    )
    lane.await_true(lambda: not lane.kubectl("get", "rayclusters", "-o", "name"), lane.gangs)
