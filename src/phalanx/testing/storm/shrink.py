"""The shortest storm found that still breaks the same invariant: incidents are left out as long as it does."""

from collections.abc import Callable

from phalanx.testing.storm.plan import Plan
from phalanx.testing.storm.storm import Outcome, play

MOST_TRIALS = 60


def shrunk(
    outcome: Outcome, *, play: Callable[[Plan], Outcome] = play, trials: int = MOST_TRIALS
) -> tuple[Outcome, frozenset[int]]:
    """Return the outcome with the fewest incidents, and which of the plan's incidents those are."""
    whole, broken = outcome.plan, {violation.invariant for violation in outcome.violations}
    kept = list(range(len(whole.incidents)))
    size = max(len(kept) // 2, 1)
    while size >= 1 and trials > 0 and kept:
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            trials -= 1
            found = play(whole.only(frozenset(fewer)))
            if broken & {violation.invariant for violation in found.violations}:
                outcome, kept = found, fewer
                break
        else:
            size //= 2
    return outcome, frozenset(kept)
