"""LeaderWorkerSet: what its lanes do not say."""

import json
from typing import Any

import pytest

from tests.operators.lws_modes import MODES, leader_workers
from tests.support.operator_lane import GPUS, Lane
from tests.support.operator_mode import GPU, Order, for_modes, template

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), for_modes(MODES)]


def serving(lane: Lane, replicas: int, size: int, **more: Any) -> dict[str, Any]:
    scheduler = "volcano" if lane.mode.name == "volcano" else "phalanx"
    worker = template("main", Order("serve", size, GPUS), schedulerName=scheduler)
    return leader_workers("serve", replicas, worker, size, **more)


def test_of_two_replicas_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    lane.create(serving(lane, 2, 3))
    lane.await_running("serve", 3)
    lane.await_waiting("serve")
    lane.watch(lambda: lane.bound("serve") == len(lane.running("serve")) == 3, lambda: lane.phases("serve"))
    (why,) = [gang["why"] for gang in lane.gangs().values() if gang["status"] == "Waits"]
    assert GPU in why


def test_workers_that_wait_for_their_leader_start_after_it(lane: Lane) -> None:
    lane.create(serving(lane, 1, 3, startupPolicy="LeaderReady"))
    lane.await_running("serve", 3)


def test_a_replica_that_is_scaled_away_leaves_no_group(lane: Lane) -> None:
    lane.create(serving(lane, 2, 2))
    lane.await_running("serve", 4)
    lane.scale("serve", 2)
    lane.await_all_running("serve", 2)
    lane.await_true(lambda: [gang["running"] for gang in lane.gangs().values()] == [2], lane.gangs)


def restart_a_container(lane: Lane, name: str) -> None:
    """Let a container have started a second time, as its kubelet would report it."""
    pod = max(lane.pods(name), key=lambda item: str(item["metadata"]["name"]))
    status = {"containerStatuses": [{**item, "restartCount": 1} for item in pod["status"]["containerStatuses"]]}
    lane.kubectl("patch", "pod", pod["metadata"]["name"], "--subresource=status", "-p", json.dumps({"status": status}))


def test_a_replica_of_which_a_container_starts_again_is_made_anew_as_a_whole(lane: Lane) -> None:
    document = serving(lane, 1, 4)
    del document["spec"]["leaderWorkerTemplate"]["restartPolicy"]
    lane.create(document)
    lane.await_running("serve", 4)
    before = lane.running("serve")
    restart_a_container(lane, "serve")
    lane.await_true(lambda: not before & lane.running("serve"), lambda: lane.phases("serve"))
    lane.await_all_running("serve", 4)
