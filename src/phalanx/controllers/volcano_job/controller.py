"""The controller of Volcano's Jobs: reconciles one Job at a time.

Each reconciliation finds out what has happened to the Job's pods, lets the Job make at most one transition of its state machine,
and then creates or deletes what the new state asks for. The new state is written to the Job before any pod is deleted: a controller
that takes over after a crash reads it from there and goes on.
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
    ParsedJob,
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
    pods_to_delete,
    state_after,
)
from phalanx.errors import SnapshotError
from phalanx.model.kinds import POD, PRIORITY, Document, Kind, kind_of

SERVICE, HOSTS, SECRET = (kind_of({"apiVersion": "v1", "kind": name}) for name in ("Service", "ConfigMap", "Secret"))
COMMANDS = tuple(action for action in JobAction if action not in (*PARTLY, JobAction.SYNC, JobAction.ENQUEUE))
NOT_ADMITTED = ("", "Pending")


class VolcanoJobController:
    """Reconciles Volcano's Jobs."""

    name = "volcano-job"
    watches = (JOB, POD, GROUP, COMMAND, SERVICE, HOSTS, SECRET)
    brings_back = (JOB,)

    def __init__(self, make_pair: MakePair, *, has_admission: bool = True) -> None:
        """Create pods once their group is admitted, or at once where no scheduler admits groups and they would wait for ever."""
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
        """Reconcile one Job; one that cannot be read is quarantined, with the reason in its status."""
        document = view.find(JOB, key.namespace, key.name)
        if document is None:
            return with_strays(view, key, "", NOTHING)
        if is_leaving(document):
            return NOTHING
        return with_strays(view, key, str(meta_of(document).get("uid", "")), self._reconciled(view, document))

    def _reconciled(self, view: View, document: Document) -> Result:
        try:
            job = read_job(document)
        except SnapshotError as problem:
            return _quarantined(document, str(problem), view.now)
        return JobReconciliation(view, job, self._make_pair, self._has_admission).result()


def _quarantined(document: Document, problem: str, now: float) -> Result:
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
    """An action that a command or a policy asks for, and what caused it."""

    action: JobAction
    cause: Occurrence | None = None

    @property
    def reason(self) -> str:
        """The event behind it, as status and events name it."""
        return str(JobEvent.COMMAND_ISSUED if self.cause is None else self.cause.event)

    @property
    def message(self) -> str:
        """The action and its cause in a sentence."""
        where = "" if self.cause is None or not self.cause.task else f" of task {self.cause.task}"
        number = "" if self.cause is None or self.cause.place is None else f", pod {self.cause.place[1]}"
        return f"{self.action} because of {self.reason}{where}{number}"


class JobReconciliation:
    """One reconciliation of one Job; properties are computed when first needed, from what was read at the start."""

    def __init__(self, view: View, job: ParsedJob, make_pair: MakePair, has_admission: bool) -> None:
        """Read the pods and the group of the Job."""
        self._view, self._job, self._make_pair, self._has_admission = view, job, make_pair, has_admission
        self._pods = job_pods(view.owned(job.uid, POD))
        self._group = view.find(GROUP, job.namespace, job.group)

    def result(self) -> Result:
        """Return what to write: the new state of the Job first, then deletions, then creations."""
        job, state = self._job, self._transition.state
        if state.phase is job.state.phase and state.phase in OVER and job.ttl_seconds is not None:
            due = state.since + job.ttl_seconds
            if due <= self._view.now:
                return Result([Delete(JOB, job.namespace, job.name, job.uid)])
            return Result([*self._writes()], again=due)
        return Result([*self._writes()], again=self._due_action.next_time)

    def _writes(self) -> Iterator[Write]:
        yield from self._job_writes()
        yield from self._command_writes
        for pod in self._to_delete:
            yield Delete(POD, self._job.namespace, pod.name, pod.uid)
        if self._transition.state.phase in AT_WORK:
            yield from self._owned_objects()
        yield from self._group_writes()
        yield from self._new_pods()

    # --- the next state ----------------------------------------------------------------------------------------------

    @cached_property
    def _memory(self) -> JobMemory:
        return recall(self._job)

    @cached_property
    def _occurrences(self) -> list[Occurrence]:
        if self._job.state.phase not in AT_WORK:
            return []
        phase = str(((self._group or {}).get("status") or {}).get("phase") or "")
        return list(occurrences(self._job, self._pods, self._memory, phase))

    @cached_property
    def _due_action(self) -> DueAction:
        return due_action(self._job, self._occurrences, self._memory, self._view.now)

    @cached_property
    def _command(self) -> Document | None:
        """Return the first command for this Job."""
        return next(iter(commands_for(self._view, Key(self._job.namespace, self._job.name), self._job.uid)), None)

    @cached_property
    def _requested(self) -> RequestedAction | None:
        """Return the action to take: that of a command, or else the one that the policies ask for."""
        asked = None if self._command is None else str(self._command.get("action", ""))
        if asked is not None:
            requested = RequestedAction(JobAction(asked)) if asked in COMMANDS else None
        else:
            due = self._due_action
            requested = None if due.action is None else RequestedAction(due.action, due.cause)
        return requested if requested is not None and is_possible(requested.action, self._job.state.phase) else None

    @cached_property
    def _command_writes(self) -> Sequence[Write]:
        """Delete the command after the state that follows from it is written.

        After a crash in between the command is found again, and is not possible in that state any more.
        """
        command, job = self._command, self._job
        if command is None:
            return ()
        meta, asked = meta_of(command), command.get("action", "")
        taken = Delete(COMMAND, job.namespace, meta["name"], meta["uid"])
        if self._requested is not None:
            return (taken, RecordEvent(job.document, JobEvent.COMMAND_ISSUED, f"command {asked} is carried out"))
        known = f"while the Job is {job.state.phase}" if asked in COMMANDS else f"here; write one of {', '.join(COMMANDS)}"
        text = f"command {meta['name']}: action {asked!r} means nothing {known}"
        return (taken, RecordEvent(job.document, JobEvent.COMMAND_ISSUED, text, is_warning=True))

    @cached_property
    def _transition(self) -> Transition:
        requested = self._requested
        if requested is None:
            return next_transition(self._job, count_pods(self._job, self._pods, (pod.uid for pod in self._leftovers)))
        return Transition(state_after(self._job, requested.action, requested.cause), requested.reason, requested.message)

    @cached_property
    def _leftovers(self) -> list[JobPod]:
        """The pods to delete in the state that the Job is in."""
        return pods_to_delete(self._job, self._job.state, self._pods, self._memory)

    @cached_property
    def _to_delete(self) -> list[JobPod]:
        """The pods to delete in the state that the Job enters."""
        return pods_to_delete(self._job, self._transition.state, self._pods, self._kept)

    @cached_property
    def _kept(self) -> JobMemory:
        """What has to be remembered, as far as it decides which pods are deleted."""
        requested, memory = self._requested, self._memory
        if self._transition.state.version != memory.version or self._transition.state.phase not in (*AT_WORK, JobPhase.RESTARTING):
            return JobMemory(self._transition.state.version)
        there = {pod.uid for pod in self._pods}
        doomed = memory.doomed & there
        if requested is not None and is_partial(requested.action, requested.cause):
            doomed |= {pod.uid for pod in self._pods if self._is_concerned(pod.place)}
        return replace(memory, doomed=doomed, since=self._due_action.since).without(self._dealt_with())

    def _is_concerned(self, place: tuple[str, int]) -> bool:
        if self._requested is None or self._requested.cause is None:
            return False
        return is_concerned(self._job, self._requested.action, self._requested.cause, place)

    def _dealt_with(self) -> Iterator[tuple[str, int]]:
        """Yield the lost pods that no policy will be asked about again."""
        losses = [occurrence for occurrence in self._occurrences if occurrence.event is JobEvent.POD_EVICTED]
        for occurrence in losses:
            place = occurrence.place
            if place is not None and (self._is_concerned(place) or not has_policy(self._job, occurrence)):
                yield place

    @cached_property
    def _remembered(self) -> JobMemory:
        kept, going = self._kept, {pod.uid for pod in self._to_delete}
        if self._transition.state.phase not in (*AT_WORK, JobPhase.RESTARTING):
            return kept
        staying = {
            pod.place for pod in self._pods
            if pod.version == kept.version and not pod.is_leaving and pod.uid not in going and self._job.task(pod.task)
        }  # fmt: skip
        gone = {pod.place for pod in self._pods if pod.uid in going}
        return replace(kept, seen=(kept.seen | staying) - gone)

    def _job_writes(self) -> Iterator[Write]:
        """Yield the writes to the Job itself, its annotation first.

        Only the first carries the resourceVersion that was read: it is refused if another writer was faster, and a refusal ends
        the whole reconciliation. The next ones would carry a version that the first has made old.
        """
        job, text = self._job, text_of(self._remembered)
        read = {"resourceVersion": meta_of(job.document)["resourceVersion"]}
        if text != annotations_of(job.document).get(MEMORY):
            yield Patch(JOB, job.namespace, job.name, {"metadata": {**read, "annotations": {MEMORY: text}}})
            read = {}
        counts = count_pods(job, self._pods, (pod.uid for pod in self._to_delete))
        change = difference(job.document.get("status") or {}, status_of(job, self._transition, counts, self._view.now))
        if change:
            yield Patch(JOB, job.namespace, job.name, {"metadata": read, "status": change}, is_status=True)
        if self._requested is not None:
            yield RecordEvent(job.document, "ExecuteAction", self._requested.message)

    # --- what the state needs ----------------------------------------------------------------------------------------

    def _owned_objects(self) -> Iterator[Write]:
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
        """Yield what makes the PodGroup as the Job needs it; each version of the Job gets a new one."""
        job, group, state = self._job, self._group, self._transition.state
        if group is None:
            if state.phase in AT_WORK:
                yield Create(self._wanted_group())
        elif state.phase not in (*AT_WORK, JobPhase.RESTARTING) or not _is_of(group, state):
            yield Delete(GROUP, job.namespace, job.group, meta_of(group)["uid"])
        elif state.phase in AT_WORK and (change := difference(group.get("spec") or {}, self._wanted_group()["spec"])):
            yield Patch(GROUP, job.namespace, job.group, {"spec": change})

    def _wanted_group(self) -> Document:
        job = replace(self._job, state=self._transition.state)
        return group_of(job, open_tasks(job, count_pods(job, self._pods)), self._priority)

    def _priority(self, name: str) -> int:
        found = self._view.find(PRIORITY, "", name) if name else None
        return 0 if found is None else int(found.get("value", 0))

    def _new_pods(self) -> Iterator[Write]:
        """Yield the missing pods of the tasks that may start; a pod whose predecessor of the same name is still there waits."""
        job = self._job
        if self._transition.state.phase not in AT_WORK or not self._may_make_pods():
            return
        taken = {pod.name for pod in self._pods}
        for task in open_tasks(job, count_pods(job, self._pods)):
            for index in range(task.replicas):
                if job.pod_name(task, index) not in taken:
                    yield Create(pod_of(job, task, index))

    def _may_make_pods(self) -> bool:
        if not self._has_admission:
            return True
        if self._group is None or not _is_of(self._group, self._transition.state):
            return False
        return (self._group.get("status") or {}).get("phase", "") not in NOT_ADMITTED


def _is_of(group: Document, state: VolcanoJobState) -> bool:
    return annotations_of(group).get(VERSION) == str(state.version)
