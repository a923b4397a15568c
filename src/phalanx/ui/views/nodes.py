"""All nodes as arrays, for a map of ten thousand of them; and one node with what is on it."""

from array import array
from collections.abc import Mapping

import numpy as np

from phalanx.explain.reason_text import scarce_first
from phalanx.model.held_amount import held_amount
from phalanx.model.resources import scale_of
from phalanx.model.task import Task
from phalanx.placement import Index, Scores
from phalanx.state.holders import numbers_of
from phalanx.state.snapshot import Snapshot
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.views import Json
from phalanx.ui.views.amounts import offered_resources, unit_of
from phalanx.ui.views.domains import levels, path_of

MOST_RESOURCES = 5
READY, CORDONED, UNREADY = 0, 1, 2
NOBODY = -1


def nodes(seen: SeenCluster, scope: Scope) -> Json:
    """Return the nodes by number, in the order of their names; nothing for those who may not list nodes."""
    if not scope.sees_nodes:
        return {"now": seen.now, "names": [], "levels": [], "resources": [], "queues": [], "hidden": True}
    snapshot, table = seen.snapshot, seen.snapshot.nodes
    names, queue = _main_queues(seen) if scope.sees_queues else ([], [NOBODY] * len(table))
    return {
        "now": seen.now, "hidden": False, "names": table.names, "state": _states(snapshot), "pods": snapshot.pods.tolist(),
        "resources": [_amounts(snapshot, resource) for resource in _resources(seen)], "queues": names, "queue": queue,
        "levels": [
            {"key": level.key, "title": level.title, "names": list(level.names), "of": level.of.tolist()}
            for level in levels(snapshot)
        ],
    }  # fmt: skip


def _states(snapshot: Snapshot) -> list[int]:
    nodes = snapshot.nodes
    states: list[int] = np.where(nodes.unready, UNREADY, np.where(nodes.unschedulable, CORDONED, READY)).tolist()
    return states


def _resources(seen: SeenCluster) -> list[str]:
    """Return the resources that nodes offer, the counted one first."""
    return sorted(scarce_first(offered_resources(seen.snapshot)), key=lambda name: name != seen.resource)[:MOST_RESOURCES]


def _amounts(snapshot: Snapshot, resource: str) -> Json:
    row, scale = snapshot.space.row_by_name[resource], scale_of(resource)
    offered, used = snapshot.nodes.allocatable[row] / scale, snapshot.used[row] / scale
    return {"name": resource, "unit": unit_of(resource), "offered": _plain(offered), "used": _plain(used)}


def _plain(amounts: Scores) -> list[float]:
    """Return whole numbers as such: most are, and they take half of the room."""
    if np.array_equal(amounts, np.floor(amounts)):
        whole: list[float] = amounts.astype(np.int64).tolist()
        return whole
    return [round(float(amount), 3) for amount in amounts]


def _main_queues(seen: SeenCluster) -> tuple[list[str], list[int]]:
    """Return the names of queues, and for each node the number of the one that holds most of it."""
    snapshot, holders = seen.snapshot, seen.snapshot.holders
    names = sorted({gang.queue for gang in snapshot.gangs.values()})
    count = len(names)
    if not count or not len(holders.nodes):
        return names, [NOBODY] * len(snapshot.nodes)
    queue_by_gang = {key: names.index(gang.queue) for key, gang in snapshot.gangs.items()}
    node, queue = (
        _column(holders.nodes, holders.code_by_node, snapshot.nodes.number_by_name),
        _column(holders.gangs, holders.code_by_gang, {str(key): number for key, number in queue_by_gang.items()}),
    )
    known = (node >= 0) & (queue >= 0)
    weights = _weights(seen)[known]
    sums = np.bincount(node[known] * count + queue[known], weights=weights, minlength=len(snapshot.nodes) * count)
    by_node = sums.reshape(len(snapshot.nodes), count)
    main: list[int] = np.where(by_node.max(axis=1) > 0, by_node.argmax(axis=1), NOBODY).tolist()
    return names, main


def _column(codes: "array[int]", code_by_name: Mapping[str, int], number_by_name: Mapping[str, int]) -> Index:
    """Return the numbers that the codes of a column stand for, -1 for those of nobody."""
    numbers: Index = np.append(numbers_of(code_by_name, number_by_name), NOBODY)
    found: Index = numbers[np.asarray(codes)]
    return found


def _weights(seen: SeenCluster) -> Scores:
    """Return what each holder has of the counted resource; those that have none of it count a little, so that they are seen."""
    holders = seen.snapshot.holders
    by_shape = np.zeros(max(holders.code_by_shape.values(), default=-1) + 2)
    for shape, code in holders.code_by_shape.items():
        by_shape[code] = max(shape.request.get(seen.resource, 0) / scale_of(seen.resource), 1e-3)
    found: Scores = by_shape[np.asarray(holders.shapes)]
    return found


# --- one node ------------------------------------------------------------------------------------------------------------


def node(seen: SeenCluster, scope: Scope, name: str) -> Json | None:
    """Return one node with the gangs on it; None if it is not there, or may not be seen."""
    number = seen.snapshot.nodes.number_by_name.get(name)
    if number is None or not scope.sees_nodes:
        return None
    found, snapshot = seen.snapshot.nodes.nodes[number], seen.snapshot
    tasks = list(snapshot.on_node.get(name, {}).values())
    ours = [task for task in tasks if task.gang is not None and scope.sees(task.namespace)]
    return {
        "now": seen.now, "name": name, "state": _states(snapshot)[number], "labels": dict(found.labels),
        "taints": [f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                   for taint in found.taints],
        "domains": [{"level": level, "name": domain} for level, domain in path_of(snapshot, number)],
        "resources": [_room(snapshot, resource, number) for resource in _resources(seen)],
        "gangs": _gangs_on(seen, ours), "otherPods": len(tasks) - len(ours),
    }  # fmt: skip


def _room(snapshot: Snapshot, resource: str, number: int) -> Json:
    row, scale = snapshot.space.row_by_name[resource], scale_of(resource)
    amounts = {"offered": snapshot.nodes.allocatable, "used": snapshot.used, "leaving": snapshot.releasing}
    return {
        "name": resource,
        "unit": unit_of(resource),
        **{word: float(each[row, number]) / scale for word, each in amounts.items()},
    }


def _gangs_on(seen: SeenCluster, tasks: list[Task]) -> list[Json]:
    by_gang: dict[str, list[Task]] = {}
    for task in tasks:
        by_gang.setdefault(str(task.gang), []).append(task)
    rows = [_gang_on(seen, key, members) for key, members in by_gang.items()]
    return sorted(rows, key=lambda row: (-row["held"], row["gang"]))


def _gang_on(seen: SeenCluster, key: str, tasks: list[Task]) -> Json:
    known = seen.gangs.get(key)
    return {
        "gang": key, "queue": "" if known is None else known.queue, "status": "" if known is None else known.status.value,
        "pods": len(tasks), "held": sum(held_amount(task, seen.resource) for task in tasks), "unit": unit_of(seen.resource),
    }  # fmt: skip
