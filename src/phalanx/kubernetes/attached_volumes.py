"""How many volumes of each CSI driver nodes can attach, and how many they have attached.

Kubernetes counts distinct volumes: two pods of a node that share a volume need one attachment. So users are counted for each volume
and node, and a volume is attached while it has at least one.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from phalanx.model.shape import Shape
from phalanx.model.storage import VolumeClaim
from phalanx.placement import NO_LIMIT, Counts, Mask
from phalanx.state.snapshot import Snapshot, Surroundings

CsiVolume: TypeAlias = tuple[str, str]
"""A driver and its handle of a volume."""


class AttachedVolumes:
    """The distinct CSI volumes that each node has attached, by driver, beside what it can attach."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Count the volumes of the tasks on nodes; without any limit nothing is counted."""
        self._world, self._count = snapshot.surroundings, len(snapshot.nodes)
        self._limits: dict[str, Counts] = {}
        self._attached: dict[str, Counts] = {}
        self._users: dict[CsiVolume, dict[int, int]] = {}
        numbers = snapshot.nodes.number_by_name
        for limits in self._world.volume_limits.values():
            for driver, limit in limits.limit_by_driver.items():
                if limit is not None and limits.node in numbers:
                    self._limit(driver)[numbers[limits.node]] = limit
        if self._limits:
            self._read(snapshot, numbers)

    def _limit(self, driver: str) -> Counts:
        if driver not in self._limits:
            self._limits[driver] = np.full(self._count, NO_LIMIT, dtype=np.int64)
            self._attached[driver] = np.zeros(self._count, dtype=np.int64)
        return self._limits[driver]

    def _read(self, snapshot: Snapshot, numbers: dict[str, int]) -> None:
        for limits in self._world.volume_limits.values():
            if limits.node in numbers:
                self._change(limits.attached, numbers[limits.node], 1)
        for name, tasks in snapshot.on_node.items():
            for task in tasks.values():
                if task.shape.volume_claims and name in numbers:
                    self.attach(task.shape, numbers[name], 1)

    def attach(self, shape: Shape, node: int, tasks: int) -> None:
        """Count the volumes of some more tasks of the shape on a node, or with -1 of one less."""
        if self._limits:
            self._change(self._volumes(shape), node, tasks)

    def _change(self, volumes: Iterable[CsiVolume], node: int, amount: int) -> None:
        for volume in volumes:
            if volume[0] not in self._limits:
                continue
            users = self._users.setdefault(volume, {})
            before = users.get(node, 0)
            users[node] = before + amount
            self._attached[volume[0]][node] += int(before + amount > 0) - int(before > 0)

    def _volumes(self, shape: Shape) -> set[CsiVolume]:
        found = (_csi_volume(claim, self._world) for claim in claims_of(shape, self._world))
        return {volume for volume in found if volume is not None}

    def exceeded(self, shape: Shape) -> Mask:
        """Mark the nodes that would have more volumes of a driver than they can attach."""
        exceeded = np.zeros(self._count, dtype=np.bool_)
        volumes = self._volumes(shape)
        for driver in {driver for driver, _ in volumes} & self._limits.keys():
            fresh = np.zeros(self._count, dtype=np.int64)
            for volume in volumes:
                if volume[0] == driver:
                    fresh += 1
                    fresh[[node for node, users in self._users.get(volume, {}).items() if users > 0]] -= 1
            exceeded |= (fresh > 0) & (self._attached[driver] + fresh > self._limits[driver])
        return exceeded


def claims_of(shape: Shape, world: Surroundings) -> list[VolumeClaim]:
    """Return the claims of the shape that exist, each once."""
    keys = dict.fromkeys(f"{shape.namespace}/{name}" for name in shape.volume_claims)
    return [world.volume_claims[key] for key in keys if key in world.volume_claims]


def _csi_volume(claim: VolumeClaim, world: Surroundings) -> CsiVolume | None:
    """Return what a claim attaches: its volume, or one yet to be made by its class; None when it is not CSI."""
    volume = world.volumes.get(claim.volume)
    if volume is not None:
        return (volume.csi_driver, volume.csi_handle) if volume.csi_driver and volume.csi_handle else None
    storage_class = world.storage_classes.get(claim.storage_class or "")
    if storage_class is None or not storage_class.provisioner:
        return None
    return storage_class.provisioner, f"yet to be made for {claim.key}"
