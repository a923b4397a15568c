"""What a recording costs: of the time of sessions, of the processor, and in bytes for each event of a pod.

    python benchmarks/recording.py                                 # printed only
    python benchmarks/recording.py --write benchmarks/RESULTS.md

Pods are those of indexed Jobs, as admission leaves them. They come, one session places all of them, they are bound, run, end and
go. What a recording takes is timed where it is taken, within the same run: what the scheduler's thread spends on handing over, and
what the thread that writes has used. After each step that one gets the time to write everything. Rounds without a recording
alternate with the others, and the difference of both is shown too; on a shared machine it is mostly noise, a tenth up or down.
The exit status is 1 if a recording takes more than it may.
"""

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import thread_time

from phalanx.bench.measure import NOW, policy_of
from phalanx.bench.pod_objects import Document, gang_objects
from phalanx.bench.report import machine
from phalanx.bench.results_page import write_section
from phalanx.bench.scenarios import BenchKind
from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.live.garbage import look_seldom
from phalanx.model.kinds import POD, kind_of, object_key
from phalanx.model.task import TaskKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import WatchEvent
from phalanx.recording.entries import Config
from phalanx.recording.log_writer import Bounds, LogWriter
from phalanx.recording.recorder import Recorded, Recorder
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.sessions import Scope, Sessions
from phalanx.session.cycle import Profile
from phalanx.store.kube.mirror import Mirror
from phalanx.testing import build

NODES, PODS, GANGS = 1_000, 10_000, (1, 10, 100, 1_000)
MOST_OF_SESSION, MOST_OF_CPU = 0.05, 0.03
STEPS = ("created", "session", "bound", "running", "ended", "gone", "checkpoint")
EVENTS = ("created", "bound", "running", "ended", "gone")
POLL_SECONDS = 0.1
"""Seldom, because looking takes some of the time that is measured."""
ENDED = {"containerStatuses": [{"name": "worker", "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T01:00:00Z"}}}]}


@dataclass(frozen=True, slots=True)
class Cost:
    """What one step took."""

    main: float
    """Seconds of the scheduler's own thread."""
    handed: float
    """Those of them in which a session is handed over."""
    writer: float
    """Seconds of the thread that writes."""
    written_bytes: int


class Life:
    """A cluster in which pods come, run and go, recorded or not."""

    def __init__(self, size: int, folder: Path | None) -> None:
        """Begin with nodes and nobody; with a folder it is recorded there."""
        self._cache, self._mirror = SchedulerCache(ObjectCluster(), report=print), Mirror(lambda: NOW)
        self._mirror.listen(self._notice)
        self._profile = Profile(policy_of(BenchKind.REAL_PODS), CATALOGUE)
        self._sessions = Sessions(self._cache, self._mirror, Scope(arrival=0.0))
        self._writer: LogWriter | None = None
        self._recorder: Recorder | None = None
        for number in range(NODES):
            self._put(build.node(f"node-{number:05}", cpu=64, memory="512Gi"))
        self._objects = list(gang_objects(pods=PODS, gang=size, is_real=True))
        self._binds: dict[TaskKey, str] = {}
        self._handed = 0.0
        if folder is not None:
            self._writer = LogWriter(folder, Bounds(), report=print)
            recorded = Recorded("bench", self._cache, self._mirror.everything, lambda: NOW)
            self._recorder = Recorder(recorded, self._writer, Config("volcano", ""))
            self._recorder.turn()

    def _notice(self, event: WatchEvent) -> None:
        self._cache.notice(event)

    def _put(self, document: Document) -> None:
        self._mirror.put(kind_of(document), document)

    def costs(self) -> dict[str, Cost]:
        """Let everything happen, and return what each step took."""
        gc.collect()
        look_seldom()
        self._settle()
        steps: dict[str, Callable[[], None]] = {
            "created": self._create, "session": self._hold, "bound": self._bind, "running": self._run,
            "checkpoint": self._check, "ended": self._end, "gone": self._leave,
        }  # fmt: skip
        found = {name: self._timed(step) for name, step in steps.items()}
        if self._recorder is not None:
            self._recorder.close()
        gc.unfreeze()
        return found

    def _timed(self, step: Callable[[], None]) -> Cost:
        self._handed = 0.0
        size, writer, main = self._written(), self._used(), thread_time()
        step()
        main = thread_time() - main
        self._settle()
        return Cost(main, self._handed, self._used() - writer, self._written() - size)

    def _used(self) -> float:
        return 0.0 if self._writer is None else self._writer.cpu_seconds

    def _settle(self) -> None:
        while self._writer is not None and not self._writer.is_idle:
            time.sleep(POLL_SECONDS)

    def _written(self) -> int:
        return 0 if self._writer is None else self._writer.written_bytes

    # --- steps -------------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        for document in self._objects:
            self._put(document)

    def _hold(self) -> None:
        session = self._sessions.hold(self._profile, NOW)
        if self._recorder is not None:
            begun = thread_time()
            self._recorder.held(session)
            self._handed = thread_time() - begun
        self._binds = dict(session.parts[0].decisions.binds)
        assert len(self._binds) == PODS, "every pod has to be placed"

    def _bind(self) -> None:
        for key, node in self._binds.items():
            task = self._cache.cluster.state.task(key)
            assert task is not None, "it was placed"
            self._cache.assume(task, Status.BINDING, node)
            if self._recorder is not None:
                self._recorder.bound(task, node, 0.0)
        for pod in self._pods():
            self._put({**pod, "spec": {**pod["spec"], "nodeName": self._binds[TaskKey(object_key(pod))]}})

    def _run(self) -> None:
        for pod in self._pods():
            self._put({**pod, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}})

    def _end(self) -> None:
        for pod in self._pods():
            self._put({**pod, "status": {**pod["status"], "phase": "Succeeded", **ENDED}})

    def _leave(self) -> None:
        for pod in self._pods():
            self._mirror.remove(POD, pod)

    def _check(self) -> None:
        if self._recorder is not None and self._writer is not None:
            self._writer.wants_checkpoint = True
            self._recorder.turn()

    def _pods(self) -> list[Document]:
        return [dict(pod) for pod in self._mirror.within(POD)]


@dataclass(frozen=True, slots=True)
class Row:
    """What gangs of one size cost; medians of all rounds."""

    size: int
    plain: dict[str, Cost]
    recorded: dict[str, Cost]

    @property
    def of_session(self) -> float:
        """The part of a session's time that handing it over takes."""
        cost = self.recorded["session"]
        return cost.handed / (cost.main - cost.handed)

    @property
    def of_cpu(self) -> float:
        """The part of a session's processor time that recording it takes, in both threads."""
        cost = self.recorded["session"]
        return (cost.handed + cost.writer) / (cost.main - cost.handed)

    @property
    def difference(self) -> float:
        """So much longer sessions with a recording took than those without."""
        return self.recorded["session"].main / self.plain["session"].main - 1


def measure(size: int, rounds: int) -> Row:
    """Measure gangs of one size, with and without a recording in turn."""
    found: tuple[list[dict[str, Cost]], list[dict[str, Cost]]] = ([], [])
    for _ in range(rounds):
        found[0].append(Life(size, None).costs())
        with tempfile.TemporaryDirectory() as folder:
            found[1].append(Life(size, Path(folder)).costs())
    return Row(size, *map(_medians, found))


def _medians(rounds: Sequence[dict[str, Cost]]) -> dict[str, Cost]:
    return {step: _median([costs[step] for costs in rounds]) for step in STEPS}


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        median(cost.main for cost in costs), median(cost.handed for cost in costs), median(cost.writer for cost in costs),
        round(median(cost.written_bytes for cost in costs)),
    )  # fmt: skip


def session_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what recordings cost sessions."""
    yield "| gangs of | session | handed over in | of its time | written in | of its CPU in all | with against without |"
    yield "| --: | --: | --: | --: | --: | --: | --: |"
    for row in rows:
        cost = row.recorded["session"]
        session, handed, written = (f"{seconds * 1000:,.2f} ms" for seconds in (cost.main - cost.handed, cost.handed, cost.writer))
        shares = f"{row.of_session:.2%} | {written} | {row.of_cpu:.2%} | {row.difference:+.1%}"
        yield f"| {row.size:,} | {session} | {handed} | {shares} |"


def byte_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is written: bytes for each event of a pod, and for everything else."""
    yield f"| gangs of | {' | '.join(EVENTS)} | session | checkpoint | of a pod in it |"
    yield f"| --: |{' --: |' * (len(EVENTS) + 3)}"
    for row in rows:
        events = (f"{row.recorded[step].written_bytes / PODS:,.1f}" for step in EVENTS)
        session, checkpoint = (row.recorded[step].written_bytes for step in ("session", "checkpoint"))
        yield f"| {row.size:,} | {' | '.join(events)} | {session:,} | {checkpoint:,} | {checkpoint / PODS:,.1f} |"


def cpu_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the time that the thread which writes takes for each event of a pod, in microseconds."""
    yield f"| gangs of | {' | '.join(EVENTS)} | its whole life |"
    yield f"| --: |{' --: |' * (len(EVENTS) + 1)}"
    for row in rows:
        each = [row.recorded[step].writer / PODS * 1e6 for step in EVENTS]
        yield f"| {row.size:,} | {' | '.join(f'{one:,.1f}' for one in each)} | {sum(each):,.1f} |"


def section(rows: Sequence[Row], rounds: int) -> str:
    """Return the results as Markdown."""
    return f"""Written by `python benchmarks/recording.py` on {datetime.now(UTC).date()}. Machine: {machine()}.

One session places {PODS:,} pods on {NODES:,} nodes; medians of {rounds} rounds.
At most {MOST_OF_SESSION:.0%} of the time of a session and {MOST_OF_CPU:.0%} of its processor time are allowed.

{chr(10).join(session_table(rows))}

Bytes of a recording: for each event of a pod, then for one session, and for a checkpoint of all pods and nodes. `bound` holds that
the bind was assumed, and that it was carried out; `created` holds the group.

{chr(10).join(byte_table(rows))}

Microseconds of the processor that the thread which writes takes for each event of a pod:

{chr(10).join(cpu_table(rows))}
"""


def main() -> int:
    """Measure gangs of all sizes; the exit status is 1 if sessions take too much longer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--write", type=Path, help="write the result as a section of this file as well")
    asked = parser.parse_args()
    rows = [measure(size, asked.rounds) for size in GANGS]
    text = section(rows, asked.rounds)
    print(text, end="")
    if asked.write:
        write_section(asked.write, "recording", text)
    return int(any(row.of_session > MOST_OF_SESSION or row.of_cpu > MOST_OF_CPU for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
