"""Puts an explanation together: the headline from the sentences of `why.py`, the stages from their files."""

from collections.abc import Callable

from phalanx.explain.gang_status import gang_status, reason_code
from phalanx.explain.reading import Reading
from phalanx.explain.stages.evictions import evictions
from phalanx.explain.stages.turn import turn
from phalanx.explain.tree import Explanation, StageResult
from phalanx.explain.why import why

ReadStage = Callable[[Reading], StageResult]

STAGES: tuple[ReadStage, ...] = (turn, evictions)
"""In the order of `Stage`."""


def explanation(reading: Reading) -> Explanation:
    """Explain what becomes of a gang."""
    gang, status = reading.gang, gang_status(reading.gang)
    return Explanation(
        gang=gang.key, queue=gang.gang.queue, status=status, code=reason_code(gang, status),
        headline=why(reading.outcome, reading.snapshot), stages=tuple(stage(reading) for stage in STAGES),
    )  # fmt: skip
