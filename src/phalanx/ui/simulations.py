"""Results of simulations that the page shows beside each other, also while they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from phalanx.ui.views import Json


@dataclass(frozen=True, slots=True)
class SimulationRow:
    """One result, in a list."""

    name: str
    title: str
    changed: float
    """When it was written last, in seconds since 1970."""
    is_over: bool
    problem: str = ""
    """Why it cannot be read."""


class Simulations(Protocol):
    """A set of results that may grow."""

    def rows(self) -> Sequence[SimulationRow]:
        """Return what there is, by name; called in a thread."""
        ...

    def packed(self, name: str) -> Json | None:
        """Return one result as the charts of a report need it; None where there is none; called in a thread."""
        ...

    def compared(self, names: Sequence[str]) -> Json:
        """Return the figures of some results beside each other; called in a thread."""
        ...
