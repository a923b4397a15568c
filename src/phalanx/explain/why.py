"""Why a gang waits, in one sentence.

The sentence is made from what the session left on the gang: verdicts with their reason codes and numbers, fit errors, statuses and
attempts. No plugin is asked and nothing is placed again, so the sentence is about the session that took place.
"""

from collections.abc import Iterable, Iterator

from phalanx.dialects.status import is_finished, placeable
from phalanx.explain.cause import remembered
from phalanx.explain.domain_text import UNRESOLVED_TIERS, domain_text, parted_text, untried_text
from phalanx.explain.eviction_clause import eviction_clause
from phalanx.explain.gang_status import admission_refusals, has_minimum, is_empty, is_new, minimum_of
from phalanx.explain.held_back import held_back
from phalanx.explain.missing_places import missing_places, without_place
from phalanx.explain.queue_limits import beyond_limits
from phalanx.explain.queue_refusals import refusal_sentence, refusals
from phalanx.explain.reason_text import NO_GANGS, asks_text, counted, no_pods, part_text
from phalanx.explain.short_parts import missing_pods, short_parts
from phalanx.explain.why_kai import is_told_as_kai, why_kai
from phalanx.model.task_status import Status
from phalanx.session.decision import Outcome
from phalanx.session.isolation import SCHEDULER_FAULT
from phalanx.state.gang_state import GangState
from phalanx.state.overcommitment import rolled_back_verdict
from phalanx.state.snapshot import Snapshot
from phalanx.state.staleness import stale_verdict
from phalanx.state.verdict import Verdict


def why(outcome: Outcome, snapshot: Snapshot) -> str:
    """Return the reason why a gang, or a part of it, waits; empty when nothing of it does. It is put into words once."""
    return remembered(outcome.aftermath, ("why", outcome.state.key), lambda: _sentence(outcome, outcome.seen or snapshot))


def _sentence(outcome: Outcome, snapshot: Snapshot) -> str:
    reason = _reason(outcome, snapshot)
    return "; ".join([reason, *eviction_clause(outcome.state), *_failed_bind(outcome.state)]) if reason else ""


def _failed_bind(gang: GangState) -> Iterator[str]:
    """Name the last bind that failed, where no plugin waits because of it: what else is said may only follow from its roll-back."""
    failures = [
        (failure, task.task.name) for task in gang.tasks if task.status is Status.PENDING for failure in task.task.failed_binds
    ]
    if failures and not has_minimum(gang) and not any(verdict.reason == "BindBackoff" for verdict in gang.verdicts):
        last, pod = max(failures, key=lambda entry: (entry[0].latest, entry[1]))
        yield f"the last bind of pod {pod}, to node {last.node}, failed ({counted(last.attempts, 'attempt')})"


def _reason(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    stale, rolled_back = stale_verdict(gang), rolled_back_verdict(gang)
    if rolled_back is not None:
        return rolled_back.message
    if outcome.is_loose and gang.tally.ready and not has_minimum(gang):
        return f"{part_text(gang.tally.ready, gang)} placed without the rest, since {NO_GANGS}; {_why_it_waits(outcome, snapshot)}"
    if stale is None:
        return _why_it_waits(outcome, snapshot)
    rest = "" if stale.numbers["is_evicted"] else _why_it_waits(outcome, snapshot)
    return f"{stale.message}; {rest}" if rest else stale.message


def _why_it_waits(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    if is_finished(gang):
        return ""
    if is_told_as_kai(outcome):
        return why_kai(outcome, snapshot)
    if has_minimum(gang):
        return _why_not_more(outcome, snapshot)
    return _before_placement(gang, snapshot) or _why_not_at_all(outcome, snapshot)


def _why_not_more(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    waiting = gang.tally.counts[Status.PENDING] + gang.tally.pipelined
    if not waiting:
        return ""
    ready, minimum = gang.tally.ready, minimum_of(gang)
    verb = "starts" if is_new(gang) else "runs"
    parts = ", ".join(short_parts(gang))
    short = f" ({parts})" if parts else ""
    is_exact = ready == minimum and not short
    share = f"its minimum of {minimum}" if is_exact else f"{ready} of {len(gang.tasks)} tasks, its minimum is {minimum}{short}"
    no_place = [f"no place for {asks_text(task)} ({obstacle})" for task, obstacle in without_place(outcome, snapshot)]
    causes = [*no_place, *refusals(gang, snapshot), *_pipelined(gang), *held_back(gang, snapshot.surroundings.schedulers)]
    rest = "not tried in this session" if gang.allowed_tier is None else "no network domain has room for all of it"
    text = "; ".join(causes) or rest
    return f"{verb} with {share}; {counted(waiting, 'more task')} {'waits' if waiting == 1 else 'wait'}: {text}"


# --- before placement ----------------------------------------------------------------------------------------------------


def _before_placement(gang: GangState, snapshot: Snapshot) -> str:
    """Say what keeps the gang from being placed at all; empty when nothing does."""
    for verdict in gang.verdicts:
        if verdict.reason == "QueueNotFound":
            return f"queue {gang.gang.queue!r} does not exist"
        if verdict.reason == "Invalid":
            return f"quarantined: {verdict.message}"
        if verdict.reason in (*UNRESOLVED_TIERS, "SeveralSchedulers", SCHEDULER_FAULT):
            return verdict.message
        if gang.tasks and verdict.reason == "NotEnoughTasks" and "valid" in verdict.numbers:
            return _too_few_pods(gang)
        if gang.tasks and verdict.reason == "NotEnoughPodsOfTask":
            return missing_pods(gang) or f"too few pods ({verdict.message})"
    if not gang.tasks:
        return _without_pods(gang)
    return _not_admitted(gang.verdicts, gang) if gang.phase in ("", "Pending") else ""


def _without_pods(gang: GangState) -> str:
    """Say why a gang has no pods: its owner may create them only once it is admitted."""
    refusals = [] if is_empty(gang) else admission_refusals(gang)
    return _not_admitted(refusals, gang) if refusals else no_pods(gang.gang.min_member)


def _not_admitted(refusals: Iterable[Verdict], gang: GangState) -> str:
    sentences = [refusal_sentence(gang, verdict) for verdict in refusals]
    return f"not admitted: {'; '.join(dict.fromkeys(sentences)) or 'no action of this session admits it'}"


def _too_few_pods(gang: GangState) -> str:
    words = {Status.FAILED: "failed", Status.RELEASING: "leaving", Status.UNKNOWN: "in an unknown state"}
    parts = [f"{gang.tally.counts[status]} {word}" for status, word in words.items() if gang.tally.counts[status]]
    lost = f" ({', '.join(parts)})" if parts else ""
    return f"only {gang.valid} of the {gang.gang.min_member} pods it needs are there{lost}"


# --- placement -----------------------------------------------------------------------------------------------------------


def _why_not_at_all(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    evicted = sum(task.is_evicted for task in gang.tasks)
    if evicted:
        return f"{part_text(evicted, gang)} evicted"
    if gang.is_pipelined and gang.tally.pipelined:
        placed = [f"{gang.tally.ready} of {len(gang.tasks)} tasks placed"] if gang.tally.ready else []
        return "; ".join([*placed, *_pipelined(gang)])
    if not len(snapshot.nodes):
        return "; ".join(["there are no nodes", *beyond_limits(outcome, snapshot)])
    waiting = held_back(gang, snapshot.surroundings.schedulers)
    refused = refusals(gang, snapshot) or beyond_limits(outcome, snapshot)
    causes = [*missing_places(outcome, snapshot), *refused, *_pipelined(gang), *waiting]
    if _was_tried(gang):
        rest = [] if domain_text(gang) else ["the rest was not tried in this session"]
        return "; ".join([_fitting(gang), *(causes or rest)])
    return "; ".join(causes or [untried_text(gang)])


def _was_tried(gang: GangState) -> bool:
    """Tell whether the session looked for places, or the gang has some already."""
    quota = any(verdict.reason == "QueueQuotaExceeded" for verdict in gang.verdicts)
    return quota or gang.tally.ready > 0 or any(task.attempt is not None or task.error is not None for task in gang.tasks)


def _fitting(gang: GangState) -> str:
    needed = gang.gang.min_member or len(gang.tasks)
    domain = domain_text(gang)
    parts = ", ".join(short_parts(gang))
    short = f" ({parts})" if parts else ""
    if domain and placeable(gang) >= needed:
        is_whole = gang.topology is not None and gang.topology.is_hard
        return f"its tasks do not fit {'all together' if is_whole else 'sub-group by sub-group'}{domain}{short}"
    fitting = placeable(gang) + sum(task.is_kept for task in gang.tasks)
    return f"{min(fitting, needed)} of {needed} tasks fit{parted_text(gang) or domain}{short}"


def _pipelined(gang: GangState) -> Iterator[str]:
    kept = sum(task.is_kept for task in gang.tasks)
    if kept:
        yield f"{kept} of {counted(len(gang.tasks), 'task')} keep{'s' if kept == 1 else ''} a place until the others have one"
    if gang.tally.pipelined > kept:
        yield f"{part_text(gang.tally.pipelined - kept, gang)} pipelined onto room that leaving pods still hold"
