"""Storms that found something, kept as they were: a plan drawn from the same seed changes when drawing does, these do not.

``python -m tests.storm.seeds SEED INCIDENTS WHAT BEFORE`` prints an entry for `seeds.toml`, such as ``131 0,4 'pods said nothing'
'V8: untried pods say nothing'``; the last is the planted bug that is the code before the mend.
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
    before: str
    """The planted bug that is the code before it was mended."""
    plan: Plan


def findings() -> list[Finding]:
    """Return all of them."""
    entries = tomllib.loads(FILE.read_text())["storm"]
    return [Finding(entry["found"], entry["before"], msgspec.json.decode(entry["plan"], type=Plan)) for entry in entries]


def kept(section: str) -> dict[str, Plan]:
    """Return storms that were kept for other reasons, by what they show: `misjudged` and `recorded`."""
    entries = tomllib.loads(FILE.read_text())[section]
    return {entry["name"]: msgspec.json.decode(entry["plan"], type=Plan) for entry in entries}


def entry(plan: Plan, found: str, before: str) -> str:
    """Return a storm as the file has it."""
    texts = {"found": found, "before": before}
    lines = [f"{name} = {msgspec.json.encode(text).decode()}" for name, text in texts.items()]
    return "\n".join(("[[storm]]", *lines, f"plan = '''{msgspec.json.encode(plan).decode()}'''", ""))


if __name__ == "__main__":
    seed, numbers, what, planted = sys.argv[1:]
    print(entry(plan_of(int(seed)).only(frozenset(map(int, numbers.split(",")))), what, planted))
