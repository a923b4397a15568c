"""The mpi-operator, unpatched: launcher and workers start together, by the name of the scheduler alone and with its own groups."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.support.operator_lanes import Lane, lane_of, needs, template, workload
from tests.support.real_operators import is_free, mpi_operator

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), needs("mpi-operator")]
HEALTH = 8080
"""The port that the operator binds; it cannot be told another."""
ALONE = "scheduler-name-alone"


@pytest.fixture(scope="module", params=["", "volcano"], ids=[ALONE, "gang-scheduling-volcano"])
def lane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    if not is_free(HEALTH):
        pytest.skip(f"another program uses port {HEALTH}, which the mpi-operator needs")
    operator = partial(mpi_operator, gangs=request.param)
    with lane_of(operator, tmp_path_factory.mktemp("mpi"), "--scheduler-name=volcano") as lane:
        yield lane


def mpi_job(name: str, workers: int) -> dict[str, Any]:
    """Return an MPIJob; its launcher takes a node too."""
    roles = {"Launcher": 1, **({"Worker": workers} if workers else {})}
    replicas = {role: {"replicas": count, "template": template()} for role, count in roles.items()}
    return workload("kubeflow.org/v2beta1", "MPIJob", name, {"mpiReplicaSpecs": replicas, "runPolicy": {"cleanPodPolicy": "All"}})


def test_a_job_that_fits_starts_whole_and_leaves_nothing(lane: Lane) -> None:
    with lane.submitted(mpi_job("mpi", 2)):
        lane.await_running("mpi-", 3)
        assert [gang["running"] for gang in lane.gangs().values()] == [3]


def test_of_two_jobs_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with lane.submitted(mpi_job("one", 2), mpi_job("two", 2)):
        _, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        lane.await_pods(waits, 3)
        assert "nvidia.com/gpu" in lane.why(waits.rstrip("-"))


# With groups of its own the operator ends at such a job: "index out of range" in calPGMinResource.
@pytest.mark.parametrize("lane", [""], ids=[ALONE], indirect=True)
def test_a_job_of_a_launcher_alone_runs(lane: Lane) -> None:
    with lane.submitted(mpi_job("alone", 0)):
        lane.await_running("alone-", 1)
        assert lane.warnings() == []
