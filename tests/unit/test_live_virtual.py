"""The process of `phalanx run`, as it is, in virtual time: hours pass in milliseconds, and a test cuts the connection."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.dialects.status import GroupStatus
from phalanx.errors import Conflict, Forbidden, StuckError
from phalanx.explain.answer import group_status
from phalanx.live.app import Live, Setup
from phalanx.live.clock import LoopClock
from phalanx.live.election import Terms
from phalanx.model.kinds import EVENT, GROUP_BY_DIALECT, POD, Document
from phalanx.model.moment import moment_text
from phalanx.plugins.gang import GangPlugin
from phalanx.scheduling import status_writer
from phalanx.session.cycle import Profile
from phalanx.session.decision import Outcome
from phalanx.session.session import Session
from phalanx.sim.memory_client import MemoryClient
from phalanx.sim.virtual_loop import START, run_virtually
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Verdict
from phalanx.store.memory import MemoryStore
from phalanx.testing import build

VOLCANO_GROUP = GROUP_BY_DIALECT["volcano"]
NEW_YEAR = 1_767_225_600.0
PROFILE = Profile(policy_of_profile("phalanx"), CATALOGUE)
WITHOUT_ADMISSION = Profile(build.policy([["priority", "gang"], ["predicates", "binpack"]], "allocate"), CATALOGUE)


class Scene:
    """A store, a connection to it, and the application object of `phalanx run`."""

    def __init__(
        self, identity: str = "one", store: MemoryStore | None = None, profile: Profile = PROFILE, ahead: float = 0.0
    ) -> None:
        loop = asyncio.get_running_loop()
        clock = LoopClock(wall=lambda: NEW_YEAR + ahead + loop.time() - START, boot=loop.time)
        self.store = store or MemoryStore(lambda: NEW_YEAR + loop.time() - START)
        self.client, self.reports = MemoryClient(self.store), list[str]()
        terms = Terms("phalanx", "default", identity)
        setup = Setup(profile=profile, gates=profile, controllers=(), schedulers=frozenset(), terms=terms, identity=identity)
        self.live = Live(self.client, setup, report=self.reports.append, clock=clock)
        self._is_over = asyncio.Event()
        self._task = asyncio.create_task(self.live.run(self._is_over))

    def load(self, *parts: Document | Sequence[Document]) -> None:
        for part in parts:
            for document in [part] if isinstance(part, Mapping) else part:
                self.store.load({**document, "metadata": {**document["metadata"], "uid": ""}})

    def bound(self, gang: str) -> int:
        names = ((item["metadata"]["name"], item["spec"].get("nodeName")) for item in self.store.items(POD))
        return sum(bool(node) for name, node in names if name.startswith(gang))

    def asked(self, verb: str) -> set[str]:
        return {about for found, about in self.client.requests if found == verb}

    def messages(self, reason: str) -> list[str]:
        return [item["message"] for item in self.store.items(EVENT) if item["reason"] == reason]

    async def end(self) -> None:
        self._is_over.set()
        await self._task


def play(story: Callable[[], Awaitable[None]]) -> float:
    """Play a story in virtual time; return how many virtual seconds it took."""

    async def timed() -> float:
        begun = asyncio.get_running_loop().time()
        await story()
        return asyncio.get_running_loop().time() - begun

    return run_virtually(timed())


async def until(is_so: Callable[[], object], *, seconds: float = 600.0) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.01)


def test_it_schedules_loses_the_connection_recovers_and_binds() -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=4), build.node("n1", cpu=4), build.gang("first", tasks=3, cpu=1))
        await until(lambda: scene.bound("first") == 3)
        scene.client.disconnect()
        scene.load(build.gang("second", tasks=5, cpu=1))
        await asyncio.sleep(120.0)
        assert (scene.bound("second"), scene.live.is_leader) == (0, False)
        assert any("no cluster at all" in text for text in scene.reports)
        scene.client.connect()
        await until(lambda: scene.bound("second") == 5)
        assert (scene.live.is_leader, len({item["spec"]["nodeName"] for item in scene.store.items(POD)})) == (True, 2)
        await scene.end()

    begun = perf_counter()
    assert play(story) > 120.0
    assert perf_counter() - begun < 20.0  # milliseconds where the machine is free; a wait in real time would take minutes


def test_binds_that_were_cut_off_in_the_middle_leave_no_half_gang() -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", pods=64, cpu=64))
        await until(lambda: scene.live.is_leader)
        landed: list[str] = []

        def cut(pod: Document, node: str) -> None:
            landed.append(pod["metadata"]["name"])
            if len(landed) == 10:
                scene.client.disconnect()

        scene.store.binding.append(cut)
        scene.load(build.gang("train", tasks=40, cpu=1))
        await until(lambda: len(landed) >= 10)
        await asyncio.sleep(30.0)
        assert 0 < scene.bound("train") < 40
        scene.client.connect()
        await until(lambda: scene.bound("train") == 40)
        assert scene.asked("evict") == set()
        await scene.end()

    play(story)


def conditions(scene: Scene, pod: str) -> list[str]:
    found = scene.store.get(POD, "default", pod)["status"].get("conditions") or ()
    return [item["message"] for item in found if item["type"] == "PodScheduled" and item["status"] == "False"]


def test_a_pod_whose_bind_failed_says_that_it_waits_and_why() -> None:
    async def story() -> None:
        scene = Scene()

        def refuse(pod: Document, node: str) -> None:
            raise Forbidden("the node is sealed")

        scene.store.binding.append(refuse)
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=2, cpu=1))
        await asyncio.sleep(30.0)
        assert scene.bound("train") == 0
        for name in ("train-0", "train-1"):
            (message,) = conditions(scene, name)
            assert "bind to n0 failed" in message
        await scene.end()

    play(story)


def test_a_pod_made_anew_under_the_same_name_inherits_no_failure() -> None:
    async def story() -> None:
        scene, tried = Scene(), list[str]()

        def make_anew(pod: Document, node: str) -> None:
            tried.append(pod["metadata"]["uid"])
            if len(tried) == 1:
                scene.store.delete(POD, "default", "train-0", grace=0)
                scene.load(build.gang("train", tasks=1, cpu=1)[1])
                asked, found = tried[0], scene.store.get(POD, "default", "train-0")["metadata"]["uid"]
                text = f"Precondition failed: UID in precondition: {asked}, UID in object meta: {found}"
                raise Conflict(f'Operation cannot be fulfilled on pods/binding "train-0": {text}')

        scene.store.binding.append(make_anew)
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=1, cpu=1))
        await until(lambda: scene.bound("train") == 1, seconds=3.0)
        pod = scene.store.get(POD, "default", "train-0")
        assert FAILED_BINDS not in (pod["metadata"].get("annotations") or {})
        assert scene.messages("BindingError") == []
        await scene.end()

    play(story)


def test_after_all_watches_were_cut_everything_is_listed_once_a_minute_at_most() -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=4), build.gang("first", tasks=1, cpu=1))
        await until(lambda: scene.bound("first") == 1)
        reflector = scene.live.watching.reflectors[POD]
        before = reflector.lists
        for _ in range(3):
            scene.client.disconnect()
            await asyncio.sleep(1.0)
            scene.client.connect()
            await asyncio.sleep(4.0)
        assert reflector.lists == before + 1
        await asyncio.sleep(60.0)
        assert reflector.lists == before + 2
        await asyncio.sleep(600.0)
        assert reflector.lists == before + 2
        await scene.end()

    play(story)


def test_an_object_that_the_server_says_is_not_there_is_doubted() -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=4), build.gang("first", tasks=1, cpu=1))
        await until(lambda: scene.bound("first") == 1)
        watching, pod = scene.live.watching, scene.store.get(POD, "default", "first-0")
        before = watching.reflectors[POD].lists
        watching.doubt(POD, "default", "first-0", "another")
        await asyncio.sleep(10.0)
        assert watching.reflectors[POD].lists == before
        watching.doubt(POD, "default", "first-0", pod["metadata"]["uid"])
        await asyncio.sleep(10.0)
        assert watching.reflectors[POD].lists == before + 1
        await scene.end()

    play(story)


@pytest.mark.parametrize("ahead", [-600.0, 0.0, 600.0])
def test_a_broken_gang_is_healed_after_its_grace_whatever_the_clock_of_the_machine_says(ahead: float) -> None:
    async def story() -> None:
        scene = Scene(ahead=ahead)
        scene.load(build.queue("default"), build.node("n0", cpu=2), build.gang("train", tasks=2, cpu=1))
        await until(lambda: scene.bound("train") == 2)
        ended = {"name": "main", "state": {"terminated": {"finishedAt": moment_text(int(scene.store.now))}}}
        for name, status in (("train-0", {"phase": "Running"}), ("train-1", {"phase": "Failed", "containerStatuses": [ended]})):
            scene.store.patch(POD, "default", name, {"status": status}, is_status=True)
        await asyncio.sleep(50.0)
        assert scene.asked("evict") == set()
        await asyncio.sleep(15.0)
        assert scene.asked("evict") == {"pods train-0"}
        await scene.end()

    play(story)


def test_a_gang_on_which_sessions_fail_is_told_and_stops_nobody() -> None:
    class Raising(GangPlugin):
        def gang_valid(self, session: Session, gang: GangState) -> Verdict:
            if gang.gang.key == "default/bad":
                raise ZeroDivisionError("of a bad gang")
            return super().gang_valid(session, gang)

    profile = Profile(PROFILE.policy, replace(CATALOGUE, plugins={**CATALOGUE.plugins, "gang": Raising}))

    async def story() -> None:
        scene = Scene(profile=profile)
        scene.load(build.queue("default"), build.node("n0", cpu=8), build.gang("bad", tasks=2, cpu=1))
        scene.load(build.gang("first", tasks=3, cpu=1))
        await until(lambda: scene.bound("first") == 3)
        scene.load(build.gang("second", tasks=3, cpu=1))
        await until(lambda: scene.bound("second") == 3)
        await until(lambda: scene.messages("Quarantined"))
        assert scene.bound("bad") == 0
        assert all("ZeroDivisionError: of a bad gang" in text for text in scene.messages("Quarantined"))
        assert len([text for text in scene.reports if "default/bad" in text]) == 1
        assert scene.live.is_leader
        await scene.end()

    play(story)


def test_a_status_that_cannot_be_made_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(snapshot: Snapshot, outcome: Outcome) -> GroupStatus:
        if outcome.state.key == "default/bad":
            raise ZeroDivisionError("of a bad gang")
        return group_status(snapshot, outcome)

    monkeypatch.setattr(status_writer, "group_status", raising)

    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=8), build.gang("bad", tasks=2, cpu=1))
        scene.load(build.gang("first", tasks=3, cpu=1))
        await until(lambda: scene.bound("first") == 3 and scene.bound("bad") == 2)
        group = next(item for item in scene.store.items(VOLCANO_GROUP) if item["metadata"]["name"] == "first")
        await until(lambda: group["status"]["phase"] != "Pending")
        assert len([text for text in scene.reports if "ZeroDivisionError: of a bad gang" in text]) == 1
        await scene.end()

    play(story)


def test_a_standby_takes_over_from_a_leader_that_lost_the_server() -> None:
    async def story() -> None:
        first = Scene("first")
        first.load(build.queue("default"), build.node("n0", cpu=8))
        await until(lambda: first.live.is_leader)
        second = Scene("second", first.store)
        first.client.disconnect()
        first.load(build.gang("train", tasks=3, cpu=1))
        await until(lambda: second.bound("train") == 3)
        assert (first.live.is_leader, second.live.is_leader) == (False, True)
        assert first.asked("bind") == set()
        first.client.connect()
        await first.end()
        await second.end()

    assert 10.0 < play(story) < 60.0


def test_a_refused_bind_rolls_its_gang_back() -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=8))
        await until(lambda: scene.live.is_leader)

        def rule(pod: Document, node: str) -> None:
            if pod["metadata"]["name"] == "train-1":
                raise Forbidden("not today")

        scene.store.binding.append(rule)
        scene.load(build.gang("train", tasks=3, cpu=1))
        await until(lambda: scene.asked("evict") == {"pods train-0", "pods train-2"})
        await until(lambda: len(scene.messages("BindingError")) == 3)
        rolled_back = [text for text in scene.messages("BindingError") if text.startswith("rolled back: pod train-1 of its gang")]
        assert (len(rolled_back), scene.bound("train-1")) == (2, 0)
        await scene.end()

    play(story)


@pytest.mark.parametrize("profile", [WITHOUT_ADMISSION, PROFILE], ids=["without-admission", "with-admission"])
def test_nothing_is_said_of_missing_pods_while_they_are_being_made(profile: Profile) -> None:
    async def story() -> None:
        scene = Scene(profile=profile)
        scene.load(build.queue("default"), build.node("n0", cpu=8))
        await until(lambda: scene.live.is_leader)
        (group, *pods), (late, lonely, _) = build.gang("train", tasks=2, cpu=1), build.gang("late", tasks=2, cpu=1)
        scene.load(group, pods[0], late, lonely)
        await asyncio.sleep(1.5)
        assert not any("conditions" in item["status"] for item in scene.store.items(POD))
        scene.load(pods[1])
        await until(lambda: scene.bound("train") == 2)
        assert scene.messages("FailedScheduling") == scene.messages("Quarantined") == []
        await asyncio.sleep(5.0)
        assert scene.messages("Quarantined") == ["1 of 2 pods exist; create 1 more pod, or write 1 in spec.minMember"]
        await scene.end()

    play(story)


@pytest.mark.parametrize("room", [8, 1], ids=["running", "waiting"])
@pytest.mark.parametrize("is_slow", [False, True], ids=["at-once", "slowly"])
def test_nothing_is_said_of_missing_pods_while_their_owner_takes_them_away(room: int, is_slow: bool) -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=room))
        await until(lambda: scene.live.is_leader)
        group, *pods = build.gang("train", tasks=4, cpu=1)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job", "controller": True}
        for pod in pods:
            pod["metadata"]["ownerReferences"] = [owner]
        scene.load(group, *pods)
        await until(lambda: scene.bound("train") == (4 if room == 8 else 0))
        await asyncio.sleep(10.0)
        before = scene.messages("FailedScheduling")
        for grace in (30, 0) if is_slow else (0,):
            for name in [item["metadata"]["name"] for item in scene.store.items(POD)]:
                scene.store.delete(POD, "default", name, grace=grace)
                await asyncio.sleep(1.5)
            await asyncio.sleep(10.0)
        assert (scene.messages("FailedScheduling"), scene.messages("Quarantined")) == (before, [])
        await scene.end()

    play(story)


def test_nothing_is_said_of_a_gang_that_grew_in_vain_while_its_owner_takes_running_pods_before_waiting_ones() -> None:
    async def story() -> None:
        scene = Scene()
        scene.load(build.queue("default"), build.node("n0", cpu=3))
        await until(lambda: scene.live.is_leader)
        group, *pods = build.gang("train", tasks=6, min_member=6, cpu=1)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job", "controller": True}
        for pod in pods:
            pod["metadata"]["ownerReferences"] = [owner]
        scene.load({**group, "spec": {**group["spec"], "minMember": 3}}, *pods[:3])
        await until(lambda: scene.bound("train") == 3)
        scene.store.patch(VOLCANO_GROUP, "default", "train", {"spec": {"minMember": 6}})
        scene.load(*pods[3:])
        await asyncio.sleep(10.0)
        before = scene.messages("FailedScheduling")
        for pod, grace in [*((pod, 30) for pod in pods[2:]), (pods[2], 0)]:
            scene.store.delete(POD, "default", pod["metadata"]["name"], grace=grace)
            await asyncio.sleep(1.5)
        scene.store.patch(VOLCANO_GROUP, "default", "train", {"spec": {"minMember": 2}})
        await asyncio.sleep(100.0)
        assert (scene.messages("FailedScheduling"), scene.bound("train")) == (before, 2)
        await scene.end()

    play(story)


def test_a_loop_on_which_nothing_can_happen_any_more_says_so() -> None:
    async def story() -> None:
        await asyncio.Event().wait()

    with pytest.raises(StuckError, match="nothing is planned any more"):
        play(story)
