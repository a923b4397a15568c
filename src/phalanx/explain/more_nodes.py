"""Whether more nodes would help pods that wait: the one rule by which autoscalers are told.

Cluster Autoscaler and Karpenter bring nodes for pods whose condition PodScheduled has the reason Unschedulable, and for no others.
So pods have that reason only while nodes are what their gang lacks, and then all of its pods that wait have it: an autoscaler finds
out by itself which of them fit on the nodes there are. A gang that waits for something else, such as its queue, has another reason.
So have pods for which a ProvisioningRequest asks: an autoscaler would put them on free nodes in thought, keep those nodes for them
though the request failed, and bring as many again for the request.

A limit that is only the size of the cluster grows with it: a queue without a capability, what a queue deserves of the whole, the
bound of overcommit. What a queue may have however large the cluster gets is known from its plugins (`Decisions.limits`), and gangs
of one queue use it up in turn: nodes for those behind would stay empty.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from phalanx.dialects.kai_status import unmet
from phalanx.dialects.status import PodScheduledCondition
from phalanx.dialects.traits import traits_of
from phalanx.explain.domain_text import lacks_domain
from phalanx.explain.gang_status import has_minimum
from phalanx.explain.node_reasons import node_reason
from phalanx.kai.podsets import can_be_whole
from phalanx.model.conditions import CONSUMES, NODES_REQUESTED, UNDETERMINED, UNSCHEDULABLE
from phalanx.model.gang import STALE, Gang
from phalanx.model.resources import CSI_SLOTS, ResourceSpace
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.placement import Vector
from phalanx.session.amounts import room_under
from phalanx.session.decision import Decisions, Outcome
from phalanx.state.gang_state import GangState, TaskState
from phalanx.state.node_table import vector_of
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, Verdict

GROWING = ("ClusterOverused", "MinResources", "QueueOverused", "QueueQuotaExceeded")
"""Refusals because of limits that grow with the cluster; what queues may have at most is looked at besides."""
PAUSES = ("GroupBackoff", "ScheduleTimeout")
"""Refusals for a while because a gang did not find its places: it still lacks what it lacked before."""
ASIDE = (
    "BetterOffThanVictim", "NoVictims", "NobodyAsked", "NotEnoughTasks", "NotStarving", "OverFairShare", "Preemptable", STALE,
    "StartReserved", "VictimWithinShare",
)  # fmt: skip
"""Verdicts that are not why a gang lacks places: those on evictions, and what follows from them. Whatever nodes come, every other
verdict keeps the gang waiting."""
PINNED = ("DevicesElsewhere", "VolumeClaimInUse", "VolumeNotFound")
"""Codes of nodes that refuse because of the pod's own claims: no new node would be another."""
NODE_GROUP_FULL = "node(s) are in a node group of which the queue has all it may have"
BIND_REFUSED = "BindBackoff"

Lacking = Mapping[GangKey, frozenset[TaskKey]]
"""The pods that more nodes would help, by gang."""
NOBODY: Lacking = {}


@dataclass(frozen=True, slots=True)
class _Claim:
    """Pods of a gang that lack nodes, if their queue may have so much."""

    gang: Gang
    tasks: list[Task]
    needed: int
    """With fewer of them the gang would not start."""
    others: frozenset[TaskKey] = frozenset()
    """Pods that have a place already, once others leave or the gang is whole."""

    def turn(self) -> tuple[int, float, str]:
        """Order gangs as most sessions do."""
        return -self.gang.priority, self.gang.created, self.gang.key


def lacking_nodes(snapshot: Snapshot, decisions: Decisions, before: Lacking = NOBODY) -> dict[GangKey, frozenset[TaskKey]]:
    """Return the pods that more nodes would help; `before` is the last answer, which stands for gangs that were not tried now."""
    seen = {outcome.state.key for outcome in decisions.outcomes}
    tried = (_claim(outcome, snapshot, was_lacking=outcome.state.gang.key in before) for outcome in decisions.outcomes)
    left_out = (_kept(snapshot, key, pods) for key, pods in before.items() if key in snapshot.gangs and key not in seen)
    claims = [claim for claim in (*tried, *left_out) if claim is not None]
    rooms = _Rooms(decisions, snapshot.space)
    found = {claim.gang.key: rooms.within(claim) for claim in sorted(claims, key=_Claim.turn)}
    return {key: pods for key, pods in found.items() if pods}


def more_nodes_help(snapshot: Snapshot, decisions: Decisions, gang: GangState) -> bool | None:
    """Tell whether more nodes would help a gang; None if nobody of it waits."""
    if not any(map(_waits, gang.tasks)):
        return None
    return gang.gang.key in lacking_nodes(snapshot, decisions)


def scaling_condition(
    condition: PodScheduledCondition, task: Task, *, lacks_nodes: bool, will_ask: bool = False
) -> PodScheduledCondition:
    """Return what is said on a pod that waits, with the reason that autoscalers go by; its gang may be about to ask for nodes."""
    reason = condition.reason if condition.reason != UNSCHEDULABLE else UNDETERMINED
    if lacks_nodes:
        reason = NODES_REQUESTED if will_ask or CONSUMES in task.annotations else UNSCHEDULABLE
    return PodScheduledCondition(reason, condition.message, condition.nominated_node)


# --- what a gang lacks -----------------------------------------------------------------------------------------------------


def _claim(outcome: Outcome, snapshot: Snapshot, *, was_lacking: bool) -> _Claim | None:
    gang = outcome.state
    waiting = [task for task in gang.tasks if _waits(task)]
    if (
        not waiting
        or not gang.gang.marks_pods
        or not _could_be_whole(gang)
        or not _lacks_nodes(outcome, snapshot, was_lacking=was_lacking)
    ):
        return None
    needed = 0 if has_minimum(gang) else gang.gap()
    pending = [task for task in waiting if task.status is Status.PENDING]
    placed = frozenset(task.task.key for task in waiting if needed and task.status is not Status.PENDING)
    return _Claim(gang.gang, [task.task for task in sorted(pending, key=_needed_first(gang))], needed, placed)


def _kept(snapshot: Snapshot, key: GangKey, pods: frozenset[TaskKey]) -> _Claim | None:
    """Return the claim of a gang that lacked nodes when a session looked at it last."""
    members = snapshot.members_of(key)
    waiting = [members[pod] for pod in sorted(pods) if pod in members and members[pod].status is Status.PENDING]
    return _Claim(snapshot.gangs[key], waiting, 0) if waiting else None


def _waits(task: TaskState) -> bool:
    return (
        task.task.status is Status.PENDING and task.status is not Status.BINDING
        and not task.task.is_gated and not task.task.is_foreign
    )  # fmt: skip


def _needed_first(gang: GangState) -> Callable[[TaskState], tuple[bool, TaskKey]]:
    """Return an order in which pods of roles come first that have too few, then by name: in whatever order they were seen."""
    short = {role for role in gang.gang.role_minima if gang.gang.roles_count and gang.shortfall(role)}
    return lambda task: (task.task.role not in short, task.task.key)


def _could_be_whole(gang: GangState) -> bool:
    """Tell whether all pods that have to start together are there, and nobody else holds them back."""
    if traits_of(gang.gang).counts_pod_sets:
        return can_be_whole(gang)
    held_back = sum(task.status is Status.PENDING and (task.task.is_gated or task.task.is_foreign) for task in gang.tasks)
    return gang.valid - held_back >= gang.gang.min_member and gang.roles_are_valid() and gang.subgroups_are_valid()


def _lacks_nodes(outcome: Outcome, snapshot: Snapshot, *, was_lacking: bool) -> bool:
    gang = outcome.state
    if not has_minimum(gang) and gang.is_pipelined and gang.tally.pipelined:
        return False  # it starts once others have left
    waiting = [task for task in gang.tasks if _waits(task)]
    verdicts, errors = list(_verdicts(gang, waiting)), _errors(waiting)
    codes = {verdict.reason for verdict in verdicts}
    has_driver = not any(_lacks_driver(verdict, snapshot) for verdict in verdicts)
    if codes.difference(GROWING, PAUSES, ASIDE) or any(map(_is_pinned, errors)) or not has_driver:
        return False
    if codes.intersection(PAUSES):
        return was_lacking
    return bool(codes.intersection(GROWING)) or any(map(_lacks_room, errors)) or (not errors and _has_no_domain(outcome))


def _errors(waiting: Iterable[TaskState]) -> list[FitError]:
    """Return the searches for nodes that failed; tasks of a large gang share one error."""
    return list({id(task.error): task.error for task in waiting if isinstance(task.error, FitError)}.values())


def _has_no_domain(outcome: Outcome) -> bool:
    """Tell whether no task was tried because no network domain has room for all of them."""
    gang = outcome.state
    if traits_of(gang.gang).counts_pod_sets:
        return outcome.was_tried and unmet(gang) is not None
    return gang.phase not in ("", "Pending") and lacks_domain(gang)


def _verdicts(gang: GangState, waiting: Iterable[TaskState]) -> Iterator[Verdict]:
    """Yield what was refused to a gang or to its tasks, but not by nodes."""
    yield from gang.verdicts
    for task in waiting:
        if task.refusal is not None:
            yield task.refusal
        if isinstance(task.error, FitError) and task.error.verdict is not None:
            yield task.error.verdict


def _lacks_driver(verdict: Verdict, snapshot: Snapshot) -> bool:
    """Tell whether no node attaches the volumes of a driver: it is not installed, and not on a new node either."""
    is_of_driver = str(verdict.numbers.get("resource", "")).startswith(CSI_SLOTS)
    return is_of_driver and not verdict.numbers.get("limit") and len(snapshot.nodes) > 0


def _is_pinned(error: FitError) -> bool:
    return any(reason == NODE_GROUP_FULL or node_reason(reason).code in PINNED for reason in error.counts)


def _lacks_room(error: FitError) -> bool:
    """Tell whether a node that is like none of those there could take the task: more than binds that failed stands against it."""
    return not error.counts or any(node_reason(reason).code != BIND_REFUSED for reason in error.counts)


# --- what queues may have --------------------------------------------------------------------------------------------------


class _Rooms:
    """What queues may still have however large the cluster gets, used up by one gang after the other."""

    def __init__(self, decisions: Decisions, space: ResourceSpace) -> None:
        self._space = space
        self._owners = {queue: tuple(limits) for queue, limits in decisions.limits.items()}
        self._left = {owner: left for limits in decisions.limits.values() for owner, left in limits.items()}

    def within(self, claim: _Claim) -> frozenset[TaskKey]:
        """Return the pods of a gang for which its queue has room; none if too few of them are left to start."""
        owners = self._owners.get(claim.gang.queue, ())
        if not owners:
            return claim.others | {task.key for task in claim.tasks}
        left, taken = {owner: self._left[owner] for owner in owners}, list[Task]()
        for request, alike in groupby(claim.tasks, key=lambda task: task.shape.request):  # as one after the other, and faster
            tasks = list(alike)
            taken += tasks[: self._take(left, vector_of(request, self._space), len(tasks))]
        if not taken or len(taken) < claim.needed:
            return frozenset()
        self._left |= left
        return claim.others | {task.key for task in taken}

    def _take(self, left: dict[str, Vector], request: Vector, most: int) -> int:
        """Take a request as often as there is room for it; return how often."""
        nothing = np.zeros(len(request))
        count = min(most, *(room_under(amounts, nothing, request, self._space) for amounts in left.values()))
        for owner in left:
            left[owner] = left[owner] - count * request
        return count
