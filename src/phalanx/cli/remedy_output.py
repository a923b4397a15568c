"""What would start a gang, and what else would change, as lines for a terminal."""

from collections.abc import Sequence

from phalanx.whatif.difference import GangDifference

MOST_OTHERS = 12
"""Other gangs that are named; `-o json` has all of them."""


def lines_of_difference(others: Sequence[GangDifference]) -> list[str]:
    """Say what else would change."""
    if not others:
        return ["also: nothing would change for other gangs"]
    shown = [f"also: {found.text}" for found in others[:MOST_OTHERS]]
    more = len(others) - MOST_OTHERS
    return [*shown, f"also: {more} more gangs would change; -o json has them"] if more > 0 else shown
