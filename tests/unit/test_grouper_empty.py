"""Groups that the pod grouper made and that no pod is in any more."""

from typing import Any

import pytest

from phalanx.controllers.controller import Create, Delete, Write
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.controllers.grouper.settings import GrouperSettings
from phalanx.controllers.objects import owner_reference
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind, kind_of
from phalanx.store.memory import MemoryStore
from tests.support import kai_objects as kai
from tests.support import owned_pods as workloads
from tests.support.owned_pods import owner, pod

MASTER = {"training.kubeflow.org/replica-type": "master"}


def torch() -> dict[str, Any]:
    return owner("kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": {"Master": {"replicas": 2}}})


def all_keys(store: MemoryStore, settings: GrouperSettings, kind: Kind, document: Document) -> list[Write]:
    """Return what the grouper writes because an object has changed or gone."""
    grouper = PodGrouper(settings)
    return [write for key in grouper.concerns(store, kind, document) for write in grouper.reconcile(store, key).writes]


@pytest.mark.parametrize("dialect", ["kai", "volcano", "coscheduling", "koordinator", "native"])
def test_a_group_goes_with_its_last_pod_and_comes_again_with_the_next(dialect: Any) -> None:
    top, settings, kind = torch(), GrouperSettings(dialect=dialect), GROUP_BY_DIALECT[dialect]
    members = [pod(f"train-{number}", by=top, labels=MASTER) for number in range(2)]
    for member in members:
        member["spec"] |= {"schedulingGroup": {"podGroupName": "train"}} if dialect == "native" else {}
    store = workloads.store(top, *members)
    group = workloads.grouped(store, "train-0", settings)
    workloads.carry_out(store, workloads.asked(store, "train-1", settings).writes)
    gone = [store.get(POD, "default", member["metadata"]["name"]) for member in members]
    store.delete(POD, "default", "train-0", grace=0)
    assert all_keys(store, settings, POD, gone[0]) == []
    store.delete(POD, "default", "train-1", grace=0)
    name = group["metadata"]["name"]
    expected = [Delete(kind, "default", name, store.get(kind, "default", name)["metadata"]["uid"])]
    assert all_keys(store, settings, POD, gone[1]) == expected
    assert all_keys(store, settings, kind_of(top), top) == expected
    store.load(gone[1])
    assert all_keys(store, settings, kind_of(top), top) == []
    lost = store.get(kind, "default", name)
    store.delete(kind, "default", name)
    assert [type(write) for write in all_keys(store, settings, kind, lost)] == [Create]


def test_a_group_that_somebody_else_made_stays_without_pods() -> None:
    top = torch()
    group = dict(kai.pod_group("train", min_member=4))
    group["metadata"] = {**group["metadata"], "ownerReferences": [owner_reference(top)]}
    member = pod(by=top, labels=MASTER, annotations={"pod-group-name": "train"})
    assert all_keys(workloads.store(top, group), GrouperSettings(), POD, member) == []


def test_a_group_whose_pod_was_gone_before_it_was_linked_goes_after_a_while() -> None:
    top, now = torch(), [1_767_225_600.0]
    store = MemoryStore(lambda: now[0])
    for document in (top, pod("train-0", by=top, labels=MASTER)):
        store.load(document)
    group = workloads.asked(store, "train-0", GrouperSettings()).writes[0]
    assert isinstance(group, Create)
    store.create(group.document)
    (made,) = store.items(GROUP_BY_DIALECT["kai"])
    grouper = PodGrouper(GrouperSettings())
    (key,) = grouper.concerns(store, GROUP_BY_DIALECT["kai"], made)
    assert grouper.reconcile(store, key).again == now[0] + 30.0
    now[0] += 30.0
    assert [type(write) for write in grouper.reconcile(store, key).writes] == [Delete]
    workloads.carry_out(store, workloads.asked(store, "train-0", GrouperSettings()).writes)
    assert list(grouper.concerns(store, GROUP_BY_DIALECT["kai"], made)) == []
    assert not grouper.reconcile(store, key).writes
