"""A Spark application on a real control plane: its driver starts with room for its executors, which is theirs when they come."""

from pathlib import Path

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.testing import build
from tests.support import pod_made_gangs as made
from tests.support.live_site import Site

pytestmark = pytest.mark.xdist_group("controlplane")
SCHEDULER = "--scheduler-name=yunikorn"


def test_executors_take_the_places_of_placeholders_though_others_wait_and_the_scheduler_starts_anew(
    plane: ControlPlane, tmp_path: Path
) -> None:
    driver, *executors = made.application("spark", {"driver": 1, "executor": 3}, cpu=1)
    with Site(plane) as site:
        site.make([*(build.node(f"spark-{number}", cpu=2, pods=20) for number in range(2)), driver])
        with scheduling(plane, tmp_path, SCHEDULER):
            site.await_phases("tg-", {"Running": 3})
            site.await_phases("spark-driver", {"Running": 1})
        kept = sorted(site.bound("tg-").values())
        site.make([made.application_pod(f"greedy-{number}", "greedy", cpu=1) for number in range(2)])
        site.make(executors)
        with scheduling(plane, tmp_path, SCHEDULER):
            site.await_phases("spark-executor", {"Running": 3})
            site.await_phases("tg-", {})
            assert sorted(site.bound("spark-executor").values()) == kept
            site.await_phases("greedy", {"Pending": 2})
