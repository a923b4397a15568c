"""Fuzzes one target with mutations alone: `python -m tests.fuzz.blind TARGET SECONDS SEED`."""

import sys
import time
from random import Random

from tests.fuzz.attempts import problem_with, set_limits
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS


def main(name: str, seconds: float, seed: int) -> int:
    """Try inputs until the time is over or one of them breaks something."""
    set_limits()
    random, end, count, found = Random(seed), time.monotonic() + seconds, 0, ""
    while time.monotonic() < end and not found:
        count += 1
        found = problem_with(name, TARGETS[name], mutated(TARGETS[name].seeds, random))
    print(f"{name}: {count} inputs, seed {seed}: {found or 'nothing found'}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
