"""Gangs that have run longer than expected, and the moment of an old file."""

from typing import Any

from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.moment import moment_text
from phalanx.sim.eta import EtaQuestion, question_of
from phalanx.sim.known_durations import Durations
from phalanx.sim.overdue import moment_of_input, overdue_gangs
from phalanx.sim.running_work import DURATION
from phalanx.testing import build

Document = dict[str, Any]
NOW, HOUR = 1_767_600_000.0, 3600.0


def running(name: str, hours: float, duration: str = "2h", deadline: int = 0) -> list[Document]:
    group, pod = build.gang(name, gpus=1)
    group["metadata"]["annotations"] = {DURATION: duration} if duration else {}
    pod["spec"] |= {"nodeName": "node-0", **({"activeDeadlineSeconds": deadline} if deadline else {})}
    pod["status"] = {"phase": "Running", "startTime": moment_text(NOW - hours * HOUR)}
    return [group, pod]


def question(*parts: Any) -> EtaQuestion:
    documents = [item for part in ([build.node("node-0", gpus=8)], *parts) for item in part]
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    snapshot = cluster.snapshot(NOW)
    return question_of(documents, snapshot, [], Durations(documents, snapshot), HOUR)


def test_a_gang_is_overdue_once_it_has_run_for_its_duration() -> None:
    asked = question(running("a", 3), running("b", 1), running("c", 3, duration=""), running("d", 2, duration="1h..3h"))
    assert [(item.name, item.done, item.at_most) for item in overdue_gangs(asked)] == [("default/a", 3 * HOUR, 3 * HOUR)]


def test_an_overdue_gang_is_assumed_to_end_at_its_deadline_and_after_it_at_once() -> None:
    asked = question(running("a", 3, deadline=4 * 3600), running("b", 5, duration="", deadline=4 * 3600))
    assert [item.at_most for item in overdue_gangs(asked)] == [HOUR, 0.0]


def test_a_pod_without_a_gang_is_overdue_too() -> None:
    pod = build.pod("alone", on="node-0", gpus=1, spec={"activeDeadlineSeconds": 3600})
    pod["status"]["startTime"] = moment_text(NOW - 2 * HOUR)
    assert [item.name for item in overdue_gangs(question([pod]))] == ["default/alone"]


def test_an_old_file_has_the_moment_of_its_newest_time() -> None:
    asked = question(old := running("a", 30), newer := running("b", 29))
    assert moment_of_input(asked, [*old, *newer]) == NOW - 29 * HOUR


def test_a_gang_that_was_overdue_when_the_file_was_written_is_no_reason_to_ask_for_that_moment() -> None:
    asked = question(old := running("a", 30), newer := running("b", 1, duration="9h"))
    assert moment_of_input(asked, [*old, *newer]) is None


def test_a_time_that_is_still_to_come_is_not_when_a_file_was_written() -> None:
    asked = question(old := running("a", 30))
    old[1]["metadata"]["deletionTimestamp"] = moment_text(NOW + HOUR)
    assert moment_of_input(asked, old) == NOW - 30 * HOUR
