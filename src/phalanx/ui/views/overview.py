"""The whole at a glance: what runs, what waits and why, how well the cluster is used, and what changed in the last hour."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from phalanx.explain.gang_status import GangStatus
from phalanx.explain.reason_text import counted
from phalanx.model.resources import scale_of
from phalanx.ui.scope import Scope
from phalanx.ui.seen import SeenCluster, SeenGang
from phalanx.ui.views import Json
from phalanx.ui.views.amounts import amount_text, unit_of, with_unit

HOUR_SECONDS = 3600.0
MOST_WAITS, MOST_CHANGES, MOST_REASONS, MOST_PROBLEMS = 10, 30, 12, 20
UNSAID = "no reason code"


def overview(seen: SeenCluster, scope: Scope) -> Json:
    """Return the overview of what a reader may see."""
    gangs = [gang for gang in seen.gangs.values() if scope.sees_key(gang.key)]
    return {
        "now": seen.now, "resource": seen.resource, "unit": unit_of(seen.resource),
        "gangs": dict(Counter(gang.status.value for gang in gangs)),
        "pods": {"all": sum(gang.facts.pods for gang in gangs), "waiting": sum(gang.facts.waiting for gang in gangs)},
        "use": _use(seen, gangs) if scope.is_whole else None,
        "nodes": _nodes(seen) if scope.sees_nodes else None,
        "reasons": _reasons(gangs), "waits": _longest(gangs, seen),
        "changes": [{"time": time, "gang": gang, "text": text} for time, gang, text in _changes(gangs, seen)],
        "problems": list(seen.problems[:MOST_PROBLEMS]) if scope.is_whole else [],
        "moreProblems": max(len(seen.problems) - MOST_PROBLEMS, 0) if scope.is_whole else 0,
    }  # fmt: skip


# --- use -----------------------------------------------------------------------------------------------------------------


def _use(seen: SeenCluster, gangs: Sequence[SeenGang]) -> Json:
    """Return what is offered and allocated, and how much of it does work: gangs without their minimum hold in vain."""
    row, scale = seen.snapshot.space.row_by_name.get(seen.resource, 0), scale_of(seen.resource)
    offered, used = seen.snapshot.nodes.allocatable[row], seen.snapshot.used[row]
    vain = sum(gang.facts.held for gang in gangs if not gang.facts.status.has_minimum)
    free = np.maximum(offered - used, 0)
    allocated = float(used.sum()) / scale
    return {
        "offered": float(offered.sum()) / scale, "allocated": allocated, "useful": max(allocated - vain, 0.0), "vain": vain,
        "scattered": float(free[(used > 0) & (free > 0)].sum()) / scale, "asked": sum(gang.facts.asked for gang in gangs),
        "text": _use_text(seen, allocated, vain),
    }  # fmt: skip


def _use_text(seen: SeenCluster, allocated: float, vain: float) -> str:
    if not allocated:
        return f"No {unit_of(seen.resource)} are allocated."
    if not vain:
        return f"All {with_unit(seen.resource, allocated)} allocated belong to gangs that have their minimum, or to pods alone."
    held, whole = amount_text(seen.resource, vain), with_unit(seen.resource, allocated)
    return f"{held} of {whole} allocated are held by gangs that do not have their minimum."


def _nodes(seen: SeenCluster) -> Json:
    nodes = seen.snapshot.nodes
    return {"all": len(nodes), "unready": int(nodes.unready.sum()), "cordoned": int(nodes.unschedulable.sum())}


# --- waiting -------------------------------------------------------------------------------------------------------------


def _waiting(gangs: Sequence[SeenGang]) -> list[SeenGang]:
    return [gang for gang in gangs if gang.waits]


def _reasons(gangs: Sequence[SeenGang]) -> list[Json]:
    """Return the reasons to wait, the most frequent first, each with a gang that waits for it."""
    waiting = sorted(_waiting(gangs), key=lambda gang: (gang.facts.created or gang.facts.started, gang.key))
    counts = Counter(gang.code for gang in waiting)
    examples = {gang.code: gang for gang in reversed(waiting)}
    return [
        {"code": code or UNSAID, "gangs": count, "example": examples[code].key, "why": examples[code].why}
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_REASONS]
    ]


def _longest(gangs: Sequence[SeenGang], seen: SeenCluster) -> list[Json]:
    known = [gang for gang in _waiting(gangs) if gang.facts.created]
    return [
        {
            "gang": gang.key, "queue": gang.queue, "since": gang.facts.created, "why": gang.why,
            "reserved": seen.reservations[gang.key].text if gang.key in seen.reservations else "",
        }
        for gang in sorted(known, key=lambda gang: (gang.facts.created, gang.key))[:MOST_WAITS]
    ]  # fmt: skip


# --- changes -------------------------------------------------------------------------------------------------------------


def _changes(gangs: Sequence[SeenGang], seen: SeenCluster) -> list[tuple[float, str, str]]:
    """Return what happened to gangs in the last hour, the latest first."""
    found = [(time, gang.key, text) for gang in gangs for time, text in _moments(gang)]
    recent = [item for item in found if seen.now - HOUR_SECONDS <= item[0] <= seen.now]
    return sorted(recent, key=lambda item: (-item[0], item[1]))[:MOST_CHANGES]


def _moments(gang: SeenGang) -> Iterator[tuple[float, str]]:
    facts = gang.facts
    if facts.ended:
        yield facts.ended, "completed" if facts.status is GangStatus.COMPLETED else "ended"
    elif facts.started and facts.status.has_minimum:
        yield facts.started, "started"
    if facts.created:
        yield facts.created, "was created"
    if facts.evicted and facts.evicted_at:
        yield facts.evicted_at, f"had {counted(facts.evicted, 'pod')} evicted"
