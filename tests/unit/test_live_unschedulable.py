"""Gangs that no session can help are left out on a real cluster too, and looked at again when something may help them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from phalanx.model.kinds import NODE, POD, QUEUE
from phalanx.scheduling.sessions import HeldSession, Sessions
from phalanx.session.decision import Decisions
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from tests.unit.test_live_virtual import Scene, conditions, play, until

Help = Callable[[Scene], None]


def add_node(scene: Scene) -> None:
    scene.load(build.node("n1", cpu=4))


def enlarge(scene: Scene) -> None:
    scene.store.patch(NODE, "", "n0", {"status": {"allocatable": {"cpu": "8"}}}, is_status=True)


def finish(scene: Scene) -> None:
    for number in range(4):
        scene.store.delete(POD, "default", f"first-{number}", grace=0)


async def with_backlog(scene: Scene) -> list[set[str]]:
    """Fill a node and let a gang wait; return the gangs that each later session looks at."""
    scene.load(build.queue("default"), build.node("n0", cpu=4, memory="4Gi"), build.gang("first", tasks=4, cpu=1))
    await until(lambda: scene.bound("first") == 4)
    scene.load(build.gang("large", tasks=4, cpu=1))
    await until(lambda: conditions(scene, "large-0"))
    await asyncio.sleep(5.0)
    seen: list[set[str]] = []

    def note(snapshot: Snapshot, decisions: Decisions) -> None:
        seen.append({outcome.state.key for outcome in decisions.outcomes})

    scene.live.loop.decided.append(note)
    return seen


def test_a_gang_that_arrives_wakes_nobody_who_waits_for_room() -> None:
    async def story() -> None:
        scene = Scene()
        seen = await with_backlog(scene)
        scene.load(build.gang("tiny", tasks=1, memory="1Gi"))
        await until(lambda: scene.bound("tiny") == 1)
        assert seen
        assert all("default/large" not in looked_at for looked_at in seen)
        said = conditions(scene, "large-0")
        await asyncio.sleep(120.0)
        assert any("default/large" in looked_at for looked_at in seen)
        assert conditions(scene, "large-0") == said
        await scene.end()

    play(story)


@pytest.mark.parametrize("help_", [add_node, enlarge, finish])
def test_whatever_makes_room_starts_it_at_once(help_: Help) -> None:
    async def story() -> None:
        scene = Scene()
        await with_backlog(scene)
        help_(scene)
        await until(lambda: scene.bound("large") == 4, seconds=2.0)
        await scene.end()

    play(story)


def test_another_limit_of_its_queue_lets_it_be_looked_at() -> None:
    async def story() -> None:
        scene = Scene()
        seen = await with_backlog(scene)
        scene.store.patch(QUEUE, "", "default", {"spec": {"weight": 7}})
        await until(lambda: any("default/large" in looked_at for looked_at in seen), seconds=2.0)
        await scene.end()

    play(story)


def test_a_condition_that_somebody_overwrites_is_written_again() -> None:
    async def story() -> None:
        scene = Scene()
        await with_backlog(scene)
        said = conditions(scene, "large-0")
        scene.store.patch(POD, "default", "large-0", {"status": {"conditions": []}}, is_status=True)
        assert conditions(scene, "large-0") != said
        await until(lambda: conditions(scene, "large-0") == said, seconds=5.0)
        await scene.end()

    play(story)


def _is_bound(scene: Scene, gang: str) -> bool:
    return scene.bound(gang) == 1


def test_a_time_at_which_all_are_to_be_asked_outlives_sessions_that_know_nothing_of_it() -> None:
    async def story() -> None:
        scene = Scene()
        seen = await with_backlog(scene)
        await until(lambda: any("default/large" in looked_at for looked_at in seen), seconds=60.0)  # it rests for half a minute now
        loop, begun = scene.live.loop, len(seen)
        due = scene.live.clock.now + 10.0
        note_time, was_noted = Sessions.hold, list[bool]()

        def hold(self: Sessions, *args: Any, **more: Any) -> HeldSession:
            session = note_time(self, *args, **more)
            if not was_noted:  # somebody who is left out from now on depends on that time
                was_noted.append(True)
                session.parts[0].decisions.look_again(due)
            return session

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Sessions, "hold", hold)
            for number in range(4):
                scene.load(build.gang(f"tiny-{number}", tasks=1, memory="1Mi"))
                await until(partial(_is_bound, scene, f"tiny-{number}"))
                await asyncio.sleep(1.0)
            assert loop.count > 3
            assert all("default/large" not in looked_at for looked_at in seen[begun:])
            await asyncio.sleep(due + 0.5 - scene.live.clock.now)
        assert any("default/large" in looked_at for looked_at in seen[begun:])
        await scene.end()

    play(story)
