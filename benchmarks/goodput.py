"""How much work the same GPUs do under each profile: the same loads under all of them, over many seeds.

    python benchmarks/goodput.py --write benchmarks/RESULTS.md                  every load, 20 seeds: hours on two cores
    python benchmarks/goodput.py --loads 0.9,1.1 --seeds 1..20                  some of them; the others keep their results
    python benchmarks/goodput.py --loads tiresias --traces DIR                  a public trace, if its files are in DIR/tiresias

Each load is one `phalanx simulate --compare`: the table has its words, numbers and stars. What was measured is kept in
`benchmarks/goodput.json`, so that loads can be measured one at a time; a load of which a seed is missing is not kept.
"""

import argparse
import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from phalanx.bench.results_page import write_section

KEPT = Path(__file__).with_name("goodput.json")
OURS = "phalanx"
RIVALS = ("volcano", "kai", "coscheduling", "default-scheduler")
METRICS = (
    "goodput of capacity",
    "lost work of capacity",
    "mean bounded slowdown",
    "mean wait",
    "p90 wait",
    "p99 wait",
    "p99 wait of over 32 tasks",
    "fairness",
    "time below deserved",
    "fragmentation",
    "gangs evicted",
    "gangs waiting",
)
LATER = "--until 7d"


@dataclass(frozen=True, slots=True)
class Load:
    """Work that is simulated."""

    name: str
    title: str
    work: str
    more: str = LATER
    """Further options of `phalanx simulate`."""

    def command(self, seeds: str, traces: str) -> list[str]:
        """Return the options of `phalanx simulate`."""
        work = self.work.replace("DIR", traces)
        return ["--workload", work, *self.more.split(), "--seeds", seeds, "--compare", ",".join((*RIVALS, OURS))]


LOADS = (
    Load("0.7", "Load 0.7", "generated:jobs=300,nodes=30,load=0.7"),
    Load("0.9", "Load 0.9", "generated:jobs=300,nodes=30,load=0.9"),
    Load("1.1", "Load 1.1: more work than there is room for", "generated:jobs=300,nodes=30,load=1.1"),
    Load("tail", "Few gangs with most of the work", "generated:jobs=300,nodes=30,load=0.9,tail=2.8"),
    Load("bursts", "Many submissions at once", "generated:jobs=300,nodes=30,load=0.9,bursts=0.5"),
    Load("large", "Many large gangs", "generated:jobs=300,nodes=30,load=0.9,large=0.1"),
)
TRACES = (
    Load("tiresias", "A public trace of 60 jobs", "tiresias:DIR/tiresias/60_job.csv,load=0.9,jitter=0.1", ""),
    Load("openb", "A public trace of 8,000 pods on 1,200 nodes", "openb:DIR/openb,load=0.9,jitter=0.1", ""),
)


@dataclass(frozen=True, slots=True)
class Value:
    """What a profile came to, by one metric."""

    mean: float
    text: str
    is_best: bool


Table = dict[str, dict[str, Value]]
"""Values by metric and profile."""


def measure(load: Load, seeds: str, traces: str) -> dict[str, Any]:
    """Simulate a load, and return the comparison as `phalanx simulate` writes it."""
    command = [sys.executable, "-m", "phalanx", "simulate", *load.command(seeds, traces), "-o", "json"]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    document: dict[str, Any] = json.loads(found)
    if document["missing"]:
        raise SystemExit(f"{load.name}: not every seed was simulated: {document['missing']}")
    metrics = [metric for metric in document["comparison"]["metrics"] if metric["metric"] in METRICS]
    return {"seeds": seeds, "date": f"{datetime.now(UTC).date()}", "metrics": metrics}


def table_of(kept: dict[str, Any]) -> Table:
    """Return what was kept of a load as values."""
    wanted = {metric["metric"]: metric["values"] for metric in kept["metrics"]}
    return {
        name: {item["profile"]: Value(item["mean"], item["text"], item["isBest"]) for item in wanted[name]}
        for name in METRICS
        if name in wanted
    }


def section(kept: dict[str, Any]) -> str:
    """Return the section of the results page."""
    head = f"Written by `python benchmarks/goodput.py`. {platform.system()}, CPython {platform.python_version()}."
    loads = [load for load in (*LOADS, *TRACES) if load.name in kept]
    return "\n\n".join((head, *(_shown(load, kept[load.name]) for load in loads)))


def _shown(load: Load, kept: dict[str, Any]) -> str:
    table, profiles = table_of(kept), (*RIVALS, OURS)
    rows = [f"| {name} | {' | '.join(_cell(values[profile]) for profile in profiles)} |" for name, values in table.items()]
    head = [f"| metric | {' | '.join(profiles)} |", f"| --- |{' --: |' * len(profiles)}"]
    about = f"`{' '.join(load.command(kept['seeds'], 'DIR'))}`, {kept['date']}."
    return "\n".join((f"### {load.title}", "", about, "", *head, *rows, "", *verdicts(table)))


def _cell(value: Value) -> str:
    return f"{value.text} *" if value.is_best else value.text


def verdicts(table: Table) -> list[str]:
    """Return what the table says about us, beside the best of the others."""
    goodput, slowdown = table["goodput of capacity"], table["mean bounded slowdown"]
    best = max(RIVALS, key=lambda name: goodput[name].mean)
    found = [
        f"- goodput: {OURS} {goodput[OURS].mean:.1%}, the best of the others ({best}) {goodput[best].mean:.1%}",
        f"- mean bounded slowdown: {_against_least(slowdown)}",
    ]
    if (large := table.get("p99 wait of over 32 tasks")) is not None:
        found.append(f"- p99 wait of over 32 tasks: {_against_least(large)}")
    fair = table["fairness"]
    fairest = max(RIVALS, key=lambda name: fair[name].mean)
    behind = fair[fairest].mean - fair[OURS].mean
    lost = table["lost work of capacity"][OURS].mean
    return [
        *found,
        f"- lost work: {lost:.1%} of capacity",
        f"- fairness: {behind:+.3f} behind the best of the others ({fairest})",
    ]


def _against_least(values: dict[str, Value]) -> str:
    least = min(RIVALS, key=lambda name: values[name].mean)
    ratio = values[OURS].mean / max(values[least].mean, 1e-9)
    return f"{ratio:.2f} times the best of the others ({least})"


def main() -> None:
    """Measure loads, keep what was found, and show it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", help="names of loads, such as 0.9,1.1; all but the traces by default")
    parser.add_argument("--seeds", default="1..20")
    parser.add_argument("--traces", default="", help="directory of public traces: tiresias/60_job.csv, openb/*.csv")
    parser.add_argument("--write", type=Path, help="write the section of this file")
    asked = parser.parse_args()
    names = asked.loads.split(",") if asked.loads else [load.name for load in LOADS]
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for load in (load for load in (*LOADS, *TRACES) if load.name in names):
        kept[load.name] = measure(load, asked.seeds, asked.traces)
        KEPT.write_text(f"{json.dumps(kept, indent=1)}\n")
        print(_shown(load, kept[load.name]), flush=True)
    if asked.write:
        write_section(asked.write, "goodput", section(kept))


if __name__ == "__main__":
    main()
