"""One gang: what it is, its pods, its life, and where in the network it is."""

from collections import Counter
from collections.abc import Sequence

from phalanx.dialects.status import condition_document
from phalanx.dialects.traits import dialect_status
from phalanx.explain.queue_figures import queue_line
from phalanx.explain.reason_text import as_counted, request_text
from phalanx.model.gang import Gang
from phalanx.model.kinds import split_key
from phalanx.model.task import GangKey, Task
from phalanx.model.task_status import Status
from phalanx.state.gang_state import GangState
from phalanx.state.snapshot import Snapshot
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster, SeenGang
from phalanx.ui.views import Json
from phalanx.ui.views.amounts import unit_of
from phalanx.ui.views.domains import levels
from phalanx.ui.views.gangs import SharedTexts
from phalanx.ui.views.timeline import moments

TIMES = ("created", "scheduled", "started", "finished")


def gang(seen: SeenCluster, scope: Scope, key: str) -> Json | None:
    """Return one gang with its pods; None if it is not there, or may not be seen."""
    known = seen.gangs.get(key)
    if known is None or not scope.sees_key(key):
        return None
    found, tasks = seen.snapshot.gangs.get(GangKey(key)), _members(seen.snapshot, key)
    reserved, names = seen.reservations.get(key), split_key(key)
    return {
        "now": seen.now, "gang": key, "namespace": names[0], "name": names[1].partition("@")[0],
        "queue": known.queue, "queues": list(queue_line(seen.snapshot.queue_objects, known.queue)) if scope.sees_queues else [],
        "status": known.status.value, "why": known.why, "code": known.code, "minimum": known.minimum, "placed": known.placed,
        "running": known.running, "unit": unit_of(seen.resource), "reserved": reserved.text if reserved is not None else "",
        **_facts(known), **_declared(found, tasks),
        "owners": sorted({owner for task in tasks for owner in task.owners.split(",") if owner}),
        "members": _columns(tasks), "moments": [moment.document() for moment in moments(found, tasks, reserved)],
        "places": _places(seen.snapshot, tasks, sees_nodes=scope.sees_nodes),
    }  # fmt: skip


def _facts(known: SeenGang) -> Json:
    facts = known.facts
    return {
        "pods": facts.pods, "held": facts.held, "asked": facts.asked, "priority": facts.priority, "created": facts.created,
        "started": facts.started, "ended": facts.ended, "evicted": facts.evicted,
    }  # fmt: skip


def _declared(found: Gang | None, tasks: Sequence[Task]) -> Json:
    """Return what the group object says."""
    if found is None:
        return {"dialect": tasks[0].dialect if tasks else "", "phase": "", "priorityClass": "", "conditions": [], "roles": {}}
    state = GangState(found, ((task, -1) for task in tasks))
    return {
        "dialect": found.dialect, "phase": dialect_status(found).current_phase(state), "priorityClass": found.priority_class,
        "conditions": [condition_document(item) for item in found.conditions], "roles": dict(found.role_minima),
    }  # fmt: skip


def _members(snapshot: Snapshot, key: str) -> list[Task]:
    return sorted(snapshot.members_of(GangKey(key)).values(), key=lambda task: as_counted(task.name))


def _columns(tasks: Sequence[Task]) -> Json:
    texts = SharedTexts()
    return {
        "columns": {
            "pod": [task.name for task in tasks], "status": texts.places(_status(task) for task in tasks),
            "node": texts.places(task.node or (f"({task.nominated_node})" if task.nominated_node else "") for task in tasks),
            "role": texts.places(task.role for task in tasks),
            "asks": texts.places(request_text(task.shape.request) for task in tasks),
            **{name: [getattr(task, name) for task in tasks] for name in TIMES},
        },
        "texts": texts.texts,
    }  # fmt: skip


def _status(task: Task) -> str:
    return "Gated" if task.is_gated and task.status is Status.PENDING else task.status.word


def _places(snapshot: Snapshot, tasks: Sequence[Task], *, sees_nodes: bool) -> list[Json]:
    """Return in which domains the pods are, level by level, the widest first; to those who may not list nodes only their names."""
    numbers = [snapshot.nodes.number_by_name.get(task.node, -1) for task in tasks if task.node]
    on_nodes = [number for number in numbers if number >= 0]
    found = []
    for level in levels(snapshot) if on_nodes and sees_nodes else ():
        counts = Counter(int(level.of[number]) for number in on_nodes)
        domains = [{"name": level.names[place], "pods": count} for place, count in counts.most_common() if place >= 0]
        found.append({"level": level.title, "domains": domains, "outside": counts[-1]})
    names = Counter(snapshot.nodes.names[number] for number in on_nodes)
    nodes = [{"name": name, "pods": count} for name, count in names.most_common()]
    return [*found, {"level": "node", "domains": nodes, "outside": 0}] if on_nodes else []
