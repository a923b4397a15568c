"""Simulated clusters in a few words, for tests.

world = worlds.world(nodes=3, gpus=1)
worlds.submit(world, worlds.gang("train", tasks=3, duration="10m", gpus=1))
world.advance(world.start + 60)
"""

from collections.abc import Sequence
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.kinds import POD, Document
from phalanx.model.task import GangKey
from phalanx.session.cycle import Profile
from phalanx.session.policy import Policy
from phalanx.sim.recorder import GangRecord
from phalanx.sim.running_work import DURATION
from phalanx.sim.settings import Settings
from phalanx.sim.setup import Cast, cast
from phalanx.sim.virtual_time import VirtualTime
from phalanx.sim.world import World
from phalanx.store.memory import MemoryStore
from phalanx.testing import build


def world(*, nodes: int = 3, policy: Policy | None = None, settings: Settings | None = None, **more: Any) -> World:
    """Return a world with equal nodes ``node-0`` and so on; `more` is what nodes offer, and what a world takes besides."""
    own = {name: more.pop(name) for name in ("seed", "is_solo", "controllers", "gates", "start", "is_served") if name in more}
    chosen = policy or build.policy()
    found = World(Profile(chosen, catalogue_of(chosen.catalogue)), settings=settings, **own)
    found.load([*(build.node(f"node-{number}", **more) for number in range(nodes)), build.queue("default")])
    return found


def parts(documents: Sequence[Document]) -> Cast:
    """Return the parts that objects play."""
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    return cast(documents, cluster)


def gang(name: str, *, duration: str = "", **more: Any) -> list[Document]:
    """Return a gang as `build.gang` does, with a duration if one is given."""
    group, *pods = build.gang(name, **more)
    group["metadata"]["annotations"] = {DURATION: duration} if duration else {}
    return [group, *pods]


def submit(world: World, *gangs: Sequence[Document], at: float = 0.0) -> None:
    """Let gangs arrive together so many seconds after the start."""
    world.plan(at, lambda: world.submit(gangs))


def run(world: World, seconds: float) -> None:
    """Let time pass until so many seconds after the start."""
    world.advance(world.start + seconds)


def phases(store: MemoryStore) -> dict[str, str]:
    """Return the phase of every pod; Leaving for those that are about to go."""
    return {
        pod["metadata"]["name"]: "Leaving" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
        for pod in store.items(POD)
    }


def store(now: float = 1000.0) -> tuple[MemoryStore, VirtualTime]:
    """Return an empty store and the time that is its clock."""
    time = VirtualTime(now)
    return MemoryStore(lambda: time.now), time


def record(world: World, gang: str) -> GangRecord:
    """Return what was recorded about a gang; without a namespace it is in default."""
    return world.recorder.gangs[GangKey(gang if "/" in gang else f"default/{gang}")]
