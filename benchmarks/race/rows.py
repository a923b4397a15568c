"""What is raced: sizes and loads, each a row of the results; `scaled` makes a row small enough for a test."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from phalanx.dev.kwok_nodes import Machines

CPU, MEMORY, PODS = 32, "256Gi", 110
MACHINES = Machines(cpu=str(CPU), memory=MEMORY, gpus=0, pods=PODS)
Load = Literal["wave", "arrivals", "overload", "backlog"]
HEADLINES: dict[Load, str] = {"wave": "seconds", "arrivals": "p50", "overload": "seconds", "backlog": "p50"}
"""The number by which contenders are compared."""


@dataclass(frozen=True, slots=True)
class Row:
    """A number of gangs of one size on a number of nodes, and how they come."""

    key: str
    load: Load
    nodes: int
    gangs: int
    size: int
    cpu: int = 1
    """Of each pod."""
    rate: float = 0.0
    """Gangs per second, where they arrive one by one."""
    ends: int = 0
    """How many running gangs end, one at a time."""

    @property
    def slots(self) -> int:
        """How many pods the nodes take."""
        return self.nodes * (CPU // self.cpu)

    @property
    def fitting(self) -> int:
        """How many whole gangs the nodes take."""
        return self.slots // self.size

    @property
    def title(self) -> str:
        """Say it in words."""
        gangs = f"{self.gangs:,} gangs of {self.size}"
        where = f"{self.nodes:,} nodes"
        return {
            "wave": f"{gangs} on {where}",
            "arrivals": f"gangs of {self.size}, {self.rate:g} per second, on {where}",
            "overload": f"{gangs} on {where} that take {self.fitting:,}",
            "backlog": f"{gangs} waiting on {where} that are full",
        }[self.load]


ROWS = (
    Row("gangs-of-50", "wave", nodes=1_000, gangs=100, size=50),
    Row("gangs-of-500", "wave", nodes=1_000, gangs=10, size=500),
    Row("gangs-of-1", "wave", nodes=1_000, gangs=5_000, size=1),
    Row("arrivals-1", "arrivals", nodes=1_000, gangs=30, size=50, rate=1.0),
    Row("arrivals-10", "arrivals", nodes=1_000, gangs=100, size=20, rate=10.0),
    Row("arrivals-50", "arrivals", nodes=1_000, gangs=300, size=4, rate=50.0),
    Row("overload", "overload", nodes=1_000, gangs=80, size=50, cpu=16),
    Row("backlog", "backlog", nodes=1_000, gangs=2_000, size=4, cpu=CPU, ends=10),
    Row("nodes-5000", "wave", nodes=5_000, gangs=100, size=100),
)
"""In the order in which they are raced: nodes are added, never taken away.

Gangs that arrive 10 and 50 times per second are smaller: an API server on two cores creates and binds a few hundred pods per second
beside a scheduler, and beyond that every contender would be measured by its queue.
"""


def chosen(words: Iterable[str]) -> list[Row]:
    """Return the rows of these names, or whose names begin so; an unknown word is an error that names all."""
    found: list[Row] = []
    for word in words:
        matching = [row for row in ROWS if row.key == word] or [row for row in ROWS if row.key.startswith(word)]
        if not matching:
            raise ValueError(f"--rows: there is no {word!r}; write one of {', '.join(row.key for row in ROWS)}")
        found += matching
    return [row for row in ROWS if row in found]


def scaled(row: Row, scale: float) -> Row:
    """Return the same load with fewer nodes and gangs; gangs that would not fit any more are smaller too."""
    if scale == 1:
        return row
    nodes, gangs = (max(least, round(count * scale)) for least, count in ((4, row.nodes), (2, row.gangs)))
    small = replace(row, nodes=nodes, gangs=gangs, ends=min(row.ends, 3))
    if row.load == "backlog":
        return replace(small, nodes=max(nodes // row.size, small.ends + 1) * row.size)
    if row.load == "overload":
        size = min(row.size, max(2, small.slots // 4))
        return replace(small, size=size, gangs=2 * small.slots // size)
    return replace(small, size=min(row.size, max(1, small.slots // gangs)))
