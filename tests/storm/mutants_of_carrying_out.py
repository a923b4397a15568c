"""Planted bugs of the cache, binds, evictions, retries, and what is written about gangs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest

from phalanx.controllers.controller import Bind, Evict, Patch, RecordEvent
from phalanx.dialects.status import GroupStatus
from phalanx.errors import Busy, ClusterError, Conflict, Forbidden, Missing, ServerError
from phalanx.explain.cause_key import cause_of_text
from phalanx.live import api_port, outbox
from phalanx.live.api_port import ApiPort
from phalanx.live.outbox import Job, Outbox, Rank
from phalanx.model.gang import Condition
from phalanx.model.kinds import object_key
from phalanx.model.task import Task
from phalanx.model.task_status import Status
from phalanx.model.watch_event import WatchEvent
from phalanx.plugins.bindbackoff import BindBackoffPlugin
from phalanx.scheduling import binding, pod_conditions, status_writer
from phalanx.scheduling.bind_requests import BindRequester
from phalanx.scheduling.binding import Binding, Round
from phalanx.scheduling.cache import AssumedPod, SchedulerCache, Urgency
from phalanx.scheduling.eviction import Evictor
from phalanx.scheduling.loop import SessionLoop
from phalanx.scheduling.pod_conditions import PodConditions
from phalanx.scheduling.status_writer import StatusWriter
from phalanx.session.decision import Eviction, Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import YES
from tests.storm.mutants import binds_blindly, planted

WAITS = ("could start", "no reason", "untrue status", "half-started", "not at rest", "evicted in vain")


def _nothing(*_: Any, **__: Any) -> None:
    return None


# --- the cache -----------------------------------------------------------------------------------------------------------


@planted("assume forgotten", breaks=("over-commitment", "queue limit"))
def _assume_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Sessions see pods that were sent to a node where they were, until the watch reports them."""
    patch.setattr(SchedulerCache, "assume", _nothing)


@planted("refused pods stay assumed", breaks=WAITS, needs=("refuse binds", "refused", "late", "delete node"))
def _never_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A pod whose bind was refused is assumed on its node for ever."""
    patch.setattr(SchedulerCache, "forget", _nothing)


@planted("assumption outlives its pod", breaks=(*WAITS, "over-commitment"))
def _assumption_outlives_pod(patch: pytest.MonkeyPatch) -> None:
    """A pod that was made anew under the same name is assumed where the old one was sent."""

    def fits(self: AssumedPod, task: Task) -> bool:
        return task.status is Status.PENDING if self.status is Status.BINDING else task.status is not Status.RELEASING

    def notice(self: SchedulerCache, event: WatchEvent) -> Urgency:
        self._enter(event)
        return Urgency.SOON

    patch.setattr(AssumedPod, "fits", fits)
    patch.setattr(SchedulerCache, "_notice_pod", notice)


# --- binds and evictions -------------------------------------------------------------------------------------------------


@planted("roll-back removed", breaks="half-started", needs=("refuse binds", "delete node"))
def _no_roll_back(patch: pytest.MonkeyPatch) -> None:
    """What has landed of a gang stays, although another bind of it was refused."""
    patch.setattr(Binding, "_take_back", _nothing)


@planted("judged too early", breaks=("half-started", "killed a healthy gang"), needs=("refuse binds",), is_rare=True)
def _judged_too_early(patch: pytest.MonkeyPatch) -> None:
    """A gang is rolled back at its first refusal; what lands after that stays."""
    note = Binding._note_refusal

    def noted(self: Binding, current: Round, task: Task, node: str, problem: ClusterError) -> None:
        note(self, current, task, node, problem)
        if current.refused:
            self._conclude(current)
            current.refused.clear()

    patch.setattr(Binding, "_note_refusal", noted)


@planted("lost answer taken for a refusal", breaks=("killed a healthy gang", "no back-off", *WAITS), needs=("lost",))
def _lost_is_refused(patch: pytest.MonkeyPatch) -> None:
    """A bind that took effect, and whose answer was lost, counts as refused by its node when it is sent again."""
    patch.setattr(api_port, "is_bound_to", lambda refusal, node: False)
    patch.setattr(binding, "GONE", tuple(word for word in binding.GONE if word != binding.ELSEWHERE))
    patch.setattr(binding, "ELSEWHERE", "what no server says")


@planted(
    "bind without uid",
    breaks="never decided",
    needs=("twice", "late", "refused", "cut off", "strand"),
    is_rare=True,
)
def _bind_without_uid(patch: pytest.MonkeyPatch) -> None:
    """A bind goes to whatever pod has the name by now."""

    async def bind(self: ApiPort, write: Bind) -> None:
        try:
            await self._client.bind(write.namespace, write.name, write.node, annotations=write.annotations)
        except Conflict as refusal:
            if not api_port.is_bound_to(refusal, write.node):
                raise

    patch.setattr(ApiPort, "_bind", bind)


@planted("eviction without uid", breaks="never decided", needs=("twice", "late", "refused", "cut off"))
def _evict_without_uid(patch: pytest.MonkeyPatch) -> None:
    """An eviction goes to whatever pod has the name by now."""

    async def evict(self: ApiPort, write: Evict) -> None:
        with suppress(Missing):
            await self._client.evict(write.namespace, write.name)

    patch.setattr(ApiPort, "_evict", evict)


@planted("bound before its victims are told", breaks="queue limit", is_rare=True)
def _bound_too_early(patch: pytest.MonkeyPatch) -> None:
    """A gang takes the share of others in its queue who may still stay."""
    patch.setattr(SessionLoop, "_hold_back", _nothing)


@planted("refused evictions stay assumed", breaks=(*WAITS, "over-commitment"), needs=("refused", "late", "delete pods", "eviction"))
def _refused_evictions_stay(patch: pytest.MonkeyPatch) -> None:
    """A victim that was not evicted is taken for leaving."""

    def answered(self: Evictor, eviction: Eviction, pod: Any, problem: ClusterError | None) -> None:
        return None

    patch.setattr(Evictor, "_answered", answered)


# --- retries -------------------------------------------------------------------------------------------------------------


@planted("retries removed", breaks=(*WAITS, "killed a healthy gang"), needs=("refused", "cut off", "lost", "late"))
def _no_retries(patch: pytest.MonkeyPatch) -> None:
    """What the server could not take is not sent again."""
    patch.setattr(outbox, "_may_pass", lambda problem, job: False)


@planted("V6: 500 taken for a refusal", breaks="killed a healthy gang", needs=("refused", "cut off"))
def _failure_is_refusal(patch: pytest.MonkeyPatch) -> None:
    """A bind or an eviction that the server fails at once counts as refused."""
    may_pass = outbox._may_pass

    def gives_up(problem: ClusterError, job: Job) -> bool:
        is_urgent = job.rank <= Rank.EVICT and isinstance(problem, Busy | ServerError)
        return not is_urgent and may_pass(problem, job)

    patch.setattr(outbox, "_may_pass", gives_up)


@planted("V8: Retry-After ignored", breaks="in haste", needs=("refused", "cut off"))
def _in_haste(patch: pytest.MonkeyPatch) -> None:
    """A server that asks to wait is asked again when we like."""
    later = Outbox._later

    def hasty(self: Outbox, place: Any, job: Job, problem: ClusterError) -> None:
        problem.retry_after = 0.0
        later(self, place, job, problem)

    patch.setattr(Outbox, "_later", hasty)


@planted("forbidden is tried again", breaks="no back-off", needs=("forbidden",))
def _forbidden_again(patch: pytest.MonkeyPatch) -> None:
    """What we have no right to is tried each second."""
    may_pass = outbox._may_pass

    def tries(problem: ClusterError, job: Job) -> bool:
        job.attempts = min(job.attempts, 4) if isinstance(problem, Forbidden) else job.attempts
        return isinstance(problem, Forbidden) or may_pass(problem, job)

    patch.setattr(outbox, "_may_pass", tries)


@planted("back-off removed", breaks=("no back-off", "not at rest"), needs=("refuse binds",))
def _no_back_off(patch: pytest.MonkeyPatch) -> None:
    """A gang whose binds were refused is tried again at once."""
    patch.setattr(BindBackoffPlugin, "gang_valid", lambda self, session, gang: YES)


@planted("V7: back-off on pods alone", breaks=("no back-off", "not at rest"), needs=("refuse binds",), is_rare=True)
def _forgetful_group(patch: pytest.MonkeyPatch) -> None:
    """Only pods remember refused binds, and the roll-back deletes them."""
    patch.setattr(Binding, "_remember_in_group", _nothing)


# --- what is written about gangs -----------------------------------------------------------------------------------------


@planted("V5: status noted before it is written", breaks="untrue status", needs=("refused", "cut off", "conflict", "forbidden"))
def _noted_too_early(patch: pytest.MonkeyPatch) -> None:
    """A status that was refused counts as written."""
    patch.setattr(StatusWriter, "answered", lambda self, write, problem: False)


@planted("condition noted before it is written", breaks="no reason", needs=("refused", "cut off", "conflict", "forbidden"))
def _condition_noted_too_early(patch: pytest.MonkeyPatch) -> None:
    """A condition of a pod that was refused counts as written."""
    patch.setattr(PodConditions, "answered", lambda self, uid, problem: False)


@planted("refused evictions are sent in every session", breaks="no back-off", needs=("eviction",), is_rare=True)
def _evictions_in_haste(patch: pytest.MonkeyPatch) -> None:
    """An eviction that was refused is tried again in the next session, and its gangs are told something else each time."""
    patch.setattr(Evictor, "hold_back", _nothing)


@planted("V8: untried pods say nothing", breaks="no reason")
def _untried_say_nothing(patch: pytest.MonkeyPatch) -> None:
    """Of a gang only the first pod without a place says why it waits."""
    patch.setattr(pod_conditions, "_of_gang", lambda outcome, snapshot: ("", cause_of_text("")))


@planted("late annotations stay", breaks="untrue status", is_rare=True)
def _late_annotations(patch: pytest.MonkeyPatch) -> None:
    """An annotation that was written and comes late stays, though the gang is not what it says any more."""
    patch.setattr(StatusWriter, "_is_noted_anew", lambda self, spot, before, after: False)


@planted("quarantined anew in every session", breaks="not at rest", is_rare=True)
def _quarantined_anew(patch: pytest.MonkeyPatch) -> None:
    """Since when a gang is quarantined is found out again in each session, where its group has no conditions."""
    extended = status_writer._with

    def anew(status: GroupStatus, found: Condition | None, known: Sequence[Condition], now: float) -> GroupStatus:
        return extended(status, found, (), now)

    patch.setattr(status_writer, "_with", anew)


@planted("status left out taken for written", breaks=("untrue status", "left undone"), needs=("lose status",), is_rare=True)
def _left_out_taken_for_written(patch: pytest.MonkeyPatch) -> None:
    """A status that the server leaves out, because its kind has a status subresource again, is taken for written."""
    patch.setattr(ApiPort, "_check_status", _nothing)


@planted("pods made anew have said it already", breaks="no reason", needs=("delete pods",), is_rare=True)
def _made_anew_said_already(patch: pytest.MonkeyPatch) -> None:
    """What pods of a gang without an object say of it is remembered by their names, which pods made anew have too."""
    on_pods = StatusWriter._on_pods

    def by_name(self: StatusWriter, outcome: Outcome, found: Condition | None) -> Iterator[Patch | RecordEvent]:
        for task in (state.task for state in outcome.state.tasks if state.task.key in self._said):
            self._said[task.key] = (task.uid, self._said[task.key][1])
        yield from on_pods(self, outcome, found)

    patch.setattr(StatusWriter, "_on_pods", by_name)


@planted("rounds that fail are asked for again, pod by pod", breaks=("half-started", "not at rest"), is_rare=True)
def _failing_rounds_asked_again(patch: pytest.MonkeyPatch) -> None:
    """While the binder rolls a gang back, sessions ask for those of its pods that were rolled back already."""
    patch.setattr("phalanx.state.cluster.failing_rounds", lambda lost, tasks, gangs, members: {})


@planted("what has just landed proves a gang whole", breaks="half-started", is_rare=True)
def _landed_is_proof(patch: pytest.MonkeyPatch) -> None:
    """A gang that pods alone make needs nobody any more as soon as one of them is bound."""
    after = Binding._gang_after

    def gang_after(self: Binding, current: Round) -> GangState | None:
        own, current.landed = current.landed, []
        found = after(self, current)
        current.landed = own
        return found

    patch.setattr(Binding, "_gang_after", gang_after)
    patch.setattr("phalanx.state.quorum.was_never_whole", lambda gang, tasks: False)


@planted("nominations are seen once the server has answered", breaks="evicted in vain", is_rare=True)
def _nominations_unseen(patch: pytest.MonkeyPatch) -> None:
    """A session that is held before the answer gives the room away that was made for others."""
    assume = SchedulerCache.assume

    def assumed(self: SchedulerCache, task: Task, status: Status, node: str) -> None:
        if status is not Status.PENDING:
            assume(self, task, status, node)

    patch.setattr(SchedulerCache, "assume", assumed)


@planted("bind requests that were refused are sent again in each session", breaks="no back-off", is_rare=True)
def _requests_repeated(patch: pytest.MonkeyPatch) -> None:
    """Whoever may not create bind requests tries to in every session."""
    note = BindRequester._note
    patch.setattr(BindRequester, "_note", lambda self, gang, problem, now: note(self, gang, None, now))


@planted("an old bind request that goes takes the new one with it", breaks="over-commitment", is_rare=True)
def _requests_unassumed(patch: pytest.MonkeyPatch) -> None:
    """Whatever is heard of a bind request counts as the answer to the one that was asked for under its name."""
    binds_blindly(patch)
    patch.setattr(SchedulerCache, "_notice_request", lambda self, event: self._requests.pop(object_key(event.object), None))
