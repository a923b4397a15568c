"""What a session leaves on objects: phase, conditions and stamps of groups, promises on pods; written only when they change."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil
from typing import Any

from phalanx.controllers.base import Tell
from phalanx.core.decision import Decisions, Outcome
from phalanx.core.snapshot import Snapshot
from phalanx.dialects.volcano_status import GroupStatus
from phalanx.dialects.words import words_of
from phalanx.errors import Missing
from phalanx.explain.answer import group_status
from phalanx.explain.aside import SET_ASIDE, aside
from phalanx.model.conditions import IS_GATED, POD_SCHEDULED
from phalanx.model.gang import Condition, Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, Kind, split_key
from phalanx.model.moment import moment_text
from phalanx.model.status import Status
from phalanx.store.memory import MemoryStore

SET_ASIDE_NOTE = "phalanx.dev/set-aside"
"""Annotation that stands for the condition `SetAside` on groups that have no conditions."""
WITHOUT_CONDITIONS = frozenset({"coscheduling", "koordinator"})
UNSCHEDULABLE = "Unschedulable"


class StatusWriter:
    """Writes statuses to a store."""

    def __init__(self, store: MemoryStore) -> None:
        """Know nothing of what was written before."""
        self._store = store
        self._written: dict[str, GroupStatus] = {}
        self._said: dict[str, str] = {}
        """What pods of gangs without an object were told, by key."""
        self.told: list[Callable[[Tell], None]] = []
        """Told of every gang that is set aside, for a reason that is new."""

    def write(self, snapshot: Snapshot, decisions: Decisions) -> bool:
        """Write the outcome of a session; tell whether a group was admitted."""
        has_admitted = False
        for outcome in decisions.outcomes:
            has_admitted |= self._write_group(snapshot, outcome)
            self._write_promises(snapshot, outcome)
            self._write_stamps(outcome.state.gang, decisions)
        return has_admitted

    def _write_group(self, snapshot: Snapshot, outcome: Outcome) -> bool:
        gang, found = outcome.state.gang, aside(outcome, snapshot)
        status = _with(group_status(snapshot, outcome), found, outcome)
        if not gang.has_object:
            self._write_on_pods(outcome, found)
        before = self._written.get(gang.uid)
        if before == status:
            return False
        self._written[gang.uid] = status
        note = _note(gang, found, before)
        for item in words_of(gang).writes(gang, status, outcome):
            place, texts = (item.namespace, item.name), {**item.annotations, **note}
            self._patch(item.kind, place, {"status": item.status})
            if texts:
                self._patch(item.kind, place, {"metadata": {"annotations": texts}}, is_status=False)
            if found is not None and found.message not in _messages(gang, before):
                self._tell(self._store.find(item.kind, *place), found)
        return status.phase == "Inqueue" != gang.phase

    def _write_on_pods(self, outcome: Outcome, found: Condition | None) -> None:
        """Let the pods that make a gang say that it is set aside, or not any more."""
        for task in (state.task for state in outcome.state.tasks if state.task.status is Status.PENDING):
            text = "" if found is None else found.message
            if self._said.get(task.key, "") == text:
                continue
            self._said[task.key] = text
            pod = self._store.find(POD, *split_key(task.key))
            if pod is not None and _said(pod) != text:
                self._patch(POD, split_key(task.key), {"status": {"conditions": _conditions(pod, text, outcome.now)}})
                self._tell(pod, found)

    def _tell(self, about: Document | None, found: Condition | None) -> None:
        """Tell that a gang is set aside; simulations name those that wait at the end with the same reason."""
        if about is None or found is None:
            return
        for listener in self.told:
            listener(Tell(about, SET_ASIDE, found.message, is_warning=True, is_expected=True))

    def _write_promises(self, snapshot: Snapshot, outcome: Outcome) -> None:
        for state in outcome.state.tasks:
            task = state.task
            node = snapshot.nodes.names[state.node] if state.status is Status.PIPELINED else ""
            if task.status is Status.PENDING and state.status is not Status.BINDING and node != task.nominated_node:
                self._patch(POD, split_key(task.key), {"status": {"nominatedNodeName": node or None}})

    def _write_stamps(self, gang: Gang, decisions: Decisions) -> None:
        texts = decisions.stamps.get(gang.key)
        if texts and gang.dialect in GROUP_BY_DIALECT:
            place = (gang.namespace, gang.name)
            self._patch(GROUP_BY_DIALECT[gang.dialect], place, {"metadata": {"annotations": texts}}, is_status=False)

    def _patch(self, kind: Kind, place: tuple[str, str], patch: dict[str, Any], *, is_status: bool = True) -> None:
        try:
            self._store.patch(kind, *place, patch, is_status=is_status)
        except Missing:
            return  # gone meanwhile: another one of that name has another uid


def _with(status: GroupStatus, found: Condition | None, outcome: Outcome) -> GroupStatus:
    """Return a status that also says whether the gang is set aside, and since when."""
    others = tuple(item for item in status.conditions if item.type != SET_ASIDE)
    if found is None:
        return replace(status, conditions=others)
    old = next((item for item in outcome.state.gang.conditions if item.type == SET_ASIDE), None)
    since = old.since if old is not None and old.reason == found.reason else float(ceil(outcome.now))
    return replace(status, conditions=(*others, replace(found, since=since)))


def _note(gang: Gang, found: Condition | None, before: GroupStatus | None) -> dict[str, str | None]:
    """Return the annotation of a group that has no conditions, if it may change."""
    if gang.dialect not in WITHOUT_CONDITIONS or (found is None and not any(_messages(gang, before))):
        return {}
    return {SET_ASIDE_NOTE: None if found is None else found.message}


def _messages(gang: Gang, before: GroupStatus | None) -> set[str]:
    """Return why a gang was said to be set aside, on the object or in an earlier session."""
    conditions = (*gang.conditions, *(before.conditions if before is not None else ()))
    found = {item.message for item in conditions if item.type == SET_ASIDE}
    return found | ({gang.annotations[SET_ASIDE_NOTE]} if SET_ASIDE_NOTE in gang.annotations else set())


def _said(pod: Document) -> str:
    """Return what a pod says of its gang that is set aside."""
    return next((item.get("message", "") for item in _listed(pod) if _is_ours(item)), "")


def _listed(pod: Document) -> Iterator[Document]:
    yield from (pod.get("status") or {}).get("conditions") or ()


def _is_ours(item: Document) -> bool:
    return (item.get("type"), item.get("reason")) == (POD_SCHEDULED, UNSCHEDULABLE)


def _conditions(pod: Document, text: str, now: float) -> list[Document]:
    others = [item for item in _listed(pod) if item.get("type") != POD_SCHEDULED]
    if not text:
        return [*others, *([dict(IS_GATED)] if pod["spec"].get("schedulingGates") else [])]
    own = {"type": POD_SCHEDULED, "status": "False", "reason": UNSCHEDULABLE, "message": text}
    return [*others, {**own, "lastTransitionTime": moment_text(int(now))}]
