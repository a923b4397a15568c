"""Storms that found something, kept as they were: a plan drawn from the same seed changes when drawing does, these do not.

``python -m tests.storm.seeds SEED [INCIDENTS] WHAT`` prints an entry for `seeds.toml`.
"""

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from phalanx.testing.storm.plan import Plan, plan_of

FILE = Path(__file__).with_name("seeds.toml")


@dataclass(frozen=True, slots=True)
class Finding:
    """A storm, and what it found when it was played for the first time."""

    found: str
    plan: Plan


def findings() -> list[Finding]:
    """Return all of them."""
    entries = tomllib.loads(FILE.read_text())["storm"]
    return [Finding(entry["found"], msgspec.json.decode(entry["plan"], type=Plan)) for entry in entries]


def entry(seed: int, kept: frozenset[int] | None, found: str) -> str:
    """Return a storm as the file has it."""
    plan = plan_of(seed) if kept is None else plan_of(seed).only(kept)
    return f"[[storm]]\nfound = {msgspec.json.encode(found).decode()}\nplan = '''{msgspec.json.encode(plan).decode()}'''\n"


if __name__ == "__main__":
    numbers = frozenset(map(int, filter(None, sys.argv[2].split(",")))) if len(sys.argv) > 3 else None
    print(entry(int(sys.argv[1]), numbers, sys.argv[-1]))
