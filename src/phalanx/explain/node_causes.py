"""Why no node takes a task: how many nodes fail which filter, and what exactly stands against the task there.

Everything is read from the fit error that the session left: which nodes gave which reason. Which taint, label, port or volume it is
comes from the nodes and the task. It is put into words once for each class of tasks and session, not once for each gang: gangs that
wait for the same are many, and clusters are large.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np

from phalanx.explain.cause import Cause, Part, Search, remembered
from phalanx.explain.free_room import lack
from phalanx.explain.node_reasons import TOO_MANY_PODS, VOLUME_LIMIT, NodeReason, node_reason
from phalanx.explain.parts_of_labels import (
    cordoned_parts,
    crowded_parts,
    label_parts,
    node_group_parts,
    taint_parts,
    unready_parts,
)
from phalanx.explain.parts_of_pods import (
    affinity_parts,
    anti_affinity_parts,
    existing_parts,
    port_parts,
    skew_parts,
    spread_label_parts,
)
from phalanx.explain.parts_of_volumes import (
    claim_user_parts,
    device_parts,
    held_device_parts,
    limit_parts,
    reach_parts,
    unbound_parts,
    zone_parts,
)
from phalanx.explain.reason_text import as_counted, counted
from phalanx.model.resources import PODS, VOLUME_SLOTS
from phalanx.placement import Mask
from phalanx.session.decision import Aftermath, Outcome
from phalanx.state.gang_state import TaskState
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import FitError, SearchScope, lacked_resource

MOST_NAMED = 2
"""Of so many causes a sentence names the thing; of the others it gives only the number."""

_PARTS: Mapping[str, Callable[[Search, Mask], Iterator[Part]]] = {
    "node(s) had untolerated taint(s)": taint_parts,
    "node(s) didn't match Pod's node affinity/selector": label_parts,
    "node(s) were unschedulable": cordoned_parts,
    "node(s) were not ready": unready_parts,
    "node(s) pod number exceeded": crowded_parts,
    "node(s) are in a node group and the queue names none": node_group_parts,
    "node(s) are in a node group that the queue may not use": node_group_parts,
    "node(s) didn't have free ports for the requested pod ports": port_parts,
    "node(s) didn't match pod affinity rules": affinity_parts,
    "node(s) didn't match pod anti-affinity rules": anti_affinity_parts,
    "node(s) didn't satisfy existing pods anti-affinity rules": existing_parts,
    "node(s) didn't match pod topology spread constraints": skew_parts,
    "node(s) didn't match pod topology spread constraints (missing required label)": spread_label_parts,
    "node(s) didn't match PersistentVolume's node affinity": reach_parts,
    "node(s) had no available volume zone": zone_parts,
    "node(s) didn't find available persistent volumes to bind": unbound_parts,
    "node(s) did not have enough free storage": unbound_parts,
    "node(s) exceed max volume count": limit_parts,
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode": claim_user_parts,
    "cannot allocate all claims": device_parts,
    "resourceclaim not available on the node": held_device_parts,
}
"""By reason, who says what exactly stands against the task."""


def search_of(outcome: Outcome, task: TaskState, error: FitError, snapshot: Snapshot, tasks: int = 1) -> Search:
    """Return the search for a node that ended with this error."""
    aftermath = outcome.aftermath
    free = snapshot.nodes.allocatable - snapshot.used + snapshot.releasing if aftermath is None else aftermath.ledger.future
    return Search(task, error, snapshot, free, min(tasks, len(task.subgroup.tasks)) if _is_of_part(task, error) else tasks)


def _is_of_part(task: TaskState, error: FitError) -> bool:
    """Tell whether nodes were looked for in a domain that only the sub-group of the task has to be in."""
    topology = task.subgroup.topology
    return bool(error.scope.hypernode) and topology is not None and topology.is_hard and task.subgroup.policy is not None


def node_causes(search: Search, aftermath: Aftermath | None = None) -> list[Cause]:
    """Return why no node takes the task, what has to change first in front: nodes that would have room, then most nodes."""
    return _sorted(search) if aftermath is None else remembered(aftermath, _key(search), lambda: _sorted(search))


def _key(search: Search) -> Hashable:
    """Return what the causes depend on: gangs whose tasks meet no pods of their own share an answer."""
    error, shape = search.error, search.shape
    gang = search.task.gang
    owner = gang.gang.queue if shape.is_self_contained else gang.key
    masks = tuple((reason, np.packbits(mask).tobytes()) for reason, mask in error.refused.items())
    return shape, owner, error.scope, tuple(error.counts.items()), masks, search.tasks


def _sorted(search: Search) -> list[Cause]:
    return sorted(_causes(search), key=lambda cause: (not cause.has_room, cause.is_rest, -cause.nodes, as_counted(cause.text)))


def _causes(search: Search) -> Iterator[Cause]:
    for reason, count in _merged(search.error.counts).items():
        resource = lacked_resource(reason)
        if resource:
            found, text = lack(search, resource), f"{'lacks' if count == 1 else 'lack'} {resource}"
            detail = f" ({found.text()})" if found.text() else ""
            things = {**found.numbers, **search.first_names(search.error.refused.get(reason))}
            yield Cause(found.code, count, text + detail, text, f"lack {resource}", resource, things=things)
        else:
            yield from _filter_causes(search, node_reason(reason), count)


def _filter_causes(search: Search, known: NodeReason, count: int) -> Iterator[Cause]:
    """Yield a cause for each part of the nodes that gave a reason; nodes of which nothing more is known make one of their own."""
    nodes = _nodes_of(search, known)
    if nodes is None or len(nodes) != len(search.table):
        yield Cause(known.code, count, known.phrase(count), many=known.many)
        return
    find, left = _PARTS.get(known.reason), nodes.copy()
    for part in find(search, nodes) if find is not None else ():
        left &= ~part.nodes
        yield _cause_of(search, known, part)
    if left.any():
        yield _cause_of(search, known, Part(left, known.phrase(int(left.sum()))))


def _cause_of(search: Search, known: NodeReason, part: Part) -> Cause:
    number, has_room = int(part.nodes.sum()), bool((part.nodes & search.fits).any())
    short, names = known.phrase(number), search.first_names(part.nodes)
    return Cause(part.code or known.code, number, part.text, short, known.many, part.thing, has_room, part.is_rest, names)


def _nodes_of(search: Search, known: NodeReason) -> Mask | None:
    """Return the nodes that gave a reason; None when unknown."""
    refused = search.error.refused
    rows = [mask for reason, mask in refused.items() if reason == known.reason or _of_row(lacked_resource(reason)) == known.reason]
    return np.logical_or.reduce(rows) if rows else None


def _of_row(resource: str) -> str:
    """Return the reason of a filter that reads like the lack of a resource; empty for most resources."""
    if resource.startswith(VOLUME_SLOTS):
        return _REASONS_OF_ROWS[VOLUME_LIMIT]
    return _REASONS_OF_ROWS[TOO_MANY_PODS] if resource == PODS else ""


def _merged(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the reasons that read alike: pods and slots for volumes are resources too, and slots are counted per driver."""
    found: dict[str, int] = {}
    for reason, count in counts.items():
        merged = _of_row(lacked_resource(reason)) or reason
        found[merged] = found.get(merged, 0) + count
    return found


_REASONS_OF_ROWS = {VOLUME_LIMIT: "node(s) exceed max volume count", TOO_MANY_PODS: "node(s) pod number exceeded"}


def node_text(search: Search, aftermath: Aftermath | None = None) -> str:
    """Say what is wrong with how many nodes: ``6 nodes: 4 lack nvidia.com/gpu (0 of 32 are free), 2 are cordoned (n1, n2)``."""
    error = search.error
    if not error.nodes:
        return f"{error.scope.prefix}there are no nodes"
    causes = node_causes(search, aftermath)
    parts = [cause.sentence for cause in causes[:MOST_NAMED]]
    parts += _short_texts(causes[MOST_NAMED:])
    return f"{place_text(error.scope)}{counted(error.nodes, 'node')}: {', '.join(parts)}"


def _short_texts(causes: Sequence[Cause]) -> Iterator[str]:
    """Yield what is wrong with the other nodes, once for all causes that read alike."""
    counts = Counter[str]()
    for cause in causes:
        counts[cause.many] += cause.nodes
    first = {cause.many: cause for cause in reversed(causes)}
    for many in dict.fromkeys(cause.many for cause in causes):
        yield f"{counts[many]} {(first[many].short or first[many].text) if counts[many] == 1 else many}"


def place_text(scope: SearchScope) -> str:
    """Say where nodes were looked for, if not everywhere."""
    return f"in HyperNode {scope.hypernode}: " if scope.hypernode else scope.prefix
