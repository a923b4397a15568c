"""Looks at every change of the store while a storm lasts, and at every decision of the replicas."""

from collections.abc import Callable
from dataclasses import dataclass, field

from phalanx.model.kinds import NODE, POD, Document
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.session.decision import Decisions, Eviction
from phalanx.store.memory import MemoryStore
from phalanx.testing.storm.invariants import Violation, excess, holds_room

RELIEF_SECONDS = 20.0
"""After so long a node that holds too much because of what was on the wire is relieved."""
SETTLED_SECONDS = 30.0
"""A gang that has been whole for so long is healthy, whatever watches were late."""


@dataclass(slots=True)
class Judge:
    """What was seen."""

    store: MemoryStore
    clock: Callable[[], float]
    violations: list[Violation] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    excused_until: float = 0.0
    """Until then two may have led, or what was on the wire may land: a node may hold too much for a while."""
    troubled_at: float = 0.0
    """When something was last wrong with a process or its connection: who hears nothing relieves nobody."""
    _excess: dict[str, float] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    """The node of each pod that was bound, by uid."""
    _members: dict[str, dict[str, Document]] = field(default_factory=dict)
    evictions: dict[str, Eviction] = field(default_factory=dict)
    """Why replicas want pods to go, by uid."""
    calm_evictions: list[tuple[float, Eviction]] = field(default_factory=list)
    is_calm: bool = False

    def say(self, text: str) -> None:
        """Note something for the trace."""
        self.lines.append(f"{self.clock():8.2f} s  {text}")

    def accuse(self, invariant: str, text: str) -> None:
        """Note a violation, each once."""
        found = Violation(invariant, text)
        if found not in self.violations:
            self.violations.append(found)
            self.say(f"VIOLATION {found}")

    # --- the store -------------------------------------------------------------------------------------------------------

    def hear(self, event: WatchEvent) -> None:
        """Look at a change."""
        if event.kind is POD:
            self._hear_pod(event)
        elif event.kind is NODE:
            self._check(event.object["metadata"]["name"])

    def _hear_pod(self, event: WatchEvent) -> None:
        pod, uid = event.object, event.object["metadata"]["uid"]
        name, node = pod["metadata"]["name"], str(pod["spec"].get("nodeName") or "")
        if node and self._nodes.setdefault(uid, node) != node:
            self.accuse("bound twice", f"pod {name} was on {self._nodes[uid]} and is on {node}")
        before = event.before or {}
        was = str((before.get("spec") or {}).get("nodeName") or "") if before else ""
        for changed in {node, was} - {""}:
            members = self._members.setdefault(changed, {})
            if event.type != DELETED and changed == node and holds_room(pod):
                members[uid] = pod
            else:
                members.pop(uid, None)
        if _story(event) and _story(event) != (_story_of(before) if before else ""):
            self.say(f"pod {name} {_story(event)}")
        if node:
            self._check(node)

    def _check(self, name: str) -> None:
        node = self.store.find(NODE, "", name)
        found = [] if node is None else list(excess(node, self._members.get(name, {}).values()))
        now = self.clock()
        if not found:
            self._excess.pop(name, None)
        elif name not in self._excess:
            self._excess[name] = now
            self.say(f"node {name} holds {', '.join(found)}")
            if now > self.excused_until:
                pods = ", ".join(sorted(pod["metadata"]["name"] for pod in self._members[name].values()))
                self.accuse("over-commitment", f"node {name} holds {', '.join(found)}: {pods}")

    def look_anew(self) -> None:
        """Take the store as it is: it was set back, and nobody told what changed by that."""
        self._nodes, self._members, self._excess = {}, {}, {}
        for pod in self.store.items(POD):
            if node := str(pod["spec"].get("nodeName") or ""):
                self._nodes[pod["metadata"]["uid"]] = node
                if holds_room(pod):
                    self._members.setdefault(node, {})[pod["metadata"]["uid"]] = pod

    def tick(self) -> None:
        """Look at what has lasted too long."""
        for name, since in self._excess.items():
            if self.clock() - max(since, self.troubled_at, self.excused_until) > RELIEF_SECONDS:
                self.accuse("over-commitment", f"node {name} still holds too much after {RELIEF_SECONDS:g} s")

    # --- decisions -------------------------------------------------------------------------------------------------------

    def decided(self, who: str, decisions: Decisions) -> None:
        """Note what a session of a replica decided."""
        for key, eviction in decisions.evictions.items():
            self.say(f"{who} evicts {key}: {eviction.action} for {eviction.preemptor}: {eviction.message}")
            if self.is_calm:
                self.calm_evictions.append((self.clock(), eviction))
        if decisions.binds:
            self.say(f"{who} binds {', '.join(f'{key}>{node}' for key, node in decisions.binds.items())}")


def _story(event: WatchEvent) -> str:
    return "is gone" if event.type == DELETED else _story_of(event.object)


def _story_of(pod: Document) -> str:
    phase = (pod.get("status") or {}).get("phase", "Pending")
    place = f" on {pod['spec']['nodeName']}" if pod["spec"].get("nodeName") else ""
    leaves = ", leaving" if "deletionTimestamp" in pod["metadata"] else ""
    return f"is {phase}{place}{leaves} (uid {pod['metadata']['uid'][-6:]})"
