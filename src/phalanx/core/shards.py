"""Which nodes a scheduler may use when several share a cluster."""

import numpy as np

from phalanx.core.policy import ProcessFlags
from phalanx.core.snapshot import Snapshot
from phalanx.placement import Mask


def shard_parts(flags: ProcessFlags, snapshot: Snapshot) -> list[Mask]:
    """Return the nodes of the own shard, then those of others when they may be used too."""
    if flags.sharding_mode == "none":
        return [np.ones(len(snapshot.nodes), dtype=np.bool_)]
    shard = snapshot.surroundings.shards.get(flags.shard_name)
    mine = np.array([shard is not None and name in shard.nodes for name in snapshot.nodes.names], dtype=np.bool_)
    return [mine, ~mine] if flags.sharding_mode == "soft" else [mine]
