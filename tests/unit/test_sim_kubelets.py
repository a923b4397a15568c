"""Kubelets: bound pods start after a while, leaving pods are gone after a while."""

from random import Random

from phalanx.model.kinds import POD, Document
from phalanx.sim.kubelets import Kubelets
from phalanx.sim.settings import Delays, Settings, Span
from phalanx.sim.virtual_time import VirtualTime
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import sim_worlds as worlds

DELAYS = Delays(pull=Span(10, 10), start=Span(2, 2), stop=Span(5, 5))


def place(delays: Delays = DELAYS) -> tuple[MemoryStore, VirtualTime, Kubelets]:
    store, time = worlds.store()
    kubelets = Kubelets(store, time, Settings(delays=delays), Random(1))
    store.load(build.node("node-0"))
    store.load(build.pod("x"))
    return store, time, kubelets


def test_a_bound_pod_runs_after_pulling_and_starting() -> None:
    store, time, _ = place()
    store.bind("default", "x", "node-0")
    time.advance(1011.9)
    assert worlds.phases(store) == {"x": "Pending"}
    time.advance(1012)
    assert worlds.phases(store) == {"x": "Running"}


def test_the_containers_of_a_pod_that_runs_are_ready() -> None:
    store, time, kubelets = place()
    store.bind("default", "x", "node-0")
    time.advance(1012)
    pod = store.get(POD, "default", "x")
    assert [(item["name"], item["ready"], list(item["state"])) for item in pod["status"]["containerStatuses"]] == [
        ("main", True, ["running"])
    ]
    kubelets.succeed(pod)
    pod = store.get(POD, "default", "x")
    assert [(item["ready"], list(item["state"])) for item in pod["status"]["containerStatuses"]] == [(False, ["terminated"])]


def test_a_leaving_pod_is_gone_after_stopping_and_at_most_after_its_grace() -> None:
    for grace, seconds in ((30, 5), (2, 2)):
        store, time, _ = place()
        store.bind("default", "x", "node-0")
        time.advance(1020)
        store.evict("default", "x", grace=grace)
        time.advance(1020 + seconds - 0.1)
        assert worlds.phases(store) == {"x": "Leaving"}
        time.advance(1020 + seconds)
        assert worlds.phases(store) == {}


def test_a_pod_that_leaves_before_it_starts_never_runs() -> None:
    store, time, _ = place()
    store.bind("default", "x", "node-0")
    time.advance(1011)
    store.evict("default", "x")
    time.advance(1013)
    assert worlds.phases(store) == {"x": "Leaving"}


def test_a_pod_on_a_dead_node_does_not_start_and_is_told_as_lost() -> None:
    store, time, kubelets = place()
    lost: list[Document] = []
    kubelets.lost.append(lost.append)
    kubelets.dead.add("node-0")
    store.bind("default", "x", "node-0")
    time.advance(1100)
    assert worlds.phases(store) == {"x": "Pending"}
    assert [pod["metadata"]["name"] for pod in lost] == ["x"]


def test_delays_are_drawn_from_their_range() -> None:
    starts = set()
    for seed in range(5):
        store, time = worlds.store()
        Kubelets(store, time, Settings(delays=Delays(start=Span(1, 9))), Random(seed))
        store.load(build.pod("x"))
        store.bind("default", "x", "node-0")
        moment = time.next_time()
        assert moment is not None
        starts.add(moment)
    assert len(starts) == 5
    assert all(1001 <= start <= 1009 for start in starts)
