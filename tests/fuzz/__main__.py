"""Runs fuzzers: `python -m tests.fuzz [--seconds 60] [TARGET...]`.

Each target runs in processes of its own, with a limit on memory: half of the time with mutations of its seeds (`blind.py`), half
led by the coverage of the code (`guided.py`) where atheris is installed. An input that breaks something is saved in
`tests/data/fuzz/TARGET`, where the tests try it from then on.
"""

import argparse
import importlib.util
import subprocess
import sys
import time

from tests.fuzz.targets import TARGETS

STARTING_SECONDS = 120
"""To import and instrument everything takes a while."""


def main() -> int:
    """Run the targets that are named, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description="Look for inputs that break something.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for each target; 60 by default")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    asked = parser.parse_args()
    unknown = sorted({*asked.targets} - {*TARGETS})
    if unknown:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    names = asked.targets or list(TARGETS)
    ways = ["blind", "guided"] if importlib.util.find_spec("atheris") is not None else ["blind"]
    failed = [name for name in names if not all(_is_sound(way, name, asked.seconds / len(ways), asked.seed) for way in ways)]
    print(f"fuzz: {len(names)} targets, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _is_sound(way: str, name: str, seconds: float, seed: int) -> bool:
    """Tell whether a target had nothing to complain of; one that does not even end in time has."""
    command = [sys.executable, "-m", f"tests.fuzz.{way}", name, str(seconds), str(seed)]
    try:
        return subprocess.run(command, check=False, timeout=2 * seconds + STARTING_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"{name}: {way} did not end in time")
        return False


if __name__ == "__main__":
    raise SystemExit(main())
