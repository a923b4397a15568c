"""All devices of the cluster that claims can hold: where each can be used, who holds it, and what expressions say about it."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from phalanx.kubernetes.cel import compile_selector
from phalanx.kubernetes.cel_values import CelError, CelSyntaxError
from phalanx.kubernetes.nodeselection import matching_nodes
from phalanx.model.selectors import NodeSelectorTerm
from phalanx.model.storage import ResourceClaim, ResourceSlice
from phalanx.placement import Counts, Index, Mask
from phalanx.state.node_table import NodeTable
from phalanx.state.snapshot import Surroundings

DeviceName = tuple[str, str, str]
"""Driver, pool and name."""


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """Which of several expressions could not be evaluated, and why."""

    expression: int
    text: str


class DeviceTable:
    """All devices as columns, and the places they can be used from: one node, every node, or those some terms match."""

    def __init__(self, world: Surroundings, table: NodeTable, reserved: set[DeviceName]) -> None:
        """Lay the devices out by driver, pool and slice; those of allocated claims and reserved ones are taken.

        Reserved are the devices that bind requests name: their claims are not allocated before the binder has worked them off.
        """
        self._table = table
        self._slices = sorted(world.resource_slices.values(), key=lambda part: (part.driver, part.pool, part.name))
        self._place_of: dict[object, int] = {}
        self._pinned: list[tuple[int, int]] = []
        self._wide: list[tuple[int, Mask]] = []
        sizes = [len(part.devices) for part in self._slices]
        self._places = np.repeat(np.array([self._place(part) for part in self._slices], dtype=np.int64), sizes)
        self._pins = np.array(self._pinned, dtype=np.int64).reshape(-1, 2).T
        self._starts = np.cumsum([0, *sizes]).tolist()
        self.all_of_them: Mask = np.ones(len(self._places), dtype=np.bool_)
        self._holders = np.zeros(len(self._places), dtype=np.int64)
        self._releasing = np.zeros(len(self._places), dtype=np.int64)
        held = {device for claim in world.resource_claims.values() for device in _held_by(claim)}
        self._holders[self._numbers(held | reserved)] = 1

    @property
    def free(self) -> Mask:
        """The devices that nobody holds or will hold: those that evicted tasks release are among them."""
        return np.equal(self._holders, 0)

    @property
    def freed(self) -> Mask:
        """The devices that evicted tasks release and still use: whoever gets one is pipelined."""
        return self._releasing > 0

    def take(self, devices: Index) -> None:
        """Give devices to a claim."""
        self._holders[devices] += 1

    def undo_take(self, devices: Index) -> None:
        """Undo `take`."""
        self._holders[devices] -= 1

    def release(self, devices: Index) -> None:
        """Count on devices to be left by those that use them: from now on they can be given to pipelined tasks."""
        self._holders[devices] -= 1
        self._releasing[devices] += 1

    def undo_release(self, devices: Index) -> None:
        """Undo `release`."""
        self._holders[devices] += 1
        self._releasing[devices] -= 1

    def name(self, device: int) -> DeviceName:
        """Return driver, pool and name of a device."""
        place = bisect_right(self._starts, device) - 1
        part = self._slices[place]
        return part.driver, part.pool, part.devices[device - self._starts[place]].name

    def held_by(self, claim: ResourceClaim) -> Index:
        """Return the numbers of the devices that an allocated claim holds."""
        return np.array(self._numbers(set(_held_by(claim))), dtype=np.int64)

    def _numbers(self, names: "set[DeviceName]") -> list[int]:
        pools = {(driver, pool) for driver, pool, _ in names}
        return [
            start + place
            for part, start in zip(self._slices, self._starts[:-1], strict=True)
            if (part.driver, part.pool) in pools
            for place, device in enumerate(part.devices)
            if (part.driver, part.pool, device.name) in names
        ]

    def _place(self, part: ResourceSlice) -> int:
        # Most slices belong to one node. A mask of nodes for each of 10,000 such places would be 100 MB, so they are kept as pairs
        # of place and node, and only places that several nodes reach have a mask.
        key: object = part.node or (part.for_all_nodes, part.node_terms)
        if key not in self._place_of:
            place = self._place_of[key] = len(self._place_of)
            node = self._table.number_by_name.get(part.node)
            if node is not None:
                self._pinned.append((place, node))
            elif not part.node:
                terms = None if part.for_all_nodes else part.node_terms
                self._wide.append((place, nodes_of(terms, self._table, otherwise=part.for_all_nodes)))
        return self._place_of[key]

    def count(self, devices: Mask) -> Counts:
        """Return how many of these devices each node reaches."""
        by_place = np.bincount(self._places[devices], minlength=len(self._place_of))
        counts = np.zeros(len(self._table), dtype=np.int64)
        counts[self._pins[1]] = by_place[self._pins[0]]
        for place, nodes in self._wide:
            counts += by_place[place] * nodes
        return counts

    def at(self, node: int) -> Mask:
        """Mark the devices that a node reaches."""
        here = np.zeros(len(self._place_of), dtype=np.bool_)
        here[self._pins[0]] = self._pins[1] == node
        for place, nodes in self._wide:
            here[place] = nodes[node]
        return here[self._places]

    def reach(self, devices: Index) -> Mask:
        """Mark the nodes that reach every one of these devices."""
        mask = np.zeros(len(self.free), dtype=np.bool_)
        mask[devices] = True
        return np.equal(self.count(mask), len(devices))

    def select(self, expressions: tuple[str, ...]) -> tuple[Mask, SelectorFailure | None]:
        """Mark the devices that every expression accepts, or give the first failure."""
        answers = [_accepted(part, expressions) for part in self._slices]
        failure = next((answer for answer in answers if isinstance(answer, SelectorFailure)), None)
        masks = [np.zeros(0, dtype=np.bool_), *(answer for answer in answers if not isinstance(answer, SelectorFailure))]
        return (np.concatenate(masks), None) if failure is None else (np.zeros_like(self.all_of_them), failure)


# Slices are the same objects from session to session until a driver changes them. Asking 80,000 devices takes 0.5 s.
@lru_cache(maxsize=1 << 16)
def _accepted(part: ResourceSlice, expressions: tuple[str, ...]) -> Mask | SelectorFailure:
    """Mark the devices of a slice that every expression accepts; each is asked only about what the earlier ones accept.

    So an expression may read an attribute that an earlier one has checked for: it is never asked about a device without it.
    """
    accepted = np.ones(len(part.devices), dtype=np.bool_)
    for place, expression in enumerate(expressions):
        try:
            selector = compile_selector(expression)
            for number in np.flatnonzero(accepted).tolist():
                accepted[number] = selector.matches(part.driver, part.devices[number])
        except CelError as error:
            kind = "compile" if isinstance(error, CelSyntaxError) else "runtime"
            return SelectorFailure(place, f"CEL {kind} error: {error}")
    return accepted


def _held_by(claim: ResourceClaim) -> "tuple[DeviceName, ...]":
    return claim.devices if claim.is_allocated else ()


def nodes_of(terms: tuple[NodeSelectorTerm, ...] | None, table: NodeTable, *, otherwise: bool) -> Mask:
    """Mark the nodes that some term matches; `otherwise` is the answer for every node when there are no terms."""
    return np.full(len(table), otherwise) if terms is None else matching_nodes(terms, table)
