"""Plants one bug after the other and plays storms until they find it: ``python -m tests.storm.planted [NAME ...]``.

A bug is found by the first seed whose storm breaks an invariant that the bug is to be found by, and breaks none of these without
the bug. What is left behind is judged by the code as it is: the bug is pulled out before.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from phalanx.live.garbage import look_seldom
from phalanx.testing.storm.plan import Plan, plan_of
from phalanx.testing.storm.shrink import shrunk
from phalanx.testing.storm.storm import Outcome, play
from tests.storm.mutants import Mutant, everything

LAST_SEED, SHRINKING = 300, 14


@dataclass(frozen=True, slots=True)
class Find:
    """What became of a planted bug."""

    name: str
    seed: int | None
    violations: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    played: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        """Return it as a row of the table."""
        if self.seed is None:
            return f"| {self.name} | not found | {self.played} storms | | {self.seconds:.0f} s |"
        kinds = ", ".join(dict.fromkeys(text.partition(":")[0] for text in self.violations))
        return f"| {self.name} | {self.seed} | {kinds} | {', '.join(self.incidents) or 'none'} | {self.seconds:.0f} s |"


def play_planted(mutant: Mutant, plan: Plan) -> Outcome:
    """Play a storm with a bug planted; its end is judged without."""
    with mutant.planted() as patch:
        return play(plan, until=mutant.breaks, at_rest=patch.undo)


def breaks(mutant: Mutant, outcome: Outcome) -> bool:
    """Tell whether a storm breaks an invariant that the bug is to be found by."""
    return any(violation.invariant in mutant.breaks for violation in outcome.violations)


def find(name: str, *, first: int = 1, last: int = LAST_SEED, shrinks: bool = True) -> Find:
    """Play storms until one finds the bug."""
    mutant, begun, played = everything()[name], perf_counter(), 0
    for seed in range(first, last + 1):
        plan = plan_of(seed)
        if mutant.needs and not mutant.needs & {incident.name for incident in plan.incidents}:
            continue
        played += 1
        outcome = play_planted(mutant, plan)
        if breaks(mutant, outcome) and not breaks(mutant, play(plan)):
            return _found(mutant, outcome, played, begun, shrinks=shrinks)
    return Find(name, None, played=played, seconds=perf_counter() - begun)


def _found(mutant: Mutant, outcome: Outcome, played: int, begun: float, *, shrinks: bool) -> Find:
    broken = tuple(str(violation) for violation in outcome.violations if violation.invariant in mutant.breaks)
    kept = outcome.plan.incidents
    if shrinks:
        kept = shrunk(outcome, play=partial(play_planted, mutant), trials=SHRINKING)[0].plan.incidents
    return Find(mutant.name, outcome.plan.seed, broken, tuple(item.name for item in kept), played, perf_counter() - begun)


def main(arguments: Sequence[str]) -> int:
    """Look for the bugs that are named, or for all; return how many were not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--last", type=int, default=LAST_SEED)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--no-shrink", dest="shrinks", action="store_false")
    asked = parser.parse_args(arguments)
    names = [name for name, mutant in everything().items() if _is_asked_for(mutant, asked.names)]
    print("| planted bug | first seed | found by | incidents | time |\n|---|---|---|---|---|", flush=True)
    missed = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.processes, mp_context=context, initializer=look_seldom) as pool:
        options = {"first": asked.first, "last": asked.last, "shrinks": asked.shrinks}
        for future in as_completed([pool.submit(find, name, **options) for name in names]):
            found = future.result()
            print(found.line(), flush=True)
            missed += found.seed is None
    print(f"planted: {len(names)} bugs, {missed} not found")
    return missed


def _is_asked_for(mutant: Mutant, parts: Sequence[str]) -> bool:
    return any(part in mutant.name for part in parts) if parts else not mutant.is_rare


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
