"""Kueue: what its lanes do not say."""

import json

import pytest

from tests.operators.kueue_modes import MODES, QUOTA, WORKLOADS
from tests.support.operator_lane import GPUS, Lane
from tests.support.operator_mode import GPU, Order, for_modes

JOBS = [mode for mode in MODES if mode.kind == "Job"]
pytestmark = [
    pytest.mark.xdist_group("operators"),
    pytest.mark.timeout(300),
    for_modes([mode for mode in MODES if mode.name == "job"]),
]


def test_what_is_beyond_the_quota_gets_no_pods_until_kueue_admits_it(lane: Lane) -> None:
    lane.submit(Order("wide", int(QUOTA[GPU]) // GPUS + 1, GPUS))
    lane.await_true(lambda: json.loads(lane.kubectl("get", WORKLOADS, "-o", "json"))["items"], lane.gangs)
    lane.watch(lambda: not lane.pods("wide"), lambda: lane.phases("wide"))
