"""When the reason why somebody waits is a new one: the cause behind a sentence, without its running numbers.

A sentence counts nodes, tasks and what is free, and these change in every session of a busy cluster. An event or a condition is
written when the cause changes: another code, or another thing. While there are nodes that suit a task but are full, the cause is
that they are full, whatever happens to nodes that do not suit it; which resource most of them lack changes with the load too.
"""

import re
from collections.abc import Hashable, Iterable, Iterator

from phalanx.explain.cause import Cause
from phalanx.explain.failed_searches import FailedSearch, failed_searches
from phalanx.explain.gang_status import has_minimum
from phalanx.explain.node_reasons import CORDONED, INSUFFICIENT, NOT_READY, SCATTERED, node_reason
from phalanx.explain.reason_code import reason_code
from phalanx.explain.reason_text import request_text
from phalanx.explain.why import why
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, Verdict, lacked_resource

CauseKey = Hashable
FULL = "full"
_OF_LOAD = (INSUFFICIENT, SCATTERED)
_PASSING = (NOT_READY, CORDONED)
"""Nodes come and go: these are the cause only where there is no other."""
_NUMBER = re.compile(r"(?<![\w./=:-])\d+(?:\.\d+)?(?:[KMGT]i|m| s)?(?![\w=:-])(?!\.\w)(?!/[a-z])")
"""A number that stands alone, unlike those in names such as node-3."""


def cause_of(outcome: Outcome, snapshot: Snapshot) -> CauseKey:
    """Return the cause because of which a gang waits; it is put into words only where nothing else is known of it."""
    gang = outcome.state
    searches = frozenset(_of_search(found) for found in failed_searches(outcome, snapshot))
    is_full = any(FULL in key for key in searches)
    verdicts = frozenset(_of_verdict(verdict) for verdict in gang.verdicts)
    code = FULL if is_full else reason_code(outcome, snapshot)
    known = (code, has_minimum(gang), searches, verdicts, tuple(_held_back(gang)), tuple(_failed_binds(gang)))
    return known if searches or verdicts else (*known, cause_of_text(why(outcome, snapshot)))


def cause_of_error(error: FitError) -> CauseKey:
    """Return the cause because of which a single pod found no node."""
    if error.verdict is not None:
        return _of_verdict(error.verdict)
    if any(map(lacked_resource, error.counts)):
        return FULL
    codes = {node_reason(reason).code: count for reason, count in error.counts.items()}
    return _most({code: count for code, count in codes.items() if code not in _PASSING} or codes)


def cause_of_text(sentence: str) -> CauseKey:
    """Return a sentence without its numbers, where nothing else is known of its cause."""
    return _NUMBER.sub("#", sentence)


def _most(counts: dict[str, int]) -> str:
    return min(counts, key=lambda code: (-counts[code], code), default="")


def _of_search(found: FailedSearch) -> tuple[str, ...]:
    asks = request_text(found.search.shape.request)
    if found.general is not None:
        return asks, found.general.code, cause_text(found.general)
    if any(cause.code in _OF_LOAD for cause in found.causes):
        return asks, FULL
    lasting = [cause for cause in found.causes if cause.code not in _PASSING] or found.causes
    decisive = min(lasting, key=lambda cause: (-cause.nodes, cause.text), default=None)
    return (asks,) if decisive is None else (asks, decisive.code, cause_text(decisive))


def cause_text(cause: Cause) -> str:
    """Return the thing of a cause without running numbers."""
    return _NUMBER.sub("#", cause.thing)


def _of_verdict(verdict: Verdict) -> tuple[str, ...]:
    """Return code and names of a verdict; one that has only a message is known by it."""
    names = sorted(str(value) for key, value in verdict.numbers.items() if isinstance(value, str) and key != "cause")
    return (verdict.plugin, verdict.reason, *(names if verdict.numbers else [_NUMBER.sub("#", verdict.message)]))


def _held_back(gang: GangState) -> Iterator[str]:
    waiting = [state.task for state in gang.tasks if state.status is Status.PENDING]
    yield from sorted(
        {name for task in waiting for name in task.gates} | {_other(task.scheduler_name) for task in waiting if task.is_foreign}
    )


def _other(scheduler: str) -> str:
    return f"schedulerName {scheduler}"


def _failed_binds(gang: GangState) -> Iterable[str]:
    return sorted({failure.node for state in gang.tasks if state.status is Status.PENDING for failure in state.task.failed_binds})
