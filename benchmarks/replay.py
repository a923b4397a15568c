"""How fast a busy recording is replayed: times faster than it happened, and what the time goes into.

    python benchmarks/replay.py                                 # printed only
    python benchmarks/replay.py --write benchmarks/RESULTS.md

A simulated cluster of 200 nodes gets 1,500 gangs, 6,068 pods, in a quarter of an hour, and is recorded: 5 pods come, are bound and
end each second, and most seconds see a session. It is replayed in a row, in one process, and timed by the processor: what else runs
on the machine does not count. Where the recording has several files, `phalanx replay` takes one process for each processor.
"""

import argparse
import gc
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import thread_time

from phalanx.bench.report import machine
from phalanx.bench.results_page import write_section
from phalanx.cli.simulate_run import GARBAGE
from phalanx.recording.entries import AnyEntry, Decided, Planned
from phalanx.recording.reading import Recording
from phalanx.recording.replay import Replay
from phalanx.recording.replayed_segment import ReplayTally

WORK = "generated:jobs=1500,nodes=200,days=0.01,load=0.9"
UNTIL = "20m"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What one replay took, in seconds of the processor."""

    tally: ReplayTally
    reading: float
    changes: float
    sessions: float

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.reading + self.changes + self.sessions

    @property
    def life(self) -> float:
        """So long it took when it happened."""
        return self.tally.ended - (self.tally.begun or 0.0)


def record(folder: Path) -> None:
    """Record the work."""
    command = [sys.executable, "-m", "phalanx", "simulate", "--workload", WORK, "--until", UNTIL, "--record", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def replay(folder: Path) -> Replayed:
    """Decide everything again, and see to it that it is the same."""
    tally, player, spent = ReplayTally(), Replay(), {"reading": 0.0, "changes": 0.0, "sessions": 0.0}
    gc.collect()
    last = thread_time()
    for entry in _entries(folder):
        now = thread_time()
        spent["reading"] += now - last
        session = tally.enter(entry, player)
        assert session is None or session.is_same, [*session.differences()]
        last = thread_time()
        spent["sessions" if isinstance(entry, Decided | Planned) else "changes"] += last - now
    return Replayed(tally, **spent)


def _entries(folder: Path) -> Iterator[AnyEntry]:
    for _, entry in Recording(folder, tell=print).entries():
        yield entry


def section(rounds: list[Replayed]) -> str:
    """Return the results as Markdown."""
    rounds = sorted(rounds, key=lambda found: found.seconds)
    found, middle = rounds[len(rounds) // 2], median(each.seconds for each in rounds)
    parts = (("reading", found.reading), ("changes", found.changes), ("sessions", found.sessions))
    lines = [f"| {name} | {seconds:.2f} s | {seconds / found.seconds:.0%} |" for name, seconds in parts]
    tally = found.tally
    what = f"{tally.sessions:,} sessions, {tally.carried_out['bound']:,} binds and {tally.entries:,} entries"
    speed = f"{found.life / middle:,.0f} times faster than it happened"
    return f"""Written by `python benchmarks/replay.py` on {datetime.now(UTC).date()}. Machine: {machine()}.

{found.life:,.0f} s with {what} are replayed
in {middle:.2f} s of one processor (median of {len(rounds)} rounds): **{speed}**.

| what | processor | part |
| --- | --: | --: |
{chr(10).join(lines)}
"""


def main() -> int:
    """Record and replay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--write", type=Path, help="write the result as a section of this file as well")
    asked = parser.parse_args()
    gc.set_threshold(*GARBAGE)
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
        text = section([replay(Path(folder)) for _ in range(asked.rounds)])
    print(text, end="")
    if asked.write:
        write_section(asked.write, "replay", text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
