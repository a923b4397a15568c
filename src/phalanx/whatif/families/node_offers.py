"""What nodes would have to offer: labels that pods, their volumes and their queue ask for, and resources that no node has."""

from collections.abc import Iterator

from phalanx.model.resources import quantity_text, readable
from phalanx.model.selectors import NodeSelectorTerm
from phalanx.plugins.nodegroup import LABEL as NODE_GROUP
from phalanx.whatif.changes.nodes import NodeChange
from phalanx.whatif.question import Question
from phalanx.whatif.remedy import Candidate, Changes

MOST_NODES = 16
"""Nodes of which each has to be given something by hand."""
Label = tuple[str, str]


def asked_labels(question: Question) -> list[Label]:
    """Return the labels that nodes need for the members that wait, each once."""
    selected = [pair for shape in question.shapes for pair in shape.node_selector.items()]
    return list(dict.fromkeys([*selected, *_of_volumes(question), *_of_queue(question)]))


def _of_volumes(question: Question) -> Iterator[Label]:
    """Yield the label with which a node reaches a bound volume, where one label is enough."""
    world = question.snapshot.surroundings
    for claim in (f"{shape.namespace}/{name}" for shape in question.shapes for name in shape.volume_claims):
        volume = world.volumes.get(world.volume_claims[claim].volume) if claim in world.volume_claims else None
        yield from _single_labels(volume.node_terms or ()) if volume is not None else ()


def _single_labels(terms: tuple[NodeSelectorTerm, ...]) -> Iterator[Label]:
    for term in terms:
        if len(term.expressions) == 1 and not term.fields and term.expressions[0].operator == "In":
            yield from ((term.expressions[0].key, value) for value in term.expressions[0].values)


def _of_queue(question: Question) -> Iterator[Label]:
    """Yield the groups of nodes that the queue requires."""
    queue = question.snapshot.queues.get(question.gang.gang.queue)
    groups = queue.node_groups if queue is not None else None
    yield from ((NODE_GROUP, name) for name in (groups.required if groups is not None else ()))


def offered_devices(question: Question) -> Iterator[Candidate]:
    """As many nodes as are needed with a resource that no node offers: a device plugin may be missing."""
    if len(question.shapes) != 1:
        return
    space, request = question.snapshot.space.row_by_name, question.shapes[0].request
    allocatable = question.snapshot.nodes.allocatable
    for resource in question.lacking:
        asked = request.get(resource, 0)
        if asked and (resource not in space or not allocatable[space[resource]].any()):
            yield _on_nodes(resource, asked, question.snapshot.nodes.names[:MOST_NODES])


def _on_nodes(resource: str, amount: int, names: list[str]) -> Candidate:
    def changes(count: int) -> Changes:
        return tuple(NodeChange(name, "allocatable", resource, quantity_text(resource, amount)) for name in names[:count])

    def sentence(count: int) -> str:
        return f"with {readable(resource, amount)} {resource} on node{'s' if count > 1 else ''} {', '.join(names[:count])}"

    return Candidate(sentence, changes, most=len(names))
