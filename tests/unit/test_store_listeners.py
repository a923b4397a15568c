"""Listeners of the store: one that fails keeps no other from hearing of a change."""

import pytest

from phalanx.model.kinds import POD
from phalanx.model.watch_event import WatchEvent
from phalanx.sim.world import World
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import sim_worlds as worlds


def failing(event: WatchEvent) -> None:
    raise ZeroDivisionError(event.object["metadata"]["name"])


def test_all_listeners_hear_of_a_change_before_a_failure_is_raised() -> None:
    store, heard = MemoryStore(lambda: 0.0), list[str]()
    store.listen(failing)
    store.listen(lambda event: heard.append(event.object["metadata"]["name"]))
    with pytest.raises(ZeroDivisionError, match="n0"):
        store.create(build.node("n0"))
    assert heard == ["n0"]


def test_a_cluster_that_users_look_at_goes_on_with_an_object_that_somebody_fails_on() -> None:
    world: World = worlds.world(is_served=True, cpu=4)
    node, told = build.node("odd"), list[str]()
    world.on_event(lambda event: told.append(f"{event.reason}: {event.message}"))
    world.store.load({**node, "status": {"allocatable": "plenty", "conditions": ["Ready"]}})
    world.load(build.gang("train", tasks=2, cpu=1))
    worlds.run(world, 10)
    assert all(pod["spec"].get("nodeName") for pod in world.store.items(POD))
    assert any(text.startswith("nodes default/odd: left out, please report it: AttributeError: ") for text in world.problems)
    assert "Misconfigured: Node odd: status.allocatable: expected `object | null`, got `str`" in told
