"""JobSet, unpatched: its Jobs start as a gang with the name of the scheduler alone, and one after the other where they depend."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.operator_lanes import Lane, lane_of, needs, template, workload
from tests.support.webhook_operators import jobset

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), needs("jobset")]


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_of(jobset, tmp_path_factory.mktemp("jobset")) as lane:
        yield lane


def replicated(name: str, replicas: int, pods: int, **more: Any) -> dict[str, Any]:
    spec = {"parallelism": pods, "completions": pods, "template": template(restartPolicy="Never")}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def job_set(name: str, *jobs: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", name, {"replicatedJobs": list(jobs), **spec})


def any_order(name: str) -> dict[str, Any]:
    jobs = (replicated("driver", 1, 1), replicated("workers", 2, 1))
    return job_set(name, *jobs, startupPolicy={"startupPolicyOrder": "AnyOrder"})


def test_a_job_set_that_fits_starts_whole_and_leaves_nothing(lane: Lane) -> None:
    with lane.submitted(any_order("train")):
        lane.await_running("train-", 3)
        assert [gang["running"] for gang in lane.gangs().values()] == [3]


def test_of_two_job_sets_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with lane.submitted(any_order("one"), any_order("two")):
        _, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        lane.await_pods(waits, 3)
        assert "nvidia.com/gpu" in lane.why(waits)


def test_the_one_that_waits_starts_when_the_other_is_deleted(lane: Lane) -> None:
    with lane.submitted(any_order("one"), any_order("two")):
        runs, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        lane.delete(any_order(runs.rstrip("-")))
        lane.await_running(waits, 3)


def test_jobs_that_depend_on_others_start_after_them_each_as_a_whole(lane: Lane) -> None:
    after = {"dependsOn": [{"name": "driver", "status": "Ready"}]}
    chained = job_set("chain", replicated("driver", 1, 1), replicated("workers", 1, 3, **after))
    with lane.submitted(chained):
        lane.await_running("chain-", 4)
        assert sorted(gang["running"] for gang in lane.gangs().values()) == [1, 3]


def test_a_job_set_that_is_suspended_gives_its_room_away_and_starts_again(lane: Lane) -> None:
    train = any_order("train")
    with lane.submitted(train):
        lane.await_running("train-", 3)
        lane.change(train, {"spec": {"suspend": True}})
        lane.await_pods("train-", 0)
        with lane.submitted_beside(any_order("other")):
            lane.await_running("other-", 3)
        lane.change(train, {"spec": {"suspend": False}})
        lane.await_running("train-", 3)
