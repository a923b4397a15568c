"""The mpi-operator: what its lanes do not say."""

import pytest

from tests.operators.mpi_modes import MODES
from tests.support.operator_lane import GPUS, Lane
from tests.support.operator_mode import Order, for_modes

# With groups of its own the operator ends at a job of a launcher alone: "index out of range" in calPGMinResource.
WITHOUT_GROUPS = [mode for mode in MODES if not mode.flags]
pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), for_modes(WITHOUT_GROUPS)]


def test_a_job_of_a_launcher_alone_runs(lane: Lane) -> None:
    lane.submit(Order("alone", 1, GPUS))
    lane.await_running("alone", 1)
    assert lane.warnings() == []
