"""Claims with the access mode ReadWriteOncePod: one pod in the whole cluster may use one, whatever node it is on."""

from typing import Any

import pytest

from phalanx.config.policies import policy_of_profile
from phalanx.explain.gang_status import GangStatus
from phalanx.explain.node_reasons import node_reason
from phalanx.explain.tree import Stage
from phalanx.kubernetes.once_pod_claims import IN_USE
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support.explained_gangs import explained, stage, texts

NODES = [build.node("n0", cpu=4), build.node("n1", cpu=4)]
QUEUE = build.queue("default")
ONCE, MANY = "ReadWriteOncePod", "ReadWriteMany"


def claim(mode: str, name: str = "data", namespace: str = "default") -> list[Document]:
    meta = {"name": name, "namespace": namespace, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec: dict[str, Any] = {"accessModes": [mode], "storageClassName": "ssd", "volumeName": f"pv-{namespace}-{name}"}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {"phase": "Bound"}},
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{namespace}-{name}"},
            "spec": {"accessModes": [mode], "storageClassName": "ssd", "claimRef": {"namespace": namespace, "name": name}},
            "status": {"phase": "Bound"},
        },
    ]  # fmt: skip


def using(documents: list[Document], name: str = "data") -> list[Document]:
    """Return objects whose pods use a claim."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return [{**item, "spec": {**item["spec"], "volumes": volumes}} if item["kind"] == "Pod" else item for item in documents]


def started(*objects: Any, profile: str = "phalanx") -> bool:
    return explained(QUEUE, NODES, *objects, policy=policy_of_profile(profile)).headline == ""


def holder(on: str = "n0", namespace: str = "default") -> list[Document]:
    pod = build.pod("holder", on=on, cpu=1)
    return using([{**pod, "metadata": {**pod["metadata"], "namespace": namespace}}])


TRAIN = using(build.gang("train", tasks=1, cpu=1))


@pytest.mark.parametrize("on", ["n0", "n1"])
def test_no_node_takes_a_pod_while_another_one_uses_its_claim(on: str) -> None:
    found = explained(QUEUE, NODES, claim(ONCE), holder(on), TRAIN)
    assert "2 cannot take it while pod default/holder uses claim 'data' (ReadWriteOncePod)" in found.headline


def test_a_claim_that_nobody_uses_is_there_for_the_pod() -> None:
    assert started(claim(ONCE), TRAIN)


@pytest.mark.parametrize(
    "world", [[*claim(MANY), *holder()], [*claim(ONCE), *claim(ONCE, namespace="other"), *holder(namespace="other")]]
)
def test_other_access_modes_and_claims_of_other_namespaces_do_not_matter(world: list[Document]) -> None:
    assert started(world, TRAIN)


def test_members_of_a_gang_that_share_such_a_claim_cannot_run_together() -> None:
    found = explained(QUEUE, NODES, claim(ONCE), using(build.gang("train", tasks=2, cpu=1)))
    assert "1 of 2 tasks fit" in found.headline
    assert "cannot take it while a task placed in this session uses claim 'data' (ReadWriteOncePod)" in found.headline


@pytest.mark.parametrize(
    ("profile", "is_kept"), [("phalanx", True), ("coscheduling", True), ("default-scheduler", True), ("volcano", False)]
)
def test_profiles_filter_as_the_schedulers_do_that_they_stand_for(profile: str, is_kept: bool) -> None:
    assert started(claim(ONCE), holder(), TRAIN, profile=profile) is not is_kept


def test_the_reason_is_that_of_kube_scheduler_and_has_a_code() -> None:
    assert IN_USE == "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
    assert node_reason(IN_USE).code == "VolumeClaimInUse"


# --- evictions -----------------------------------------------------------------------------------------------------------


def running(name: str, on: str) -> list[Document]:
    group, pod = build.gang(name, tasks=1, cpu=1)
    return [group, {**pod, "spec": {**pod["spec"], "nodeName": on}, "status": {"phase": "Running"}}]


def urgent(documents: list[Document]) -> list[Document]:
    group, *pods = documents
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    named = [{**pod, "spec": {**pod["spec"], "priorityClassName": "high", "priority": 100}} for pod in pods]
    return [high, {**group, "spec": {**group["spec"], "priorityClassName": "high"}}, *named]


def test_only_the_pod_that_has_the_claim_is_evicted_for_a_more_important_one() -> None:
    found = explained(QUEUE, NODES, claim(ONCE), using(running("user", "n1")), running("other", "n0"), urgent(TRAIN))
    assert found.status is GangStatus.PIPELINED, found
    assert texts(stage(found, Stage.EVICTIONS)) == ["gangpreempt evicts 1 pod of default/user for it"]


def test_nobody_is_evicted_in_vain_for_a_claim_that_stays_in_use() -> None:
    found = explained(QUEUE, NODES, claim(ONCE), holder(), running("other", "n0"), urgent(TRAIN))
    assert found.status is GangStatus.WAITS
