"""How fast this version is beside another one, in one run: the same rows, each several times, one version after the other.

    git worktree add ../before v0.1.0
    python benchmarks/against.py ../before
    python benchmarks/against.py ../before --rounds 5 --only simulate

Timings on a shared machine move by a tenth from minute to minute; alternating and taking the best of each leaves a few per cent.
What is measured is the time of the processor, not of the clock on the wall. `make race` measures on a real API server.
"""

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

CORE = ["bench", "core", "--nodes", "1000", "--pods", "5000", "--gang", "50"]
ROWS = {
    "core, plain": [*CORE, "-o", "json"],
    "core, mixed": [*CORE, "--kind", "mixed", "-o", "json"],
    "core, hard topology": [*CORE, "--kind", "topology-hard", "-o", "json"],
    "evict, gang of 200": ["bench", "evict", "--only", "gang of 200", "-o", "json"],
    "evict, kai": ["bench", "evict", "--profile", "kai", "-o", "json"],
    "simulate": ["simulate", "--workload", "generated:jobs=600,nodes=60", "--seed", "3", "-o", "json"],
}  # fmt: skip


def processor_seconds(source: Path, words: list[str]) -> float:
    """Run phalanx from some sources; return the processor time it and its children took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(source / "src")}
    subprocess.run([sys.executable, "-m", "phalanx", *words], env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def main() -> None:
    """Measure every row and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="a checkout of the other version")
    parser.add_argument("--rounds", type=int, default=3, help="how often each row is run")
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    asked = parser.parse_args()
    here = Path(__file__).resolve().parent.parent
    print(f"{'row':<22}{'other':>10}{'this':>10}{'this / other':>14}")
    for name, words in ROWS.items():
        if asked.only not in name:
            continue
        pairs = [(processor_seconds(asked.other, words), processor_seconds(here, words)) for _ in range(asked.rounds)]
        other, this = (min(column) for column in zip(*pairs, strict=True))
        print(f"{name:<22}{other:>9.2f}s{this:>9.2f}s{this / other:>14.2f}", flush=True)


if __name__ == "__main__":
    main()
