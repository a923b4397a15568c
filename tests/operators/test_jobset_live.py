"""JobSet: what its lanes do not say."""

import pytest

from tests.operators.jobset_modes import MODES, job_set, replicated
from tests.support.operator_lane import GPUS, Lane
from tests.support.operator_mode import Order, for_modes

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300), for_modes(MODES)]


def test_jobs_that_depend_on_others_start_after_them_each_as_a_whole(lane: Lane) -> None:
    after = {"dependsOn": [{"name": "driver", "status": "Ready"}]}
    driver, workers = (Order("chain", pods, GPUS) for pods in (1, 3))
    lane.create(job_set("chain", replicated("driver", driver), replicated("workers", workers, **after)))
    lane.await_running("chain", 4)
    assert sorted(gang["running"] for gang in lane.gangs().values()) == [1, 3]
