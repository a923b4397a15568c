"""A shadow in virtual time: it writes nothing, looks and reports in turn, and goes on when a report fails."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from phalanx.cli import main
from phalanx.config.policies import policy_of_profile
from phalanx.errors import Forbidden, RecordingError, Unreachable
from phalanx.live.catalogue import connected
from phalanx.live.clock import LoopClock
from phalanx.live.report_process import ReportProcess
from phalanx.live.shadow import Shadow, ShadowSetup
from phalanx.model.kinds import VOLUME, Kind
from phalanx.recording.entries import Config, Header
from phalanx.recording.log_writer import Bounds
from phalanx.recording.segments import segment_paths
from phalanx.sim.memory_client import MemoryClient
from phalanx.sim.virtual_loop import START, run_virtually
from phalanx.store.api_client import Listing
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import deadlocked_worlds as deadlocks
from tests.support import sim_worlds as worlds
from tests.support.recordings import all_entries

REPORT: dict[str, Any] = {
    "earlier": 2, "later": 1, "same": 0,
    "totals": {"recorded": {"meanWait": 30.0, "evictions": 3}, "ours": {"meanWait": 10.0, "evictions": 0}},
}  # fmt: skip


class Reporter:
    """Fails once, and then has a report whenever it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def report(self) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1:
            raise RecordingError("no report: the disk is full")
        return REPORT


class Scene:
    """A shadow on a copy of a store, for some virtual time."""

    def __init__(self, found: MemoryStore, folder: Path, client: type[MemoryClient] = MemoryClient) -> None:
        loop, begun = asyncio.get_running_loop(), found.now
        store = MemoryStore(lambda: begun + loop.time() - START)
        for document in found.everything():
            if document["kind"] not in ("Namespace", "PriorityClass"):  # every store has some of its own
                store.load(document)
        self.client, self.reporter = client(store), Reporter()
        self.problems, self.said = list[str](), list[str]()
        setup = ShadowSetup(
            profile=connected(policy_of_profile("phalanx")), config=Config("phalanx", ""), schedulers=frozenset(), folder=folder,
            bounds=Bounds(), every_seconds=50.0, clock=LoopClock(wall=lambda: begun + loop.time() - START, boot=loop.time),
        )  # fmt: skip
        self.shadow = Shadow(self.client, setup, self.reporter, report=self.problems.append, say=self.said.append)

    async def live(self, seconds: float) -> None:
        is_over = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, is_over.set)
        await self.shadow.run(is_over)

    @property
    def metrics(self) -> list[str]:
        return self.shadow.metrics.text().decode().splitlines()


def deadlocked() -> MemoryStore:
    """Return a store with two gangs that have met halfway."""
    world = deadlocks.deadlocked()
    worlds.run(world, 60)
    return world.store


def played(store: MemoryStore, folder: Path, seconds: float = 130.0) -> Scene:
    """Let a shadow live beside a store."""

    async def play() -> Scene:
        scene = Scene(store, folder)
        await scene.live(seconds)
        return scene

    return run_virtually(play())


def test_a_shadow_reads_and_does_nothing_else(tmp_path: Path) -> None:
    scene = played(deadlocked(), tmp_path)
    assert {verb for verb, _ in scene.client.requests} == {"get", "list", "watch"}
    (path,) = segment_paths(tmp_path)
    assert f"phalanx_recording_written_bytes_total {path.stat().st_size:.1f}" in scene.metrics


def test_the_client_of_a_shadow_refuses_to_write(tmp_path: Path) -> None:
    async def write() -> None:
        await Scene(deadlocked(), tmp_path).client.create(build.pod("new"))

    with pytest.raises(Unreachable, match="not sent"):
        run_virtually(write())


def test_a_deadlock_is_said_once_and_shown(tmp_path: Path) -> None:
    scene = played(deadlocked(), tmp_path)
    (text,) = [text for text in scene.said if text.startswith("deadlock")]
    assert "default/a, default/b hold what the others need" in text
    assert {"phalanx_shadow_deadlocked_gangs 2.0", "phalanx_shadow_half_started_gangs 2.0"} <= set(scene.metrics)


def test_a_report_that_fails_is_told_and_the_next_one_is_shown(tmp_path: Path) -> None:
    scene = played(deadlocked(), tmp_path)
    assert scene.reporter.asked == 3, "twice while it runs, and once at the end"
    assert scene.problems == ["no report: the disk is full"]
    assert {
        'phalanx_shadow_gangs{verdict="earlier"} 2.0', 'phalanx_shadow_mean_wait_seconds{world="ours"} 10.0',
        'phalanx_shadow_evictions{world="recorded"} 3.0', "phalanx_shadow_report_age_seconds 0.0",
    } <= set(scene.metrics)  # fmt: skip


class Restricted(MemoryClient):
    """May not list volumes."""

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        if kind == VOLUME:
            raise Forbidden('persistentvolumes is forbidden: User "viewer" cannot list resource "persistentvolumes"')
        return await super().list(kind, namespace, labels=labels, fields=fields)


def test_kinds_that_the_account_may_not_list_are_named_and_left_out(tmp_path: Path) -> None:
    async def play() -> Scene:
        scene = Scene(deadlocked(), tmp_path, Restricted)
        await scene.live(130.0)
        return scene

    scene = run_virtually(play())
    (problem,) = [text for text in scene.problems if "are left out" in text]
    assert problem.startswith("persistentvolumes are left out: ")
    assert problem.endswith("allow get, list and watch of them")
    assert any(text.startswith("deadlock") for text in scene.said), "the rest goes on"
    (header, *_) = all_entries(tmp_path)
    assert isinstance(header, Header)
    assert header.hidden == ["persistentvolumes"]


def test_a_shadow_that_begins_again_in_its_folder_goes_on_there(tmp_path: Path) -> None:
    for _ in range(2):
        played(deadlocked(), tmp_path)
    assert [path.name for path in segment_paths(tmp_path)] == ["000001.phx", "000002.phx"]
    found = CliRunner().invoke(main, ["shadow", "report", str(tmp_path), "-o", "json"])
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert any("1 gap" in note for note in document["notes"])
    assert len(document["gangs"]) == 2


def test_beside_an_empty_cluster_a_shadow_has_nothing_to_say(tmp_path: Path) -> None:
    scene = played(worlds.store()[0], tmp_path, seconds=40.0)
    assert [text for text in scene.said if not text.startswith("report")] == []
    assert {"phalanx_shadow_deadlocked_gangs 0.0", "phalanx_shadow_gangs_with_room 0.0"} <= set(scene.metrics)


def test_a_report_of_nothing_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"no report: error: .*no recording in it"):
        asyncio.run(ReportProcess(tmp_path).report())
