"""One object with garbage in it stops nobody else: all good gangs start, and the object is told what is wrong with it.

`phalanx run`'s own application runs with all of its controllers, in virtual time, for every kind of object that it reads.
"""

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.dialects.cluster import kinds_read
from phalanx.live.app import Live, Setup
from phalanx.live.clock import LoopClock
from phalanx.model.kinds import EVENT, POD, Document, kind_of
from phalanx.scheduling.cache import QuarantinedObject
from phalanx.session.cycle import Profile
from phalanx.sim.memory_client import MemoryClient
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.virtual_loop import START, run_virtually
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support.garbage import objects, title, with_garbage

NEW_YEAR = 1_767_225_600.0
PROFILES = {name: policy_of_profile(name) for name in ("phalanx", "volcano", "kai", "coscheduling")}
OBJECTS = {title(document): document for document in objects()}
DIVIDES_NODES = {"NodeShard.shard.volcano.sh", "SchedulingShard.kai.scheduler"}
"""What they say decides rightly which gangs may start where."""


def good_objects(profile: str) -> list[Document]:
    found = [build.queue("default"), *(build.node(f"n{number}", cpu=8, gpus=4) for number in range(3))]
    if profile == "kai":
        return [
            *found,
            kai.queue("default", parent=""),
            *(item for name in "ab" for item in kai.gang(name, queue="default", tasks=2, gpus=1)),
        ]
    return [*found, *(item for name in "ab" for item in build.gang(name, tasks=2, cpu=1))]


class Scene:
    """A store and a scheduler with everything that belongs to it."""

    def __init__(self, profile: str) -> None:
        policy, loop = PROFILES[profile], asyncio.get_running_loop()
        clock = LoopClock(wall=lambda: NEW_YEAR + loop.time() - START, boot=loop.time)
        self.store, self.reports, self.profile = MemoryStore(lambda: clock.now), list[str](), profile
        whole = Profile(policy, catalogue_of(policy.catalogue))
        controllers = standard_controllers(pair_for, ControllerSettings(), has_admission=policy.has_admission)
        setup = Setup(profile=whole, gates=whole, controllers=controllers, schedulers=frozenset(), terms=None)
        self.live = Live(MemoryClient(self.store), setup, report=self.reports.append, clock=clock)

    async def play(self, odd: Document, *, is_first: bool) -> None:
        """Run for a minute with good gangs and an odd object, which comes before or after them."""
        is_over = asyncio.Event()
        task = asyncio.create_task(self.live.run(is_over))
        for part in ([odd], good_objects(self.profile)) if is_first else (good_objects(self.profile), [odd]):
            for document in part:
                if self._is_new(document):
                    self.store.load(document)
            await asyncio.sleep(1)
        await asyncio.sleep(40)
        is_over.set()
        await task

    def _is_new(self, document: Document) -> bool:
        """Tell whether the controller of queues has not made it already."""
        meta = document["metadata"]
        return self.store.find(kind_of(document), meta.get("namespace", ""), meta["name"]) is None

    def waiting(self) -> list[str]:
        pods = [pod for pod in self.store.items(POD) if pod["metadata"]["namespace"] == "default"]
        assert len(pods) >= 4
        return [pod["metadata"]["name"] for pod in pods if not pod["spec"].get("nodeName")]

    def told(self, found: QuarantinedObject) -> bool:
        about = [item.get("involvedObject") or item.get("regarding") or {} for item in self.store.items(EVENT)]
        return any((item.get("kind"), item.get("name")) == (found.kind.kind, found.object["metadata"]["name"]) for item in about)


def play(profile: str, odd: Document, *, is_first: bool) -> Scene:
    async def story() -> Scene:
        scene = Scene(profile)
        await scene.play(odd, is_first=is_first)
        return scene

    return run_virtually(story())


def test_there_is_an_object_of_every_kind_that_is_read() -> None:
    assert {f"{kind.kind}.{kind.group}".rstrip(".") for kind in kinds_read()} - DIVIDES_NODES <= set(OBJECTS)


@pytest.mark.parametrize("kind", OBJECTS)
@settings(deadline=None, max_examples=2)
@given(st.integers(0, 2**40))
def test_all_good_gangs_start_and_the_bad_object_is_told(kind: str, seed: int) -> None:
    random = Random(seed)
    odd = with_garbage(OBJECTS[kind], random)
    scene = play(random.choice(tuple(PROFILES)), odd, is_first=random.random() < 0.5)
    assert scene.waiting() == []
    assert [text for text in scene.reports if "please report it" in text or "Error: " in text] == []
    assert [found for found in scene.live.cache.quarantined.values() if not scene.told(found)] == []


UNREADABLE: dict[str, dict[str, Any]] = {
    "Node": {"status": {"allocatable": {"cpu": "plenty"}}}, "Queue.scheduling.volcano.sh": {"spec": {"weight": "heavy"}},
    "HyperNode.topology.volcano.sh": {"spec": {"tier": "top", "members": []}}, "PriorityClass.scheduling.k8s.io": {"value": "high"},
    "PodDisruptionBudget.policy": {"spec": 3}, "ResourceQuota": {"status": {"hard": {"pods": "many"}}},
    "PersistentVolume": {"spec": {"nodeAffinity": 3}}, "PersistentVolumeClaim": {"spec": 3},
    "StorageClass.storage.k8s.io": {"provisioner": 3},
    "CSINode.storage.k8s.io": {"spec": {"drivers": 3}}, "ResourceClaim.resource.k8s.io": {"spec": 3}, "Service": {"spec": 3},
    "ResourceSlice.resource.k8s.io": {"spec": 3}, "Topology.kai.scheduler": {"spec": {"levels": 3}},
}  # fmt: skip


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_object_has_an_event_and_is_counted(kind: str) -> None:
    scene = play("phalanx", {**OBJECTS[kind], **UNREADABLE[kind]}, is_first=True)
    (found,) = scene.live.cache.quarantined.values()
    assert title(found.object) == kind
    assert scene.told(found)
    assert scene.waiting() == []
