"""How long gangs run: who says so, in which order, and when one that still runs will end."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.gang import Gang
from phalanx.model.run_times import RunTimes
from phalanx.model.task import GangKey, TaskKey
from phalanx.state.run_times import RunTimesBook, run_times
from phalanx.testing import build

TRAIN = GangKey("default/train")


def times(pod: dict[str, str] | None = None, group: dict[str, str] | None = None, queue: dict[str, str] | None = None,
          deadline: int | None = None, labels: dict[str, str] | None = None) -> RunTimes:  # fmt: skip
    cluster = ObjectCluster()
    documents = [build.queue("research"), *build.gang("train", tasks=2, queue="research")]
    for document in documents:
        meta: dict[str, Any] = document["metadata"]
        given = {"Pod": pod, "PodGroup": group, "Queue": queue}[document["kind"]]
        meta["annotations"] = {**meta.get("annotations", {}), **(given or {})}
        if document["kind"] == "Pod":
            meta["labels"] = {**meta.get("labels", {}), **(labels or {})}
            if deadline is not None:
                document["spec"]["activeDeadlineSeconds"] = deadline
        assert cluster.put(document)
    return RunTimesBook(cluster.snapshot(0.0)).of(TRAIN)


def test_the_pod_speaks_before_its_group_and_the_group_before_the_queue() -> None:
    key, default = "phalanx.dev/duration", {"phalanx.dev/default-duration": "3h"}
    assert times({key: "1h"}, {key: "2h"}, default).expected == 3600
    assert times({}, {key: "2h"}, default).expected == 7200
    assert times({}, {}, default).expected == 10800
    assert times({}, {}, default).source == "phalanx.dev/default-duration of the queue"
    assert not times().is_known


def test_a_range_has_a_middle_and_a_longest() -> None:
    found = times({"phalanx.dev/duration": "30m..2h"})
    assert (found.shortest, found.expected, found.longest) == (1800, 4500, 7200)


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({"pod": {"phalanx.dev/max-duration": "50m"}}, "phalanx.dev/max-duration of the pod"),
        ({"group": {"phalanx.dev/max-duration": "50m"}}, "phalanx.dev/max-duration of the group"),
        ({"queue": {"phalanx.dev/max-duration": "50m"}}, "phalanx.dev/max-duration of the queue"),
        ({"deadline": 3000}, "activeDeadlineSeconds"),
        ({"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "3000"}}, "kueue.x-k8s.io/max-exec-time-seconds of the pod"),
    ],
)
def test_the_least_maximum_counts_and_bounds_what_is_expected(given: dict[str, Any], limit: str) -> None:
    found = times(**{**given, "group": {"phalanx.dev/duration": "2h", **given.get("group", {})}})
    assert (found.maximum, found.expected, found.bound, found.limit) == (3000, 3000, 3000, limit)


def test_a_deadline_alone_is_what_is_expected() -> None:
    assert times(deadline=600).expected == 600


def test_what_cannot_be_read_is_not_said_and_told() -> None:
    found = times({"phalanx.dev/duration": "soon"})
    assert not found.is_known
    assert found.faults == (
        "phalanx.dev/duration of the pod: 'soon' is not a duration; write for example '90s', '2h30m' or '30m..2h'",
    )


def test_deadlines_do_not_make_other_classes_of_tasks() -> None:
    cluster = ObjectCluster()
    pods = [document for document in build.gang("train", tasks=2) if document["kind"] == "Pod"]
    pods[0]["spec"]["activeDeadlineSeconds"] = 60
    assert all(cluster.put(pod) for pod in pods)
    first, second = (cluster.state.task(TaskKey(f"default/{pod['metadata']['name']}")) for pod in pods)
    assert first is not None
    assert second is not None
    assert first.shape is second.shape
    assert (first.deadline, second.deadline) == (60, inf)


def test_one_that_is_on_time_ends_as_expected_and_one_that_is_late_half_as_long_again() -> None:
    known = RunTimes(3600, 3600)
    assert known.end(begun=1000, now=2000) == 4600
    assert known.end(begun=1000, now=4650) == 4650  # any moment now
    assert known.end(begun=1000, now=6000) == 8500
    assert RunTimes().end(begun=1000, now=6000) == inf


def test_one_that_is_late_ends_by_the_longest_that_was_expected_and_by_its_maximum() -> None:
    known = RunTimes(1800, 5400, 7200)
    assert known.end(0, 1000) == 3600
    assert known.end(0, 4000) == 5400
    assert known.end(0, 6000) == 7200
    assert replace(known, maximum=inf).end(0, 6000) == 9000


def test_the_deadline_of_an_owner_is_a_maximum_and_counts_from_its_own_start() -> None:
    start, one_hour = 1_767_225_600.0, "activeDeadlineSeconds of its owner"
    gang = Gang(GangKey("a/b"), annotations={"phalanx.dev/owner-deadline": "3600s from 2026-01-01T00:00:00Z"})
    found = [run_times(gang, None, None, since=since) for since in (0.0, start + 600, start + 7200)]
    assert [(each.maximum, each.limit) for each in found] == [(3600, one_hour), (3000, one_hour), (3600, one_hour)]
    plain = Gang(GangKey("a/b"), annotations={"phalanx.dev/owner-deadline": "90s"})
    assert run_times(plain, None, None, since=start).maximum == 90


def test_a_deadline_of_an_owner_that_nobody_can_read_is_a_fault() -> None:
    gang = Gang(GangKey("a/b"), annotations={"phalanx.dev/owner-deadline": "soon"})
    (fault,) = run_times(gang, None, None).faults
    assert fault.startswith("phalanx.dev/owner-deadline of the group: 'soon' is not a duration")
