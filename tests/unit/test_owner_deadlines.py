"""Deadlines of owners: written on their groups, where the rule for run times finds them."""

from typing import Any

import pytest

from phalanx.controllers.controller import Patch
from phalanx.controllers.objects import owner_reference
from phalanx.controllers.owner_deadlines import DeadlineKey, OwnerDeadlines, owner_deadline
from phalanx.model.kinds import GROUP_BY_DIALECT, Document, kind_of
from phalanx.model.work_annotations import OWNER_DEADLINE
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import owned_pods as workloads
from tests.support import same_gang as speech
from tests.support import sim_worlds as worlds
from tests.support.owned_pods import owner

GROUP = GROUP_BY_DIALECT["volcano"]
STARTED = {"startTime": "2026-01-01T00:00:00Z"}
JOB_SPEC = {"activeDeadlineSeconds": 600}
POLICY = {"runPolicy": {"activeDeadlineSeconds": 600}}
JOB_SET = {"replicatedJobs": [{"name": name, "template": {"spec": {"activeDeadlineSeconds": seconds}}} for name, seconds in
                              (("driver", 900), ("workers", 600))]}  # fmt: skip


@pytest.mark.parametrize(
    ("top", "text"),
    [
        (owner("batch/v1", "Job", spec=JOB_SPEC), "600s"),
        (owner("batch/v1", "Job", spec=JOB_SPEC, status=STARTED), "600s from 2026-01-01T00:00:00Z"),
        (owner("batch/v1", "Job", spec=JOB_SPEC, status={"startTime": "soon"}), "600s"),
        (owner("kubeflow.org/v1", "PyTorchJob", spec=POLICY, status=STARTED), "600s from 2026-01-01T00:00:00Z"),
        (owner("kubeflow.org/v2beta1", "MPIJob", spec=POLICY, status=STARTED), "600s"),
        (owner("ray.io/v1", "RayJob", spec=JOB_SPEC, status=STARTED), "600s from 2026-01-01T00:00:00Z"),
        (owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec=JOB_SET, status=STARTED), "600s"),
        (owner("batch/v1", "Job", spec={"activeDeadlineSeconds": 0}), None),
        (owner("batch/v1", "Job", spec={"activeDeadlineSeconds": "1h"}), None),
        (owner("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": ["odd"]}), None),
    ],
)
def test_an_owner_says_it_in_a_field_of_its_own(top: Document, text: str | None) -> None:
    assert owner_deadline([top]) == text


def test_of_several_owners_the_shortest_deadline_counts() -> None:
    long, short = (
        owner("batch/v1", "Job", spec={"activeDeadlineSeconds": 900}, status=STARTED),
        owner("ray.io/v1", "RayJob", spec=JOB_SPEC),
    )
    assert owner_deadline([long, short]) == "600s"


def group_of(top: Document, **meta: Any) -> Document:
    found = build.pod_group("train")
    found["metadata"] |= {"ownerReferences": [owner_reference(top, is_controller=False)], **meta}
    return found


def written(store: MemoryStore, *schedulers: str) -> list[object]:
    """Return what the controller writes about the group train."""
    found = OwnerDeadlines(frozenset(schedulers)).reconcile(store, DeadlineKey("default", "train", "volcano")).writes
    assert all(isinstance(item, Patch) and item.kind is GROUP for item in found)
    return [item.patch["metadata"]["annotations"] for item in found if isinstance(item, Patch)]


def ray() -> tuple[Document, Document]:
    job = owner("ray.io/v1", "RayJob", spec=JOB_SPEC, status=STARTED)
    return job, owner("ray.io/v1", "RayCluster", by=job)


def test_a_group_that_somebody_else_made_gets_the_deadline_of_whoever_stands_above_it() -> None:
    job, cluster = ray()
    store = workloads.store(job, cluster, group_of(cluster))
    assert written(store) == [{OWNER_DEADLINE: "600s from 2026-01-01T00:00:00Z"}]
    assert [*OwnerDeadlines().concerns(store, kind_of(job), job)] == [DeadlineKey("default", "train", "volcano")]
    assert [*OwnerDeadlines().concerns(store, kind_of(cluster), cluster)] == []


def test_nothing_is_written_twice_and_what_no_longer_holds_is_removed() -> None:
    job, cluster = ray()
    known = {"annotations": {OWNER_DEADLINE: "600s from 2026-01-01T00:00:00Z"}}
    assert written(workloads.store(job, cluster, group_of(cluster, **known))) == []
    free = {**job, "spec": {}}
    assert written(workloads.store(free, cluster, group_of(cluster, **known))) == [{OWNER_DEADLINE: None}]


def test_an_owner_of_the_same_name_that_is_another_one_says_nothing() -> None:
    job, cluster = ray()
    group = group_of({**cluster, "metadata": {**cluster["metadata"], "uid": "older"}})
    assert written(workloads.store(job, cluster, group)) == []


@pytest.mark.parametrize(("scheduler", "count"), [("volcano", 1), ("other", 0)])
def test_groups_of_other_schedulers_are_left_to_them(scheduler: str, count: int) -> None:
    job, cluster = ray()
    pod = build.pod("train-0", group="train", spec={"schedulerName": scheduler})
    assert len(written(workloads.store(job, cluster, group_of(cluster), pod), "volcano", "phalanx")) == count


def test_a_gang_of_a_job_says_that_it_runs_longer_than_its_job_may() -> None:
    world = speech.cluster(nodes=1, gpus=2)
    spec, labels = {**POLICY, "pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}, {"kai.scheduler/queue": "default"}
    top = owner("kubeflow.org/v1", "PyTorchJob", spec=spec, labels=labels, status=STARTED)
    own = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/replica-type": "worker"}
    pods = [workloads.pod(f"train-{number}", by=top, labels=own, scheduler="phalanx", gpus=1) for number in range(2)]
    world.load([top])
    world.plan(200, lambda: world.submit([pods]))
    worlds.run(world, 590)
    (group,) = world.store.items(GROUP_BY_DIALECT["kai"])
    assert group["metadata"]["annotations"][OWNER_DEADLINE] == "600s from 2026-01-01T00:00:00Z"
    assert "Overdue" not in str(group["status"])
    worlds.run(world, 610)
    (group,) = world.store.items(GROUP_BY_DIALECT["kai"])
    (found,) = [item for item in group["status"]["conditions"] if item["type"] == "Overdue"]
    assert found["message"].endswith("(activeDeadlineSeconds of its owner)")
    assert found["lastTransitionTime"] == "2026-01-01T00:10:00Z"
