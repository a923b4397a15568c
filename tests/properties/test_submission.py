"""Laws of submissions: whatever is written into a manifest, something comes of it, and never a traceback."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.submissions import owner, submit, template

ROLES = {"Master": {"template": template()}, "Worker": {"replicas": 2, "restartPolicy": "OnFailure", "template": template()}}
RAY: dict[str, Any] = {
    "headGroupSpec": {"template": template()}, "enableInTreeAutoscaling": True,
    "workerGroupSpecs": [{"groupName": "g", "replicas": 2, "minReplicas": 1, "numOfHosts": 1, "template": template()}],
}  # fmt: skip
JOB: dict[str, Any] = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template()}
CLAIM = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
VOLUMES = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
OWNERS = [
    owner("batch/v1", "Job", **{**JOB, "template": template(volumes=VOLUMES, resourceClaims=[{"name": "a"}])}),
    owner("apps/v1", "Deployment", replicas=2, template=template({"a": "b"})),
    owner("apps/v1", "StatefulSet", replicas=2, ordinals={"start": 1}, volumeClaimTemplates=[CLAIM], template=template()),
    owner("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=ROLES, runPolicy={"schedulingPolicy": {"queue": "a"}}),
    owner("kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs={"Launcher": {"template": template()}, "Worker": ROLES["Worker"]}),
    owner("ray.io/v1", "RayCluster", **RAY),
    owner("ray.io/v1", "RayJob", rayClusterSpec=RAY),
    owner(
        "jobset.x-k8s.io/v1alpha2", "JobSet", startupPolicy={"startupPolicyOrder": "AnyOrder"},
        replicatedJobs=[{"name": "a", "replicas": 1, "template": {"metadata": {"labels": {}}, "spec": JOB}}],
    ),
    owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate={"size": 2, "workerTemplate": template()}),
    owner("sparkoperator.k8s.io/v1beta2", "SparkApplication", driver={"memory": "1g", "cores": 1}, executor={"instances": 2}),
    owner("batch.volcano.sh/v1alpha1", "Job", minAvailable=1, tasks=[{"name": "a", "replicas": 1, "template": template()}]),
    {**owner("v1", "Pod"), "spec": template()["spec"]},
]  # fmt: skip


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside an object."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(inner, (*path, key))


PLACES = [(number, path) for number, document in enumerate(OWNERS) for path in paths(document)]
JUNK = st.sampled_from([None, "", "x", -1, 3, 2.5, True, [], {}, [None], {"x": None}, ["x"]])


def changed(number: int, path: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(OWNERS[number])
    found: Any = document
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = copy.deepcopy(value)
    return document


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
def test_a_field_with_anything_in_it_is_taken_or_said(place: tuple[int, tuple[Any, ...]], value: Any) -> None:
    made = submit(changed(*place, value)).found
    assert made.pods or made.problems or made.refused


@pytest.mark.parametrize("number", range(len(OWNERS)))
def test_what_was_submitted_is_not_made_again(number: int) -> None:
    before = submit(OWNERS[number]).found
    again = submit(OWNERS[number], existing=before.documents).found
    assert again.pods == []
    assert again.refused == []
    assert again.removed == []
