"""Kueue: what its lanes do not say."""

import json

import pytest

from tests.operators.kueue_modes import MODES, QUOTA, WORKLOADS
from tests.support.operator_lane import GPUS, NODES, URGENT, Lane
from tests.support.operator_mode import GPU, Order, for_modes

pytestmark = [pytest.mark.xdist_group("operators"), pytest.mark.timeout(300)]


def only(name: str) -> pytest.MarkDecorator:
    return for_modes([mode for mode in MODES if mode.name == name])


@only("job")
def test_what_is_beyond_the_quota_gets_no_pods_until_kueue_admits_it(lane: Lane) -> None:
    lane.submit(Order("wide", int(QUOTA[GPU]) // GPUS + 1, GPUS))
    lane.await_true(lambda: json.loads(lane.kubectl("get", WORKLOADS, "-o", "json"))["items"], lane.gangs)
    lane.watch(lambda: not lane.pods("wide"), lambda: lane.phases("wide"))


@only("pod-group")
def test_an_urgent_group_takes_the_place_of_a_whole_one(lane: Lane) -> None:
    lane.submit(Order("usual", NODES, GPUS))
    lane.await_running("usual", NODES)
    lane.submit(Order("urgent", 2, GPUS, URGENT))
    lane.await_running("urgent", 2)
    lane.watch(lambda: not lane.running("usual") and len(lane.running("urgent")) == 2, lambda: lane.phases("usual"))
