"""One row of the page of reason codes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """A code: who gives it, what it means, what helps, and how the sentence may read."""

    code: str
    source: str
    cause: str
    remedy: str
    example: str = ""
