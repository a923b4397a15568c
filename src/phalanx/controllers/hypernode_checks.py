"""Says on HyperNodes what is wrong with them: an event of type Warning and the condition `Misconfigured`, once for each cause.

Nothing is mended here, and sessions go on with what is right (`state/hypernodes.py`). A change of a HyperNode concerns all of them.
A change of a node does only while the node is new or when it is gone: nodes report all the time, and only names and labels matter.
"""

from collections.abc import Iterable, Iterator, Sequence

from phalanx.controllers.conditions import condition, listed_conditions, message_of, status_patch
from phalanx.controllers.controller import Key, RecordEvent, Result, View, Write
from phalanx.controllers.objects import labels_of, meta_of, read
from phalanx.dialects import volcano
from phalanx.dialects.kinds.volcano import VolcanoHyperNode
from phalanx.errors import SnapshotError
from phalanx.model.kinds import HYPERNODE, NODE, Document, Kind
from phalanx.model.moment import moment_of
from phalanx.model.node import HyperNode, Node
from phalanx.model.resources import ResourceSpace
from phalanx.state.hypernode_problems import hypernode_problems
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_table import NodeTable

EVERYTHING = Key("", "")
MISCONFIGURED = "Misconfigured"
YOUNG_SECONDS = 60.0
"""A node that was created so recently may be a member that was missing."""


class HyperNodeChecks:
    """Reports members that do not exist, circles, members of two HyperNodes and tiers that do not rise."""

    name = "hypernode-checks"
    watches: Sequence[Kind] = (HYPERNODE, NODE)
    brings_back: Sequence[Kind] = ()
    patience_seconds = 2.0

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Look at all HyperNodes, if there are any and the change matters to them."""
        matters = kind is HYPERNODE or (_has_come_or_gone(view, document) and view.within(HYPERNODE))
        return [EVERYTHING] if matters else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Write the problems that are new, and remove those that are solved."""
        documents = view.within(HYPERNODE)
        problems = _problems(documents, view.within(NODE)) if documents else {}
        return Result([write for item in documents for write in _writes(item, problems.get(_name(item), ""), view.now)])


def _name(document: Document) -> str:
    return str(meta_of(document)["name"])


def _has_come_or_gone(view: View, node: Document) -> bool:
    born = moment_of(str(meta_of(node).get("creationTimestamp") or "")) or 0.0
    return view.now - born <= YOUNG_SECONDS or view.find(NODE, "", _name(node)) is None


def _problems(documents: Sequence[Document], nodes: Iterable[Document]) -> dict[str, str]:
    """Return what is wrong by the name of the HyperNode; those that cannot be read are left out for the others."""
    found, texts = list[HyperNode](), dict[str, str]()
    for document in documents:
        try:
            found.append(volcano.hypernode(read(document, VolcanoHyperNode)))
        except SnapshotError as problem:
            texts[_name(document)] = str(problem).removeprefix(f"HyperNode {_name(document)}: ")
    table = NodeTable([Node(_name(node), labels=labels_of(node)) for node in nodes], ResourceSpace())
    return texts | hypernode_problems(HyperTree(found, table), table)


def _writes(hypernode: Document, text: str, now: float) -> Iterator[Write]:
    there, message = listed_conditions(hypernode), f"HyperNode {_name(hypernode)}: {text}" if text else ""
    if message_of(there, MISCONFIGURED) == message:
        return
    others = [item for item in there if item.get("type") != MISCONFIGURED]
    fresh = [condition(MISCONFIGURED, "True", "InvalidMembers", message, now)] if text else []
    yield status_patch(HYPERNODE, hypernode, {"conditions": [*others, *fresh]})
    if text:
        yield RecordEvent(hypernode, MISCONFIGURED, message, is_warning=True)
