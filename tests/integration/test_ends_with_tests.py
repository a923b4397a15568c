"""A control plane that a test has started is gone with the test, however that ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.dev.layout import CONTROLLERS, ETCD, KWOK, SERVER
from phalanx.dev.plane import running
from phalanx.dev.processes import wait_until

pytestmark = pytest.mark.xdist_group("controlplane")

GONE_SECONDS = 10.0
PROGRAMS = [ETCD, SERVER, CONTROLLERS, KWOK]
TEST = """
import sys, time
from pathlib import Path
from phalanx.dev.plane import ControlPlane
with ControlPlane(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""


def holders_of(folder: Path) -> list[int]:
    """Return the numbers of all processes, watchers too, that were started with a folder among their words."""
    return [int(found.parent.name) for found in Path("/proc").glob("[0-9]*/cmdline") if str(folder) in _text(found)]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""  # it has ended meanwhile


def test_a_control_plane_is_gone_when_the_test_that_started_it_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    with subprocess.Popen([sys.executable, "-c", TEST, str(folder)], stdout=subprocess.PIPE, text=True) as test:
        assert test.stdout is not None
        assert test.stdout.readline() == "ready\n"
        assert running(folder) == PROGRAMS
        assert len(holders_of(folder)) == 1 + 2 * len(PROGRAMS)  # the test; each program and its watcher
        test.kill()
    # A process that is killed loses its words first and its locks a moment later.
    assert wait_until(lambda: not holders_of(folder) and not running(folder), GONE_SECONDS), (holders_of(folder), running(folder))
