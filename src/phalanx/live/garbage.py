"""How often a process looks for garbage: seldom while it reads a cluster, and then only among what came later."""

import gc

UNTIL_SYNCED = (500_000, 20, 20)
"""Objects that come and go between two looks at the start: imports and lists make a million, and hardly any form circles."""
BETWEEN_LOOKS = (20_000, 20, 20)
"""The same later on: a watch brings thousands a second, and few of them form circles."""


def look_seldom_at_start() -> None:
    """Look at new objects seldom until the cluster is read; this holds for the whole process."""
    gc.set_threshold(*UNTIL_SYNCED)


def look_seldom() -> None:
    """Look at objects that come from now on alone, and seldom; this holds for the whole process.

    What is there now stays, and is not looked at a last time: that takes longer than the first session.
    """
    gc.freeze()
    gc.set_threshold(*BETWEEN_LOOKS)
