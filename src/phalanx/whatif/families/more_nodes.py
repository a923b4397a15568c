"""Nodes: some that are closed, tainted or lack a label, and more of them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from phalanx.explain.reason_text import counted
from phalanx.kubernetes.taints import OF_UNREADY_NODES, UNSCHEDULABLE
from phalanx.model.listing import listed
from phalanx.model.node import Node
from phalanx.whatif.changes.nodes import NodeChange
from phalanx.whatif.families.node_offers import asked_labels
from phalanx.whatif.families.own_pods import OF_NODE_STATE
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate, Changes

MOST_NODES = 64
"""Nodes of which each has to be changed by hand."""
CLOSED = (UNSCHEDULABLE.key, *OF_UNREADY_NODES)
"""Taints that go when a node is uncordoned or ready."""
MOST_KINDS = 4
MOST_NAMED = 3


def closed_nodes(question: Question) -> Iterator[Candidate]:
    """As many nodes as are needed of those that are cordoned, or not ready."""
    if not question.shapes:
        return
    nodes = question.snapshot.nodes.nodes
    cordoned = _roomy(question, [node for node in nodes if node.is_unschedulable])
    yield from _changed(cordoned, lambda node: NodeChange(node, value="uncordoned"), "if {} were uncordoned")
    unready = _roomy(question, [node for node in nodes if not node.is_ready and not node.is_unschedulable])
    yield from _changed(unready, lambda node: NodeChange(node, value="ready"), "if {} were ready")


def marked_nodes(question: Question) -> Iterator[Candidate]:
    """As many nodes as are needed without a taint, or with a label that is asked for."""
    if not question.shapes:
        return
    nodes = question.snapshot.nodes.nodes
    for key in dict.fromkeys(taint.key for taint in question.repelling() if taint.key not in CLOSED):
        tainted = _roomy(question, [node for node in nodes if any(taint.key == key for taint in node.taints)])
        yield from _changed(tainted, partial(_without_taint, key), f"without the taint {key} on {{}}")
    for key, value in asked_labels(question):
        others = _roomy(question, [node for node in nodes if node.labels.get(key) != value])
        yield from _changed(others, partial(_with_label, key, value), f"with {key}={value} on {{}}")


def _without_taint(key: str, node: str) -> NodeChange:
    return NodeChange(node, "taints", key, "none")


def _with_label(key: str, value: str, node: str) -> NodeChange:
    return NodeChange(node, "labels", key, value)


def _roomy(question: Question, nodes: Sequence[Node]) -> list[str]:
    """Return the first of some nodes with room for a member, those with most room first."""
    places, numbers = question.places(question.shapes[0], question.idle), question.snapshot.nodes.number_by_name
    room = {node.name: int(places[numbers[node.name]]) for node in nodes}
    return sorted((name for name, count in room.items() if count), key=lambda name: (-room[name], name))[:MOST_NODES]


def _changed(names: Sequence[str], change: Callable[[str], NodeChange], sentence: str) -> Iterator[Candidate]:
    if names:
        yield Candidate(lambda n: sentence.format(_nodes_text(names[:n])), lambda n: tuple(map(change, names[:n])), most=len(names))


def _nodes_text(names: Sequence[str]) -> str:
    most = MOST_NAMED if len(names) > MOST_NAMED + 1 else len(names)
    return f"node{'s' if len(names) > 1 else ''} {listed(names, most)}"


def more_nodes(question: Question) -> Iterator[Candidate]:
    """More nodes like one that is there: of the smallest kind that helps."""
    if not question.shapes:
        return
    for node, places in _kinds(question)[:MOST_KINDS]:
        guess = -(-question.missing // places)
        yield _more_like(node, guess, max(len(question.gang.tasks), guess))


def _more_like(node: str, guess: int, most: int) -> Candidate:
    def changes(count: int) -> Changes:
        return (NodeChange(f"+{count}", value=node),)

    return Candidate(lambda n: f"with {counted(n, 'more node')} like {node}", changes, most=most, guess=guess)


def _kinds(question: Question) -> list[tuple[str, int]]:
    """Return a node of each kind that would have room if it were empty, the smallest first, and for how many members."""
    shape, table = question.shapes[0], question.snapshot.nodes
    places = question.places(shape, table.allocatable)
    rows = [question.snapshot.space.row_by_name[name] for name in shape.request if name in question.snapshot.space.row_by_name]
    kinds: dict[tuple[object, ...], tuple[tuple[int, ...], str, int]] = {}
    for number in places.nonzero()[0].tolist():
        node = table.nodes[number]
        size = tuple(int(table.allocatable[row, number]) for row in reversed(rows))
        labels = tuple(sorted((key, node.labels.get(key)) for key in shape.node_selector))
        taints = tuple(taint for taint in node.taints if not taint.key.startswith(OF_NODE_STATE))
        kinds.setdefault((size, labels, taints), (size, node.name, int(places[number])))
    usable = question.taken_by(shape)
    ordered = sorted(kinds.values(), key=lambda kind: (not usable[table.number_by_name[kind[1]]], kind))
    return [(name, count) for _, name, count in ordered]
