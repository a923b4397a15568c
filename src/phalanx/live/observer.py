"""The gangs of a cluster, seen from outside: read from its objects, without a session.

For `kubectl phalanx` on a cluster whose API server knows nothing of gangs. It asks for what the one who looks may see: the pods,
groups and events of one namespace, or of all.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import Forbidden, SnapshotError
from phalanx.explain.gangs import gang_list
from phalanx.explain.recorded import event_order, is_about_gang, recorded_code, recorded_reason
from phalanx.model.kinds import EVENT, GROUP_KINDS, POD, Document, object_key
from phalanx.model.task_status import Status
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import served_kinds


class Observer:
    """What was read at one moment, and what was wrong with it."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self._cluster = ObjectCluster()
        self._pods: dict[str, Document] = {}
        self._warnings: dict[str, list[Document]] = {}
        self.problems: list[str] = []
        """Objects that could not be understood, each with what is wrong; they are left out alone."""

    async def look(self, client: Client, namespace: str = "") -> dict[str, Any]:
        """Read the gangs of a namespace, or of all."""
        groups = sorted(await served_kinds(client, GROUP_KINDS), key=lambda kind: kind.resource)
        for kind in (*groups, POD):
            for document in (await client.list(kind, namespace)).items:
                self._enter(document)
        with suppress(Forbidden):
            self._hear((await client.list(EVENT, namespace, fields="type=Warning")).items)
        return self.gangs(self._cluster.snapshot(client.now))

    def gangs(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the gangs, each that waits with what was written about it."""
        return gang_list(snapshot, self._why, self._code)

    def _enter(self, document: Document) -> None:
        if document["kind"] == POD.kind:
            self._pods[object_key(document)] = document
        try:
            self._cluster.put(document)
        except SnapshotError as problem:
            self.problems.append(str(problem))

    def _hear(self, events: Sequence[Document]) -> None:
        """Sort events by what they are about."""
        for event in events:
            involved: Mapping[str, Any] = event.get("involvedObject") or {}
            key = f"{involved.get('kind')} {involved.get('namespace') or 'default'}/{involved.get('name')}"
            self._warnings.setdefault(key, []).append(event)

    def _code(self, state: GangState) -> str:
        return recorded_code(state, sorted(self._about_gang(state), key=event_order))

    def _about_gang(self, state: GangState) -> list[Document]:
        """Return the events about a gang, on its group or on a pod that stands for it."""
        of_pods = (event for task in state.tasks for event in self._warnings.get(f"Pod {task.task.key}", ()))
        return [*self._warnings.get(f"PodGroup {state.key.partition('@')[0]}", ()), *filter(is_about_gang, of_pods)]

    def _why(self, state: GangState) -> str:
        waiting = [task.task.key for task in state.tasks if task.status is Status.PENDING]
        of_pods = (event for key in waiting for event in self._warnings.get(f"Pod {key}", ()) if not is_about_gang(event))
        about = [*self._about_gang(state), *of_pods]
        return recorded_reason(state, [self._pods[key] for key in waiting], sorted(about, key=event_order))
