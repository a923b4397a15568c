"""Programs in the background: who runs, who is ended, and what is said when one does not start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.processes import Process, free_ports, wait_until
from phalanx.errors import PhalanxError

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process("sleeper", tmp_path)
    yield process
    process.stop()


def test_a_program_runs_until_it_is_stopped(process: Process) -> None:
    assert not process.is_running()
    process.start(["sleep", "60"])
    assert process.is_running()
    process.stop()
    assert not process.is_running()


def test_a_program_that_runs_is_not_started_twice(process: Process, tmp_path: Path) -> None:
    process.start(["sleep", "60"])
    number = (tmp_path / "sleeper.pid").read_text()
    Process("sleeper", tmp_path).start(["sleep", "60"])
    assert (tmp_path / "sleeper.pid").read_text() == number


def test_a_program_that_another_one_started_is_known_and_stopped(process: Process, tmp_path: Path) -> None:
    starter = "import sys; from pathlib import Path; from phalanx.dev.processes import Process; "
    starter += "Process('sleeper', Path(sys.argv[1])).start(['sleep', '60'])"
    subprocess.run([sys.executable, "-W", "ignore", "-c", starter, str(tmp_path)], check=True)
    assert process.is_running()
    process.stop()
    assert not process.is_running()


def test_a_number_that_was_given_to_somebody_else_is_left_alone(process: Process, tmp_path: Path) -> None:
    process.start(["true"])
    assert wait_until(lambda: not process.is_running(), 10)
    (tmp_path / "sleeper.pid").write_text(str(os.getpid()))
    process.stop()


def test_a_program_that_will_not_stop_is_killed(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phalanx.dev.processes.STOP_SECONDS", 0.2)
    process.start([sys.executable, "-c", STUBBORN])
    process.wait_for(lambda: "ready" in process.log.read_text(), 30)
    process.stop()
    assert not process.is_running()


def test_a_program_that_ends_at_once_says_why(process: Process) -> None:
    process.start(["sh", "-c", "echo address already in use; exit 1"])
    with pytest.raises(PhalanxError, match=r"sleeper ended as soon as it had started; the end of .*:\naddress already in use"):
        process.wait_for(lambda: False, 30)


def test_a_program_that_is_never_ready_says_what_it_did_last(process: Process) -> None:
    process.start(["sh", "-c", "echo waiting for etcd; exec sleep 60"])
    assert wait_until(lambda: bool(process.last_lines()), 10)
    with pytest.raises(PhalanxError, match=r"sleeper is not ready after 0 s; the end of .*:\nwaiting for etcd"):
        process.wait_for(lambda: False, 0.1)


def test_ports_are_free_and_differ() -> None:
    assert len(set(free_ports(3))) == 3
