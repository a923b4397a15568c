"""Programs in the background: who runs, who is ended, and what is said when one does not start."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.processes import Process, free_ports, launch, wait_until
from phalanx.errors import PhalanxError

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"


MARK = "PHALANX_TEST"
"""A variable of the environment that all descendants of a program have."""
GONE_SECONDS = 10.0


def marked_by(folder: Path) -> list[int]:
    """Return the numbers of all processes that live and bear the mark of a folder."""
    mark = f"{MARK}={folder}\0".encode()
    return [int(found.parent.name) for found in Path("/proc").glob("[0-9]*/environ") if mark in _read(found)]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""  # it has ended meanwhile, or is somebody else's


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
    starter += "Process('sleeper', Path(sys.argv[1])).start(['sleep', '60'], is_detached=True)"
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
    with pytest.raises(PhalanxError, match=r"sleeper ended as soon as it had started; the end of .*:\n  address already in use"):
        process.wait_for(lambda: False, 30)


def test_a_program_that_is_never_ready_says_what_it_did_last(process: Process) -> None:
    process.start(["sh", "-c", "echo waiting for etcd; exec sleep 60"])
    assert wait_until(lambda: bool(process.last_lines()), 10)
    with pytest.raises(PhalanxError, match=r"sleeper is not ready after 0 s; the end of .*:\n  waiting for etcd"):
        process.wait_for(lambda: False, 0.1)


def test_a_program_keeps_its_number_its_output_and_its_exit_code() -> None:
    with launch(["sh", "-c", "echo $$; exit 7"], stdout=subprocess.PIPE) as started:
        assert started.communicate(timeout=10)[0] == f"{started.pid}\n"
    assert started.returncode == 7


def test_a_program_that_is_not_there_is_named() -> None:
    with launch(["no-such-program"], stderr=subprocess.PIPE) as started:
        assert started.communicate(timeout=10)[1] == "no-such-program: No such file or directory\n"
    assert started.returncode == 127


def test_a_program_can_be_interrupted_even_if_its_starter_cannot() -> None:
    starter = "import signal, sys; from phalanx.dev.processes import launch; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    starter += "launch([sys.executable, '-c', sys.argv[1]]).wait()"
    shown = "import signal; print(signal.getsignal(signal.SIGINT).__name__)"
    done = subprocess.run([sys.executable, "-c", starter, shown], capture_output=True, text=True, check=True)
    assert done.stdout == "default_int_handler\n"


# --- who ends with whom --------------------------------------------------------------------------------------------------

FAMILY = "trap '' TERM; sleep 60 & sleep 60 & echo $$ > $0/shell; echo ready; wait; wait"
"""A program with children, all of whom have to be killed."""


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another Python that starts what is above, and then waits."""
    code = "import sys, time; from phalanx.dev.processes import launch; launch(sys.argv[1:]); time.sleep(60)"
    marked = {**os.environ, MARK: str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code, "sh", "-c", FAMILY, str(tmp_path)], env=marked, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
        started.kill()
    assert wait_until(lambda: not marked_by(tmp_path), GONE_SECONDS)


def test_all_that_was_launched_is_gone_when_its_starter_is_killed(starter: subprocess.Popen[str], tmp_path: Path) -> None:
    everybody = ("the starter", "the shell", "its first child", "its second child", "the watcher")
    assert wait_until(lambda: len(marked_by(tmp_path)) == len(everybody), GONE_SECONDS)  # a child is one of them once it is ready
    starter.kill()
    assert wait_until(lambda: not marked_by(tmp_path), GONE_SECONDS)


def test_what_a_program_started_is_gone_when_it_ends_itself(starter: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(int((tmp_path / "shell").read_text()), signal.SIGKILL)
    assert wait_until(lambda: marked_by(tmp_path) == [starter.pid], GONE_SECONDS)


def test_a_program_outlives_its_starter_when_it_is_detached(process: Process, tmp_path: Path) -> None:
    code = "import os, signal, sys; from pathlib import Path; from phalanx.dev.processes import Process; "
    code += "Process('sleeper', Path(sys.argv[1])).start(['sleep', '60'], is_detached=True); os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert not wait_until(lambda: not process.is_running(), 1)


def test_a_copy_of_the_starter_does_not_keep_a_program_alive(tmp_path: Path) -> None:
    code = "import os, signal, time; from phalanx.dev.processes import launch; launch(['sleep', '60']); "
    code += "os.fork() or time.sleep(60); os.kill(os.getpid(), signal.SIGKILL)"
    copy = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], env={**os.environ, MARK: str(tmp_path)})
    copy.wait()
    assert wait_until(lambda: len(marked_by(tmp_path)) == 1, GONE_SECONDS)
    os.kill(marked_by(tmp_path)[0], signal.SIGKILL)


def test_nobody_else_starts_programs_that_go_on() -> None:
    root = Path(__file__).resolve().parents[2]
    files = [file for folder in ("src", "tests", "benchmarks") for file in (root / folder).rglob("*.py")]
    starting = {file.name for file in files if "subprocess.Popen(" in file.read_text()}
    assert starting == {"processes.py", "test_dev_processes.py", "test_ends_with_tests.py"}


def test_ports_are_free_and_differ() -> None:
    assert len(set(free_ports(3))) == 3
