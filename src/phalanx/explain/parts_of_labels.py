"""Taints, labels and conditions of nodes: which of them keep a task away."""

from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches

import numpy as np

from phalanx.explain.cause import Part, Search, verb
from phalanx.explain.node_reasons import AFFINITY, CORDONED, NOT_READY, SELECTOR
from phalanx.explain.reason_text import meant
from phalanx.kubernetes.nodeselection import matching_nodes, requirement_mask
from phalanx.kubernetes.taints import OF_UNREADY_NODES, UNSCHEDULABLE, untolerated
from phalanx.model.selectors import NodeSelectorTerm, Requirement
from phalanx.model.shape import Taint
from phalanx.placement import Mask

MOST_GROUPS, MOST_VALUES, MOST_TERMS = 3, 2, 3
MOST_SEARCHED = 1000
"""So many nodes are searched for a label key that was perhaps meant."""
NODE_GROUP = "volcano.sh/nodegroup-name"


def taint_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Divide nodes by the taints that the task does not tolerate, the largest group first."""
    sets, codes = search.table.taint_sets()
    groups: dict[tuple[Taint, ...], list[int]] = {}
    for code in np.unique(codes[nodes]).tolist():
        groups.setdefault(untolerated(search.shape, sets[code]), []).append(code)
    sizes = Counter({taints: int(np.isin(codes[nodes], found).sum()) for taints, found in groups.items()})
    rest = np.array(nodes)
    for taints, _ in sizes.most_common(MOST_GROUPS):
        mask = nodes & np.isin(codes, groups[taints])
        rest &= ~mask
        yield _taint_part(search, mask, taints)
    if rest.any():
        yield Part(rest, f"{verb(int(rest.sum()), 'has', 'have')} other untolerated taints", is_rest=True)


def _taint_part(search: Search, nodes: Mask, taints: tuple[Taint, ...]) -> Part:
    count, keys = int(nodes.sum()), {taint.key for taint in taints}
    if keys.intersection(OF_UNREADY_NODES):
        return Part(nodes, f"{verb(count, 'is', 'are')} not ready{search.names(nodes)}", code=NOT_READY)
    if keys == {UNSCHEDULABLE.key}:
        return Part(nodes, f"{verb(count, 'is', 'are')} cordoned{search.names(nodes)}", code=CORDONED)
    thing = " and ".join(map(taint_text, taints))
    return Part(nodes, f"{verb(count, 'has', 'have')} the untolerated taint{'s' if len(taints) > 1 else ''} {thing}", thing)


def taint_text(taint: Taint) -> str:
    """Write a taint as kubectl does: ``key=value:NoSchedule``."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def cordoned_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name cordoned nodes if they are few."""
    yield Part(nodes, f"{verb(int(nodes.sum()), 'is', 'are')} cordoned{search.names(nodes)}")


def unready_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name nodes that are not ready if they are few."""
    yield Part(nodes, f"{verb(int(nodes.sum()), 'is', 'are')} not ready{search.names(nodes)}")


def crowded_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Say how many pods nodes may run, where all may run as many."""
    most = np.unique(search.table.max_pods[nodes])
    if len(most) == 1:
        yield Part(
            nodes, f"{verb(int(nodes.sum()), 'runs as many pods as it may', 'run as many pods as they may')} ({int(most[0])})"
        )


def node_group_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Name the node groups of nodes, which the queue may not use."""
    column, queue = search.table.label(NODE_GROUP), search.task.gang.gang.queue
    groups = sorted(column.values[code] for code in np.unique(column.codes[nodes & column.present]).tolist())
    names = [*groups[:MOST_GROUPS], *(["others"] if len(groups) > MOST_GROUPS else [])]
    where = f"node group{'s' if len(names) > 1 else ''} {' and '.join(filter(None, (', '.join(names[:-1]), *names[-1:])))}"
    yield Part(nodes, f"{verb(int(nodes.sum()), 'is', 'are')} in {where}, which queue {queue!r} may not use", ", ".join(names))


def label_parts(search: Search, nodes: Mask) -> Iterator[Part]:
    """Divide nodes by the first label of the node selector that they do not have, then by the node affinity."""
    left = np.array(nodes)
    for key, value in sorted(search.shape.node_selector.items()):
        asked = Requirement(key, "In", (value,))
        wrong = left & ~requirement_mask(asked, search.table)
        if wrong.any():
            left &= ~wrong
            yield _label_part(search, wrong, SELECTOR, "nodeSelector", [asked])
    if left.any() and search.shape.node_terms is not None:
        yield _affinity_part(search, left, search.shape.node_terms)


def _affinity_part(search: Search, nodes: Mask, terms: tuple[NodeSelectorTerm, ...]) -> Part:
    if len(terms) == 1 and terms[0].is_valid and not terms[0].fields:
        missed = [part for part in terms[0].expressions if (nodes & ~requirement_mask(part, search.table)).any()]
        return _label_part(search, nodes, AFFINITY, "node affinity", missed or list(terms[0].expressions))
    text = terms_text(terms)
    does = verb(int(nodes.sum()), "does", "do")
    return Part(nodes, f"{does} not match the node affinity {text}", text, AFFINITY)


def _label_part(search: Search, nodes: Mask, code: str, field: str, asked: list[Requirement]) -> Part:
    thing = " and ".join(map(requirement_text, asked))
    does = verb(int(nodes.sum()), "does", "do")
    return Part(nodes, f"{does} not match the {field} {thing}{_values(search, nodes, asked[0])}", thing, code)


def _values(search: Search, nodes: Mask, asked: Requirement) -> str:
    """Say in brackets which values nodes have instead, or which one was perhaps meant."""
    column, key = search.table.label(asked.key), asked.key
    if not column.values:
        other = _near_key(search, key)
        return f" (no node has the label {key}{f', did you mean {other}?' if other else ''})"
    near = "" if asked.operator != "In" else meant(asked.values[0], column.values, cutoff=0.7)
    hint = f"; did you mean {near}?" if near and near not in asked.values else ""
    counts = Counter(column.codes[nodes & ~requirement_mask(asked, search.table)].tolist())
    parts = [_value_text(key, column.values[code] if code >= 0 else None, count) for code, count in counts.most_common(MOST_VALUES)]
    rest = sum(counts.values()) - sum(count for _, count in counts.most_common(MOST_VALUES))
    return f" ({', '.join([*parts, *([f'{rest} other values'] if rest else [])])}{hint})"


def _value_text(key: str, value: str | None, count: int) -> str:
    has = verb(count, "has", "have")
    return f"{count} {has} no label {key}" if value is None else f"{count} {has} {key}={value}"


def _near_key(search: Search, key: str) -> str:
    keys = {name for node in search.table.nodes[:MOST_SEARCHED] for name in node.labels}
    return next(iter(get_close_matches(key, sorted(keys), n=1, cutoff=0.8)), "")


def terms_text(terms: tuple[NodeSelectorTerm, ...]) -> str:
    """Write the terms of a node selector, of which one has to match: ``zone=a and disk in [ssd, nvme] or zone=b``."""
    texts = [
        " and ".join(map(requirement_text, (*term.expressions, *term.fields))) or "an empty term" for term in terms[:MOST_TERMS]
    ]
    rest = len(terms) - MOST_TERMS
    return " or ".join([*texts, *([f"{rest} other terms"] if rest > 0 else [])]) or "without terms"


def requirement_text(part: Requirement) -> str:
    """Write one condition on a label as kubectl does."""
    values = f"[{', '.join(part.values)}]"
    match part.operator:
        case "In":
            return f"{part.key}={part.values[0]}" if len(part.values) == 1 else f"{part.key} in {values}"
        case "NotIn":
            return f"{part.key}!={part.values[0]}" if len(part.values) == 1 else f"{part.key} not in {values}"
        case "Exists":
            return part.key
        case "DoesNotExist":
            return f"!{part.key}"
    return f"{part.key} {part.operator} {' '.join(part.values)}"


def reached(terms: tuple[NodeSelectorTerm, ...], search: Search) -> Mask:
    """Mark the nodes that some term matches."""
    return matching_nodes(terms, search.table)
