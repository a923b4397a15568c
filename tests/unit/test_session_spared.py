"""Why running gangs give nothing to others: one list of codes and texts for all actions."""

import pytest

from phalanx.model.gang import Gang
from phalanx.model.task import GangKey
from phalanx.session.spared import Spared

ITS = Gang(GangKey("ml/llama"), uid="a", queue="speech", priority=7)
MINE = Gang(GangKey("ml/bert"), uid="b", queue="vision", priority=5)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Spared.NOT_PREEMPTABLE, "is not preemptable"), (Spared.NOT_LOWER, "has priority 7, not lower than 5"),
        (Spared.NOT_RECLAIMABLE, "is in queue speech, which is not reclaimable"),
        (Spared.OTHER_QUEUE, "is in another queue, speech"), (Spared.SAME_QUEUE, "is in the same queue, speech"),
        (Spared.TOO_YOUNG, "has not run for its minimum runtime"), (Spared.NOT_RUNNING, "does not run yet"),
        (Spared.ENOUGH_MOVED, "stays, since maxConsolidationPreemptees jobs are moved already"),
    ],
)  # fmt: skip
def test_a_verdict_has_the_code_of_its_reason_and_follows_the_name_of_the_gang(reason: Spared, text: str) -> None:
    verdict = reason.verdict("reclaim", ITS, MINE)
    assert (verdict.plugin, verdict.reason, verdict.message) == ("reclaim", reason.code, text)


def test_no_two_reasons_are_told_alike() -> None:
    assert len({reason.of_tasks for reason in Spared}) == len({reason.of_gang for reason in Spared}) == len(Spared)
