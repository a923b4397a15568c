"""Programs that run in the background, and how they are started: so that they end with this one, unless they are detached.

    with launch(["phalanx", "run"], stderr=subprocess.PIPE) as process:    # a Popen; gone when we are, even if we are killed
        ...
    Process("etcd", folder).start(command, is_detached=True)               # runs on, and is found again by its folder

A `Process` writes to a log, and holds the lock of that log for as long as it lives. The lock says whether it still runs, whoever
started it: a number that the system gave to another program meanwhile is never taken for ours, and so nothing is ended but what
was started here.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypedDict, Unpack

from phalanx.dev import supervise
from phalanx.errors import PhalanxError

STEP_SECONDS = 0.05
STOP_SECONDS = 5.0
LAST_LINES = 15
LOCALHOST = "127.0.0.1"

Stream = IO[bytes] | IO[str] | int | None
"""A file, a pipe, or what this program itself has."""


class Options(TypedDict, total=False):
    """What `Popen` may be told besides the command."""

    env: Mapping[str, str]
    cwd: Path
    stdin: Stream
    stdout: Stream
    stderr: Stream


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

    def start(self, command: Sequence[str], environment: Mapping[str, str] | None = None, *, is_detached: bool = False) -> None:
        """Start it, unless it runs; it ends with this program, or goes on if it is detached."""
        if self.is_running():
            return
        begin = launch_detached if is_detached else launch
        with self.log.open("ab") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            started = begin(command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
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

    def wait_for(self, is_ready: Callable[[], bool], seconds: float, *, step: float = STEP_SECONDS) -> None:
        """Wait until it is ready; say what it wrote last if it ends before, or takes too long."""
        wait_until(lambda: is_ready() or not self.is_running(), seconds, step=step)
        if not self.is_running():
            raise PhalanxError(f"{self.name} ended as soon as it had started; the end of {self.log}:", details=self.last_lines())
        if not is_ready():
            raise PhalanxError(f"{self.name} is not ready after {seconds:.0f} s; the end of {self.log}:", details=self.last_lines())

    def last_lines(self) -> list[str]:
        """Return the end of its log."""
        return self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]


_CHILDREN: dict[int, subprocess.Popen[str]] = {}
"""What this program itself started and has to see off."""


def launch(command: Sequence[str], **options: Unpack[Options]) -> subprocess.Popen[str]:
    """Start a program that ends with this one, even if this one is killed, and with it all that it starts in its group."""
    lifeline = _LIFELINE.reading_end()
    supervised = [sys.executable, "-I", "-S", supervise.__file__, str(lifeline), *command]
    return subprocess.Popen(supervised, text=True, start_new_session=True, pass_fds=(lifeline,), **options)


def launch_detached(command: Sequence[str], **options: Unpack[Options]) -> subprocess.Popen[str]:
    """Start a program that goes on when this one ends."""
    return subprocess.Popen(command, text=True, start_new_session=True, **options)


class _Lifeline:
    """A pipe that nobody writes to. Its end of file tells those who read it that this program is gone."""

    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None
        # A copy of this program must not hold the line when this one is gone.
        os.register_at_fork(after_in_child=self._drop)

    def reading_end(self) -> int:
        if self._ends is None:
            self._ends = os.pipe()
        return self._ends[0]

    def _drop(self) -> None:
        for end in self._ends or ():
            os.close(end)
        self._ends = None


_LIFELINE = _Lifeline()


def wait_until(holds: Callable[[], object], seconds: float, *, step: float = STEP_SECONDS) -> bool:
    """Wait until a condition holds, and look every few moments; return whether it did in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


def free_ports(count: int) -> list[int]:
    """Return unused ports of this machine."""
    sockets = [socket.create_server((LOCALHOST, 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
