"""Why a gang waits, as others have written it."""

from typing import Any

import pytest

from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.recorded import event_order, event_time, pod_refusal, recorded_reason, refusal
from phalanx.model.kinds import Document
from phalanx.model.task import GangKey
from phalanx.state.gang_state import GangState
from phalanx.testing import build
from tests.support import native_groups as native


def state_of(*documents: Document, gang: str = "default/train") -> GangState:
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    snapshot = cluster.snapshot(0)
    members = snapshot.members_of(GangKey(gang)).values()
    return GangState(snapshot.gangs[GangKey(gang)], ((task, -1) for task in members))


def refused(pod: Document, message: str, reason: str = "Unschedulable") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {**pod, "status": {"phase": "Pending", "conditions": [condition]}}


def warning(kind: str, name: str, message: str, **more: Any) -> dict[str, Any]:
    return {"type": "Warning", "message": message, "involvedObject": {"kind": kind, "name": name}, **more}


def native_gang(pods: int, message: str = "") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a group of three with a condition, and so many of its pods."""
    condition = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    group = {**native.group("train", min_count=3), "status": {"conditions": [condition]} if message else {}}
    return group, [dict(pod) for pod in native.pods("train", pods)]


def test_what_was_recorded_about_pods_that_are_gone_is_no_reason_to_wait() -> None:
    group = build.pod_group("train", min_member=4, phase="Inqueue")
    events = [warning("PodGroup", "train", "3 of 4 tasks run, below the minimum of 4 for 1 s; evicted in 59 s")]
    assert recorded_reason(state_of(group), [], events) == "no pods yet; 4 are needed"


def test_the_last_event_about_the_group_is_the_newest_word() -> None:
    group, pods = native_gang(3, "pod group is unschedulable")
    events = [
        warning("PodGroup", "train", "0 of 3 fit"),
        warning("PodGroup", "train", "1 of 3 fit"),
        warning("Pod", "train-0", "no"),
    ]
    assert recorded_reason(state_of(group, *pods), pods, events) == "1 of 3 fit"


def test_the_group_and_its_pods_share_what_they_have_to_say() -> None:
    group, pods = native_gang(3, "pod group is unschedulable")
    told = [refused(pods[0], "0/9 nodes: 9 Insufficient cpu"), *(refused(pod, "waiting for minCount pods") for pod in pods[1:])]
    text = "pod group is unschedulable; 2 pods: waiting for minCount pods; 1 pod: 0/9 nodes: 9 Insufficient cpu"
    assert recorded_reason(state_of(group, *told), told, []) == text


def test_pods_that_say_the_same_need_no_count_and_say_nothing_twice() -> None:
    group, pods = native_gang(3)
    told = [refused(pod, "no room") for pod in pods]
    assert recorded_reason(state_of(group, *told), told, []) == "no room"
    whole = "2/3 tasks unschedulable: no room"
    for message, text in ((whole, whole), ("no", "no room"), ("no room", "no room")):
        group, pods = native_gang(3, message)
        assert recorded_reason(state_of(group, *told), told, []) == text


def test_an_event_about_a_pod_is_better_than_nothing() -> None:
    group, pods = native_gang(3)
    event = warning("Pod", "train-0", "refused by a webhook")
    assert recorded_reason(state_of(group, *pods), pods, [event]) == "refused by a webhook"


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        (1, "1 of 3 pods is there; nothing starts before all are"),
        (2, "2 of 3 pods are there; nothing starts before all are"),
        (3, "no scheduler has said anything; is one running for schedulerName {}?"),
    ],
)
def test_where_nobody_speaks_the_obvious_is_said(pods: int, text: str) -> None:
    group, members = native_gang(pods)
    scheduler = members[0]["spec"].get("schedulerName") or "default-scheduler"
    assert recorded_reason(state_of(group, *members), members, []) == text.format(scheduler)


def test_a_refusal_is_read_from_every_way_to_say_it() -> None:
    group, pods = native_gang(3, "pod group is unschedulable")
    found = refusal(state_of(group, *pods).gang)
    assert found is not None
    assert found.reason == "Unschedulable"
    assert refusal(state_of(*build.gang("train", tasks=1)).gang) is None
    assert pod_refusal(refused(pods[0], "no room")) == ("Unschedulable", "no room")
    assert pod_refusal({"metadata": {}}) == ("", "")


def test_events_of_both_kinds_are_put_in_order() -> None:
    old: dict[str, Any] = {"metadata": {"resourceVersion": "9"}, "lastTimestamp": "2026-01-01T12:00:00Z"}
    new: dict[str, Any] = {"metadata": {"resourceVersion": "3"}, "lastTimestamp": None, "eventTime": "2026-01-01T12:00:00.500000Z"}
    again: dict[str, Any] = {**new, "series": {"lastObservedTime": "2026-01-01T12:00:01.000000Z"}}
    bare: dict[str, Any] = {"metadata": {"creationTimestamp": "2026-01-01T12:00:02Z", "resourceVersion": "x"}}
    assert sorted([bare, again, new, old], key=event_order) == [old, new, again, bare]
    assert event_time({}) == ""
