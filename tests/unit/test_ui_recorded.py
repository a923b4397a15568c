"""A recording on the page: any moment of it, the sessions until then, and what became of a gang."""

import asyncio
from pathlib import Path

import pytest

from phalanx.errors import RecordingError
from phalanx.sim.world import World
from phalanx.ui.moments import MOST_OPEN, RecordedMoments
from phalanx.ui.recorded.folder import RecordedFolder
from phalanx.ui.recorded.scan import RecordedSession, Scan, scan
from phalanx.ui.seen import SeenCluster
from phalanx.ui.showing import Showing
from tests.support import recordings
from tests.support import sim_worlds as worlds
from tests.support.ui_pages import SETUP

FIRST, LAST = 60.0, 3000.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two gangs that follow each other on two nodes, and one that never fits."""
    found, world = tmp_path_factory.mktemp("recorded") / "recording", made()
    with recordings.recorded(world, found):
        worlds.run(world, LAST)
    return found


def made() -> World:
    world = worlds.world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("first", tasks=2, duration="10m", gpus=1), at=FIRST)
    worlds.submit(world, worlds.gang("second", tasks=2, duration="10m", gpus=1), at=FIRST + 60)
    worlds.submit(world, worlds.gang("wide", tasks=5, duration="10m", gpus=1), at=FIRST + 120)
    return world


BEGUN = made().start


async def seen_at(folder: Path, seconds: float) -> SeenCluster:
    showing = await RecordedMoments(RecordedFolder(folder, SETUP)).at(str(BEGUN + seconds))
    async with showing.board.reading():
        found = await showing.board.current()
    showing.close()
    return found


def status(folder: Path, seconds: float) -> dict[str, str]:
    found = asyncio.run(seen_at(folder, seconds))
    return {key.removeprefix("default/"): gang.status.value for key, gang in found.gangs.items()}


def test_the_cluster_is_as_it_was_at_each_moment(folder: Path) -> None:
    assert status(folder, 30) == {}
    assert status(folder, 300) == {"first": "Runs", "second": "Waits", "wide": "Waits"}
    assert status(folder, 1000) == {"first": "Completed", "second": "Runs", "wide": "Waits"}


def test_a_moment_says_why_gangs_waited_then(folder: Path) -> None:
    assert asyncio.run(seen_at(folder, 300)).gangs["default/second"].why
    assert asyncio.run(seen_at(folder, 300)).now == BEGUN + 300


# --- moments -------------------------------------------------------------------------------------------------------------


def moment(folder: Path, text: str) -> float:
    return asyncio.run(RecordedFolder(folder, SETUP).moment(text)) - BEGUN


def test_a_moment_is_seconds_a_time_a_time_of_day_or_the_end(folder: Path) -> None:
    assert moment(folder, str(BEGUN + 300)) == 300
    assert moment(folder, "2026-01-01T00:10:00Z") == 600
    assert moment(folder, "00:10") == 600
    assert 600 < moment(folder, "") <= LAST


@pytest.mark.parametrize("text", ["1", "2025-12-31T00:00:00Z", "23:59", "yesterday", "nan", "inf", "-inf"])
def test_what_is_no_moment_of_the_recording_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(RecordingError):
        moment(folder, text)


def test_what_is_no_recording_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=str(tmp_path)):
        asyncio.run(RecordedFolder(tmp_path / "nothing", SETUP).span())


def test_a_moment_that_several_ask_about_at_once_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, read = RecordedFolder(folder, SETUP), list[float]()
    showing = recording.showing

    async def counted(moment: float) -> Showing:
        read.append(moment)
        return await showing(moment)

    async def run() -> int:
        monkeypatch.setattr(recording, "showing", counted)
        moments = RecordedMoments(recording)
        found = await asyncio.gather(*(moments.at("00:01") for _ in range(4)))
        moments.close()
        return len({id(each) for each in found})

    assert (asyncio.run(run()), len(read)) == (1, 1)


def test_a_few_moments_stay_open_and_the_oldest_is_closed(folder: Path) -> None:
    async def run() -> tuple[Showing, Showing, Showing]:
        moments = RecordedMoments(RecordedFolder(folder, SETUP))
        first = await moments.at("00:01")
        same = await moments.at(str(BEGUN + 60))
        for minute in range(2, 2 + MOST_OPEN):
            await moments.at(f"00:0{minute}")
        again = await moments.at("00:01")
        moments.close()
        return first, same, again

    first, same, again = asyncio.run(run())
    assert first is same
    assert first is not again


# --- sessions and lives --------------------------------------------------------------------------------------------------


def test_the_sessions_until_a_moment_are_listed_the_latest_first(folder: Path) -> None:
    async def run() -> list[float]:
        showing = await RecordedMoments(RecordedFolder(folder, SETUP)).at("00:10")
        assert showing.source.sessions is not None
        found = showing.source.sessions.kept()
        showing.close()
        return [row.now - BEGUN for row in found]

    times = asyncio.run(run())
    assert times == sorted(times, reverse=True)
    assert 0 < times[0] <= 600


def test_a_session_of_the_recording_is_decided_again_on_what_it_was_held_on(folder: Path) -> None:
    placing = next(session for session in scan(folder).sessions if session.count("binds"))

    async def run() -> tuple[str, int]:
        showing = await RecordedMoments(RecordedFolder(folder, SETUP)).at("00:10")
        assert showing.source.sessions is not None
        session = await showing.sessions.of(showing.source.sessions, str(placing.number), "")
        showing.close()
        return session.title, len(session.decisions.binds)

    title, binds = asyncio.run(run())
    assert title.startswith(f"session {placing.number} at ")
    assert binds == placing.count("binds") == 2


def test_sessions_after_the_moment_cannot_be_asked_for(folder: Path) -> None:
    last = scan(folder).sessions[-1]

    async def run() -> object:
        showing = await RecordedMoments(RecordedFolder(folder, SETUP)).at("00:02")
        assert showing.source.sessions is not None
        found = showing.source.sessions.take(str(last.number))
        showing.close()
        return found

    assert asyncio.run(run()) is None


def test_the_life_of_a_gang_is_told_until_the_moment(folder: Path) -> None:
    async def told(seconds: float) -> list[tuple[float, str]]:
        found = await RecordedFolder(folder, SETUP).history("default/second", BEGUN + seconds)
        return [(item["time"] - BEGUN, item["kind"]) for item in found]

    early, late = asyncio.run(told(300)), asyncio.run(told(LAST))
    assert "bound" not in [kind for _, kind in early]
    assert next(time for time, kind in late if kind == "bound") > FIRST + 600
    assert late[: len(early)] == early


def test_a_refusal_is_told_once_however_many_tasks_it_is_about() -> None:
    def session(now: float, *refusals: str) -> RecordedSession:
        return RecordedSession(1, now, {"": {"gangs": {"default/a": ["", {}, list(refusals)]}}})

    quota = "proportion/QueueQuotaExceeded"
    found = Scan([session(1, quota), session(2, quota, quota), session(3, quota, "gang/NotEnoughTasks")]).history("default/a", 9)
    assert [(moment.time, moment.text) for moment in found] == [
        (1, "waits: proportion says QueueQuotaExceeded"),
        (3, "waits: proportion says QueueQuotaExceeded; gang says NotEnoughTasks"),
    ]


def test_the_slider_shows_how_many_pods_were_placed_when(folder: Path) -> None:
    bars = asyncio.run(RecordedFolder(folder, SETUP).happenings())["bars"]
    assert sum(bars["placed"]) == 4
    assert sum(bars["evicted"]) == 0
    assert len([count for count in bars["placed"] if count]) == 2
