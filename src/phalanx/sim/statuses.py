"""What a session leaves on objects: phase, conditions and stamps of groups, promises on pods; written only when they change."""

from typing import Any

from phalanx.core.decision import Decisions, Outcome
from phalanx.core.snapshot import Snapshot
from phalanx.dialects.volcano_status import GroupStatus
from phalanx.dialects.words import words_of
from phalanx.errors import Missing
from phalanx.explain.answer import group_status
from phalanx.model.gang import Gang
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Kind, split_key
from phalanx.model.status import Status
from phalanx.store.memory import MemoryStore


class StatusWriter:
    """Writes statuses to a store."""

    def __init__(self, store: MemoryStore) -> None:
        """Know nothing of what was written before."""
        self._store = store
        self._written: dict[str, GroupStatus] = {}

    def write(self, snapshot: Snapshot, decisions: Decisions) -> bool:
        """Write the outcome of a session; tell whether a group was admitted."""
        has_admitted = False
        for outcome in decisions.outcomes:
            has_admitted |= self._write_group(snapshot, outcome)
            self._write_promises(snapshot, outcome)
            self._write_stamps(outcome.state.gang, decisions)
        return has_admitted

    def _write_group(self, snapshot: Snapshot, outcome: Outcome) -> bool:
        gang = outcome.state.gang
        status = group_status(snapshot, outcome)
        if self._written.get(gang.uid) == status:
            return False
        self._written[gang.uid] = status
        for item in words_of(gang).writes(gang, status, outcome):
            place = (item.namespace, item.name)
            self._patch(item.kind, place, {"status": item.status})
            if item.annotations:
                self._patch(item.kind, place, {"metadata": {"annotations": item.annotations}}, is_status=False)
        return status.phase == "Inqueue" != gang.phase

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
