"""Gangs behind our scheduling gate, as rows of a table."""

from phalanx.explain.gang_rows import GangRow, gated_rows
from phalanx.scheduling.gates import GatedGangs
from phalanx.session.shard_decisions import ShardDecisions


def rows_behind(gated: GatedGangs | None) -> list[GangRow]:
    """Return the gangs that our gate holds back, as a session behind it finds them."""
    if gated is None:
        return []
    return gated_rows(ShardDecisions("", gated.snapshot, gated.decisions), gated.gangs, gated.gate)
