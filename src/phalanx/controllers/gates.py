"""Removes the scheduling gates of gangs that have room, and deletes the pods of gangs that waited too long.

Whether a gang has room is decided by a session, which sees the whole cluster and writes its plan on the pods. Here nothing is
decided: a plan that all its pods carry is carried out, and one that was begun is finished, also after a crash in between.
"""

from collections.abc import Iterable

from phalanx.controllers.controller import NOTHING, Delete, Key, Patch, RecordEvent, Result, View, Write
from phalanx.controllers.objects import annotations_of, controller_of, is_leaving, key_of, meta_of
from phalanx.dialects.gates import DELETE, GangGates, GatePlan, gates_of, minimum_of, plan_of, timeout_of
from phalanx.dialects.group_references import first_named
from phalanx.errors import SnapshotError
from phalanx.model.kinds import NODE, POD, Document, Kind
from phalanx.model.moment import moment_of
from phalanx.model.task_status import ENDED

GANG_TIMED_OUT = "GangTimedOut"


class GateLifter:
    """Carries out plans, one at a time, by their name."""

    name = "gates"
    watches = (POD, NODE)
    brings_back = ()

    def __init__(self, gates: GangGates | None = None) -> None:
        """Lift these gates, our own by default, and no others."""
        self._gates = gates or GangGates()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the plan of a pod, or the plans that need a node that has gone."""
        if kind is POD:
            plan = plan_of(document)
            return [Key(key_of(document).namespace, plan.id)] if plan is not None else []
        name = key_of(document).name
        if view.find(NODE, "", name) is not None:
            return []
        found = ((pod, plan_of(pod)) for pod in view.within(POD))
        return [Key(key_of(pod).namespace, plan.id) for pod, plan in found if plan is not None and plan.node == name]

    def reconcile(self, view: View, key: Key) -> Result:
        """Lift all gates of a plan that is whole or was begun."""
        members = [(pod, plan) for pod, plan in _planned(view, key.namespace) if plan.id == key.name]
        held = [(pod, plan) for pod, plan in members if self._gates.of(pod) and not is_leaving(pod)]
        has_begun = any(not self._gates.of(pod) for pod, _ in members)
        if not has_begun and not _may_begin(held, view.now):
            return NOTHING
        writes: list[Write] = [Patch(POD, key.namespace, key_of(pod).name, self._gates.lifted(pod, plan)) for pod, plan in held]
        return Result([*writes, *(write for pod, plan in members for write in _recreated(view, pod, plan))])


def _planned(view: View, namespace: str) -> Iterable[tuple[Document, GatePlan]]:
    found = ((pod, plan_of(pod)) for pod in view.within(POD, namespace))
    return ((pod, plan) for pod, plan in found if plan is not None)


def _may_begin(members: list[tuple[Document, GatePlan]], now: float) -> bool:
    """Tell whether every pod of a plan carries it, and it is not too old."""
    return bool(members) and len(members) >= members[0][1].pods and all(plan.is_fresh(now) for _, plan in members)


def _recreated(view: View, pod: Document, plan: GatePlan) -> Iterable[Write]:
    """Delete a pod that waits for a node that is gone, if its owner recreates it: a gate cannot be put back."""
    waits = not gates_of(pod) and not pod["spec"].get("nodeName") and not is_leaving(pod)
    if not waits or view.find(NODE, "", plan.node) is not None or controller_of(pod) is None:
        return
    yield RecordEvent(
        pod, "PlanFailed", f"node {plan.node} has gone before the pod was placed; the pod is made anew", is_warning=True
    )
    yield Delete(POD, key_of(pod).namespace, key_of(pod).name, str(meta_of(pod).get("uid", "")))


class GateTimeouts:
    """Deletes the pods of gangs that do not reach their minimum in time, if their pods ask for it."""

    name = "gate-timeouts"
    watches = (POD,)
    brings_back = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the gang of a pod that has a limit."""
        limit, _ = _limit_of(document)
        name = first_named(document)
        return [Key(key_of(document).namespace, name)] if limit is not None and name else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Wait until the time is up."""
        members = [pod for pod in view.within(POD, key.namespace) if first_named(pod) == key.name and not is_leaving(pod)]
        waiting = [pod for pod in members if not pod["spec"].get("nodeName") and _phase(pod) not in ENDED]
        limit, afterwards = next((_limit_of(pod) for pod in members if _limit_of(pod)[0] is not None), (None, ""))
        if limit is None or not waiting or _is_whole(members):
            return NOTHING
        end = min(_created(pod) for pod in waiting) + limit
        if view.now < end:
            return Result(again=end)
        running = [pod for pod in members if pod not in waiting]
        return Result(_deleted_gang(key, [*running, *waiting])) if afterwards == DELETE else NOTHING


def _deleted_gang(key: Key, members: list[Document]) -> list[Write]:
    """Return the deletion of all members. Waiting ones come last: as long as one is left, the deletion is resumed after a crash."""
    text = f"gang {key.namespace}/{key.name} was not whole in time; its {len(members)} pods are deleted"
    deletes = [Delete(POD, key.namespace, key_of(pod).name, str(meta_of(pod).get("uid", ""))) for pod in members]
    return [RecordEvent(members[0], GANG_TIMED_OUT, text, is_warning=True, is_expected=True), *deletes]


def _is_whole(members: list[Document]) -> bool:
    """Tell whether as many members as the gang needs have a node or have succeeded; all of them where no minimum is set."""
    needed = next((minimum for pod in members if (minimum := _minimum_of(pod)) is not None), len(members))
    return sum(bool(pod["spec"].get("nodeName")) and _phase(pod) != "Failed" for pod in members) >= needed


def _limit_of(pod: Document) -> tuple[float | None, str]:
    """Return the timeout of a pod and what follows; none if it cannot be read, which the quarantine controller reports."""
    try:
        return timeout_of(annotations_of(pod))
    except SnapshotError:
        return None, ""


def _minimum_of(pod: Document) -> int | None:
    try:
        return minimum_of(annotations_of(pod))
    except SnapshotError:
        return None


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _created(pod: Document) -> float:
    return moment_of(str(meta_of(pod).get("creationTimestamp", ""))) or 0.0
