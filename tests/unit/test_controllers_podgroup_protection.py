"""The finalizer of Kubernetes' PodGroups is taken off when nobody needs the group any more."""

from phalanx.controllers.podgroup_protection import FINALIZER, PodGroupProtection
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document
from phalanx.sim.world import World
from tests.support import native_groups as native
from tests.support import sim_worlds as worlds

GROUP = GROUP_BY_DIALECT["native"]


def world() -> World:
    return worlds.world(nodes=3, gpus=1, controllers=[PodGroupProtection()])


def protected(document: Document, *more: str) -> Document:
    return {**document, "metadata": {**document["metadata"], "finalizers": [FINALIZER, *more]}}


def test_an_empty_group_goes_at_once() -> None:
    found = world()
    found.submit([[protected(native.group("train", min_count=1))]])
    found.store.delete(GROUP, "default", "train")
    worlds.run(found, 0)
    assert found.store.find(GROUP, "default", "train") is None


def test_a_group_that_is_not_deleted_keeps_its_finalizer() -> None:
    found = world()
    found.submit([[protected(native.group("train", min_count=1))]])
    worlds.run(found, 10)
    assert found.store.get(GROUP, "default", "train")["metadata"]["finalizers"] == [FINALIZER]


def test_a_group_stays_as_long_as_a_pod_that_could_run_names_it_and_still_schedules() -> None:
    """Surprise 18: without kube-controller-manager, or with its gate off, it would stay for ever."""
    found = world()
    found.submit([[protected(native.group("train", min_count=2)), native.pod("train-0", "train", gpus=1)]])
    found.store.delete(GROUP, "default", "train")
    worlds.run(found, 5)
    assert "deletionTimestamp" in found.store.get(GROUP, "default", "train")["metadata"]
    found.submit([[native.pod("train-1", "train", gpus=1)]])
    worlds.run(found, 10)
    assert worlds.phases(found.store) == {"train-0": "Running", "train-1": "Running"}
    found.store.patch(POD, "default", "train-0", {"status": {"phase": "Succeeded"}}, is_status=True)
    worlds.run(found, 15)
    assert found.store.find(GROUP, "default", "train") is not None
    found.store.delete(POD, "default", "train-1", grace=0)
    worlds.run(found, 20)
    assert found.store.find(GROUP, "default", "train") is None


def test_finalizers_of_others_are_left_alone() -> None:
    found = world()
    found.submit([[protected(native.group("train", min_count=1), "example.com/mine")]])
    found.store.delete(GROUP, "default", "train")
    worlds.run(found, 5)
    assert found.store.get(GROUP, "default", "train")["metadata"]["finalizers"] == ["example.com/mine"]
