"""Why a gang waits, in one sentence.

The sentence is made from what the session left on the gang: verdicts with their reason codes and numbers, fit errors, statuses and
attempts. No plugin is asked and nothing is placed again, so the sentence is about the session that took place.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from phalanx.dialects.status import is_finished, placeable
from phalanx.dialects.traits import TRAITS, traits_of
from phalanx.explain.cause import alike, remembered
from phalanx.explain.eviction_clause import eviction_clause
from phalanx.explain.gang_status import admission_refusals, has_minimum, is_empty, is_new, minimum_of
from phalanx.explain.held_back import held_back
from phalanx.explain.node_causes import node_text, search_of
from phalanx.explain.quota_text import all_taken, is_blocked, is_cluster_full, nearly, queue_refusal, refusal, too_large
from phalanx.explain.reason_text import (
    NO_GANGS,
    counted,
    general_obstacle,
    most_frequent,
    no_pods,
    part_text,
    request_text,
)
from phalanx.explain.why_kai import why_kai
from phalanx.model.gang import STALE
from phalanx.model.kinds import GROUP_BY_DIALECT
from phalanx.model.resources import Resources
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import READY, Status
from phalanx.session.decision import Outcome
from phalanx.session.isolation import SCHEDULER_FAULT
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.staleness import stale_verdict
from phalanx.state.verdict import FitError, Verdict

MOST_CAUSES = 2
"""A sentence names this many causes of a kind."""
MOST_KINDS = 3
"""Of tasks that ask for different things, in one sentence."""
UNRESOLVED_TIERS = ("NoHyperNodes", "TierMissing", "TierNotFound")


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
    stale = stale_verdict(gang)
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
    if outcome.was_tried or traits_of(gang.gang).counts_pod_sets:
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
    parts = ", ".join(_short_parts(gang))
    short = f" ({parts})" if parts else ""
    is_exact = ready == minimum and not short
    share = f"its minimum of {minimum}" if is_exact else f"{ready} of {len(gang.tasks)} tasks, its minimum is {minimum}{short}"
    no_place = [f"no place for {_asks(task)} ({obstacle})" for task, obstacle in _without_place(outcome, snapshot)]
    causes = [*no_place, *_refusals(gang, snapshot), *_pipelined(gang), *held_back(gang, snapshot.surroundings.schedulers)]
    rest = "not tried in this session" if gang.allowed_tier is None else "no network domain has room for all of it"
    text = "; ".join(causes) or rest
    return f"{verb} with {share}; {counted(waiting, 'more task')} {'waits' if waiting == 1 else 'wait'}: {text}"


def missing_groups(snapshot: Snapshot, *others: Snapshot) -> dict[GangKey, str]:
    """Return the gangs that waiting pods name and that nobody describes, each with a sentence that says what to do.

    `others` are what other schedulers see of the same cluster: they may know a gang.

    kube-scheduler leaves such pods pending without a word.
    """
    found, ours = {}, snapshot.surroundings.schedulers
    known = {key for seen in (snapshot, *others) for key in seen.gangs}
    for key, members in sorted(snapshot.members.items()):
        waiting = [task for task in members.values() if task.status is Status.PENDING and _how_to_describe(task, ours)]
        if waiting and key not in known:
            verb = "waits" if len(waiting) == 1 else "wait"
            rest = _how_to_describe(waiting[0], ours).format(key=waiting[0].group)
            found[key] = f"{counted(len(waiting), 'pod')} {verb} {rest}"
    return found


def _how_to_describe(task: Task, ours: frozenset[str]) -> str:
    """Return what to do about the gang of a task; empty if another scheduler's pods may name a group that only it knows."""
    own = TRAITS[task.dialect].how_to_describe if task.dialect in TRAITS else ""
    kind = GROUP_BY_DIALECT.get(task.dialect)
    if own or kind is None or not ours or task.is_foreign:
        return own
    return f"for PodGroup {{key}} of {kind.group}, which does not exist; create it"


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
    sentences = [queue_refusal(gang, verdict) for verdict in refusals]
    return f"not admitted: {'; '.join(dict.fromkeys(sentences)) or 'no action of this session admits it'}"


def missing_pods(gang: GangState) -> str:
    """Say which roles and sub-groups have too few pods; empty when none has."""
    parts = ", ".join(_short_parts(gang, Status.PENDING))
    return f"too few pods ({parts})" if parts else ""


def _too_few_pods(gang: GangState) -> str:
    words = {Status.FAILED: "failed", Status.RELEASING: "leaving", Status.UNKNOWN: "in an unknown state"}
    parts = [f"{gang.tally.counts[status]} {word}" for status, word in words.items() if gang.tally.counts[status]]
    lost = f" ({', '.join(parts)})" if parts else ""
    return f"only {gang.valid} of the {gang.gang.min_member} pods it needs are there{lost}"


# --- placement -----------------------------------------------------------------------------------------------------------


def _why_not_at_all(outcome: Outcome, snapshot: Snapshot) -> str:
    gang = outcome.state
    evicted = sum(task.status is Status.RELEASING and task.task.status is not Status.RELEASING for task in gang.tasks)
    if evicted:
        return f"{part_text(evicted, gang)} evicted"
    if gang.is_pipelined and gang.tally.pipelined:
        placed = [f"{gang.tally.ready} of {len(gang.tasks)} tasks placed"] if gang.tally.ready else []
        return "; ".join([*placed, *_pipelined(gang)])
    if not len(snapshot.nodes):
        return "there are no nodes"
    waiting = held_back(gang, snapshot.surroundings.schedulers)
    causes = [*_missing_places(outcome, snapshot), *_refusals(gang, snapshot), *_pipelined(gang), *waiting]
    if _was_tried(gang):
        rest = [] if _domain(gang) else ["the rest was not tried in this session"]
        return "; ".join([_fitting(gang), *(causes or rest)])
    return "; ".join(causes or [_untried(gang)])


def _was_tried(gang: GangState) -> bool:
    """Tell whether the session looked for places, or the gang has some already."""
    quota = any(verdict.reason == "QueueQuotaExceeded" for verdict in gang.verdicts)
    return quota or gang.tally.ready > 0 or any(task.attempt is not None or task.error is not None for task in gang.tasks)


def _untried(gang: GangState) -> str:
    """Say why no task was tried: a network domain without room for all tasks is left out before any of them is."""
    if not lacks_domain(gang):
        return "not tried in this session"
    scope = _hard_scope(gang)
    where = "nothing, not even the whole cluster," if scope is None else f"no HyperNode of {_tier(gang)}"
    return f"{where} has room for {_all_tasks(scope or gang)}"


def lacks_domain(gang: GangState) -> bool:
    """Tell whether a gang of which no task was tried was left out because no network domain has room for it."""
    return gang.allowed_tier is not None or gang.has_subgroups


def _all_tasks(scope: GangState | SubGroupState) -> str:
    """Count the tasks and say what each asks for, or how many ask for what: ``all 3 tasks (2 with 1 cpu, 1 with 8 cpu)``."""
    owner = f" of a sub-group of {scope.policy.name!r}" if isinstance(scope, SubGroupState) and scope.policy is not None else ""
    kinds, number = Counter(map(_asks, scope.tasks)), f"all {counted(len(scope.tasks), 'task')}{owner}"
    if len(kinds) == 1:
        return f"{number}, each {_asks(scope.tasks[0])}"
    named = most_frequent(kinds)[:MOST_KINDS]
    parts = [f"{count} with {asks}" for asks, count in named]
    rest = len(scope.tasks) - sum(count for _, count in named)
    return f"{number} ({', '.join([*parts, *([f'{rest} with other requests'] if rest else [])])})"


def _tier(gang: GangState) -> str:
    """Say how narrow a network domain must be: ``tier 1 or narrower``; empty without a hard constraint."""
    scope = _hard_scope(gang)
    return "" if scope is None else f"tier {scope.allowed_tier} or narrower"


def _hard_scope(gang: GangState) -> GangState | SubGroupState | None:
    """Return what must be within a tier: the gang, else the largest of its sub-groups that must; None without hard constraints."""
    if _is_within_tier(gang):
        return gang
    return max(filter(_is_within_tier, gang.subgroups.values()), key=lambda part: len(part.tasks), default=None)


def _is_within_tier(scope: GangState | SubGroupState) -> bool:
    return scope.allowed_tier is not None and scope.topology is not None and scope.topology.is_hard


def _domain(gang: GangState) -> str:
    """Say in which domain all tasks have to be, with a blank before it; empty without such a constraint."""
    if gang.gang.label:
        return f" on nodes that share a value of {gang.gang.label!r}"
    return f" in one HyperNode of {_tier(gang)}" if _tier(gang) else ""


def _fitting(gang: GangState) -> str:
    needed = gang.gang.min_member or len(gang.tasks)
    domain = _domain(gang)
    parts = ", ".join(_short_parts(gang))
    short = f" ({parts})" if parts else ""
    if domain and placeable(gang) >= needed:
        is_whole = gang.topology is not None and gang.topology.is_hard
        return f"its tasks do not fit {'all together' if is_whole else 'sub-group by sub-group'}{domain}{short}"
    fitting = placeable(gang) + sum(task.is_kept for task in gang.tasks)
    return f"{min(fitting, needed)} of {needed} tasks fit{_parted(gang) or domain}{short}"


def _parted(gang: GangState) -> str:
    """Say which sub-groups must each be in one domain, where the gang as a whole need not be; empty otherwise."""
    scope = _hard_scope(gang)
    if not isinstance(scope, SubGroupState) or scope.policy is None:
        return ""
    return f" with each sub-group of {scope.policy.name!r} in one HyperNode of {_tier(gang)}"


def _short_parts(gang: GangState, *also: Status) -> Iterator[str]:
    """Name the roles and sub-groups that have too few members with a place; `also` counts members in these statuses too.

    Where some roles failed, the others are left out: they may not have been tried any more.
    """
    short = {role: counts for role, counts in _roles(gang, *also).items() if counts[0] < counts[1]}
    failed = {task.task.role for task in gang.tasks if isinstance(task.error, FitError)}
    for role, (have, needed) in short.items():
        if role in failed or not failed.intersection(short):
            yield f"{role or 'no role'}: {have} of {needed}"
    for policy in gang.missing_policies(lambda part: _count(part.tasks, *also) >= (1 if also else part.min_member)):
        parts = [part for part in gang.subgroups.values() if part.policy is policy]
        whole = sum(_count(part.tasks, *also) >= (1 if also else part.min_member) for part in parts)
        if whole < policy.min_subgroups:
            yield f"{policy.name}: {whole} of {policy.min_subgroups} sub-groups"


def _roles(gang: GangState, *also: Status) -> dict[str, tuple[int, int]]:
    """Return for each role with a minimum how many members count, and how many are needed."""
    if not gang.gang.roles_count:
        return {}
    return {
        role: (_count([task for task in gang.tasks if task.task.role == role], *also), needed)
        for role, needed in gang.gang.role_minima.items()
    }


def _count(tasks: list[TaskState], *also: Status) -> int:
    """Count the members that have a place or nearly had one."""
    return sum(task.status in (*READY, *also) or task.is_kept or nearly(task) for task in tasks)


def _missing_places(outcome: Outcome, snapshot: Snapshot) -> Iterator[str]:
    gang, obstacles = outcome.state, dict[str, list[tuple[TaskState, str]]]()
    for task, obstacle in _without_place(outcome, snapshot):
        if isinstance(task.error, FitError) and general_obstacle(task.error):
            yield obstacle
        else:
            obstacles.setdefault(_asks(task), []).append((task, obstacle))
    for asks, found in obstacles.items():
        places = counted(_missing(gang, found[0][0].task.shape.request), "more place")
        yield f"{places} for {asks} needed ({'; '.join(obstacle for _, obstacle in found)})"


def _without_place(outcome: Outcome, snapshot: Snapshot) -> list[tuple[TaskState, str]]:
    """Return a waiting task of each of the first few kinds that found no place, and the obstacle."""
    gang = outcome.state
    blocked = [(task, task.error) for task in gang.tasks if is_blocked(task) and isinstance(task.error, FitError)]
    found = [
        (task, too_large(outcome, task, snapshot) or _obstacle(outcome, task, error, snapshot)) for task, error in alike(blocked)
    ]
    found += all_taken(outcome, snapshot, wanted)
    kinds: dict[tuple[str, str], TaskState] = {}
    for task, obstacle in found:
        kinds.setdefault((_asks(task), obstacle), task)
    return [(task, obstacle) for (_, obstacle), task in kinds.items()][:MOST_CAUSES]


def _missing(gang: GangState, request: Resources) -> int:
    """Count the places for such a request that the gang still needs; its tasks may differ in everything else."""
    waiting = (task for task in gang.tasks if task.status is Status.PENDING and not nearly(task))
    alike = [task for task in waiting if task.task.shape.request == request]
    names = {task.task.role for task in alike}
    short = sum(max(needed - have, 0) for role, (have, needed) in _roles(gang).items() if role in names)
    needed = short or (gang.gang.min_member or len(gang.tasks)) - placeable(gang)
    return max(min(len(alike), needed), 1)


def wanted(gang: GangState, task: TaskState) -> int:
    """Count the tasks with the request of this one that the minimum of the gang needs a place for; 1 once it has its minimum."""
    if has_minimum(gang):
        return 1
    request = task.task.shape.request
    return _missing(gang, request) + sum(nearly(other) and other.task.shape.request == request for other in gang.tasks)


def _asks(task: TaskState) -> str:
    return request_text(task.task.shape.request)


def _obstacle(outcome: Outcome, task: TaskState, error: FitError, snapshot: Snapshot) -> str:
    """Say what is wrong with the nodes, or with the task itself."""
    general = general_obstacle(error, task.task.shape.volume_claims)
    return general or node_text(search_of(outcome, task, error, snapshot, wanted(outcome.state, task)), outcome.aftermath)


def _pipelined(gang: GangState) -> Iterator[str]:
    kept = sum(task.is_kept for task in gang.tasks)
    if kept:
        yield f"{kept} of {counted(len(gang.tasks), 'task')} keep{'s' if kept == 1 else ''} a place until the others have one"
    if gang.tally.pipelined > kept:
        yield f"{part_text(gang.tally.pipelined - kept, gang)} pipelined onto room that leaving pods still hold"


# --- refusals ------------------------------------------------------------------------------------------------------------


def _refusals(gang: GangState, snapshot: Snapshot) -> list[str]:
    refusals = (refusal(gang, verdict, snapshot) for verdict in gang.verdicts if not _has_own_sentence(verdict, snapshot))
    return list(dict.fromkeys(refusals))[:MOST_CAUSES]


def _has_own_sentence(verdict: Verdict, snapshot: Snapshot) -> bool:
    return verdict.reason in (STALE, "GatedMembers") or is_cluster_full(verdict, snapshot)
