"""Sessions on one snapshot: one for the whole cluster, or one for each SchedulingShard in it."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Protocol

from phalanx.config.policies import policy_of_pool_shard, says_more_than
from phalanx.errors import ConfigError
from phalanx.explain.reason_text import counted
from phalanx.model.shard import DEFAULT_POOL, NODE_POOL, PoolShard
from phalanx.session.cycle import Catalogue, Profile, run_isolated
from phalanx.session.decision import Decisions
from phalanx.session.policy import Policy
from phalanx.session.shard_decisions import ShardDecisions, unseen
from phalanx.session.shards import seen_by
from phalanx.state.snapshot import Snapshot

MOST_SHOWN = 5
"""Names in one sentence."""


class Decide(Protocol):
    """One session: `run_isolated`, or a `Decider` that spares sessions which would decide nothing."""

    def __call__(
        self, snapshot: Snapshot, policy: Policy, catalogue: Catalogue, *, trace_level: int = 0, traced_gangs: Collection[str] = ()
    ) -> Decisions: ...


def decide(
    snapshot: Snapshot, profile: Profile, *, trace_level: int = 0, traced_gangs: Collection[str] = (), run: Decide = run_isolated
) -> list[ShardDecisions]:
    """Decide for every scheduler that the policy and the SchedulingShards of a cluster ask for, on one snapshot of it.

    The last part holds the gangs whose pool no shard takes, if there are any.
    """
    parts = []
    for name, own in _schedulers(snapshot, profile.policy):
        seen = seen_by(own, snapshot)
        decisions = run(seen, own, profile.catalogue, trace_level=trace_level, traced_gangs=traced_gangs)
        parts.append(ShardDecisions(name, seen, decisions))
    rest = unseen(snapshot, _pools(snapshot)) if _is_by_shards(snapshot, profile.policy) else None
    return [*parts, rest] if rest is not None else parts


def notes_on_pools(snapshot: Snapshot, policy: Policy) -> Iterator[str]:
    """Say which nodes nobody uses, where every shard decides."""
    if not _is_by_shards(snapshot, policy):
        return
    idle = [node.name for node in snapshot.nodes.nodes if node.labels.get(NODE_POOL, "") not in _pools(snapshot)]
    if idle:
        names = ", ".join(idle[:MOST_SHOWN]) + (" and others" if len(idle) > MOST_SHOWN else "")
        yield f"no SchedulingShard takes the node pool of {counted(len(idle), 'node')}: {names}"


def _is_by_shards(snapshot: Snapshot, policy: Policy) -> bool:
    """Tell whether every shard of the input decides."""
    return policy.follows_shards and bool(_shards(snapshot)) and not policy.flags.shard_name


def _pools(snapshot: Snapshot) -> set[str]:
    return {shard.node_pool for shard in _shards(snapshot).values()}


def _shards(snapshot: Snapshot) -> dict[str, PoolShard]:
    return dict(sorted(snapshot.surroundings.pool_shards.items()))


def _schedulers(snapshot: Snapshot, policy: Policy) -> Iterator[tuple[str, Policy]]:
    """Return the name of each scheduler, empty for the only one, and its policy."""
    shards, wanted = _shards(snapshot), policy.flags.shard_name if policy.follows_shards else ""
    if not policy.follows_shards or not (shards or wanted):
        yield "", policy
        return
    if wanted and wanted not in shards:
        known = ", ".join(shards) or "none; add what 'kubectl get schedulingshards -o yaml' prints"
        raise ConfigError(f"shard {wanted!r}: no such SchedulingShard in the input; there are: {known}")
    _refuse_overlap(shards)
    for shard in [shards[wanted]] if wanted else shards.values():
        own = replace(policy, node_pool=shard.node_pool) if says_more_than("kai", policy) else policy_of_pool_shard(shard)
        yield shard.name, own


def _refuse_overlap(shards: dict[str, PoolShard]) -> None:
    by_pool: dict[str, str] = {}
    for shard in shards.values():
        other = by_pool.setdefault(shard.node_pool, shard.name)
        if other != shard.name:
            pool = shard.node_pool or DEFAULT_POOL
            raise ConfigError(
                f"SchedulingShard {shard.name}: {other} takes node pool {pool!r} too; give each its own partitionLabelValue"
            )
