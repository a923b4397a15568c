"""Kueue, unpatched, in front of us: it admits by quota, and what it admits starts whole where there is room."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from phalanx.model.kinds import Document
from tests.support.operator_lanes import GPUS, NAMESPACE, Lane, lane_of, needs, template, workload
from tests.support.webhook_operators import kueue

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), needs("kueue")]
API = "kueue.x-k8s.io"
LOCAL = "user-queue"
"""A LocalQueue; no Queue of Volcano's has its name."""
QUOTA = 100
"""More GPUs than there are: Kueue admits what does not fit."""


@pytest.fixture(scope="module")
def lane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lane]:
    with lane_of(kueue, tmp_path_factory.mktemp("kueue")) as lane:
        lane.apply(queues())
        yield lane


def queues() -> list[Document]:
    """Return a queue whose quota is more than the cluster has, and its door in the namespace of the lane."""

    def made(kind: str, name: str, spec: Any = None, **meta: str) -> Document:
        return {"apiVersion": f"{API}/v1beta1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec or {}}

    flavor = {"name": "gpus", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": QUOTA}]}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [flavor]}
    return [
        made("ResourceFlavor", "gpus"),
        made("ClusterQueue", "all", {"namespaceSelector": {}, "resourceGroups": [group]}),
        made("LocalQueue", LOCAL, {"clusterQueue": "all"}, namespace=NAMESPACE),
    ]


def job(name: str, pods: int) -> Document:
    """Return a Job whose pods start together."""
    spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": template(restartPolicy="Never")}
    annotations = {"scheduling.volcano.sh/group-min-member": str(pods)}
    return workload("batch/v1", "Job", name, spec, labels={f"{API}/queue-name": LOCAL}, annotations=annotations)


def pod_group(name: str, pods: int) -> list[Document]:
    """Return plain pods that Kueue admits together."""
    labels = {f"{API}/queue-name": LOCAL, f"{API}/pod-group-name": name}
    meta = {"labels": labels, "annotations": {f"{API}/pod-group-total-count": str(pods)}}
    spec = template(restartPolicy="Never")["spec"]
    return [workload("v1", "Pod", f"{name}-{number}", spec, **meta) for number in range(pods)]


@contextmanager
def submitted(lane: Lane, *groups: str) -> Iterator[None]:
    """Let pod groups be there; Kueue lets their pods go when their Workload goes."""
    try:
        lane.apply([pod for name in groups for pod in pod_group(name, 3)])
        yield
    finally:
        workloads = [workload(f"{API}/v1beta1", "Workload", name, {}) for name in groups]
        lane.delete(*(pod for name in groups for pod in pod_group(name, 3)), *workloads)
    lane.wait(lambda: not lane.left(), lane.left)


def test_a_pod_group_starts_whole_though_no_queue_has_the_name_of_its_local_queue(lane: Lane) -> None:
    with submitted(lane, "train"):
        lane.await_running("train-", 3)
        assert [gang["running"] for gang in lane.gangs().values()] == [3]


def test_of_two_pod_groups_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with submitted(lane, "one", "two"):
        _, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        assert not any(pod["spec"].get("schedulingGates") for pod in lane.pods(waits)), "Kueue has not admitted it"
        lane.wait(lambda: "nvidia.com/gpu" in lane.why(waits.rstrip("-")), lane.gangs)


def test_a_job_starts_whole_and_leaves_nothing(lane: Lane) -> None:
    with lane.submitted(job("train", 3)):
        lane.await_running("train-", 3)
        assert [gang["running"] for gang in lane.gangs().values()] == [3]


def test_of_two_jobs_that_would_deadlock_one_runs_and_the_other_is_told_why_it_waits(lane: Lane) -> None:
    with lane.submitted(job("one", 3), job("two", 3)):
        _, waits = lane.check_one_runs_and_the_other_waits("one-", "two-", 3)
        lane.await_pods(waits, 3)
        lane.wait(lambda: "nvidia.com/gpu" in lane.why(waits.rstrip("-")), lane.gangs)


def test_what_is_beyond_the_quota_gets_no_pods_until_kueue_admits_it(lane: Lane) -> None:
    wide = job("wide", QUOTA // GPUS + 1)
    with lane.submitted(wide):
        lane.wait(lambda: bool(lane.listed(f"workloads.{API}")), lambda: lane.current(wide))
        lane.check_none_starts("wide-")
        assert lane.pods("wide-") == []
