"""Many names in a sentence: the first few of them, and how many more there are."""

from collections.abc import Sequence

MOST_NAMES = 5
"""A sentence names this many, by default."""


def listed(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Write the first few of many names: ``a, b and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
