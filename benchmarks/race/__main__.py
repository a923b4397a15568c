"""Races schedulers on a real API server: `python -m benchmarks.race`, in the root of a clone.

    python -m benchmarks.race                                               # everything: some hours
    python -m benchmarks.race --rows gangs-of-50,arrivals --only raw,phalanx,volcano --rounds 1
    python -m benchmarks.race --scale 0.05 --rounds 1                       # everything, small, to see that it works

Results are printed. Those of full size are also written to benchmarks/race.json and RESULTS.md, and docs/figures/race.svg is
drawn from them; with --out to a folder of your choice, at any size. docs/explanation/race.md says what is measured and how.
"""

import argparse
import asyncio
import compileall
import os
import platform
import random
import runpy
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.live_server import WITHOUT_KUBELETS
from benchmarks.race.contenders import BY_NAME, CONTENDERS, Contender
from benchmarks.race.gangs import Submitted
from benchmarks.race.loads import LOADS, Attempt
from benchmarks.race.results import MeasuredRow, Outcome, Results, read, seconds, section, table, write
from benchmarks.race.rows import HEADLINES, MACHINES, ROWS, Row, chosen, scaled
from benchmarks.race.running import Running
from benchmarks.race.site import Site, install

import phalanx as package
from phalanx.bench.results_page import write_section
from phalanx.dev.go_build import build
from phalanx.dev.plane import ControlPlane
from phalanx.dev.programs import RIVALS, USUAL
from phalanx.errors import PhalanxError
from phalanx.store.kube.client import Client
from phalanx.store.kube.credentials import FixedCredentials, bearer

HERE = Path(__file__).resolve().parents[1]
DRAW = HERE.parent / "docs" / "figures" / "draw.py"
PATIENCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for."""

    rows: list[Row]
    contenders: list[Contender]
    rounds: int
    patience: float
    seed: int
    scale: float
    out: Path | None

    @property
    def rivals(self) -> list[str]:
        """The programs that have to be built besides the control plane, and bring definitions."""
        return [contender.program for contender in self.contenders if contender.program in RIVALS]


def say(text: str) -> None:
    """Tell how far it has got."""
    print(text, file=sys.stderr, flush=True)


async def race(plane: ControlPlane, asked: Asked, results: Results) -> None:
    """Race all rows, and keep each as soon as it is there."""
    order, nodes = random.Random(asked.seed), 0
    async with Client(plane.server, credentials=FixedCredentials(bearer(plane.token), plane.tls)) as client:
        site = Site(plane, client)
        for row in sorted(asked.rows, key=lambda row: row.nodes):
            await asyncio.to_thread(plane.add_nodes, row.nodes - nodes, first=nodes + 1)
            nodes = row.nodes
            results.replace(await race_row(site, row, asked, order))
            keep(asked, results)


async def race_row(site: Site, row: Row, asked: Asked, order: random.Random) -> MeasuredRow:
    """Let every contender run in every round, each time in another order."""
    say(f"{row.key}: {row.title}")
    where, outcomes = machine(asked), list[Outcome]()
    for number in range(asked.rounds):
        for contender in order.sample(asked.contenders, len(asked.contenders)):
            outcome = await attempt(site, row, contender, number, asked.patience)
            say(f"  round {number + 1}: {contender.name:13}{brief(row, outcome)}")
            outcomes.append(outcome)
    rank = [contender.name for contender in asked.contenders]
    return MeasuredRow(row.key, row.load, row.title, where, sorted(outcomes, key=lambda each: rank.index(each.contender)))


async def attempt(site: Site, row: Row, contender: Contender, number: int, patience: float) -> Outcome:
    """Let one contender run in a namespace of its own, and leave an empty cluster."""
    namespace = f"{row.key}-{contender.name}-{number}-{time.monotonic_ns() % 10**6}"
    await asyncio.to_thread(site.plane.create_namespace, namespace)
    submitted = Submitted(namespace, contender.scheduler, contender.dialect, row)
    before = await site.requests(contender.name)
    async with Running(site, contender) as running, site.watching(namespace, row.size) as watching:
        watching.is_over = running.has_ended
        measured = await LOADS[row.load](Attempt(site, submitted, running, watching, patience))
        use = running.use()
    requests = await site.requests(contender.name) - before
    await site.refuse_overfull_nodes(row)
    await site.clear(submitted)
    numbers = {"cpu": use.cpu_seconds, "memory": use.memory_mib, "requests": float(requests), **measured.numbers}
    if (recording := running.recording_seconds()) is not None:
        numbers["recording"] = recording
    return Outcome(contender.name, number, numbers, measured.problem)


def brief(row: Row, outcome: Outcome) -> str:
    """Say in a line what came out."""
    numbers, headline = outcome.numbers, outcome.numbers.get(HEADLINES[row.load])
    time_text = "-" if headline is None else seconds(headline)
    use = f"{numbers['cpu']:6.1f} s CPU {numbers['memory']:6.0f} MiB {numbers['requests']:8,.0f} requests"
    cost = f" {numbers['recording'] * 1000:.0f} ms of CPU to record" if "recording" in numbers else ""
    return f"{time_text:>10} {use}{cost}  {outcome.problem}"


def machine(asked: Asked) -> str:
    """Say what else results depend on; a busy machine is slow."""
    load = f"load average {os.getloadavg()[0]:.1f} when the row began"
    rounds = f"{asked.rounds} round{'s' * (asked.rounds > 1)}, seed {asked.seed}"
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{rounds}; {version}, {os.cpu_count()} cores, {load}; {datetime.now(UTC):%Y-%m-%d}."


def keep(asked: Asked, results: Results) -> None:
    """Write results down, and draw them."""
    if asked.out is None:
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    write(asked.out / "race.json", results)
    write_section(asked.out / "RESULTS.md", "race", section(results))
    figure = DRAW.parent if asked.out == HERE else asked.out
    (figure / "race.svg").write_text(runpy.run_path(str(DRAW))["race"](asked.out / "race.json").svg())


def arguments(words: Sequence[str] | None = None) -> Asked:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every, everybody = (",".join(names) for names in ([row.key for row in ROWS], [each.name for each in CONTENDERS]))
    parser.add_argument("--rows", default=every, metavar="NAMES", help=f"rows, or the beginnings of their names: {every}")
    parser.add_argument("--only", default=everybody, metavar="NAMES", help=f"contenders: {everybody}")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how often each contender runs (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="so many times the nodes and gangs (default 1)")
    parser.add_argument("--patience", type=float, default=PATIENCE_SECONDS, metavar="SECONDS", help="give up after (default 300)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of contenders (default 1)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write results there; at full size benchmarks/ by default")
    read = parser.parse_args(words)
    unknown = [name for name in read.only.split(",") if name not in BY_NAME]
    if unknown:
        parser.error(f"--only: there is no {unknown[0]!r}; write some of {','.join(BY_NAME)}")
    try:
        rows = [scaled(row, read.scale) for row in chosen(read.rows.split(","))]
    except ValueError as problem:
        parser.error(str(problem))
    contenders = [contender for contender in BY_NAME.values() if contender.name in read.only.split(",")]
    out = read.out or (HERE if read.scale == 1 else None)
    return Asked(rows, contenders, read.rounds, read.patience, read.seed, read.scale, out)


def main(words: Sequence[str] | None = None) -> None:
    """Race what the command line asks for."""
    asked = arguments(words)
    build([*USUAL, *asked.rivals], say)
    compileall.compile_dir(Path(package.__file__).parent, quiet=1)  # as pip does when it installs
    results = read(asked.out / "race.json") if asked.out else Results({})
    results.titles |= {contender.name: contender.title for contender in (*CONTENDERS, *asked.contenders)}
    with (
        tempfile.TemporaryDirectory() as folder,
        ControlPlane(Path(folder), machines=MACHINES, parts=(), flags=WITHOUT_KUBELETS) as plane,
    ):
        install(plane, asked.rivals)
        asyncio.run(race(plane, asked, results))
    raced = {row.key for row in asked.rows}
    print("\n".join(table(row, results.titles) for row in results.rows if row.key in raced), end="")


if __name__ == "__main__":
    try:
        main()
    except PhalanxError as problem:
        raise SystemExit(f"race: {problem}") from problem
