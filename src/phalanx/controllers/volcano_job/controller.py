"""The controller of Volcano's Jobs: one look at a Job, and what to write so that it goes on.

A look finds out what has happened, lets the Job take one step at most, and makes or deletes what belongs where the Job stands
then. Intentions are written before pods are deleted, so that whoever looks after a crash goes on with them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from phalanx.controllers.controller import NOTHING, Create, Delete, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.objects import annotations_of, controller_of, is_leaving, key_of, meta_of
from phalanx.controllers.volcano_job.bookkeeping import JobMemory, recall, text_of
from phalanx.controllers.volcano_job.commands import commands_for, with_strays
from phalanx.controllers.volcano_job.job import (
    AT_WORK,
    COMMAND,
    JOB,
    MEMORY,
    OVER,
    VERSION,
    JobAction,
    JobEvent,
    JobPhase,
    VolcanoJob,
    VolcanoJobState,
)
from phalanx.controllers.volcano_job.job_status import REFUSED, difference, refused_status, status_of
from phalanx.controllers.volcano_job.lifecycle import DueAction, Occurrence, due_action, has_policy, occurrences
from phalanx.controllers.volcano_job.observed_pods import JobPod, count_pods, job_pods
from phalanx.controllers.volcano_job.parse import read_job
from phalanx.controllers.volcano_job.plugins import objects_for
from phalanx.controllers.volcano_job.plugins.plugin import MakePair, owned_object
from phalanx.controllers.volcano_job.plugins.ssh import secret_name
from phalanx.controllers.volcano_job.pod_builder import pod_of
from phalanx.controllers.volcano_job.pod_group import GROUP, group_of, open_tasks
from phalanx.controllers.volcano_job.state_machine import (
    PARTLY,
    Transition,
    is_concerned,
    is_partial,
    is_possible,
    next_transition,
    state_after,
    victims,
)
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, PRIORITY, Document, Kind, kind_of

SERVICE, HOSTS, SECRET = (kind_of({"apiVersion": "v1", "kind": name}) for name in ("Service", "ConfigMap", "Secret"))
COMMANDS = tuple(action for action in JobAction if action not in (*PARTLY, JobAction.SYNC, JobAction.ENQUEUE))
NOT_ADMITTED = ("", "Pending")


class VolcanoJobController:
    """Keeps Jobs of Volcano's."""

    name = "volcano-job"
    watches = (JOB, POD, GROUP, COMMAND, SERVICE, HOSTS, SECRET)
    brings_back = (JOB,)

    def __init__(self, make_pair: MakePair, *, has_admission: bool = True) -> None:
        """Make pods once the group is admitted; at once where no scheduler admits groups, since they would wait for ever."""
        self._make_pair, self._has_admission = make_pair, has_admission

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the Job: itself, the owner of what belongs to it, or the one that a command is for."""
        if kind is JOB:
            yield key_of(document)
        elif kind is COMMAND:
            target = document.get("target") or {}
            yield Key(key_of(document).namespace, str(target.get("name", "")))
        else:
            owner = controller_of(document)
            if owner is not None and (owner["kind"], owner["apiVersion"].partition("/")[0]) == (JOB.kind, JOB.group):
                yield Key(key_of(document).namespace, owner["name"])

    def reconcile(self, view: View, key: Key) -> Result:
        """Look at one Job; one that cannot be run is set aside with a sentence that says why."""
        document = view.find(JOB, key.namespace, key.name)
        if document is None:
            return with_strays(view, key, "", NOTHING)
        if is_leaving(document):
            return NOTHING
        return with_strays(view, key, str(meta_of(document).get("uid", "")), self._look(view, document))

    def _look(self, view: View, document: Document) -> Result:
        try:
            job = read_job(document)
        except SnapshotError as problem:
            return _set_aside(document, str(problem), view.now)
        return JobReconciliation(view, job, self._make_pair, self._has_admission).result()


def _set_aside(document: Document, problem: str, now: float) -> Result:
    old = document.get("status") or {}
    change = {name: value for name, value in refused_status(document, problem, now).items() if value != old.get(name)}
    if not change:
        return NOTHING
    key = key_of(document)
    return Result(
        [
            Patch(JOB, key.namespace, key.name, {"status": change}, is_status=True),
            RecordEvent(document, REFUSED, problem, is_warning=True),
        ]
    )


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """An action that was asked for, and by whom."""

    action: JobAction
    cause: Occurrence | None = None

    @property
    def reason(self) -> str:
        """In one word."""
        return str(JobEvent.COMMAND_ISSUED if self.cause is None else self.cause.event)

    @property
    def message(self) -> str:
        """In a sentence."""
        where = "" if self.cause is None or not self.cause.task else f" of task {self.cause.task}"
        number = "" if self.cause is None or self.cause.place is None else f", pod {self.cause.place[1]}"
        return f"{self.action} because of {self.reason}{where}{number}"


class JobReconciliation:
    """One look at one Job."""

    def __init__(self, view: View, job: VolcanoJob, make_pair: MakePair, has_admission: bool) -> None:
        """See what is there."""
        self._view, self._job, self._make_pair, self._has_admission = view, job, make_pair, has_admission
        self._members = job_pods(view.owned(job.uid, POD))
        self._group = view.find(GROUP, job.namespace, job.group)

    def result(self) -> Result:
        """Return what to write: what is meant first, then what has to go, then what has to come."""
        job, standing = self._job, self._step.standing
        if standing.phase is job.standing.phase and standing.phase in OVER and job.ttl_seconds is not None:
            due = standing.since + job.ttl_seconds
            if due <= self._view.now:
                return Result([Delete(JOB, job.namespace, job.name, job.uid)])
            return Result([*self._writes()], again=due)
        return Result([*self._writes()], again=self._demand.next_time)

    def _writes(self) -> Iterator[Write]:
        yield from self._intentions()
        yield from self._command_writes
        for member in self._victims:
            yield Delete(POD, self._job.namespace, member.name, member.uid)
        if self._step.standing.phase in AT_WORK:
            yield from self._belongings()
        yield from self._group_writes()
        yield from self._new_pods()

    # --- what is meant -----------------------------------------------------------------------------------------------

    @cached_property
    def _memory(self) -> JobMemory:
        return recall(self._job)

    @cached_property
    def _happened(self) -> list[Occurrence]:
        if self._job.standing.phase not in AT_WORK:
            return []
        phase = str(((self._group or {}).get("status") or {}).get("phase") or "")
        return list(occurrences(self._job, self._members, self._memory, phase))

    @cached_property
    def _demand(self) -> DueAction:
        return due_action(self._job, self._happened, self._memory, self._view.now)

    @cached_property
    def _command(self) -> Document | None:
        """Return the first command for this Job."""
        return next(iter(commands_for(self._view, Key(self._job.namespace, self._job.name), self._job.uid)), None)

    @cached_property
    def _order(self) -> RequestedAction | None:
        """Return what has to be done: what a command says, or what the policies want."""
        asked = None if self._command is None else str(self._command.get("action", ""))
        if asked is not None:
            order = RequestedAction(JobAction(asked)) if asked in COMMANDS else None
        else:
            order = None if self._demand.action is None else RequestedAction(self._demand.action, self._demand.cause)
        return order if order is not None and is_possible(order.action, self._job.standing.phase) else None

    @cached_property
    def _command_writes(self) -> Sequence[Write]:
        """Take the command away once it is carried out; whoever finds it again after a crash finds that it means nothing more."""
        command, job = self._command, self._job
        if command is None:
            return ()
        meta, asked = meta_of(command), command.get("action", "")
        taken = Delete(COMMAND, job.namespace, meta["name"], meta["uid"])
        if self._order is not None:
            return (taken, RecordEvent(job.document, JobEvent.COMMAND_ISSUED, f"command {asked} is carried out"))
        known = f"while the Job is {job.standing.phase}" if asked in COMMANDS else f"here; write one of {', '.join(COMMANDS)}"
        text = f"command {meta['name']}: action {asked!r} means nothing {known}"
        return (taken, RecordEvent(job.document, JobEvent.COMMAND_ISSUED, text, is_warning=True))

    @cached_property
    def _step(self) -> Transition:
        order = self._order
        if order is None:
            return next_transition(self._job, count_pods(self._job, self._members, (member.uid for member in self._leftovers)))
        return Transition(state_after(self._job, order.action, order.cause), order.reason, order.message)

    @cached_property
    def _leftovers(self) -> list[JobPod]:
        """The pods that have to go where the Job stands now."""
        return victims(self._job, self._job.standing, self._members, self._memory)

    @cached_property
    def _victims(self) -> list[JobPod]:
        """The pods that have to go where the Job stands then."""
        return victims(self._job, self._step.standing, self._members, self._kept)

    @cached_property
    def _kept(self) -> JobMemory:
        """What has to be remembered, before it is known who has to go."""
        order, memory = self._order, self._memory
        if self._step.standing.version != memory.version or self._step.standing.phase not in (*AT_WORK, JobPhase.RESTARTING):
            return JobMemory(self._step.standing.version)
        there = {member.uid for member in self._members}
        doomed = memory.doomed & there
        if order is not None and is_partial(order.action, order.cause):
            doomed |= {member.uid for member in self._members if self._is_concerned(member.place)}
        return replace(memory, doomed=doomed, since=self._demand.since).without(self._dealt_with())

    def _is_concerned(self, place: tuple[str, int]) -> bool:
        order = self._order
        return order is not None and order.cause is not None and is_concerned(self._job, order.action, order.cause, place)

    def _dealt_with(self) -> Iterator[tuple[str, int]]:
        """Yield the losses that nobody has to hear of again."""
        losses = [happening for happening in self._happened if happening.event is JobEvent.POD_EVICTED]
        for happening in losses:
            place = happening.place
            if place is not None and (self._is_concerned(place) or not has_policy(self._job, happening)):
                yield place

    @cached_property
    def _remembered(self) -> JobMemory:
        kept, going = self._kept, {member.uid for member in self._victims}
        if self._step.standing.phase not in (*AT_WORK, JobPhase.RESTARTING):
            return kept
        staying = {
            member.place for member in self._members
            if member.version == kept.version and not member.is_leaving and member.uid not in going and self._job.task(member.task)
        }  # fmt: skip
        gone = {member.place for member in self._members if member.uid in going}
        return replace(kept, seen=(kept.seen | staying) - gone)

    def _intentions(self) -> Iterator[Write]:
        """Yield what is written on the Job; the first write is refused if somebody else was faster."""
        job, text = self._job, text_of(self._remembered)
        read = {"resourceVersion": meta_of(job.document)["resourceVersion"]}
        if text != annotations_of(job.document).get(MEMORY):
            yield Patch(JOB, job.namespace, job.name, {"metadata": {**read, "annotations": {MEMORY: text}}})
            read = {}
        counts = count_pods(job, self._members, (member.uid for member in self._victims))
        change = difference(job.document.get("status") or {}, status_of(job, self._step, counts, self._view.now))
        if change:
            yield Patch(JOB, job.namespace, job.name, {"metadata": read, "status": change}, is_status=True)
        if self._order is not None:
            yield RecordEvent(job.document, "ExecuteAction", self._order.message)

    # --- what has to be there ----------------------------------------------------------------------------------------

    def _belongings(self) -> Iterator[Write]:
        """Yield the objects of plugins and the claims of volumes that are missing, and hosts that have changed."""
        job = self._job
        claims = [
            owned_object(job, "PersistentVolumeClaim", volume.claim, {"spec": volume.new_claim})
            for volume in job.volumes if volume.new_claim is not None
        ]  # fmt: skip
        has_keys = self._view.find(SECRET, job.namespace, secret_name(job)) is not None
        for wanted in (*objects_for(job, None if has_keys else self._make_pair), *claims):
            kind, name = kind_of(wanted), wanted["metadata"]["name"]
            found = self._view.find(kind, job.namespace, name)
            if found is None:
                yield Create(wanted)
            elif kind is HOSTS and (change := difference(found.get("data") or {}, wanted["data"])):
                yield Patch(kind, job.namespace, name, {"data": change})

    def _group_writes(self) -> Iterator[Write]:
        """Yield what makes the group as the Job needs it; with each version of the Job it begins anew."""
        job, group, standing = self._job, self._group, self._step.standing
        if group is None:
            if standing.phase in AT_WORK:
                yield Create(self._wanted_group())
        elif standing.phase not in (*AT_WORK, JobPhase.RESTARTING) or not _is_of(group, standing):
            yield Delete(GROUP, job.namespace, job.group, meta_of(group)["uid"])
        elif standing.phase in AT_WORK and (change := difference(group.get("spec") or {}, self._wanted_group()["spec"])):
            yield Patch(GROUP, job.namespace, job.group, {"spec": change})

    def _wanted_group(self) -> Document:
        job = replace(self._job, standing=self._step.standing)
        return group_of(job, open_tasks(job, count_pods(job, self._members)), self._priority)

    def _priority(self, name: str) -> int:
        found = self._view.find(PRIORITY, "", name) if name else None
        return 0 if found is None else int(found.get("value", 0))

    def _new_pods(self) -> Iterator[Write]:
        """Yield the pods that are missing, of the tasks whose turn it is; a name that is still taken waits for its pod to go."""
        job = self._job
        if self._step.standing.phase not in AT_WORK or not self._may_make_pods():
            return
        taken = {member.name for member in self._members}
        for task in open_tasks(job, count_pods(job, self._members)):
            for index in range(task.replicas):
                if job.pod_name(task, index) not in taken:
                    yield Create(pod_of(job, task, index))

    def _may_make_pods(self) -> bool:
        if not self._has_admission:
            return True
        if self._group is None or not _is_of(self._group, self._step.standing):
            return False
        return (self._group.get("status") or {}).get("phase", "") not in NOT_ADMITTED


def _is_of(group: Document, standing: VolcanoJobState) -> bool:
    return annotations_of(group).get(VERSION) == str(standing.version)
