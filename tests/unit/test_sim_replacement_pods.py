"""Pods that come back: whom somebody expects, once gone, and as it was submitted."""

from phalanx.dialects.fresh_pods import fresh
from phalanx.model.kinds import POD
from phalanx.sim.replacement_pods import ReplacementPods
from phalanx.sim.settings import Settings
from phalanx.testing import build
from tests.support import sim_worlds as worlds


def test_an_expected_pod_comes_back_after_a_while_without_its_past() -> None:
    store, time = worlds.store()
    comebacks = ReplacementPods(store, time, Settings(restart_after=7), lambda pod: False)
    old = store.load(build.pod("x", on="node-0", cpu=1))
    comebacks.expect(old["metadata"]["uid"])
    store.delete(POD, "default", "x", grace=0)
    time.advance(1006)
    assert store.items(POD) == []
    time.advance(1007)
    (new,) = store.items(POD)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert "nodeName" not in new["spec"]
    assert new["status"]["phase"] == "Pending"
    assert new["spec"]["containers"] == old["spec"]["containers"]


def test_nobody_else_comes_back() -> None:
    store, time = worlds.store()
    comebacks = ReplacementPods(store, time, Settings(restart_after=None), lambda pod: False)
    comebacks.expect(store.load(build.pod("x"))["metadata"]["uid"])
    store.load(build.pod("y"))
    store.delete(POD, "default", "x", grace=0)
    store.delete(POD, "default", "y", grace=0)
    assert time.next_time() is None


def test_a_pod_that_has_done_its_work_does_not_come_back() -> None:
    store, time = worlds.store()
    comebacks = ReplacementPods(store, time, Settings(), lambda pod: False)
    comebacks.expect(store.load({**build.pod("x", on="node-0"), "status": {"phase": "Succeeded"}})["metadata"]["uid"])
    store.delete(POD, "default", "x", grace=0)
    assert time.next_time() is None


def test_somebody_else_may_be_quicker() -> None:
    store, time = worlds.store()
    comebacks = ReplacementPods(store, time, Settings(restart_after=5), lambda pod: False)
    comebacks.expect(store.load(build.pod("x"))["metadata"]["uid"])
    store.delete(POD, "default", "x", grace=0)
    other = store.create(fresh(build.pod("x")))
    time.advance(1010)
    assert [pod["metadata"]["uid"] for pod in store.items(POD)] == [other["metadata"]["uid"]]


def test_nobody_comes_back_to_a_namespace_that_is_going() -> None:
    store, time = worlds.store()
    comebacks = ReplacementPods(store, time, Settings(restart_after=5), lambda pod: False)
    going = {"name": "old", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes"]}
    store.load({"apiVersion": "v1", "kind": "Namespace", "metadata": going})
    comebacks.expect(store.load(build.pod("old/x"))["metadata"]["uid"])
    store.delete(POD, "old", "x", grace=0)
    time.advance(1010)
    assert store.items(POD) == []
