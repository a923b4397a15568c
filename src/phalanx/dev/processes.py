"""Programs that run in the background: each writes to a log, and holds the lock of that log for as long as it lives.

The lock says whether a program still runs, whoever started it: a number that the system gave to another program meanwhile is
never taken for ours, and so nothing is ended but what was started here.
"""

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from phalanx.errors import PhalanxError

STEP_SECONDS = 0.05
STOP_SECONDS = 5.0
LAST_LINES = 15
LOCALHOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Process:
    """A program in the background, known by the folder in which its log and its number are."""

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        """What it wrote, over all its starts."""
        return self.folder / f"{self.name}.log"

    @property
    def number(self) -> Path:
        """Where the number is that the system gave it."""
        return self.folder / f"{self.name}.pid"

    def start(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start it, unless it runs; it goes on when this program ends."""
        if self.is_running():
            return
        with self.log.open("ab") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self.number.write_text(str(started.pid))
        _CHILDREN[started.pid] = started

    def is_running(self) -> bool:
        """Tell whether it lives."""
        if not self.log.exists():
            return False
        with self.log.open("rb") as log:
            try:
                fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def stop(self, number: int = signal.SIGTERM) -> int | None:
        """Send it a signal and wait until it has ended; after a while, kill it. Return its exit code if we started it ourselves."""
        if not self.is_running():
            return None
        pid = int(self.number.read_text())
        os.kill(pid, number)
        if not wait_until(lambda: not self.is_running(), STOP_SECONDS):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not self.is_running(), STOP_SECONDS)
        child = _CHILDREN.pop(pid, None)
        return None if child is None else child.wait()

    def wait_for(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait until it is ready; say what it wrote last if it ends before, or takes too long."""
        wait_until(lambda: is_ready() or not self.is_running(), seconds)
        if not self.is_running():
            raise PhalanxError(f"{self.name} ended as soon as it had started; the end of {self.log}:\n{self.last_lines()}")
        if not is_ready():
            raise PhalanxError(f"{self.name} is not ready after {seconds:.0f} s; the end of {self.log}:\n{self.last_lines()}")

    def last_lines(self) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LAST_LINES:])


_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""What this program itself started and has to see off."""


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; return whether it did in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(STEP_SECONDS)
    return True


def free_ports(count: int) -> list[int]:
    """Return unused ports of this machine."""
    sockets = [socket.create_server((LOCALHOST, 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
