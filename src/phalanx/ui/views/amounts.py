"""Amounts of resources on the page: in the unit that people count, with its name."""

import numpy as np

from phalanx.model.resources import CPU, GPU, MEMORY, readable, scale_of
from phalanx.state.snapshot import Snapshot

LARGE = 1000
"""From here on nobody counts parts of one."""
UNITS = {GPU: "GPUs", CPU: "CPUs"}


def unit_of(resource: str) -> str:
    """Return what one counts of a resource."""
    return UNITS.get(resource, resource)


def amount_text(resource: str, amount: float) -> str:
    """Write an amount in units: ``4``, ``1,200,000``, ``32Gi``, ``0.5``."""
    if resource == MEMORY:
        return readable(resource, amount)
    return f"{amount:,.0f}" if abs(amount) >= LARGE else f"{amount:,.3f}".rstrip("0").rstrip(".")


def with_unit(resource: str, amount: float) -> str:
    """Write an amount with its unit: ``4 GPUs``, ``1 GPU``, ``32Gi memory``."""
    unit = unit_of(resource)
    return f"{amount_text(resource, amount)} {unit.removesuffix('s') if amount == 1 and resource in UNITS else unit}"


def in_units(resource: str, amount: float) -> float:
    """Return an amount of the engine in units."""
    return amount / scale_of(resource)


def offered_resources(snapshot: Snapshot) -> list[str]:
    """Return the names of all resources of which some node has any."""
    return [name for name, row in snapshot.space.row_by_name.items() if np.any(snapshot.nodes.allocatable[row])]
