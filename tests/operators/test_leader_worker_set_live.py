"""LeaderWorkerSet, unpatched: every replica starts whole, with the name of the scheduler alone and with groups of its own."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.support.operator_lanes import Lane, lane_of, needs, template, workload
from tests.support.webhook_operators import leader_worker_set

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), needs("lws")]


@pytest.fixture(scope="module", params=["", "volcano"], ids=["scheduler-name-alone", "schedulerProvider-volcano"])
def lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    operator = partial(leader_worker_set, provider=request.param)
    with lane_of(operator, tmp_path_factory.mktemp("lws")) as lane:
        yield lane


def leader_workers(name: str, replicas: int, size: int, **spec: Any) -> dict[str, Any]:
    wanted = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template()}, **spec}
    return workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, wanted)


def test_replicas_that_fit_start_whole_and_leave_nothing(lane: Lane) -> None:
    with lane.submitted(leader_workers("serve", 2, 2)):
        lane.await_running("serve-", 4)
        assert [gang["running"] for gang in lane.gangs().values()] == [2, 2]


def test_of_two_replicas_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with lane.submitted(leader_workers("serve", 2, 3)):
        _, waits = lane.check_one_runs_and_the_other_waits("serve-0", "serve-1", 3)
        lane.await_pods(waits, 3)
        (why,) = [gang["why"] for gang in lane.gangs().values() if gang["status"] == "Waits"]
        assert "nvidia.com/gpu" in why


def test_workers_that_wait_for_their_leader_start_after_it(lane: Lane) -> None:
    with lane.submitted(leader_workers("late", 1, 3, startupPolicy="LeaderReady")):
        lane.await_running("late-", 3)


def test_a_replica_that_is_scaled_away_leaves_no_group(lane: Lane) -> None:
    serve = leader_workers("serve", 2, 2)
    with lane.submitted(serve):
        lane.await_running("serve-", 4)
        lane.change(serve, {"spec": {"replicas": 1}})
        lane.await_pods("serve-", 2)
        lane.wait(lambda: [gang["running"] for gang in lane.gangs().values()] == [2], lane.gangs)
