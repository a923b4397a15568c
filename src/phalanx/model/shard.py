"""A part of a cluster that one of several schedulers looks after."""

from collections.abc import Mapping
from dataclasses import dataclass, field

NODE_POOL = "kai.scheduler/node-pool"
"""Label of nodes and PodGroups that says to which pool they belong."""
DEFAULT_POOL = "default"
"""What the pool of those without the label is called."""


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The nodes that one of several schedulers may use, by name."""

    name: str
    nodes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Override:
    """What a shard says about a plugin or an action; None where it says nothing."""

    enabled: bool | None = None
    priority: int | None = None
    arguments: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PoolShard:
    """The nodes and gangs of one pool, and how they are to be scheduled."""

    name: str
    node_pool: str = ""
    """Value of their label; empty for those without."""
    strategies: Mapping[str, str] = field(default_factory=dict)
    """`binpack` or `spread`, for `gpu` and `cpu`."""
    plugins: Mapping[str, Override] = field(default_factory=dict)
    actions: Mapping[str, Override] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags of the scheduler's process, without dashes in front."""
    queue_depths: Mapping[str, int] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Arguments of plugins that have fields of their own, by plugin."""
    usage: Mapping[str, str] = field(default_factory=dict)
    """Which part of the past counts; see `kai/usage_window.py`."""
