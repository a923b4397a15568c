"""What queues leave for a gang whatever nodes come: said where nodes are missing too, and would not help."""

from collections.abc import Iterator, Mapping
from itertools import groupby

import numpy as np

from phalanx.explain.gang_status import is_blocked
from phalanx.explain.reason_text import amount_text
from phalanx.placement import Vector
from phalanx.session.amounts import EPSILON
from phalanx.session.decision import Outcome
from phalanx.state.gang_state import GangState
from phalanx.state.node_table import vector_of
from phalanx.state.snapshot import Snapshot


def beyond_limits(outcome: Outcome, snapshot: Snapshot) -> list[str]:
    """Say which queue may not have what a gang needs to start, however large the cluster gets; empty if all may."""
    limits: Mapping[str, Vector] = {}
    if outcome.aftermath is not None:
        limits = outcome.aftermath.limits.get(outcome.state.gang.queue, {})
    wanted = _wanted(outcome.state, snapshot) if limits else np.zeros(0)
    return [text for owner, left in limits.items() for text in _too_much(owner, left, wanted, snapshot)]


def _wanted(gang: GangState, snapshot: Snapshot) -> Vector:
    """Return at most what the gang lacks asks for: of every resource what those of its tasks want that want least."""
    waiting = [task.task.shape.request for task in gang.tasks if is_blocked(task)]
    parts = [(vector_of(request, snapshot.space), len(list(alike))) for request, alike in groupby(waiting)]
    if not parts:
        return np.zeros(len(snapshot.space))
    requests = np.repeat([request for request, _ in parts], [count for _, count in parts], axis=0)
    least: Vector = np.sort(requests, axis=0)[: gang.gap() or len(waiting)].sum(axis=0)
    return least


def _too_much(owner: str, left: Vector, wanted: Vector, snapshot: Snapshot) -> Iterator[str]:
    for name, have, want in zip(snapshot.space.names, left, wanted, strict=True):
        if want - have >= EPSILON:
            some = f"{amount_text(name, float(have))} {name} more" if have > 0 else f"no more {name}"
            yield f"queue {owner!r} may use {some}, {amount_text(name, float(want))} wanted: more nodes would not help"
