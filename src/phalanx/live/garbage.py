"""How often a process looks for garbage, once it holds a whole cluster."""

import gc

BETWEEN_LOOKS = (20_000, 20, 20)
"""Objects that come and go between two looks: a watch brings thousands a second, and few of them form circles."""


def look_seldom() -> None:
    """Look at what is there now a last time, and then at new objects alone; this holds for the whole process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*BETWEEN_LOOKS)
