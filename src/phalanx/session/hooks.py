"""Every question that a session asks its plugins, declared once: here, and in `node_hooks.py` what is asked about nodes.

A hook is a Protocol with one method, and beside it a `Hook`: how the answers of several plugins become one (a rule of `combine.py`)
and the switch of a configuration that takes a plugin out of it (no switch: always asked). A plugin is any object with a `name` and
some of these methods; it leaves out what it does not care about. Plugins are asked tier by tier, in order. `HOOKS` is made from the
declarations, and `Session` asks nothing else. Shipped plugins are checked against the Protocols by the type checker
(`tests/support/plugin_hooks.py`), every plugin by `contract.py` when a catalogue or a session takes it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from phalanx.model.queue import Queue
from phalanx.model.shape import Shape
from phalanx.placement import Vector
from phalanx.session import combine, node_hooks
from phalanx.session.combine import AnyHook, Hook
from phalanx.state.gang_state import GangState, SubGroupState, TaskState
from phalanx.state.verdict import Room, Verdict, Vote

if TYPE_CHECKING:
    from phalanx.session.session import Session
    from phalanx.session.statement import Operation

SortKey = Any
"""Anything that compares; keys of one hook compare with each other."""


class Plugin(Protocol):
    """What every plugin has. One with a say about victims may have `protects` too: why it does not let one go, for the trace."""

    name: str


class Open(Protocol):
    """Asked once when the session opens, before anything else. Every plugin is told, in tier order."""

    def open(self, session: "Session") -> None: ...


OPEN = Hook(Open.open, combine.told)


class Close(Protocol):
    """Asked once when all actions are done. Every plugin is told, in tier order."""

    def close(self, session: "Session") -> None: ...


CLOSE = Hook(Close.close, combine.told)


class Changed(Protocol):
    """Asked after an operation changed the books: tasks allocated, pipelined or evicted; `undone` when it is rolled back.

    Every plugin is told; with a true `follows_runs`, at once of gangs of one queue and class that were placed one after the other.
    """

    def changed(self, session: "Session", operation: "Operation", undone: bool) -> None: ...


CHANGED = Hook(Changed.changed, combine.told)


class GangOrder(Protocol):
    """Which gang of a queue comes first: smaller keys do. The first plugin whose keys differ decides."""

    def gang_order(self, session: "Session", gang: GangState) -> SortKey: ...


GANG_ORDER = Hook(GangOrder.gang_order, combine.sort_key, "enableJobOrder")


class SubGroupOrder(Protocol):
    """Which sub-group of a gang comes first: smaller keys do. The first plugin whose keys differ decides."""

    def subgroup_order(self, session: "Session", subgroup: SubGroupState) -> SortKey: ...


SUBGROUP_ORDER = Hook(SubGroupOrder.subgroup_order, combine.sort_key, "enabledSubJobOrder")


class TaskOrder(Protocol):
    """Which task of a gang comes first: smaller keys do. The first plugin whose keys differ decides."""

    def task_order(self, session: "Session", task: TaskState) -> SortKey: ...


TASK_ORDER = Hook(TaskOrder.task_order, combine.sort_key, "enableTaskOrder")


class QueueOrder(Protocol):
    """Which queue comes first: negative when the left one does, positive when the right one does, 0 to leave it open.

    The first answer that is not 0 decides.
    """

    def queue_order(self, session: "Session", left: Queue, right: Queue) -> int: ...


QUEUE_ORDER = Hook(QueueOrder.queue_order, combine.first_difference, "enableQueueOrder")


class VictimQueueOrder(Protocol):
    """Which of two queues loses tasks to the preemptor's queue first: negative when the left one does.

    The first answer that is not 0 decides.
    """

    def victim_queue_order(self, session: "Session", left: Queue, right: Queue, preemptor: Queue) -> int: ...


VICTIM_QUEUE_ORDER = Hook(VictimQueueOrder.victim_queue_order, combine.first_difference)


class GivingOrder(Protocol):
    """In which order queues lose tasks to the preemptor's queue: smaller keys first; None for a queue that loses nothing.

    The first plugin whose keys differ decides; a queue for which nobody has a key loses nothing.
    """

    def giving_order(self, session: "Session", queue: Queue, preemptor: Queue) -> SortKey | None: ...


GIVING_ORDER = Hook(GivingOrder.giving_order, combine.sort_key)


class GangValid(Protocol):
    """Whether a gang may be considered at all; asked by every action. The first refusal decides."""

    def gang_valid(self, session: "Session", gang: GangState) -> Verdict: ...


GANG_VALID = Hook(GangValid.gang_valid, combine.first_refusal)


class GangReady(Protocol):
    """Whether enough members are allocated for the gang to start; asked before a statement is committed. All must agree.

    A plugin with a true `counts_members` agrees as soon as the counts of the gang meet its minima, and not before.
    """

    def gang_ready(self, session: "Session", gang: GangState) -> Verdict: ...


GANG_READY = Hook(GangReady.gang_ready, combine.first_refusal, "enableJobReady")


class SubGroupReady(Protocol):
    """Whether enough members of a sub-group are allocated; asked of gangs that have sub-groups. All must agree."""

    def subgroup_ready(self, session: "Session", subgroup: SubGroupState) -> Verdict: ...


SUBGROUP_READY = Hook(SubGroupReady.subgroup_ready, combine.first_refusal, "enabledSubJobReady")


class GangPipelined(Protocol):
    """Whether enough members are allocated or pipelined, so that the gang starts when leaving pods are gone.

    A vote, tier by tier: one against refuses, else one for it permits; the next tier is asked if all of a tier abstain.
    """

    def gang_pipelined(self, session: "Session", gang: GangState) -> Vote: ...


GANG_PIPELINED = Hook(GangPipelined.gang_pipelined, combine.vote, "enableJobPipelined")


class SubGroupPipelined(Protocol):
    """Whether enough members of a sub-group are allocated or pipelined; a vote, as for gangs."""

    def subgroup_pipelined(self, session: "Session", subgroup: SubGroupState) -> Vote: ...


SUBGROUP_PIPELINED = Hook(SubGroupPipelined.subgroup_pipelined, combine.vote, "enabledSubJobPipelined")


class GangEnqueueable(Protocol):
    """Whether a pending gang may be admitted; asked by `enqueue`.

    A vote, tier by tier: one against refuses, else one for it permits; the next tier is asked if all of a tier abstain.
    """

    def gang_enqueueable(self, session: "Session", gang: GangState) -> Vote: ...


GANG_ENQUEUEABLE = Hook(GangEnqueueable.gang_enqueueable, combine.vote, "enableJobEnqueued")


class GangEnqueued(Protocol):
    """Asked after a gang was admitted. Every plugin is told."""

    def gang_enqueued(self, session: "Session", gang: GangState) -> None: ...


GANG_ENQUEUED = Hook(GangEnqueued.gang_enqueued, combine.told, "enableJobEnqueued")


class GangStarving(Protocol):
    """Whether a gang may be a preemptor or reclaimer. All of the first tier that has an answer must agree."""

    def gang_starving(self, session: "Session", gang: GangState) -> Verdict: ...


GANG_STARVING = Hook(GangStarving.gang_starving, combine.first_tier_agrees, "enableJobStarving")


class ToleratedGap(Protocol):
    """How many members of its minima a gang may lack and still keep the places that the others found; None: it keeps none.

    The first answer that is not None counts.
    """

    def tolerated_gap(self, session: "Session", gang: GangState) -> int | None: ...


TOLERATED_GAP = Hook(ToleratedGap.tolerated_gap, combine.first_answer)


class QueueOverused(Protocol):
    """Whether a queue has all it should have; any refusal says that it has, and actions pass the queue over."""

    def queue_overused(self, session: "Session", queue: Queue) -> Verdict: ...


QUEUE_OVERUSED = Hook(QueueOverused.queue_overused, combine.first_refusal, "enabledOverused")


class TasksUntilOverused(Protocol):
    """After how many more tasks of a shape a queue that is not overused may be so. The smallest number counts.

    A plugin that has `queue_overused` and does not answer this is asked again after each gang.
    """

    def tasks_until_overused(self, session: "Session", queue: Queue, shape: Shape) -> int: ...


TASKS_UNTIL_OVERUSED = Hook(TasksUntilOverused.tasks_until_overused, combine.lowest, "enabledOverused")


class QueueRoom(Protocol):
    """How many more tasks of a shape a queue may take: 0 with the reason, or a count. The smallest room counts."""

    def queue_room(self, session: "Session", queue: Queue, shape: Shape) -> Room: ...


QUEUE_ROOM = Hook(QueueRoom.queue_room, combine.smallest_room, "enabledAllocatable")


class QueueLimits(Protocol):
    """What a queue may still take however large the cluster gets, by the name of whose limit it is: its own, or one above it.

    Without bound where none is set. All of them hold.
    """

    def queue_limits(self, session: "Session", queue: Queue) -> Mapping[str, Vector]: ...


QUEUE_LIMITS = Hook(QueueLimits.queue_limits, combine.collected, "enabledAllocatable")


class QueuePreemptive(Protocol):
    """Whether a queue may reclaim from other queues for all of these tasks together. All must agree."""

    def queue_preemptive(self, session: "Session", queue: Queue, tasks: Sequence[TaskState]) -> Verdict: ...


QUEUE_PREEMPTIVE = Hook(QueuePreemptive.queue_preemptive, combine.first_refusal, "enablePreemptive")


class QueueSurplus(Protocol):
    """What a queue has beyond what it keeps, of each resource: a task that asks for nothing of that is not reclaimed.

    Of each resource the smallest answer counts.
    """

    def queue_surplus(self, session: "Session", queue: Queue) -> Vector: ...


QUEUE_SURPLUS = Hook(QueueSurplus.queue_surplus, combine.smallest)


class Preemptable(Protocol):
    """Which of these running tasks `preempt` may evict for a task of the same queue; None to have no say.

    The first tier that agrees on somebody decides, or all tiers must agree: `victim_rule` of the policy.
    """

    def preemptable(self, session: "Session", preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None: ...


PREEMPTABLE = Hook(Preemptable.preemptable, combine.victims, "enablePreemptable")


class Reclaimable(Protocol):
    """Which of these running tasks `reclaim` may evict for a task of another queue; None to have no say.

    Combined as `preemptable`.
    """

    def reclaimable(self, session: "Session", preemptor: TaskState, candidates: Sequence[TaskState]) -> list[TaskState] | None: ...


RECLAIMABLE = Hook(Reclaimable.reclaimable, combine.victims, "enableReclaimable")


class Evictable(Protocol):
    """Which of these running tasks a gang-aware action may evict; None to have no say. Combined as `preemptable`.

    `purpose` is preempt, reclaim or heal; to heal, the preemptor is one of the candidates.
    """

    def evictable(
        self, session: "Session", preemptor: TaskState, candidates: Sequence[TaskState], purpose: str
    ) -> list[TaskState] | None: ...


EVICTABLE = Hook(Evictable.evictable, combine.victims)


class WhyProtected(Protocol):
    """Why this running task is not evicted for the preemptor, with numbers; the message follows its name, as in `spared.py`.

    Asked of a plugin that has not let the task go, after a search for victims has failed. It explains and decides nothing.
    """

    def why_protected(self, session: "Session", preemptor: TaskState, victim: TaskState) -> Verdict: ...


WHY_PROTECTED = Hook(WhyProtected.why_protected, combine.first_refusal)


class VictimTasks(Protocol):
    """Which of these running tasks leave their nodes for nobody in particular; asked by `shuffle`.

    The first tier that names anybody decides, all its plugins together.
    """

    def victim_tasks(self, session: "Session", candidates: Sequence[TaskState]) -> list[TaskState]: ...


VICTIM_TASKS = Hook(VictimTasks.victim_tasks, combine.first_tier_together, "enabledVictim")


HOOKS: Mapping[str, AnyHook] = {
    each.name: each for each in [*globals().values(), *vars(node_hooks).values()] if isinstance(each, Hook)
}
"""All hooks by the name of their method."""
