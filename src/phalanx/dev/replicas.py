"""Schedulers of ours beside a control plane: `phalanx run` as a process of its own, as it would run on a cluster.

with scheduling(plane, folder, "--scheduler-name=volcano") as log:
    ...

with Replica(plane.folder, "a", ["--kubeconfig", str(plane.scheduler_kubeconfig)]) as replica:
    replica.ask("/readyz")
    replica.kill()
"""

import os
import re
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import LOCALHOST, Process, launch
from phalanx.errors import PhalanxError

READY_SECONDS = 30.0
ASK_SECONDS = 5.0
STOP_SECONDS = 20.0
LAST_LINES = 30
_ADDRESS = re.compile(r"health and metrics at (https?://[^\s\"]+)")


@contextmanager
def scheduling(plane: ControlPlane, folder: Path, *flags: str) -> Iterator[Path]:
    """Run `phalanx run` beside the block as its account and yield its log; it has to live until the end, and to end in order."""
    log = folder / "phalanx.log"
    command = [sys.executable, "-m", "phalanx", "run", f"--kubeconfig={plane.scheduler_kubeconfig}", "--no-leader-elect", *flags]
    with log.open("ab") as file, launch(command, stdout=file, stderr=file) as process:
        try:
            yield log
            code = process.poll()
        finally:
            process.terminate()
            left = process.wait(STOP_SECONDS)
    if (code, left) != (None, 0):
        end = log.read_text().splitlines()[-LAST_LINES:]
        raise PhalanxError(f"phalanx run ended with {code if code is not None else left}; the end of {log}:", details=end)


@dataclass(frozen=True, slots=True)
class Replica:
    """One `phalanx run`; its name begins the identity with which it is elected."""

    folder: Path
    name: str
    arguments: Sequence[str]
    """Those of the command, without an address to serve at."""
    program: Sequence[str] = ("-m", "phalanx")
    """What Python runs; a test may put a fault of its own into the process."""
    tls: ssl.SSLContext | None = None
    """Whom to trust, if it serves with TLS."""

    @property
    def process(self) -> Process:
        """The program itself."""
        return Process(f"phalanx-{self.name}", self.folder)

    def __enter__(self) -> Self:
        """Start it and wait until it knows the cluster."""
        self.start()
        self.wait()
        return self

    def __exit__(self, *problem: object) -> None:
        """End it."""
        self.process.stop()

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.process.is_running():
            return
        self.process.log.unlink(missing_ok=True)
        command = [sys.executable, *self.program, "run", *self.arguments, "--http", f"{LOCALHOST}:0"]
        self.process.start(command, {"POD_NAME": self.name})

    def wait(self) -> None:
        """Wait until it knows the cluster."""
        self.process.wait_for(self.is_ready, READY_SECONDS)

    def kill(self) -> None:
        """End it as if the power had failed."""
        self.process.stop(signal.SIGKILL)

    def stop(self) -> int | None:
        """End it in order and return its exit code."""
        return self.process.stop()

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Let it do nothing for a while, and not know of that."""
        pid = int(self.process.number.read_text())
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def logged(self) -> str:
        """Return what it has logged."""
        return self.process.log.read_text(errors="replace")

    def is_ready(self) -> bool:
        """Tell whether it says that it is."""
        try:
            return self.ask("/readyz")[0] == 200
        except (OSError, PhalanxError):
            return False

    def ask(self, path: str, token: str = "") -> tuple[int, str]:
        """Return the code and the text of what it serves at a path, to whoever shows a token."""
        found = _ADDRESS.search(self.logged())
        if found is None:
            raise PhalanxError(f"{self.process.log}: phalanx does not say yet where it serves {path}; wait until it is ready")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{found[1].rstrip('/')}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ASK_SECONDS, context=self.tls) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()
