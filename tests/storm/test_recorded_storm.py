"""Whatever goes wrong, every process of a storm decides the same when its recording is replayed."""

from pathlib import Path
from typing import Any

import pytest

from phalanx.live.app import Live
from phalanx.recording.entries import Config
from phalanx.recording.log_writer import Bounds, LogWriter
from phalanx.recording.recorder import Recorded, Recorder
from phalanx.testing.storm import replica
from phalanx.testing.storm.plan import plan_of
from phalanx.testing.storm.storm import play
from tests.storm.seeds import kept
from tests.support.recordings import assert_same, replayed

PLANS = {**{f"seed {seed}": plan_of(seed) for seed in (1, 2, 5)}, **kept("recorded")}


@pytest.mark.parametrize("name", PLANS)
def test_every_process_of_a_storm_decides_the_same_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorders: list[Recorder] = []

    def recorded_live(client: Any, setup: Any, **more: Any) -> Live:  # Any: passed on
        live, folder = Live(client, setup, **more), tmp_path / setup.identity
        writer = LogWriter(folder, Bounds(segment_bytes=20_000), report=pytest.fail, is_patient=True)
        subject = Recorded("storm", live.cache, live.mirror.everything, lambda: live.clock.now)
        recorder = Recorder(subject, writer, Config("phalanx", ""))
        recorder.follow(live.loop)
        recorder.turn()
        recorders.append(recorder)
        return live

    plain = play(PLANS[name])
    monkeypatch.setattr(replica, "Live", recorded_live)
    outcome = play(PLANS[name])
    assert outcome.lines == plain.lines, "recording changes nothing"
    for recorder in recorders:
        recorder.close()
    sessions = [session for folder in sorted(tmp_path.iterdir()) for session in replayed(folder)]
    assert len(sessions) > 20
    assert_same(sessions)
