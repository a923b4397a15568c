"""What a session leaves on objects: phase and conditions of groups, and what pods of gangs without one say; written on change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from phalanx.controllers.controller import Patch, RecordEvent, View
from phalanx.controllers.objects import group_of
from phalanx.dialects.coscheduling import STALE_SINCE
from phalanx.dialects.status import GroupStatus
from phalanx.dialects.traits import dialect_status
from phalanx.errors import ClusterError
from phalanx.explain.answer import group_status
from phalanx.explain.cause_key import CauseKey, cause_of
from phalanx.explain.no_effect import without_effect
from phalanx.explain.overdue import overdue_condition
from phalanx.explain.quarantine import QUARANTINED, quarantine_condition
from phalanx.model.conditions import POD_SCHEDULED, UNDETERMINED, cleared
from phalanx.model.gang import OVERDUE, Condition, Gang
from phalanx.model.kinds import POD, Document, Kind, split_key
from phalanx.model.merging import merged
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.model.watch_event import WatchEvent
from phalanx.model.work_annotations import OVERDUE_SINCE
from phalanx.scheduling.refusals import Refusals
from phalanx.session.decision import Decisions, Outcome
from phalanx.state.overdue import says_overdue
from phalanx.state.snapshot import Snapshot

QUARANTINE_NOTE = "phalanx.dev/quarantined"
"""Annotation that stands for the condition `Quarantined` on groups that have no conditions."""
FORMER_CONDITION, FORMER_NOTE = "SetAside", "phalanx.dev/set-aside"
"""What version 0.1 wrote: removed where it is found."""
NOTES = (QUARANTINE_NOTE, STALE_SINCE, OVERDUE_SINCE)
WITHOUT_CONDITIONS = frozenset({"coscheduling", "koordinator"})
MOST_GONE = 100
Spot = tuple[Kind, str, str]
TAKES_PART, ON_TIME = Condition(QUARANTINED, "False"), Condition(OVERDUE, "False")
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 600.0
"""Seconds for which a message stands before other numbers alone replace it: twice as long after each time."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A status that was written, why the gang waited, and when."""

    status: GroupStatus
    cause: CauseKey
    moment: float
    pause: float = SHORTEST_PAUSE

    @property
    def until(self) -> float:
        """When other numbers may replace it."""
        return self.moment + self.pause

    def only_counts_anew(self, before: "_Written") -> bool:
        """Tell whether the cause is the same and only numbers in messages differ, which is written now and then."""
        return self.cause == before.cause and _without_messages(self.status) == _without_messages(before.status)

    def after(self, before: "_Written | None") -> "_Written":
        """Return it with its pause: a cluster where numbers change all the time is told of them more and more rarely."""
        if before is None or not self.only_counts_anew(before):
            return self
        return replace(self, pause=min(2 * before.pause, LONGEST_PAUSE))


def _without_messages(status: GroupStatus) -> GroupStatus:
    return replace(status, conditions=tuple(replace(item, message="") for item in status.conditions))


class StatusWriter:
    """Says which statuses a session leaves."""

    def __init__(self, view: View, failed: Callable[[Exception], None]) -> None:
        """Know nothing of what was written before; `failed` is called when the status of a gang cannot be made."""
        self._view, self._failed = view, failed
        self._written: dict[str, _Written] = {}
        """By the uid of the gang; what was refused or overwritten since is not in it."""
        self._refusals, self._pod_refusals = Refusals(), Refusals()
        """Of statuses by the uid of the gang, and of what pods are told by their keys."""
        self._places: dict[Spot, tuple[str, Document]] = {}
        """Whose status an object holds, and what was last written there."""
        self._notes: dict[Spot, dict[str, str | None]] = {}
        """The annotations that stand for a part of a status, by object, as they were last written."""
        self._said: dict[str, tuple[str, Condition]] = {}
        """What pods of gangs without an object say of it, by key: the uid of the pod, which may be made anew, and the condition."""
        self._noted: dict[GangKey, set[str]] = {}
        """What was said to have no effect."""
        self._most = MOST_GONE
        self.has_admitted = False
        """Whether the last session admitted a group, which the next one builds on."""
        self._counts_due: float | None = None
        """When a message of the last session may be written in which only numbers differ."""

    def writes(self, snapshot: Snapshot, decisions: Decisions) -> Iterator[Patch | RecordEvent]:
        """Yield the outcome of a session; objects that are gone meanwhile are no fault."""
        self.has_admitted, self._counts_due = False, None
        self._refusals.due = self._pod_refusals.due = None
        self._drop_gone(snapshot)
        for outcome in decisions.outcomes:
            try:
                found = [*self._group(snapshot, outcome)]
            except Exception as problem:  # the other gangs get theirs
                self._failed(problem)
            else:
                yield from found
        yield from self._without_effect(snapshot, decisions)

    def _drop_gone(self, snapshot: Snapshot) -> None:
        """Forget gangs and pods that are gone, now and then: the next time is when there are twice as many."""
        if self._size() <= self._most:
            return
        there = {gang.uid for gang in snapshot.gangs.values()}
        self._written = {uid: written for uid, written in self._written.items() if uid in there}
        self._places = {spot: found for spot, found in self._places.items() if found[0] in there}
        self._notes = {spot: texts for spot, texts in self._notes.items() if spot in self._places}
        self._said = {key: text for key, text in self._said.items() if self._view.find(POD, *split_key(key)) is not None}
        self._refusals.keep(there)
        self._pod_refusals.keep({task.key for key in snapshot.gangs for task in snapshot.members_of(key).values()})
        self._most = 2 * self._size() + MOST_GONE

    def _size(self) -> int:
        """Return the size of the largest memory; where writes are refused that is not the one of what was written."""
        return max(len(self._written), len(self._places), len(self._said), len(self._refusals), len(self._pod_refusals))

    def _without_effect(self, snapshot: Snapshot, decisions: Decisions) -> Iterator[RecordEvent]:
        """Record once what has no effect in a group."""
        self._noted = {key: texts for key, texts in self._noted.items() if key in snapshot.gangs}
        for gang, text in without_effect(snapshot, decisions):
            noted, group = self._noted.setdefault(gang.key, set()), group_of(self._view, gang)
            if group is not None and text not in noted:
                noted.add(text)
                yield RecordEvent(group, "NoEffect", f"PodGroup {gang.key}: {text}", is_warning=True)

    @property
    def due(self) -> float | None:
        """When the first of what the last session held back may be written."""
        moments = (self._counts_due, self._refusals.due, self._pod_refusals.due)
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def has_refused(self) -> bool:
        """Tell whether the last session had something to write that was refused before and rests."""
        return self._refusals.due is not None or self._pod_refusals.due is not None

    def forget(self) -> None:
        """Know nothing of what was written before: somebody else may have written since."""
        self._written, self._said, self._noted, self._places, self._notes = {}, {}, {}, {}, {}
        self._refusals, self._pod_refusals = Refusals(), Refusals()

    def answered(self, write: Patch | RecordEvent, problem: ClusterError | None) -> bool:
        """Hear what became of a write; tell whether it has to be made again, a while later."""
        if not isinstance(write, Patch):
            return False
        if write.kind is POD:
            return self._pod_answered(f"{write.namespace}/{write.name}", problem)
        uid, _ = self._places.get(_spot(write), ("", {}))
        if problem is None:
            self._refusals.clear(uid)
            return False
        if not self._written.pop(uid, None):
            return False
        self._refusals.note(uid, self._view.now, at_least=problem.retry_after)
        return True

    def _pod_answered(self, key: str, problem: ClusterError | None) -> bool:
        if problem is None:
            self._pod_refusals.clear(key)
        else:
            self._said.pop(key, None)
            self._pod_refusals.note(key, self._view.now, at_least=problem.retry_after)
        return problem is not None

    def noticed(self, event: WatchEvent) -> bool:
        """Hear of a change; tell whether somebody has overwritten what was written, which has to be made again."""
        meta = event.object["metadata"]
        spot = (event.kind, meta.get("namespace", ""), meta["name"])
        uid, status = self._places.get(spot, ("", {}))
        if not uid or event.before is None:
            return False
        is_other = _is_overwritten(event.before, event.object, status) or self._is_noted_anew(spot, event.before, event.object)
        return is_other and self._written.pop(uid, None) is not None

    def _is_noted_anew(self, spot: Spot, before: Document, after: Document) -> bool:
        """Tell whether an annotation of ours has changed and is not as it was last written: an older write may come late."""
        old, new = (_own_notes(item["metadata"].get("annotations") or {}) for item in (before, after))
        own = self._notes.get(spot, {})
        return old != new and any(new.get(name) != own.get(name) for name in {*old, *new})

    def _group(self, snapshot: Snapshot, outcome: Outcome) -> Iterator[Patch | RecordEvent]:
        gang, found, overdue = outcome.state.gang, quarantine_condition(outcome, snapshot), overdue_condition(outcome, snapshot)
        if not gang.has_object:
            yield from self._on_pods(outcome, found)
            yield from self._overdue_on_pods(outcome, overdue)
        last = self._written.get(gang.uid)
        before = None if last is None else last.status
        # Some groups have no conditions: since when they are quarantined is known from the last session alone.
        known = (*gang.conditions, *(() if before is None else before.conditions))
        status = _with(group_status(snapshot, outcome), found, known, outcome.now)
        status = replace(status, conditions=(*status.conditions, overdue)) if overdue is not None else status
        if before == status:
            return
        if not self._refusals.is_due(gang.uid, outcome.now):
            return
        now = _Written(status, cause_of(outcome, snapshot) if outcome.says_why else (), outcome.now)
        if last is not None and last.moment <= now.moment < last.until and now.only_counts_anew(last):
            self._counts_due = min(last.until, self._counts_due or last.until)
            return
        self._written[gang.uid] = now.after(last)
        self.has_admitted |= status.phase == "Inqueue" != gang.phase
        note = _note(gang, found, before)
        for item in dialect_status(gang).writes(gang, status, outcome):
            place, texts = (item.namespace, item.name), {**item.annotations, **note}
            self._places[item.kind, *place] = (gang.uid, item.status)
            self._notes[item.kind, *place] = {**_own_notes(gang.annotations), **texts}
            yield Patch(item.kind, *place, {"status": item.status}, is_status=True)
            if texts:
                yield Patch(item.kind, *place, {"metadata": {"annotations": texts}})
            if found is not None and found.message not in _messages(gang, before):
                yield from _recorded(self._view.find(item.kind, *place), found)
            if overdue is not None and not (says_overdue(gang, {}) or any(one.type == OVERDUE for one in known)):
                yield from _recorded(self._view.find(item.kind, *place), overdue)

    def _on_pods(self, outcome: Outcome, found: Condition | None) -> Iterator[Patch | RecordEvent]:
        """Let the pods that make a gang say that it is quarantined, or not any more."""
        now = found or TAKES_PART
        for task in (state.task for state in outcome.state.tasks if state.task.status is Status.PENDING):
            uid, said = self._said.get(task.key, ("", TAKES_PART))
            before = said if uid == task.uid else TAKES_PART
            if before == now or not self._pod_refusals.is_due(task.key, outcome.now):
                continue
            self._said[task.key] = (task.uid, now)
            pod = self._view.find(POD, *split_key(task.key))
            if pod is not None and _said(pod) != now.message:
                condition = _condition(pod, now.message, outcome.now)
                yield Patch(POD, *split_key(task.key), {"status": {"conditions": [condition]}}, is_status=True)
                if before.reason != now.reason:  # that there are fewer or more of them is not worth an event on each
                    yield from _recorded(pod, found)

    def _overdue_on_pods(self, outcome: Outcome, overdue: Condition | None) -> Iterator[Patch | RecordEvent]:
        """Let a pod of a gang that pods alone make say that it runs longer than it may, or not any more."""
        tasks = sorted((state.task for state in outcome.state.tasks), key=lambda task: task.key)
        saying = [task for task in tasks if OVERDUE_SINCE in task.annotations]
        if (overdue is None) == (not saying):
            return
        now, text = overdue or ON_TIME, None if overdue is None else moment_text(ceil(overdue.since))
        for task in saying or [task for task in tasks if task.status is Status.RUNNING][:1]:
            if self._said.get(task.key) != (task.uid, now) and self._pod_refusals.is_due(task.key, outcome.now):
                self._said[task.key] = (task.uid, now)
                yield Patch(POD, *split_key(task.key), {"metadata": {"annotations": {OVERDUE_SINCE: text}}})
                yield from _recorded(self._view.find(POD, *split_key(task.key)), overdue)


def _is_overwritten(before: Document, after: Document, status: Document) -> bool:
    """Tell whether a status was there, and is there no longer."""
    if before.get("status") == after.get("status"):
        return False
    was, still = (merged(item.get("status") or {}, status) == (item.get("status") or {}) for item in (before, after))
    return was and not still


def _own_notes(annotations: Mapping[str, str]) -> dict[str, str]:
    return {name: annotations[name] for name in NOTES if name in annotations}


def _spot(write: Patch) -> Spot:
    return write.kind, write.namespace, write.name


def _recorded(about: Document | None, found: Condition | None) -> Iterator[Patch | RecordEvent]:
    """Record that a gang is quarantined, or overdue; simulations name those that wait at the end with the same reason."""
    if about is not None and found is not None:
        yield RecordEvent(about, found.type, found.message, is_warning=True, is_expected=True)


def _with(status: GroupStatus, found: Condition | None, known: Sequence[Condition], now: float) -> GroupStatus:
    """Return a status that says whether the gang is quarantined, and since when; whether it is overdue is left to others."""
    others = tuple(item for item in status.conditions if item.type not in (QUARANTINED, FORMER_CONDITION, OVERDUE))
    if found is None:
        return replace(status, conditions=others)
    old = next((item for item in known if item.type == QUARANTINED), None)
    since = old.since if old is not None and old.reason == found.reason else float(ceil(now))
    return replace(status, conditions=(*others, replace(found, since=since)))


def _note(gang: Gang, found: Condition | None, before: GroupStatus | None) -> dict[str, str | None]:
    """Return the annotation of a group that has no conditions, if it may change."""
    if gang.dialect not in WITHOUT_CONDITIONS:
        return {}
    former: dict[str, str | None] = {FORMER_NOTE: None} if FORMER_NOTE in gang.annotations else {}
    if found is None and not any(_messages(gang, before)):
        return former
    return {**former, QUARANTINE_NOTE: None if found is None else found.message}


def _messages(gang: Gang, before: GroupStatus | None) -> set[str]:
    """Return why a gang was said to be quarantined, on the object or in an earlier session."""
    conditions = (*gang.conditions, *(before.conditions if before is not None else ()))
    found = {item.message for item in conditions if item.type == QUARANTINED}
    return found | ({gang.annotations[QUARANTINE_NOTE]} if QUARANTINE_NOTE in gang.annotations else set())


def _said(pod: Document) -> str:
    """Return what a pod says of its gang that is quarantined."""
    return next((item.get("message", "") for item in _listed(pod) if _is_ours(item)), "")


def _listed(pod: Document) -> Iterator[Document]:
    yield from (pod.get("status") or {}).get("conditions") or ()


def _is_ours(item: Document) -> bool:
    return (item.get("type"), item.get("reason")) == (POD_SCHEDULED, UNDETERMINED)


def _condition(pod: Document, text: str, now: float) -> Document:
    if not text:
        return cleared(is_gated=bool(pod["spec"].get("schedulingGates")))
    own = {"type": POD_SCHEDULED, "status": "False", "reason": UNDETERMINED, "message": text}
    return {**own, "lastTransitionTime": moment_text(int(now))}
