"""Where there is room: domains that have so many nodes with so much of a resource free."""

from dataclasses import dataclass

import numpy as np

from phalanx.errors import ConfigError
from phalanx.explain.reason_text import counted
from phalanx.model.resources import GPU, amount_of
from phalanx.placement import Index
from phalanx.state.snapshot import Snapshot
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster
from phalanx.ui.views import Json
from phalanx.ui.views.amounts import in_units, with_unit
from phalanx.ui.views.domains import DomainLevel, levels

WHOLE_CLUSTER = "cluster"
MOST_DOMAINS = 50


@dataclass(frozen=True, slots=True)
class RoomAsked:
    """So many nodes with so much free, in one domain of a level."""

    nodes: int
    quantity: str
    resource: str = GPU
    level: str = WHOLE_CLUSTER


def rooms(seen: SeenCluster, scope: Scope, asked: RoomAsked) -> Json:
    """Return the domains with room, the fullest of them first: what is left elsewhere stays whole."""
    if not scope.sees_nodes:
        return {"text": "you may not list nodes", "domains": [], "nodes": []}
    snapshot, amount = seen.snapshot, amount_of(asked.resource, asked.quantity)
    level = _level(snapshot, asked.level)
    has_room = _with_room(snapshot, asked.resource, amount)
    domains = _domains(snapshot, level, has_room)
    enough = sorted((item for item in domains if len(item[1]) >= asked.nodes), key=lambda item: (len(item[1]), item[0]))
    shown = enough or sorted(domains, key=lambda item: (-len(item[1]), item[0]))[:1]
    return {
        "text": _text(enough, domains, asked, amount), "enough": len(enough),
        "domains": [
            {"name": name, "nodes": len(found), "names": [snapshot.nodes.names[node] for node in found[: asked.nodes]]}
            for name, found in shown[:MOST_DOMAINS]
        ],
        "nodes": sorted(int(node) for _, found in enough[:1] for node in found[: asked.nodes]),
    }  # fmt: skip


def _level(snapshot: Snapshot, key: str) -> DomainLevel:
    whole = DomainLevel(WHOLE_CLUSTER, "the cluster", ["the cluster"], np.zeros(len(snapshot.nodes), dtype=np.int64))
    known = {level.key: level for level in (whole, *levels(snapshot))}
    if key not in known:
        raise ConfigError(f"level: nothing here is divided by {key!r}; write one of: {', '.join(known)}")
    return known[key]


def _with_room(snapshot: Snapshot, resource: str, amount: int) -> Index:
    """Return the numbers of nodes that take pods and have so much free."""
    row, nodes = snapshot.space.row_by_name.get(resource), snapshot.nodes
    if row is None:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero((nodes.allocatable[row] - snapshot.used[row] >= amount) & ~nodes.unready & ~nodes.unschedulable)


def _domains(snapshot: Snapshot, level: DomainLevel, has_room: Index) -> list[tuple[str, list[int]]]:
    found: dict[int, list[int]] = {}
    for node, domain in zip(has_room.tolist(), level.of[has_room].tolist(), strict=True):
        if domain >= 0:
            found.setdefault(domain, []).append(node)
    return [(level.names[domain], members) for domain, members in found.items()]


def _text(enough: list[tuple[str, list[int]]], all_found: list[tuple[str, list[int]]], asked: RoomAsked, amount: int) -> str:
    room = f"{counted(asked.nodes, 'node')} with {with_unit(asked.resource, in_units(asked.resource, amount))} free"
    where = "" if asked.level == WHOLE_CLUSTER else f" in one domain of {asked.level}"
    if enough:
        name, found = enough[0]
        others = (
            ""
            if len(enough) == 1
            else f", and {counted(len(enough) - 1, 'more domain')} {'has' if len(enough) == 2 else 'have'} room"
        )
        return f"{room}{where}: {name} has {len(found)}{others}"
    most = max(all_found, key=lambda item: (len(item[1]), item[0]), default=("", []))
    return f"no room for {room}{where}" + (f": {most[0]} has {len(most[1])}, the most" if most[1] else "; no node has that free")
