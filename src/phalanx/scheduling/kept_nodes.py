"""Nodes that gangs are nominated to: kept from scale-down by autoscalers until the gangs are bound.

A node whose pods leave for a gang looks unneeded just before the gang comes, and so does one on which room is kept for a gang
with a reserved start. Such a node bears the annotations by which Cluster Autoscaler and Karpenter leave it alone. It says itself
which of them are ours, and for whom they are there: whoever leads next removes them, and nobody removes what others have set.
"""

from collections.abc import Iterable, Mapping, Sequence

from phalanx.model.kinds import NODE
from phalanx.model.task import GangKey
from phalanx.model.task_status import Status
from phalanx.scheduling.annotator import Annotator
from phalanx.scheduling.cache import SchedulerCache
from phalanx.scheduling.object_notes import Texts
from phalanx.scheduling.port import ClusterPort
from phalanx.session.decision import Outcome
from phalanx.session.shard_decisions import ShardDecisions
from phalanx.state.snapshot import Snapshot

KEPT_FOR, KEPT_BY = "phalanx.dev/kept-for", "phalanx.dev/kept-by"
"""The gangs that a node is kept for, and which annotations of it are ours."""
OF_AUTOSCALERS = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")
KEPT = "true"
MOST_NAMED = 3
SEPARATOR = ", "

Wanted = dict[str, set[GangKey]]
"""Gangs by the node that is to be kept for them."""


class KeptNodes:
    """Writes on nodes that autoscalers leave them, and removes that again."""

    def __init__(self, port: ClusterPort, cache: SchedulerCache, annotator: Annotator) -> None:
        """Know of no node."""
        self._view, self._cache, self._annotator = port.view, cache, annotator
        self._kept: set[str] | None = None
        """Nodes that may bear our annotations; None until all have been looked at."""

    def forget(self) -> None:
        """Go by what nodes say: another process may have written on them."""
        self._kept = None

    def update(self, parts: Sequence[ShardDecisions]) -> None:
        """Keep the nodes that gangs are nominated to after a session, and no others."""
        kept = self._known()
        wanted = _wanted(parts, kept)
        seen = {outcome.state.gang.key for part in parts for outcome in part.decisions.outcomes}
        self._kept = {name for name in sorted(kept | wanted.keys()) if self._is_kept(name, wanted.get(name, set()), parts, seen)}

    def _known(self) -> set[str]:
        if self._kept is None:
            nodes = (node["metadata"] for node in self._view.within(NODE))
            self._kept = {meta["name"] for meta in nodes if KEPT_FOR in (meta.get("annotations") or {})}
        return self._kept

    def _is_kept(self, name: str, gangs: set[GangKey], parts: Sequence[ShardDecisions], seen: set[GangKey]) -> bool:
        """Bring a node up to date; tell whether it bears something of ours now."""
        node = self._view.find(NODE, "", name)
        if node is None:
            return False
        annotations: Mapping[str, str] = self._cache.as_noted(node)["metadata"].get("annotations") or {}
        unseen = _named(annotations).difference(seen)
        still = {gang for gang in unseen if any(_is_nominated(gang, name, part.snapshot) for part in parts)}
        texts = _changes(annotations, gangs | still)
        if texts:
            self._annotator.write(node, texts)
        return texts.get(KEPT_FOR, annotations.get(KEPT_FOR)) is not None


def _wanted(parts: Iterable[ShardDecisions], kept: set[str]) -> Wanted:
    found: Wanted = {}
    for part in parts:
        names = part.snapshot.nodes.names
        for outcome in part.decisions.outcomes:
            for name in _nodes_of(outcome, names, kept):
                found.setdefault(name, set()).add(outcome.state.gang.key)
        for each in part.decisions.reservations:
            for name in each.nodes:
                found.setdefault(name, set()).add(each.gang)
    return found


def _nodes_of(outcome: Outcome, names: Sequence[str], kept: set[str]) -> set[str]:
    """Return the nodes that a gang waits for, and those that are kept for it and on which it is being bound."""
    gang, found = outcome.state, set[str]()
    if not any(gang.tally.counts[status] for status in (Status.PIPELINED, Status.ALLOCATED, Status.BINDING)):
        return found
    for task in gang.tasks:
        if task.task.status is Status.PENDING and task.node >= 0 and _needs(task.status, names[task.node] in kept):
            found.add(names[task.node])
    return found


def _needs(status: Status, is_kept: bool) -> bool:
    return status in (Status.PIPELINED, Status.ALLOCATED) or (is_kept and status is Status.BINDING)


def _is_nominated(gang: GangKey, node: str, snapshot: Snapshot) -> bool:
    members = snapshot.members_of(gang).values()
    return any(task.status is Status.PENDING and task.nominated_node == node for task in members)


def _named(annotations: Mapping[str, str]) -> set[GangKey]:
    return {GangKey(name) for name in annotations.get(KEPT_FOR, "").split(SEPARATOR) if name}


def _changes(annotations: Mapping[str, str], gangs: set[GangKey]) -> Texts:
    """Return the annotations of a node that change; it says for whom it is kept only anew when none of those is left."""
    if not gangs:
        return _removed(annotations) if KEPT_FOR in annotations else {}
    names = SEPARATOR.join(sorted(gangs)[:MOST_NAMED])
    if KEPT_FOR in annotations:
        return {} if _named(annotations) & gangs else {KEPT_FOR: names}
    own = [key for key in OF_AUTOSCALERS if key not in annotations]
    return {**dict.fromkeys(own, KEPT), KEPT_FOR: names, KEPT_BY: SEPARATOR.join(own)} if own else {}


def _removed(annotations: Mapping[str, str]) -> Texts:
    """Return what removes all that is ours; what somebody has changed since is not."""
    own = annotations.get(KEPT_BY, "").split(SEPARATOR)
    ours = (key for key in OF_AUTOSCALERS if key in own and annotations.get(key) == KEPT)
    return {**dict.fromkeys(ours), KEPT_FOR: None, KEPT_BY: None}
