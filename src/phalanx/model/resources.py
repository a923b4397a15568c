"""Amounts of resources, and the order in which arrays hold them.

An amount is a whole number in the engine's unit: cpu in thousandths, memory in bytes, pods one by one, everything else in
thousandths. `Resources` maps names to amounts; a name that is absent is zero. Whole numbers add up exactly in any order, and what
was added can be subtracted again: sessions undo thousands of placements, and no error may be left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from phalanx.errors import SnapshotError
from phalanx.model.quantity import to_milli, to_units

Resources: TypeAlias = Mapping[str, int]

CPU, MEMORY, PODS = "cpu", "memory", "pods"
VOLUME_SLOTS = "attachable-volumes-"
"""How the resources begin that count the volumes a node can attach."""
CSI_SLOTS = f"{VOLUME_SLOTS}csi-"
"""Those of CSI drivers; the name of the driver follows."""
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-"
"""Whole devices, and how the names of their parts begin."""
FIRST = (CPU, MEMORY, PODS)
_IN_UNITS = frozenset({MEMORY, PODS})


def amount_of(name: str, quantity: object) -> int:
    """Return a quantity of this resource in the engine's unit."""
    return to_units(quantity) if name in _IN_UNITS else to_milli(quantity)


def read_resources(quantities: object, *, where: str) -> dict[str, int]:
    """Turn a Kubernetes resource list into amounts; `where` names the field in an error."""
    if quantities is None:
        return {}
    if not isinstance(quantities, Mapping):
        raise SnapshotError(f"{where}: expected a mapping of resource names to quantities, got {type(quantities).__name__}")
    return {str(name): _read(name, quantity, where) for name, quantity in quantities.items()}


def _read(name: object, quantity: object, where: str) -> int:
    try:
        return amount_of(str(name), quantity)
    except SnapshotError as problem:
        raise SnapshotError(f"{where}.{name}: {problem}") from problem


def scale_of(name: str) -> int:
    """Return how many of the engine's units make one unit of this resource."""
    return 1 if name in _IN_UNITS else 1000


def add(left: Resources, right: Resources) -> dict[str, int]:
    """Return the sum, name by name."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount
    return total


def quantity_text(name: str, amount: int) -> str:
    """Write an amount as Kubernetes does: ``2``, ``1500m``, ``1073741824``."""
    scale = scale_of(name)
    return f"{amount}m" if amount % scale else str(amount // scale)


def readable(name: str, amount: float) -> str:
    """Write an amount as a person would: ``1.5``, ``32Gi``, ``8``."""
    if name != MEMORY:
        return f"{amount / scale_of(name):g}"
    for suffix, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if abs(amount) >= size:
            return f"{round(amount / size, 2):g}{suffix}"
    return f"{amount:g}"


@dataclass(frozen=True, slots=True)
class ResourceSpace:
    """The rows of every resource array: cpu, memory, pods, then all other names in alphabetical order."""

    names: tuple[str, ...] = FIRST
    row_by_name: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the names."""
        object.__setattr__(self, "row_by_name", {name: row for row, name in enumerate(self.names)})

    @classmethod
    def of(cls, names: Iterable[str]) -> "ResourceSpace":
        """Return the space that holds these names."""
        return cls(FIRST + tuple(sorted(set(names) - set(FIRST))))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.names)

    def covers(self, resources: Resources) -> bool:
        """Tell whether every name has a row."""
        return all(name in self.row_by_name for name in resources)
