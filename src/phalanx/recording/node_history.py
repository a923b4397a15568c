"""What happens to nodes in a recording, in the words of scenarios: join, leave, cordon, uncordon, drain, die and return."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from phalanx.model.kinds import Document

DRAIN_SECONDS = 60.0
"""Pods that leave a node so soon after it was cordoned are drained."""
OF_CONTROLLERS = "node.kubernetes.io/"
"""Taints that say the same as the conditions of a node, or that it is cordoned."""


@dataclass(slots=True)
class NodeMoment:
    """Something that happened to a node."""

    at: float
    node: str
    event: str


@dataclass(frozen=True, slots=True)
class _Look:
    is_ready: bool
    is_cordoned: bool
    rest: tuple[Any, ...]  # Any: as JSON has it
    """What no event of a scenario changes."""


@dataclass(slots=True)
class NodeHistory:
    """Follows the nodes of a recording."""

    documents: dict[str, Document] = field(default_factory=dict)
    """Every node as it was first."""
    events: list[NodeMoment] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    """Nodes whose labels, taints or resources changed."""
    _looks: dict[str, _Look | None] = field(default_factory=dict)

    def put(self, node: Document, now: float, *, is_beginning: bool) -> None:
        """A node came or changed."""
        name, look = node["metadata"]["name"], _look(node)
        before = self._looks.get(name)
        self._looks[name] = look
        self.documents.setdefault(name, node)
        if before is None:
            self._note(now, name, [] if is_beginning else ["join"])
        else:
            self._note(now, name, _events(before, look))
            if before.rest != look.rest:
                self.changed.add(name)

    def remove(self, name: str, now: float) -> None:
        """A node went."""
        if self._looks.get(name) is not None:
            self._looks[name] = None
            self._note(now, name, ["leave"])

    def keep(self, names: Iterable[str], now: float) -> None:
        """After a gap: the nodes that are not among these have gone meanwhile."""
        for name in sorted({name for name, look in self._looks.items() if look is not None} - set(names)):
            self.remove(name, now)

    def is_out(self, name: str) -> bool:
        """Tell whether a node has gone, is not ready or is cordoned: whoever leaves it then leaves because of it."""
        look = self._looks.get(name)
        return look is None or look.is_cordoned or not look.is_ready

    def lost_pod(self, node: str, now: float) -> None:
        """A pod leaves a node, and no scheduler has asked for it: whoever cordons a node just before drains it."""
        last = next((event for event in reversed(self.events) if event.node == node), None)
        if last is not None and last.event == "cordon" and now - last.at <= DRAIN_SECONDS:
            last.event = "drain"

    def _note(self, now: float, name: str, events: Iterable[str]) -> None:
        self.events += [NodeMoment(now, name, event) for event in events]


def _events(before: _Look, after: _Look) -> Iterable[str]:
    if before.is_ready and not after.is_ready:
        yield "die"
    if after.is_ready and not before.is_ready:
        yield "return"
    if after.is_cordoned and (not before.is_cordoned or (after.is_ready and not before.is_ready)):
        yield "cordon"  # one that returns is uncordoned in a simulation
    elif before.is_cordoned and not after.is_cordoned:
        yield "uncordon"


def _look(node: Document) -> _Look:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    ready = next((item.get("status") for item in status.get("conditions") or () if item.get("type") == "Ready"), "True")
    taints = [taint for taint in spec.get("taints") or () if not str(taint.get("key", "")).startswith(OF_CONTROLLERS)]
    rest = (node["metadata"].get("labels"), taints, status.get("allocatable"))
    return _Look(ready == "True", bool(spec.get("unschedulable")), rest)
