"""Reading a Volcano Job: what is implied, and what is refused with what to write instead."""

from typing import Any

import pytest

from phalanx.controllers.volcano_job.job import JobAction, JobEvent
from phalanx.errors import SnapshotError
from tests.support import volcano_jobs as jobs


def test_what_is_not_written_is_implied() -> None:
    job = jobs.read("train", {**jobs.task("", 3), "name": None}, jobs.task("b", 2, minAvailable=1))
    assert [task.name for task in job.tasks] == ["default0", "b"]
    assert [task.minimum for task in job.tasks] == [3, 1]
    assert (job.min_available, job.most_retries, job.queue, job.scheduler) == (4, 3, "default", "volcano")


@pytest.mark.parametrize(
    ("plugin", "implied"),
    [("tensorflow", {"svc"}), ("pytorch", {"svc"}), ("ray", {"svc"}), ("mpi", {"svc", "ssh"}), ("env", set())],
)
def test_plugins_bring_those_they_need(plugin: str, implied: set[str]) -> None:
    assert set(jobs.read("train", jobs.task("worker"), plugins={plugin: []}).plugins) == {plugin, *implied}


def test_partitions_imply_the_minimum_of_their_task() -> None:
    parts = {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3}
    assert jobs.read("train", jobs.task("worker", 8, partitionPolicy=parts)).min_available == 6


def test_without_a_minimum_of_partitions_the_whole_task_is_needed_and_none_of_them_alone() -> None:
    given, by_default = ({"totalPartitions": 4, "partitionSize": 2, **more} for more in ({"minPartitions": 0}, {}))
    for parts in (given, by_default):
        job = jobs.read("train", jobs.task("worker", 8, partitionPolicy=parts))
        assert job.tasks[0].partition is not None
        assert (job.min_available, job.tasks[0].partition.minimum) == (8, 0)


def test_limits_are_requests_where_there_are_no_others() -> None:
    container = {"name": "main", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}}
    job = jobs.read("train", jobs.task("worker", spec={"containers": [container]}))
    assert job.tasks[0].request == {"cpu": 1000, "nvidia.com/gpu": 1000}


def test_a_policy_has_one_event_or_many() -> None:
    more = {"event": "PodFailed", "timeout": "1m30s"}
    job = jobs.read("train", jobs.task("worker"), policies=[jobs.policy("RestartJob", "PodEvicted", **more)])
    assert job.policies[0].events == (JobEvent.POD_FAILED, JobEvent.POD_EVICTED)
    assert (job.policies[0].action, job.policies[0].timeout_seconds) == (JobAction.RESTART, 90.0)


def spec(**more: Any) -> dict[str, Any]:
    return {"tasks": [jobs.task("worker", 2)], **more}


def tasks(*found: dict[str, Any]) -> dict[str, Any]:
    return {"tasks": list(found)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (tasks(), "spec.tasks: empty; write at least one task with replicas and a template"),
        (tasks(jobs.task("a"), jobs.task("a")), "spec.tasks[0].name: 'a' is given twice; give every task a name of its own"),
        (tasks(jobs.task("a", -1)), "spec.tasks[0].replicas: -1 is negative; write 0 or more"),
        (tasks(jobs.task("a", 2, minAvailable=3)), "spec.tasks[0].minAvailable: 3 is not possible with 2 replicas; write 0 to 2"),
        (tasks({"name": "a", "replicas": 1}), "spec.tasks[0].template.spec.containers: empty; write at least one container"),
        (
            tasks(jobs.task("a", cpu="much")),
            "spec.tasks[0].template.spec.containers[0].resources.requests.cpu: quantity 'much': not a number with a suffix;"
            " write for example '2', '500m', '4Gi' or '1e3'",
        ),
        (
            tasks(jobs.task("a", spec={"containers": 3})),
            "spec.tasks[0].template.spec.containers: expected `array | null`, got `int`",
        ),
        (
            tasks({**jobs.task("a"), "template": {**jobs.task("a")["template"], "metadata": {"labels": "x"}}}),
            "spec.tasks[0].template.metadata.labels: expected `object | null`, got `str`",
        ),
        (spec(minAvailable=3), "spec.minAvailable: 3 is more than the 2 replicas of all tasks; write 2 or less"),
        (spec(minAvailable=-1), "spec.minAvailable: -1 is negative; write 1 or more"),
        (spec(minAvailable="3"), "spec.minAvailable: expected `int | null`, got `str`"),
        (spec(minSuccess=3), "spec.minSuccess: 3 is not possible; write a number from 1 to 2"),
        (
            spec(plugins={"magic": []}),
            "spec.plugins.magic: unknown; write one of env, svc, ssh, tensorflow, pytorch, mpi, ray, hcclrank",
        ),
        (
            spec(plugins={"mpi": ["--ports=1"]}),
            "spec.plugins.mpi: '--ports=1' is no option of it; known are --master, --worker, --port",
        ),
        (spec(plugins={"mpi": ["--port=x"]}), "spec.plugins.mpi: --port: 'x' is not a number; write for example --port=22"),
        (spec(plugins={"env": ["loud"]}), "spec.plugins.env: 'loud' is no option of it; known are none"),
        (spec(plugins={"svc": ["--disable-network-policy=no"]}),
         "spec.plugins.svc: --disable-network-policy: 'no' is unknown; write true or false"),
        (spec(plugins={"mpi": ["--master"]}), "spec.plugins.mpi: --master: has no value; write for example 'master'"),
        (
            spec(policies=[jobs.policy("RestartJob", "PodBroken")]),
            "spec.policies[0].event: 'PodBroken' is unknown; write one of *, PodPending, PodRunning, PodFailed, PodEvicted,"
            " Unknown, TaskCompleted, TaskFailed",
        ),
        (
            spec(policies=[jobs.policy("Panic", "PodFailed")]),
            "spec.policies[0].action: 'Panic' is unknown; write one of AbortJob, RestartJob, RestartTask, RestartPod,"
            " RestartPartition, TerminateJob, CompleteJob, ResumeJob",
        ),
        (
            spec(policies=[jobs.policy("AbortJob")]),
            "spec.policies[0]: needs either an event or an exitCode; write one of them, such as event: PodFailed",
        ),
        (
            spec(policies=[jobs.policy("AbortJob", exitCode=0)]),
            "spec.policies[0].exitCode: 0 is no failure; write another number, or event: TaskCompleted",
        ),
        (
            spec(policies=[jobs.policy("AbortJob", "PodPending")]),
            "spec.policies[0].timeout: missing; every pod is pending at first, so write how long it may be, such as '10m'",
        ),
        (
            spec(policies=[jobs.policy("AbortJob", "PodFailed", timeout="soon")]),
            "spec.policies[0].timeout: 'soon' is not a duration; write for example '10m'",
        ),
        (
            tasks(jobs.task("a", dependsOn={"name": ["b"]}), jobs.task("b", dependsOn={"name": ["a"]}), jobs.task("c")),
            "spec.tasks: a, b wait for each other in a circle; take one of their dependsOn away",
        ),
        (
            tasks(jobs.task("a", dependsOn={"name": ["x"]}), jobs.task("b")),
            "spec.tasks[0].dependsOn.name: no task is called 'x'; known are b",
        ),
        (
            tasks(jobs.task("a"), jobs.task("b", dependsOn={"name": ["a"], "iteration": "some"})),
            "spec.tasks[1].dependsOn.iteration: 'some' is unknown; write 'any' or 'all'",
        ),
        (
            tasks(jobs.task("a", 4, partitionPolicy={"totalPartitions": 3, "partitionSize": 2})),
            "spec.tasks[0].partitionPolicy: 3 partitions of 2 pods are not the task's 4 replicas; write totalPartitions and"
            " partitionSize whose product is replicas",
        ),
        (
            spec(volumes=[{"mountPath": "/data"}]),
            "spec.volumes[0]: names no claim; write volumeClaimName, or volumeClaim with the spec of a new one",
        ),
        (
            spec(volumes=[{"volumeClaimName": "data"}]),
            "spec.volumes[0].mountPath: missing; write the path at which pods see the volume, such as '/data'",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        jobs.read("train", *wrong.pop("tasks"), **wrong)
    assert str(caught.value) == message
