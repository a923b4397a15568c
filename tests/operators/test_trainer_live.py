"""Kubeflow's trainer, unpatched, with JobSet beneath it: a TrainJob starts as a gang with the name of the scheduler alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import Process
from phalanx.model.kinds import Document
from tests.support.operator_lanes import Lane, lane_of, needs, template, workload
from tests.support.real_operators import trainer
from tests.support.webhook_operators import jobset

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), needs("trainer"), needs("jobset")]
API = "trainer.kubeflow.org/v1alpha1"


@contextmanager
def both(plane: ControlPlane, folder: Path) -> Iterator[Process]:
    with jobset(plane, folder), trainer(plane, folder) as process:
        yield process


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_of(both, tmp_path_factory.mktemp("trainer")) as lane:
        lane.apply([runtime()])
        yield lane


def runtime() -> Document:
    """Return a runtime in which each node of a TrainJob is a pod."""
    labels = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    job = {"name": "node", "template": {"metadata": labels, "spec": {"template": template("node", restartPolicy="Never")}}}
    policy = {"numNodes": 1, "torch": {"numProcPerNode": "auto"}}
    return workload(API, "TrainingRuntime", "torch", {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [job]}}})


def train_job(name: str, nodes: int) -> Document:
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "torch"}
    return workload(API, "TrainJob", name, {"runtimeRef": reference, "trainer": {"numNodes": nodes}})


def test_a_job_that_fits_starts_whole_and_leaves_nothing(lane: Lane) -> None:
    with lane.submitted(train_job("train", 3)):
        lane.await_running("train-", 3)
        assert [gang["running"] for gang in lane.gangs().values()] == [3]


def test_of_two_jobs_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with lane.submitted(train_job("one", 3), train_job("two", 3)):
        _, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        lane.await_pods(waits, 3)
        assert "nvidia.com/gpu" in lane.why(waits.rstrip("-"))
