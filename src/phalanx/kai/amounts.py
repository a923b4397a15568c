"""Three numbers about a queue or a task, one per resource that queues divide.

The order is always CPU (thousandths of a core), memory (bytes), GPUs (devices, with fractions). A bound may be UNLIMITED,
which counts as more than any amount on either side of a comparison.
"""

from typing import Final

Figures = tuple[float, float, float]

CPU: Final = 0
MEMORY: Final = 1
GPU: Final = 2
EVERY: Final = (CPU, MEMORY, GPU)
NAMES: Final = ("cpu", "memory", "gpu")

UNLIMITED: Final = -1.0
ZERO: Final[Figures] = (0.0, 0.0, 0.0)
BOUNDLESS: Final[Figures] = (UNLIMITED, UNLIMITED, UNLIMITED)

DIGITS: Final = 6
"""GPUs are kept to a millionth: without it ten tenths of a device are not one device, and a full queue seems to have room."""


def plus(left: Figures, right: Figures) -> Figures:
    """Return the sum."""
    return left[0] + right[0], left[1] + right[1], round(left[2] + right[2], DIGITS)


def minus(left: Figures, right: Figures) -> Figures:
    """Return the difference."""
    return left[0] - right[0], left[1] - right[1], round(left[2] - right[2], DIGITS)


def at_most(amount: float, bound: float) -> bool:
    """Tell whether an amount or a bound is no more than another."""
    return bound == UNLIMITED or UNLIMITED != amount <= bound


def within(amounts: Figures, bounds: Figures) -> bool:
    """Tell whether every amount is at most its bound."""
    return at_most(amounts[0], bounds[0]) and at_most(amounts[1], bounds[1]) and at_most(amounts[2], bounds[2])
