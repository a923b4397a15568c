"""A part of the preparations for a pod."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from phalanx.controllers.controller import Write


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """What to write, and what it waits for, in words; with neither it is ready."""

    writes: Sequence[Write] = ()
    waits: str = ""
    when_late: Sequence[Write] = ()
    """What to write besides when it has waited too long."""

    @classmethod
    def of(cls, parts: Iterable[Self]) -> Self:
        """Return several parts as one."""
        found = list(parts)
        return cls(
            [write for part in found for write in part.writes],
            next((part.waits for part in found if part.waits), ""),
            [write for part in found for write in part.when_late],
        )

    @property
    def is_ready(self) -> bool:
        """Tell whether nothing is left to do."""
        return not self.writes and not self.waits


READY = PreparationStep()
