"""Pods that stand against a task: host ports, affinity and anti-affinity, topology spread.

The pod that is named is one of those that were on nodes before the session. Where there is none, tasks of the same session are in
the way, and mostly those of the gang itself.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain

import numpy as np

from phalanx.explain.cause import Part, Search, verb
from phalanx.explain.parts_of_labels import requirement_text
from phalanx.kubernetes.podaffinity import is_about
from phalanx.model.selectors import Labels, LabelSelector
from phalanx.model.shape import AffinityTerm, HostPort, Shape, SpreadConstraint
from phalanx.model.task import Task
from phalanx.placement import Mask

MOST_SEARCHED = 50
"""So many nodes are searched for a pod to name."""


def port_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the ports, and a pod that has one of them."""
    wanted = search.shape.host_ports
    holder = _find(search, nodes, lambda task: any(port.conflicts(mine) for port in task.shape.host_ports for mine in wanted))
    ports = " or ".join(map(_port_text, wanted))
    yield Part(nodes, f"{verb(int(nodes.sum()), 'has', 'have')} host port {ports} taken ({_by(holder)})", ports)


def _port_text(port: HostPort) -> str:
    return f"{port.port}" if port.protocol == "TCP" else f"{port.port}/{port.protocol}"


def _by(holder: Task | None) -> str:
    return "by tasks placed in this session; one fits per node" if holder is None else f"by pod {holder.key}"


def _find(search: Search, nodes: Mask, test: Callable[[Task], bool]) -> Task | None:
    """Return a pod on one of these nodes, the first one by name on the first node that has any."""
    names = [search.table.names[node] for node in np.flatnonzero(nodes)[:MOST_SEARCHED]]
    on_nodes = (filter(test, search.snapshot.on_node.get(name, {}).values()) for name in names)
    found = (min(tasks, key=lambda task: task.key, default=None) for tasks in on_nodes)
    return next((task for task in found if task is not None), None)


def anti_affinity_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the term, and a pod that it excludes; without one it is the gang's own tasks that exclude each other."""
    terms = search.shape.anti_affinity.required
    found = ((term, _find(search, _domains(search, term, nodes), partial(_is_excluded, search, term))) for term in terms)
    own = ((term, None) for term in terms if is_about(search.shape, term, search.shape, _namespaces(search), is_incoming=True))
    term, other = next(chain((pair for pair in found if pair[1] is not None), own), (None, None))
    if term is not None:
        near = "tasks of its own gang; one fits per domain" if other is None else f"pod {other.key}"
        text = f"{verb(int(nodes.sum()), 'is', 'are')} excluded by its anti-affinity to {term_text(term)} ({near})"
        yield Part(nodes, text, term_text(term))


def _is_excluded(search: Search, term: AffinityTerm, task: Task) -> bool:
    return is_about(search.shape, term, task.shape, _namespaces(search), is_incoming=True)


def _namespaces(search: Search) -> Mapping[str, Labels]:
    return search.snapshot.surroundings.namespace_labels


def _domains(search: Search, term: AffinityTerm, nodes: Mask) -> Mask:
    """Mark all nodes in the domains of these nodes."""
    column = search.table.label(term.topology_key)
    return np.asarray(np.isin(column.codes, np.unique(column.codes[nodes])) & column.present, dtype=np.bool_)


def affinity_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the pods that the task wants to be near, or the topology key that nodes lack."""
    left = np.array(nodes)
    for term in search.shape.affinity.required:
        bare = left & ~search.table.label(term.topology_key).present
        if bare.any():
            left &= ~bare
            has = verb(int(bare.sum()), "has", "have")
            yield Part(bare, f"{has} no label {term.topology_key}, which its pod affinity needs", term.topology_key)
    if left.any():
        thing = " and ".join(map(term_text, search.shape.affinity.required))
        yield Part(left, f"{verb(int(left.sum()), 'is', 'are')} not near pods with {thing}, as its pod affinity wants", thing)


def existing_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name a pod whose anti-affinity excludes the task."""
    labels, numbers = _namespaces(search), search.table.number_by_name
    for task in sorted(search.snapshot.affine.values(), key=lambda task: task.key):
        for term in task.shape.anti_affinity.required:
            number = numbers.get(task.node)
            if number is None or not is_about(task.shape, term, search.shape, labels, is_incoming=False):
                continue
            column = search.table.label(term.topology_key)
            if (nodes & (column.codes == column.codes[number]) & column.present).any():
                text = f"near pods whose anti-affinity excludes it (pod {task.key} avoids {term_text(term)})"
                yield Part(nodes, f"{verb(int(nodes.sum()), 'is', 'are')} {text}", term_text(term))
                return


def skew_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the constraints, and how many of its pods the emptiest and the fullest domain have."""
    hard = [constraint for constraint in search.shape.spread if constraint.hard]
    thing = " and ".join(f"maxSkew {constraint.max_skew} over {constraint.topology_key}" for constraint in hard)
    yield Part(nodes, f"would break {thing}{_extremes(search, hard[0]) if len(hard) == 1 else ''}", thing)


def _extremes(search: Search, constraint: SpreadConstraint) -> str:
    """Count the pods of the fullest and of the emptiest domain before the session; empty when there are none to count."""
    column, selector = search.table.label(constraint.topology_key), constraint.selector
    if selector is None or selector.is_empty or not column.values:
        return ""
    counts = np.zeros(len(column.values), dtype=np.int64)
    for node, tasks in search.snapshot.on_node.items():
        number = search.table.number_by_name.get(node)
        code = -1 if number is None else int(column.codes[number])
        if code >= 0:
            counts[code] += sum(_counts(search.shape, selector, task) for task in tasks.values())
    if not counts.any():
        return ""
    most, least = int(counts.argmax()), int(counts.argmin())
    return f" ({column.values[most]} has {counts[most]} of these pods, {column.values[least]} has {counts[least]})"


def _counts(shape: Shape, selector: LabelSelector, task: Task) -> bool:
    return task.namespace == shape.namespace and selector.matches(task.shape.labels)


def spread_label_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the topology key that nodes lack."""
    left = np.array(nodes)
    for constraint in (constraint for constraint in search.shape.spread if constraint.hard):
        bare = left & ~search.table.label(constraint.topology_key).present
        if bare.any():
            left &= ~bare
            has = verb(int(bare.sum()), "has", "have")
            yield Part(bare, f"{has} no label {constraint.topology_key}, which its spread needs", constraint.topology_key)


def term_text(term: AffinityTerm) -> str:
    """Write which pods a term is about, and what counts as near: ``app=web per kubernetes.io/hostname``."""
    pods = " and ".join(map(requirement_text, term.selector.requirements)) if term.selector is not None else "no pod"
    return f"{pods or 'any pod'} per {term.topology_key}"
