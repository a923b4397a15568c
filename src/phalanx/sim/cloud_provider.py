"""The cloud provider of a simulated autoscaler: nodes that were asked for come after a while, and some never do.

It keeps what is to be paid for: every node, from the moment it is ready until it is gone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import isfinite
from random import Random
from typing import Literal

from phalanx.model.kinds import NODE, Document
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.faults import Faults
from phalanx.sim.node_pools import AutoscalerSettings, NodePool
from phalanx.sim.virtual_time import Precedence, VirtualTime
from phalanx.store.memory import MemoryStore

BACKOFF_RESET_SECONDS = 3 * 3600.0
"""After so long without a failure the next back-off is as short as the first."""

ScaleEventKind = Literal["scale-up", "delivered", "failed", "scale-down"]


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """What the autoscaler or the provider did; the moment in seconds from the start."""

    moment: float
    pool: str
    kind: ScaleEventKind
    count: int
    """Of nodes."""
    nodes: tuple[str, ...] = ()
    """Their names, if they have any yet."""
    message: str = ""


@dataclass(slots=True)
class NodeGroup:
    """A pool as it is now."""

    pool: NodePool
    nodes: dict[str, float] = field(default_factory=dict)
    """Those that are there, each with the moment at which it came."""
    upcoming: int = 0
    """Those that were asked for and have neither come nor failed."""
    node_seconds: float = 0.0
    """For how long nodes were there that are gone."""
    backs_off_until: float = 0.0
    _backoff: float = 0.0
    _last_failure: float = -BACKOFF_RESET_SECONDS

    @property
    def target(self) -> int:
        """How many nodes there are or will be."""
        return len(self.nodes) + self.upcoming

    @property
    def room(self) -> int:
        """How many more there may be."""
        return self.pool.max - self.target

    def placeholders(self, number: int, first: int = 0) -> list[Document]:
        """Return nodes as they would come, under names that no node can have."""
        return [self.pool.template.node(f"{self.pool.name}+{first + place}") for place in range(number)]

    def seconds_until(self, now: float) -> float:
        """Return for how long nodes were there until now, over all nodes."""
        return self.node_seconds + sum(now - since for since in self.nodes.values())

    def back_off(self, now: float, settings: AutoscalerSettings) -> None:
        """Be left alone for a while: for twice as long as the last time, unless that was long ago or is not over yet."""
        is_fresh = now - self._last_failure >= BACKOFF_RESET_SECONDS
        if is_fresh:
            self._backoff = settings.backoff
        elif now >= self.backs_off_until:
            self._backoff = min(2 * self._backoff, settings.max_backoff)
        self._last_failure, self.backs_off_until = now, now + self._backoff


class CloudProvider:
    """Makes nodes and takes them away."""

    def __init__(self, settings: AutoscalerSettings, store: MemoryStore, time: VirtualTime, faults: Faults, chance: Random) -> None:
        """Begin now with as many nodes of each pool as it has at least."""
        self._settings, self._store, self._time, self._faults, self._chance = settings, store, time, faults, chance
        self._start = time.now
        self.groups = [NodeGroup(pool) for pool in sorted(settings.pools, key=lambda pool: pool.name)]
        self.events: list[ScaleEvent] = []
        self.failed: list[Callable[[], None]] = []
        """Called when nodes did not come; of others the cluster has events."""
        self.restocked: list[Callable[[], None]] = []
        """Called when a stockout is over."""
        store.listen(self._hear)
        time.after(0, Precedence.WORLD, self._begin)
        for until in {item.until for pool in settings.pools for item in pool.stockouts if isfinite(item.until)}:
            time.after(until, Precedence.WORLD, self._restock)  # those who wait may hope: a simulation does not end before

    def _restock(self) -> None:
        for listener in self.restocked:
            listener()

    def _begin(self) -> None:
        for group in self.groups:
            self._join(group, group.pool.min)

    @property
    def moment(self) -> float:
        """Seconds since the start."""
        return self._time.now - self._start

    def owner(self, node: str) -> NodeGroup | None:
        """Return the group of a node that is there; None where no pool has it."""
        return next((group for group in self.groups if node in group.nodes), None)

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is NODE and event.type == DELETED:
            name = event.object["metadata"]["name"]
            group = self.owner(name)
            if group is not None:
                group.node_seconds += self._time.now - group.nodes.pop(name)

    def _note(self, group: NodeGroup, kind: ScaleEventKind, number: int, *, nodes: Sequence[str] = (), message: str = "") -> None:
        self.events.append(ScaleEvent(self.moment, group.pool.name, kind, number, tuple(nodes), message))

    # --- scale-up ----------------------------------------------------------------------------------------------------

    def request(self, group: NodeGroup, number: int, message: str) -> None:
        """Ask for so many more nodes of a pool."""
        group.upcoming += number
        self._note(group, "scale-up", number, message=message)
        delays = [group.pool.delay.draw(self._chance) for _ in range(number)]
        fails = [group.pool.failure_rate > 0 and self._chance.random() < group.pool.failure_rate for _ in range(number)]
        if self._settings.is_atomic:
            delays = [max(delays)] * number
        for delay in sorted(set(delays)):
            batch = [is_failing for is_failing, own in zip(fails, delays, strict=True) if own == delay]
            self._time.after(delay, Precedence.WORLD, partial(self._deliver, group, batch))

    def _deliver(self, group: NodeGroup, batch: Sequence[bool]) -> None:
        """Let nodes come; those that fail, and those that are out of stock, never do."""
        group.upcoming -= len(batch)
        stock = group.pool.stock(self.moment) - len(group.nodes)
        good = int(max(0, min(batch.count(False), stock)))
        if self._settings.is_atomic and good < len(batch):
            good = 0
        names = self._join(group, good)
        if names:
            self._note(group, "delivered", good, nodes=names)
        if good < len(batch):
            group.back_off(self._time.now, self._settings)
            reason = "out of stock" if stock < batch.count(False) else "the nodes did not come up"
            self._note(group, "failed", len(batch) - good, message=reason)
            for listener in self.failed:
                listener()

    def _join(self, group: NodeGroup, number: int) -> list[str]:
        names = [name for name, _ in zip(self._free_names(group), range(number), strict=False)]
        for name in names:
            group.nodes[name] = self._time.now
            self._faults.join(group.pool.template.node(name))
        return names

    def _free_names(self, group: NodeGroup) -> Iterator[str]:
        names = (f"{group.pool.name}-{number}" for number in count(1))
        return (name for name in names if name not in group.nodes and self._store.find(NODE, "", name) is None)

    # --- scale-down --------------------------------------------------------------------------------------------------

    def remove(self, group: NodeGroup, names: Sequence[str]) -> None:
        """Give nodes back."""
        for name in names:
            self._faults.leave(name)
        self._note(group, "scale-down", len(names), nodes=names)
