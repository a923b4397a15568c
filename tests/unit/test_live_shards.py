"""Several SchedulingShards in one process of `phalanx run`, in virtual time: nothing that one decides hides what another does."""

import asyncio
from collections.abc import Awaitable, Callable

from phalanx.config.builtin import KAI_CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.live.app import Live, Setup
from phalanx.live.clock import LoopClock
from phalanx.live.operations import Operations
from phalanx.model.kinds import EVENT, POD, Document
from phalanx.scheduling.cache import Urgency
from phalanx.session.cycle import Profile
from phalanx.session.decision import Decisions
from phalanx.sim.memory_client import MemoryClient
from phalanx.sim.virtual_loop import START, run_virtually
from phalanx.state.snapshot import Snapshot
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import kai_objects as kai

NEW_YEAR = 1_767_225_600.0
GANGS = {"default/here", "default/there"}
SETTLED_SECONDS = 10.0


def objects() -> list[Document]:
    """A node without a pool, one in pool h100, a shard for each, and two gangs that are too large for them."""
    shards = [kai.shard("default"), kai.shard("h100", partitionLabelValue="h100")]
    nodes = [build.node("plain", gpus=4, cpu=64), *kai.in_pool("h100", [build.node("fast", gpus=8, cpu=64)])]
    queues = [kai.queue("default", parent="", quota=-1), kai.queue("a", quota=2)]
    return [*shards, *nodes, *queues, *kai.gang("here", tasks=2, gpus=4), *kai.in_pool("h100", kai.gang("there", tasks=2, gpus=8))]


class Scene:
    """A scheduler that follows shards, and what it says in its sessions."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        clock = LoopClock(wall=lambda: NEW_YEAR + loop.time() - START, boot=loop.time)
        self.store = MemoryStore(lambda: clock.now)
        self.client, self.heard = MemoryClient(self.store), list[tuple[Snapshot, Decisions]]()
        profile = Profile(policy_of_profile("kai"), KAI_CATALOGUE)
        setup = Setup(profile=profile, gates=profile, controllers=(), schedulers=frozenset(), terms=None)
        self.live = Live(self.client, setup, report=lambda text: None, clock=clock)
        self.operations = Operations(self.live, config=None, describe=repr)
        self.live.loop.decided.append(lambda snapshot, decisions: self.heard.append((snapshot, decisions)))
        self._is_over = asyncio.Event()
        self._task = asyncio.create_task(self.live.run(self._is_over))
        for document in objects():
            self.store.load({**document, "metadata": {**document["metadata"], "uid": ""}})

    async def session(self) -> None:
        """Wait for one session more."""
        held = self.live.loop.count
        self.live.loop.wake(Urgency.SOON)
        await self.until(lambda: self.live.loop.count > held)

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(600.0):
            while not is_so():
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        self._is_over.set()
        await self._task

    def metrics(self) -> list[str]:
        return self.operations.measuring.metrics.text().decode().splitlines()

    def patched(self) -> int:
        """Return how often pods were patched."""
        return sum(verb == "patch" and about.startswith("pods ") for verb, about in self.client.requests)


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    """Play a story that begins when both gangs have waited for a while."""

    async def played() -> None:
        scene = Scene()
        await asyncio.sleep(SETTLED_SECONDS)
        await story(scene)
        await scene.end()

    run_virtually(played())


def test_listeners_hear_of_the_whole_cluster_once_in_each_session() -> None:
    async def story(scene: Scene) -> None:
        before = len(scene.heard)
        await scene.session()
        (heard,) = scene.heard[before:]
        snapshot, decisions = heard
        assert (set(snapshot.nodes.names), set(snapshot.gangs)) == ({"plain", "fast"}, GANGS)
        assert {outcome.state.gang.key for outcome in decisions.outcomes} == GANGS

    play(story)


def test_gauges_count_what_waits_in_all_shards() -> None:
    async def story(scene: Scene) -> None:
        await scene.session()
        assert {"podgroup_waiting_pods 4.0", 'phalanx_pending_gangs{queue="a",reason="InsufficientResources"} 2.0'} <= set(
            scene.metrics()
        )

    play(story)


def test_fair_shares_of_a_queue_are_shown_for_each_shard() -> None:
    async def story(scene: Scene) -> None:
        await scene.session()
        shares = [line for line in scene.metrics() if 'kind="fair_share"' in line and 'resource="nvidia.com/gpu"' in line]
        assert [line.partition("queue=")[2].partition(",")[0] for line in shares] == [
            '"default/default"', '"default/a"', '"h100/default"', '"h100/a"',
        ]  # fmt: skip

    play(story)


def test_pods_of_all_shards_say_why_they_wait_and_are_not_patched_again() -> None:
    async def story(scene: Scene) -> None:
        conditions = {
            item["metadata"]["name"]: [condition["reason"] for condition in item["status"]["conditions"]]
            for item in scene.store.items(POD)
        }
        assert conditions == {name: ["Unschedulable"] for name in ("here-0", "here-1", "there-0", "there-1")}
        before = scene.patched()
        for _ in range(5):
            await scene.session()
            await asyncio.sleep(1.0)
        assert scene.patched() == before

    play(story)


def test_a_message_that_only_counts_anew_is_held_back_in_every_shard() -> None:
    """Each shard remembers what it said, and when; another one's session does not make it forget."""

    async def story(scene: Scene) -> None:
        before = scene.patched()
        assert before > 0
        for number in range(2):
            scene.store.create(build.node(f"more-{number}", gpus=1, cpu=1))
            (fast,) = kai.in_pool("h100", [build.node(f"faster-{number}", gpus=1, cpu=1)])
            scene.store.create(fast)
            await scene.session()
            await asyncio.sleep(1.0)
        assert scene.patched() == before

    play(story)


def test_events_tell_of_gangs_in_all_shards_once() -> None:
    async def story(scene: Scene) -> None:
        for _ in range(5):
            await scene.session()
        told = [item for item in scene.store.items(EVENT) if item["involvedObject"]["kind"] == "PodGroup"]
        assert sorted({item["involvedObject"]["name"] for item in told}) == ["here", "there"]
        assert all(item.get("count", 1) == 1 for item in told)

    play(story)
