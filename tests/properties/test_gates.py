"""A gang behind our gate ends up whole or not there, wherever whoever plans and lifts stops, and whoever goes on."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.dialects.gates import GATE, gates_of
from phalanx.errors import ServerError
from phalanx.model.kinds import POD, Document, Kind
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import gated_gangs as gates
from tests.support import sim_worlds as worlds


def stop_after(world: World, writes: int) -> None:
    """Let so many changes of pods through that come from plans and lifted gates, and no more."""
    patch, left = world.store.patch, writes

    def limited(kind: Kind, namespace: str, name: str, change: Document, **more: Any) -> Document:
        nonlocal left
        if kind is POD and not more.get("is_status"):
            left -= 1
            if left < 0:
                raise ServerError("nobody answers")
        return patch(kind, namespace, name, change, **more)

    world.store.patch = limited  # type: ignore[method-assign,assignment]  # the end of a process, as the store sees it


def restarted(world: World) -> World:
    """Return the same cluster, watched by somebody who has seen nothing of it."""
    found = gates.world(nodes=0, start=world.now)
    found.load([item for item in world.store.everything() if item["kind"] in ("Node", "Pod")])
    return found


def sizes(world: World, names: Sequence[str]) -> list[int]:
    return [len(gates.placed(world, name)) for name in names]


@given(writes=st.integers(0, 12), tasks=st.integers(1, 5), nodes=st.integers(1, 6), pause=st.sampled_from([0, 1, 30, 200]))
@settings(max_examples=60, deadline=None)
def test_whatever_got_through_a_gang_is_whole_or_not_there(writes: int, tasks: int, nodes: int, pause: int) -> None:
    before = gates.world(nodes=nodes, gpus=1)
    stop_after(before, writes)
    worlds.submit(before, gates.gang("a", tasks, gpus=1))
    worlds.run(before, 5 + pause)
    after = restarted(before)
    worlds.run(after, 120)
    assert sizes(after, "a") == [tasks if tasks <= nodes else 0]


@given(writes=st.integers(0, 30), a=st.integers(1, 4), b=st.integers(1, 4), nodes=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_two_gangs_never_block_each_other(writes: int, a: int, b: int, nodes: int) -> None:
    before = gates.world(nodes=nodes, gpus=1)
    stop_after(before, writes)
    worlds.submit(before, gates.gang("a", a, gpus=1), gates.gang("b", b, gpus=1))
    worlds.run(before, 20)
    after = restarted(before)
    worlds.run(after, 120)
    found = sizes(after, "ab")
    assert [size in (0, full) for size, full in zip(found, (a, b), strict=True)] == [True, True]
    assert (found == [a, b]) is (a + b <= nodes)
    assert any(found) is (min(a, b) <= nodes)


COMERS = ("a-0", "a-1", "b-0", "b-1", "alone-0", "alone-1")


@given(order=st.permutations(COMERS), gaps=st.lists(st.integers(0, 3), min_size=6, max_size=6))
@settings(max_examples=40, deadline=None)
def test_in_whatever_order_pods_come_gangs_start_whole(order: list[str], gaps: list[int]) -> None:
    found = gates.world(nodes=3, gpus=1)
    moment = 0
    for name, gap in zip(order, gaps, strict=True):
        moment += gap
        gang = name.partition("-")[0]
        pod = build.pod(name, gpus=1) if gang == "alone" else gates.pod(name, gang, 2, gpus=1)
        worlds.submit(found, [pod], at=moment)
    worlds.run(found, 120)
    assert sorted(sizes(found, "ab")) in ([0, 0], [0, 2])
    waiting = [pod for pod in found.store.items(POD) if not pod["spec"].get("nodeName")]
    assert all(gates_of(pod) == [GATE] for pod in waiting if not pod["metadata"]["name"].startswith("alone"))
