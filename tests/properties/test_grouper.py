"""Laws of grouping: whatever owners say, the grouper answers, only their own pods are set aside, and it comes to rest."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.controllers.controller import Create, Key, Patch, RecordEvent
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.controllers.grouper.rules import RULES
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import KINDS, POD
from tests.support import owned_pods as workloads
from tests.support.owned_pods import owner, pod

VERSIONS = {(kind.group, kind.kind): kind.api_version for kind in KINDS}
OWNERS = sorted(pair for rule in RULES for pair in rule.kinds if pair != ("", "Pod"))
DIALECTS = ("kai", "volcano", "coscheduling", "koordinator", "native")
FIELDS = (
    "replicas", "minReplicas", "size", "numOfHosts", "pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs", "Master", "Worker",
    "Launcher", "workerGroupSpecs", "headGroupSpec", "replicatedJobs", "name", "template", "spec", "metadata", "annotations",
    "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize", "elasticPolicy", "runPolicy", "startupPolicy", "job", "options",
    "envs", "parallelism", "completions", "suspend", "AZUREML_NODE_COUNT", "launcherCreationPolicy",
)  # fmt: skip
scalars = (
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["", "3", "WaitForWorkersReady", "LeaderReady", "AnyOrder"])
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4), max_leaves=12
)
roles = st.sampled_from(["master", "worker", "launcher", "", "3"])
LABELS = (
    "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index", "leaderworkerset.sigs.k8s.io/group-index",
    "leaderworkerset.sigs.k8s.io/worker-index", "ray.io/group", "jobset.sigs.k8s.io/replicatedjob-name",
)  # fmt: skip
labels = st.dictionaries(st.sampled_from(LABELS), roles | st.sampled_from(["0", "1", "headgroup"]))
annotations = st.dictionaries(
    st.sampled_from(["phalanx.dev/min-member", "kai.scheduler/segment-size", "kai.scheduler/topology"]),
    st.sampled_from(["2", "0", "x"]),
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(OWNERS), anything, labels, annotations, st.sampled_from(DIALECTS))
def test_whatever_an_owner_says_the_grouper_answers_and_comes_to_rest(
    pair: tuple[str, str], spec: Any, on_pod: dict[str, str], on_owner: dict[str, str], dialect: Any
) -> None:
    top = owner(VERSIONS[pair], pair[1], spec=spec, annotations=on_owner)
    member = pod(by=top, labels=on_pod)
    if dialect == "native":
        member["spec"]["schedulingGroup"] = {"podGroupName": "mine"}
    chosen = GrouperSettings(dialect=dialect)
    store = workloads.store(top, member)
    writes = workloads.asked(store, settings=chosen).writes
    assert writes or dialect == "native"
    if all(isinstance(write, RecordEvent) for write in writes):
        return
    assert isinstance(writes[0], Create)
    workloads.carry_out(store, writes)
    assert not workloads.asked(store, settings=chosen).writes
    understood(writes[0].document, dialect)


def understood(group: Any, dialect: str) -> None:
    """A group that is written can be read by those who schedule it."""
    cluster = ObjectCluster()
    if dialect in ("kai", "volcano"):
        assert cluster.put({**group, "metadata": {**group["metadata"], "uid": "u"}})
        [gang] = cluster.snapshot(0.0).gangs.values()
        assert gang.min_member >= 1


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 3), st.integers(1, 12), st.integers(1, 13))
def test_segments_hold_every_worker_once(masters: int, workers: int, size: int) -> None:
    template = {"metadata": {"annotations": {"kai.scheduler/segment-size": str(size)}}}
    specs = {"Master": {"replicas": masters}, "Worker": {"replicas": workers, "template": template}}
    top = owner("kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": specs})
    kind = "training.kubeflow.org/replica-type"
    pods = [
        pod(f"w-{at}", by=top, labels={kind: "worker", "training.kubeflow.org/replica-index": str(at)}) for at in range(workers)
    ]
    store = workloads.store(top, *pods)
    group = workloads.grouped(store, "w-0")
    for member in pods[1:]:
        workloads.carry_out(
            store, [write for write in workloads.asked(store, member["metadata"]["name"]).writes if isinstance(write, Patch)]
        )
    placed = [item["metadata"]["labels"]["kai.scheduler/subgroup-name"] for item in store.items(POD)]
    wanted = {part["name"]: part["minMember"] for part in group["spec"]["subGroups"] if part.get("parent") == "worker"}
    assert {name: placed.count(name) for name in placed} == wanted


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12), st.integers(2, 12), st.sampled_from(["LeaderWorker", "LeaderExcluded"]))
def test_parts_of_a_leader_worker_set_hold_every_pod_once(size: int, segment: int, kind: str) -> None:
    policy = {"subGroupSize": segment, "subGroupPolicyType": kind}
    spec = {"leaderWorkerTemplate": {"size": size, "subGroupPolicy": policy}}
    top = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec=spec)
    keys = ("leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset.sigs.k8s.io/worker-index")
    pods = [pod(f"w-{at}", by=top, labels=dict(zip(keys, ("0", str(at)), strict=True))) for at in range(size)]
    store = workloads.store(top, *pods)
    results = [workloads.asked(store, member["metadata"]["name"]) for member in pods]
    created = [write.document for write in results[0].writes if isinstance(write, Create)]
    if not created:
        assert all(isinstance(write, RecordEvent) for result in results for write in result.writes)
        return
    parts = created[0]["spec"]["subGroups"]
    parents = {part.get("parent") for part in parts}
    wanted = {part["name"]: part["minMember"] for part in parts if part["name"] not in parents}
    links = [
        write.patch["metadata"]["labels"]["kai.scheduler/subgroup-name"]
        for result in results
        for write in result.writes
        if isinstance(write, Patch)
    ]
    assert {name: links.count(name) for name in links} == wanted
    assert sum(wanted.values()) == size


STRANGE: list[dict[str, Any]] = [
    {"spec": {"schedulingGroup": "x"}}, {"metadata": {"labels": ["x"]}}, {"metadata": {"annotations": {"pod-group-name": 7}}},
    {"status": {"phase": 7}}, {"metadata": {"ownerReferences": [{"name": 7, "uid": "u"}]}},
]  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE, ids=str)
def test_a_strange_pod_is_told_about_and_stops_nobody(strange: dict[str, Any]) -> None:
    found = pod()
    for key, fields in strange.items():
        found[key] = {**found.get(key, {}), **fields}
    store = workloads.store(found)
    assert list(PodGrouper().concerns(store, POD, found)) == [Key("default", "train-0")]
    [event] = workloads.asked(store).writes
    assert isinstance(event, RecordEvent)
    assert event.message.startswith("Pod default/train-0: ")
