"""A part of the preparations for a pod."""

from collections.abc import Sequence
from dataclasses import dataclass

from phalanx.controllers.base import Write


@dataclass(frozen=True, slots=True)
class Part:
    """What to write, and what it waits for, in words; with neither it is ready."""

    writes: Sequence[Write] = ()
    waits: str = ""

    @property
    def is_ready(self) -> bool:
        """Tell whether nothing is left to do."""
        return not self.writes and not self.waits


READY = Part()
