"""What happens to processes in a storm: replicas are killed, frozen and told to end, the API server and etcd are killed."""

import http.client
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from phalanx.dev.layout import ETCD, SERVER
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import wait_until
from phalanx.dev.replicas import Replica
from phalanx.errors import PhalanxError
from tests.chaos.violations import Findings

SHORTEST_GAP, LONGEST_GAP = 3.0, 10.0
"""Seconds between two events."""
EVENTS: Mapping[str, float] = {"freeze": 5.0, "kill": 3.0, "terminate": 2.0, "server": 1.0, "etcd": 0.7, "compact": 0.7}
LONGEST_FREEZE = 9.0
END_SECONDS = 25.0
"""Within this a replica ends that is told to."""
MOST_MEGABYTES, MOST_FILES, MOST_TASKS = 300, 200, 400
GROWTH, SLACK_MEGABYTES, SLACK_FILES, SLACK_TASKS = 1.25, 10, 25, 25
"""By how much what a process uses may grow from the second quarter of its life to the last."""
LIFE_SAMPLES = 40
"""Of younger processes nothing is said about growth."""
FROZEN, TASKS = re.compile(r"^State:\s+T", re.MULTILINE), re.compile(r"^phalanx_event_loop_tasks (\S+)$", re.MULTILINE)
LEADS = re.compile(r" leads$", re.MULTILINE)
FAILURES = re.compile(r"Traceback|please report it|session \d+ failed|never awaited|never retrieved|where a session failed")


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process uses at one moment."""

    megabytes: float
    files: int
    tasks: int
    """Of the event loop."""


@dataclass(slots=True)
class Watched:
    """A replica, with the logs and figures of all its lives."""

    replica: Replica
    is_elder: bool
    """It is never killed nor told to end, so that somebody lives through the whole storm."""
    lives: int = 0
    samples: dict[int, list[Sample]] = field(default_factory=dict)
    """By the number of the process."""

    @property
    def pid(self) -> int:
        """The number of the process, 0 if it does not run."""
        return int(self.replica.process.number.read_text()) if self.replica.process.is_running() else 0

    def start(self) -> None:
        """Start it anew; the log of the life before is kept."""
        log = self.replica.process.log
        if log.exists():
            log.rename(log.with_suffix(f".{self.lives}.log"))
        self.lives += 1
        self.replica.start()

    def logs(self) -> list[Path]:
        """Return all its logs."""
        return sorted(self.replica.folder.glob(f"{self.replica.process.log.stem}*.log"))

    @property
    def terms(self) -> int:
        """How often it began to lead, in its present life."""
        return len(LEADS.findall(self.replica.logged()))

    def sample(self) -> None:
        """Note what the process uses."""
        if pid := self.pid:
            try:
                status, files = Path(f"/proc/{pid}/status").read_text(), len(os.listdir(f"/proc/{pid}/fd"))
            except OSError:
                return  # it has just ended
            resident, tasks = re.search(r"VmRSS:\s+(\d+) kB", status), None if FROZEN.search(status) else self._tasks()
            if resident and tasks is not None:
                self.samples.setdefault(pid, []).append(Sample(int(resident[1]) / 1024, files, tasks))

    def _tasks(self) -> int | None:
        """Return how many tasks its event loop has; None if it does not say, since it begins or ends."""
        try:
            found = TASKS.search(self.replica.ask("/metrics")[1])
        except (OSError, http.client.HTTPException, PhalanxError):
            return None
        return int(float(found[1])) if found else None


@dataclass(slots=True)
class Disorder:
    """Lets things happen to processes."""

    plane: ControlPlane
    replicas: Sequence[Watched]
    findings: Findings
    chance: Random
    leader: Callable[[], str]

    def run(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Let something happen every few seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not is_over():
            time.sleep(self.chance.uniform(SHORTEST_GAP, LONGEST_GAP))
            event = self.chance.choices(list(EVENTS), list(EVENTS.values()))[0]
            self.findings.count(event)
            if event == "compact":
                self.plane.compact()  # watches that went on from something older are gone
            elif event in ("server", "etcd"):
                self._restart({"server": SERVER, "etcd": ETCD}[event])
            else:
                self._strike(event)

    def _restart(self, name: str) -> None:
        self.findings.say(f"kill {name}")
        self.plane.stop(name, is_kill=True)
        time.sleep(self.chance.uniform(0.0, 3.0))
        with suppress(PhalanxError):  # on a busy machine it may take longer than usual
            self.plane.start(name, is_patient=False)
            return
        self.plane.start(name, is_patient=False)

    def _strike(self, event: str) -> None:
        """Let it happen to a replica, mostly to the one that leads."""
        found = [item for item in self.replicas if event == "freeze" or not item.is_elder]
        leading = [item for item in found if item.replica.name == self.leader()]
        watched = self.chance.choice(leading if leading and self.chance.random() < 0.7 else found)
        self.findings.say(f"{event} {watched.replica.name}{', which leads' if watched in leading else ''}")
        if event == "freeze":
            self._freeze(watched)
        elif event == "kill":
            watched.replica.kill()
            self._start_soon(watched)
        else:
            self._terminate(watched)

    def _freeze(self, watched: Watched) -> None:
        if pid := watched.pid:
            with suppress(ProcessLookupError):  # one that ended by itself is found at rest
                os.kill(pid, signal.SIGSTOP)
                time.sleep(self.chance.uniform(0.5, LONGEST_FREEZE))
                os.kill(pid, signal.SIGCONT)

    def _terminate(self, watched: Watched) -> None:
        if pid := watched.pid:
            os.kill(pid, signal.SIGTERM)
            if not wait_until(lambda: not watched.pid, END_SECONDS):
                self.findings.violate("does not end", f"{watched.replica.name} runs {END_SECONDS:.0f} s after SIGTERM")
                watched.replica.kill()
        self._start_soon(watched)

    def _start_soon(self, watched: Watched) -> None:
        time.sleep(self.chance.uniform(0.0, 2.0))
        watched.start()


def judge_processes(replicas: Sequence[Watched], findings: Findings) -> None:
    """Look at what replicas logged and used, and whether those run that should."""
    for watched in replicas:
        if not watched.pid:
            findings.violate("process ended", f"{watched.replica.name} ended by itself: {watched.replica.process.last_lines()}")
        for log in watched.logs():
            lines = [line for line in log.read_text(errors="replace").splitlines() if FAILURES.search(line)]
            if lines:
                findings.violate("failure in a log", f"{log.name}, {len(lines)} lines: {lines[0]}")
        for pid, samples in watched.samples.items():
            judge_life(f"{watched.replica.name} ({pid})", samples, findings)


def judge_life(name: str, samples: Sequence[Sample], findings: Findings) -> None:
    """Look at what one process used over its life."""
    memory, files, tasks = (max(getattr(item, what) for item in samples) for what in ("megabytes", "files", "tasks"))
    if memory > MOST_MEGABYTES or files > MOST_FILES or tasks > MOST_TASKS:
        findings.violate("uses too much", f"{name} used {memory:.0f} MB, {files} open files and {tasks} tasks")
    quarter = len(samples) // 4
    if len(samples) < LIFE_SAMPLES:
        return
    for what, slack in (("megabytes", SLACK_MEGABYTES), ("files", SLACK_FILES), ("tasks", SLACK_TASKS)):
        early, late = (
            median(getattr(item, what) for item in part) for part in (samples[quarter : 2 * quarter], samples[-quarter:])
        )
        if late > early * GROWTH + slack:
            findings.violate("grows", f"{name} used {early:.0f} {what} early and {late:.0f} late")
