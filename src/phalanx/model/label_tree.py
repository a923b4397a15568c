"""Trees of network domains that are made of node labels."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class LabelTree:
    """Levels of a topology as node label keys, the widest first."""

    name: str
    levels: tuple[str, ...] = ()
