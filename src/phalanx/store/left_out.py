"""What a session on manifests leaves out: pods that it does not place and owners without pods, each with the reason.

`phalanx schedule` shows them, so that nobody takes silence for room.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from phalanx.controllers.objects import inside
from phalanx.controllers.owner_pods.controller import knows_pods_of
from phalanx.controllers.pod_makers import MADE_HERE, stands_for_pods, wants_pods
from phalanx.dialects.cluster import describe
from phalanx.explain.held_back import other_schedulers
from phalanx.explain.missing_groups import missing_groups
from phalanx.explain.reason_text import gate_names
from phalanx.model.kinds import VOLCANO_JOB, Document, Kind, object_key
from phalanx.model.task import DEFAULT_SCHEDULER, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.snapshot import Snapshot
from phalanx.store.completion import known_kind
from phalanx.store.input_files import Intake

NOW_AND_THEN = frozenset({"CronJob", "CronWorkflow", "ScheduledWorkflow"})


class LeftOut(NamedTuple):
    """An object that the session did not look at."""

    object: str
    """As "Pod research/train-0"."""
    reason: str
    message: str
    is_ours: bool
    """Somebody most likely expects it to be scheduled here, or nobody else schedules it."""


def left_out(intake: Intake, snapshot: Snapshot, more: Sequence[Document] = ()) -> list[LeftOut]:
    """Return what the session leaves out of the input, in its order; `more` are objects that the snapshot has besides."""
    documents = [document for _, document in intake.documents]
    ours = snapshot.surroundings.schedulers - {DEFAULT_SCHEDULER}
    alone = list(_without_pods(documents, more))
    owners = _owners(alone, ours) if intake.live is None else _owners_alive(alone)
    return [*_pods(intake, snapshot, documents), *owners]


def _pods(intake: Intake, snapshot: Snapshot, documents: Iterable[Document]) -> Iterator[LeftOut]:
    refused = intake.refused_groups
    shown, contested = missing_groups(snapshot), intake.cluster.contested
    for document in documents:
        task = intake.cluster.state.task(TaskKey(object_key(document))) if document["kind"] == "Pod" else None
        if task is None or task.status is not Status.PENDING or task.gang in snapshot.gangs:
            continue
        if task.gang in refused:
            yield LeftOut(describe(document), "GroupRefused", f"its PodGroup {task.gang} was rejected", True)
        elif task.key in contested:
            yield LeftOut(describe(document), "TwoGroups", contested[task.key].removeprefix("metadata: "), True)
        elif task.gang is None:
            yield LeftOut(describe(document), *_without_gang(task, snapshot.surroundings.schedulers))
        elif task.gang not in shown:
            yield LeftOut(describe(document), "GroupNotFound", f"its group {task.gang} {intake.absent}", True)


def _without_gang(task: Task, ours: frozenset[str]) -> tuple[str, str, bool]:
    if task.is_foreign:
        return "OtherScheduler", other_schedulers([task], ours), False
    if task.gates:
        return "Gated", f"names no group, and is held back by {gate_names(task.gates)}", False
    is_default = task.scheduler_name == DEFAULT_SCHEDULER
    who = "kube-scheduler places it" if is_default else f"nobody makes one for pods of {task.scheduler!r}"
    return "NoGroup", f"names no group, and {who}; 'phalanx simulate' leaves it pending too", not is_default


def _owners(alone: Iterable[tuple[Kind, Document]], ours: frozenset[str]) -> Iterator[LeftOut]:
    """Yield the objects that stand for pods of which none is in the input."""
    for kind, document in alone:
        is_ours = kind is VOLCANO_JOB or not ours.isdisjoint(_schedulers(document.get("spec")))
        yield LeftOut(describe(document), "NoPods", f"no pods of it are in the input{_who_makes(kind)}", is_ours)


def _owners_alive(alone: Iterable[tuple[Kind, Document]]) -> Iterator[LeftOut]:
    """Yield the objects of a live cluster that stand for pods and have none: those who create pods will, or have ended.

    Those that only make others now and then have none most of the time.
    """
    for kind, document in alone:
        if kind.kind not in NOW_AND_THEN:
            yield LeftOut(describe(document), "NoPods", "has no pods yet", False)


def _without_pods(documents: Sequence[Document], more: Sequence[Document]) -> Iterator[tuple[Kind, Document]]:
    """Yield the objects that should have pods, or others that have, and own nothing."""
    owning = {owner for document in (*documents, *more) for owner in _owners_of(document)}
    for document in documents:
        kind = known_kind(document)
        is_wanted = kind is not None and stands_for_pods(kind) and wants_pods(document)
        if kind is not None and is_wanted and (kind.kind, object_key(document)) not in owning:
            yield kind, document


def _who_makes(kind: Kind) -> str:
    """Say who creates the pods of a kind. A session does not: where an owner has none, its controller has its reasons."""
    if not (knows_pods_of(kind) or kind in MADE_HERE):
        return ", and nothing here creates them; add them to the input"
    simulated = ", and 'phalanx simulate' creates them" if kind in MADE_HERE else ""
    return f"; 'phalanx try -f' decides on those that its controller would create{simulated}"


def _owners_of(document: Document) -> Iterator[tuple[str, str]]:
    namespace = object_key(document).partition("/")[0]
    for owner in inside(document, "metadata", "ownerReferences") or ():
        yield str(owner.get("kind")), f"{namespace}/{owner.get('name')}"


def _schedulers(value: Any) -> Iterator[str]:  # Any: whatever a template holds
    """Yield the scheduler names in the templates of an object."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key == "schedulerName" and isinstance(text, str))
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _schedulers(part)
