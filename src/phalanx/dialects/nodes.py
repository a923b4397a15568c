"""Nodes: what they offer, labels, taints, images."""

from collections.abc import Mapping

from phalanx.dialects import schema
from phalanx.model.node import Node
from phalanx.model.quantity import to_units
from phalanx.model.resources import CSI_SLOTS, read_resources
from phalanx.model.shape import Taint

OVERSUBSCRIBED = {"cpu": "volcano.sh/oversubscription-cpu", "memory": "volcano.sh/oversubscription-memory"}
ALLOWS_OVERSUBSCRIPTION = "volcano.sh/oversubscription"
UNLIMITED_VOLUMES = 2**31 - 1


def node(read: schema.NodeRead, volume_limits: Mapping[str, int | None]) -> Node:
    """Read a node; `volume_limits` adds slots for volumes per CSI driver."""
    meta, spec, status = read.metadata, read.spec or schema.NodeSpec(), read.status or schema.NodeStatus()
    reported = read_resources(status.allocatable, where="status.allocatable")
    offered = {**reported, **_volume_slots(volume_limits)}
    for name, amount in _oversubscription(meta).items():
        offered[name] = offered.get(name, 0) + amount
    return Node(
        name=meta.name, labels=meta.labels or {},
        taints=tuple(Taint(taint.key, taint.value or "", taint.effect) for taint in spec.taints or ()),
        is_unschedulable=bool(spec.unschedulable), allocatable=offered, reported=reported, image_bytes=_images(status),
        annotations=meta.annotations or {}, is_ready=_is_ready(status),
    )  # fmt: skip


def _is_ready(status: schema.NodeStatus) -> bool:
    return all(condition.status == "True" for condition in status.conditions or () if condition.type == "Ready")


def _oversubscription(meta: schema.Meta) -> dict[str, int]:
    """Return what the node agent lends on top: cpu in thousandths, memory in bytes."""
    annotations, labels = meta.annotations or {}, meta.labels or {}
    if labels.get(ALLOWS_OVERSUBSCRIPTION) != "true":
        return {}
    lent = {name: annotations.get(key, "") for name, key in OVERSUBSCRIBED.items()}
    return {name: to_units(amount) for name, amount in lent.items() if amount.isdecimal()}


def _volume_slots(limits: Mapping[str, int | None]) -> dict[str, int]:
    slots = {driver: UNLIMITED_VOLUMES if count is None else count for driver, count in limits.items()}
    return {slot_name(driver): count * 1000 for driver, count in slots.items()}


def slot_name(driver: str) -> str:
    """Return the resource name that counts attached volumes of a driver."""
    return f"{CSI_SLOTS}{driver.replace('/', '-')}"


def _images(status: schema.NodeStatus) -> dict[str, int]:
    return {name: image.size_bytes for image in status.images or () for name in image.names or ()}
