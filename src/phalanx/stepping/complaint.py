"""A command that cannot be understood: what is wrong, and what may be written instead."""

from collections.abc import Iterable

from phalanx.model.listing import listed

MOST_CHOICES = 20


class Complaint(Exception):
    """Something that was typed and means nothing here; it ends no session."""

    def __init__(self, what: str, choices: Iterable[str] = (), *, hint: str = "there are") -> None:
        """Say what is wrong, and what there is."""
        found = list(choices)
        known = f"; {hint}: {listed(found, MOST_CHOICES)}" if found else ""
        super().__init__(f"{what}{known}")
