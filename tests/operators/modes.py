"""All modes of all operators that lanes are run for, in the order of the page that the results become."""

from tests.operators import ray_modes, torch_modes
from tests.support.operator_mode import OperatorMode

MODES: tuple[OperatorMode, ...] = (*ray_modes.MODES, *torch_modes.MODES)
