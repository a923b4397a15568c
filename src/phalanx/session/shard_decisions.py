"""Several schedulers on one cluster: what each of them sees and decides, and all of it together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from phalanx.session.decision import Decisions, Outcome
from phalanx.session.shards import in_pools
from phalanx.state.snapshot import Snapshot
from phalanx.state.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ShardDecisions:
    """What one scheduler saw, and what it decided."""

    shard: str
    """Its name; empty where one scheduler looks after everything."""
    snapshot: Snapshot
    decisions: Decisions


def together(parts: Sequence[ShardDecisions]) -> Decisions:
    """Return all decisions as one. Where there are several schedulers, each has its own figures of a queue: ``shard/queue``."""
    whole = Decisions(binds_by_request=parts[0].decisions.binds_by_request, options=parts[0].decisions.options)
    for part in parts:
        own = part.decisions
        whole.binds |= own.binds
        whole.pipelined |= own.pipelined
        whole.evictions |= own.evictions
        whole.annotations |= own.annotations
        whole.stamps |= own.stamps
        whole.claims |= own.claims
        whole.faults |= own.faults
        whole.reservations += own.reservations
        whole.outcomes += [replace(outcome, seen=part.snapshot) for outcome in own.outcomes]
        whole.trace += own.trace
        if own.again is not None:
            whole.look_again(own.again)
        prefix = f"{part.shard}/" if len(parts) > 1 else ""
        whole.queues |= {prefix + name: figures for name, figures in own.queues.items()}
    return whole


def as_one(whole: Snapshot, parts: Sequence[ShardDecisions]) -> tuple[Snapshot, Decisions]:
    """Return the only part, or all of them on the whole cluster."""
    return (parts[0].snapshot, parts[0].decisions) if len(parts) == 1 else (whole, together(parts))


def unseen(snapshot: Snapshot, pools: set[str]) -> ShardDecisions | None:
    """Return the gangs whose pool is none of these, each told so; None when there are none."""
    others = {gang.node_pool for gang in snapshot.gangs.values()} - pools
    if not others:
        return None
    seen = in_pools(snapshot, others)
    outcomes = [Outcome.left_out(seen, key, _no_shard(gang.pool)) for key, gang in seen.gangs.items()]
    return ShardDecisions("", seen, Decisions(outcomes=outcomes, binds_by_request=True))


def _no_shard(pool: str) -> Verdict:
    return Verdict.refuse("", "NoShard", f"no SchedulingShard takes node pool {pool!r}", pool=pool)
