"""Puts an explanation together: the headline from the sentences of `why.py`, the stages from their files."""

from collections.abc import Callable, Sequence

from phalanx.explain.gang_status import GangStatus, gang_status
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.more_nodes import more_nodes_help
from phalanx.explain.reading import Reading
from phalanx.explain.reason_code import reason_code
from phalanx.explain.stages.admitted import admitted
from phalanx.explain.stages.bind import bind
from phalanx.explain.stages.evictions import evictions
from phalanx.explain.stages.fits import fits
from phalanx.explain.stages.history import history
from phalanx.explain.stages.topology import topology
from phalanx.explain.stages.turn import turn
from phalanx.explain.stages.valid import GROUP_NOT_FOUND, nobody_describes, valid
from phalanx.explain.tree import Explanation, Line, Stage, StageResult
from phalanx.explain.why import why
from phalanx.model.task import GangKey
from phalanx.state.snapshot import Snapshot

ReadStage = Callable[[Reading], StageResult]

STAGES: tuple[ReadStage, ...] = (valid, admitted, turn, fits, topology, evictions, bind, history)
"""In the order of `Stage`."""
REJECTED = "Invalid"


def without_group(snapshots: Sequence[Snapshot], gang: str) -> Explanation | None:
    """Explain a gang that pods name and that nobody describes; None where no pod names it."""
    text = missing_groups(*snapshots).get(GangKey(gang))
    if text is None:
        return None
    return Explanation(gang, "", GangStatus.WAITS, GROUP_NOT_FOUND, text, (nobody_describes(snapshots[0], gang, text),))


def rejected_group(gang: str, text: str) -> Explanation:
    """Explain a gang whose group could not be read."""
    stage = StageResult(Stage.VALID, False, (Line(f"its group was rejected: {text}", REJECTED, {"group": gang}),))
    return Explanation(gang, "", GangStatus.WAITS, REJECTED, f"refused: {text}", (stage,))


def explanation(reading: Reading) -> Explanation:
    """Explain what becomes of a gang."""
    gang, status = reading.gang, gang_status(reading.gang)
    return Explanation(
        gang=gang.key, queue=gang.gang.queue, status=status, code=reason_code(reading.outcome, reading.snapshot),
        headline=why(reading.outcome, reading.snapshot), stages=tuple(stage(reading) for stage in STAGES),
        more_nodes_help=more_nodes_help(reading.snapshot, reading.decisions, gang),
    )  # fmt: skip
