"""All modes of all operators that lanes are run for, in the order of the page that the results become."""

from tests.operators import jobset_modes, kueue_modes, lws_modes, mpi_modes, ray_modes, torch_modes, trainer_modes, volcano_modes
from tests.support.operator_mode import OperatorMode

_FILES = (ray_modes, torch_modes, trainer_modes, mpi_modes, jobset_modes, lws_modes, volcano_modes, kueue_modes)
MODES: tuple[OperatorMode, ...] = tuple(mode for file in _FILES for mode in file.MODES)
