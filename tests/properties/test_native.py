"""Gangs that must share a value of a node label are in one domain, whole, or not there."""

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.model.kinds import POD
from phalanx.testing import build
from tests.support import native_groups as native
from tests.support import sim_worlds as worlds

POLICY = build.policy((("priority", "gang"), ("predicates", "nodeorder", "binpack")), "allocate, backfill, gangpreempt")
TOGETHER = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
gangs = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2), st.booleans(), st.integers(0, 20)), min_size=1, max_size=5)


@given(racks=st.lists(st.sampled_from(["one", "two", "three", ""]), min_size=1, max_size=8), asked=gangs)
@settings(max_examples=80, deadline=None)
def test_a_gang_is_whole_in_one_domain_or_waits(racks: list[str], asked: list[tuple[int, int, bool, int]]) -> None:
    world = worlds.world(nodes=0, policy=POLICY)
    rack_by_node = {f"n{number}": rack for number, rack in enumerate(racks)}
    world.load([build.node(name, gpus=1, labels={"rack": rack} if rack else {}) for name, rack in rack_by_node.items()])
    world.load([native.priority_class("hi", 100)])
    for number, (minimum, more, is_urgent, moment) in enumerate(asked):
        spec = {**TOGETHER, **({"priorityClassName": "hi"} if is_urgent else {})}
        gang = native.gang(f"g{number}", tasks=minimum + more, min_count=minimum, gpus=1, spec=spec)
        worlds.submit(world, gang, at=moment)
    worlds.run(world, 200)
    for number, (minimum, _, _, _) in enumerate(asked):
        pods = [pod for pod in world.store.items(POD) if pod["metadata"]["name"].startswith(f"g{number}-")]
        nodes = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")]
        assert not nodes or len(nodes) >= minimum
        assert len({rack_by_node[node] for node in nodes}) <= 1
        assert "" not in {rack_by_node[node] for node in nodes}


@given(racks=st.lists(st.sampled_from(["one", "two", "three", ""]), min_size=1, max_size=8), tasks=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_a_gang_starts_when_some_domain_has_room_for_it(racks: list[str], tasks: int) -> None:
    world = worlds.world(nodes=0, policy=POLICY)
    world.load([build.node(f"n{number}", gpus=1, labels={"rack": rack} if rack else {}) for number, rack in enumerate(racks)])
    worlds.submit(world, native.gang("train", tasks=tasks, gpus=1, spec=TOGETHER))
    worlds.run(world, 10)
    largest = max((racks.count(rack) for rack in racks if rack), default=0)
    assert all(pod["spec"].get("nodeName") for pod in world.store.items(POD)) is (tasks <= largest)
