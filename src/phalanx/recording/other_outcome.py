"""What became of the gangs of a recording, beside what becomes of them in two simulations: the recorded rules and other ones.

Everything is plain data here, the same for tables and for JSON. A gang that never starts counts with its wait until the end, or
until somebody deleted it, and as one that never started. Gangs that ran before the recording have no waits; their evictions count.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from phalanx.recording.gang_lives import GangLife

Json = dict[str, Any]  # Any: as JSON has it
AGREED_SECONDS = 1.0
"""Waits that differ by no more agree."""
SHOWN_SECONDS = 0.05
"""What is less is rounded to nothing."""


@dataclass(frozen=True, slots=True)
class GangOutcome:
    """What became of one gang once."""

    wait: float
    """Seconds until it started; until the end if it never did."""
    has_started: bool
    has_finished: bool
    evicted: int
    end: float | None = None
    """Seconds until its work was done; None if that did not come."""

    def document(self) -> Json:
        """Return it as plain data."""
        return {
            "wait": round(self.wait, 3), "started": self.has_started, "finished": self.has_finished, "evicted": self.evicted,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedGang:
    """One gang: as it was recorded, and in both simulations."""

    name: str
    queue: str
    ran_before: bool
    recorded: GangOutcome
    same: GangOutcome
    """Under the recorded rules."""
    other: GangOutcome

    @property
    def difference(self) -> float:
        """How much longer the gang waits under the other rules, in seconds."""
        return self.other.wait - self.same.wait

    def document(self) -> Json:
        """Return it as plain data."""
        return {
            "name": self.name, "queue": self.queue, "ranBefore": self.ran_before, "recorded": self.recorded.document(),
            "simulated": self.same.document(), "other": self.other.document(), "difference": round(self.difference, 3),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Totals:
    """All gangs together, once."""

    started: int
    never_started: int
    finished: int
    evictions: int
    evicted_gangs: int
    mean_wait: float
    median_wait: float
    longest_wait: float
    p90_wait: float

    def document(self) -> Json:
        """Return it as plain data."""
        return {
            "started": self.started, "neverStarted": self.never_started, "finished": self.finished, "evictions": self.evictions,
            "evictedGangs": self.evicted_gangs, "meanWait": round(self.mean_wait, 3), "medianWait": round(self.median_wait, 3),
            "longestWait": round(self.longest_wait, 3), "p90Wait": round(self.p90_wait, 3),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Distance:
    """How far the simulation of the recorded rules is from what happened: smaller differences of simulations mean nothing."""

    gangs: int
    agreeing: int
    """Waits that agree within `AGREED_SECONDS`."""
    mean: float
    high: float
    """Nine of ten waits are no farther away."""
    largest: float
    farthest: str
    """The gang with the largest distance; empty if all agree exactly."""
    evictions: int
    """How many more pods were evicted in the simulation than in the recording."""
    differing_starts: int
    """Gangs that started in one of the two only."""

    def document(self) -> Json:
        """Return it as plain data."""
        return {
            "gangs": self.gangs, "agreeing": self.agreeing, "withinSeconds": AGREED_SECONDS, "meanWaitError": round(self.mean, 3),
            "p90WaitError": round(self.high, 3), "largestWaitError": round(self.largest, 3), "farthest": self.farthest,
            "evictions": self.evictions, "differingStarts": self.differing_starts,
        }  # fmt: skip


def recorded_outcome(life: GangLife, ended: float) -> GangOutcome:
    """Return what became of a gang of a recording that ended then."""
    wait = life.wait if life.wait is not None else _longest_wait(life, ended)
    end = None if life.finished is None else life.finished - life.submitted
    return GangOutcome(wait, life.started is not None, life.finished is not None, life.evicted, end)


def compared(
    lives: Mapping[str, GangLife], ended: float, same: Mapping[str, GangOutcome], other: Mapping[str, GangOutcome]
) -> list[ComparedGang]:
    """Return the gangs, those with the largest difference between the simulations first; groups without pods are left out."""
    rows = [
        ComparedGang(
            name, life.queue, life.ran_before, recorded_outcome(life, ended), _outcome_in(same, name, life, ended),
            _outcome_in(other, name, life, ended),
        )
        for name, life in lives.items()
        if life.seats
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-abs(row.difference), row.name))


def _outcome_in(world: Mapping[str, GangOutcome], name: str, life: GangLife, ended: float) -> GangOutcome:
    """Return what became of a gang in a simulation; one that never came to be there has waited all the time.

    Nobody deletes a gang in a simulation. One that was deleted before it started would not have waited for longer in any world.
    """
    found, longest = world.get(name), _longest_wait(life, ended)
    if found is None or (life.patience() is not None and found.wait > longest):
        return GangOutcome(longest, has_started=False, has_finished=False, evicted=0 if found is None else found.evicted)
    return found


def _longest_wait(life: GangLife, ended: float) -> float:
    """Return how long a gang that has not started has waited: until it was deleted, or until the end."""
    patience = life.patience()
    return ended - life.submitted if patience is None else patience


def totals(rows: Sequence[ComparedGang], choose: Callable[[ComparedGang], GangOutcome]) -> Totals:
    """Add up one of the three outcomes of all gangs."""
    everybody = [choose(row) for row in rows]
    newcomers = [choose(row) for row in rows if not row.ran_before]
    waits = [outcome.wait for outcome in newcomers] or [0.0]
    started = sum(outcome.has_started for outcome in newcomers)
    return Totals(
        started, len(newcomers) - started, sum(outcome.has_finished for outcome in everybody),
        sum(outcome.evicted for outcome in everybody), sum(outcome.evicted > 0 for outcome in everybody), fmean(waits),
        median(waits), max(waits), float(np.percentile(waits, 90)),
    )  # fmt: skip


def distance(rows: Iterable[ComparedGang]) -> Distance:
    """Return how far the simulation of the recorded rules is from the recording."""
    everybody = list(rows)
    newcomers = [row for row in everybody if not row.ran_before]
    errors = {row.name: abs(row.same.wait - row.recorded.wait) for row in newcomers}
    largest = max(errors.values(), default=0.0)
    return Distance(
        len(errors), sum(error <= AGREED_SECONDS for error in errors.values()), fmean(errors.values()) if errors else 0.0,
        float(np.percentile([*errors.values()], 90)) if errors else 0.0, largest,
        max(errors, key=lambda name: errors[name]) if largest >= SHOWN_SECONDS else "",
        sum(row.same.evicted - row.recorded.evicted for row in everybody),
        sum(row.same.has_started != row.recorded.has_started for row in newcomers),
    )  # fmt: skip
