"""Work that is submitted later: like that of the last day, in each simulation other gangs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.dialects.cluster import ObjectCluster
from phalanx.model.moment import moment_text
from phalanx.session.cycle import Profile
from phalanx.sim.arrivals import Arrivals, arrivals_of
from phalanx.sim.eta import EtaQuestion, EtaRun, question_of, simulate_on
from phalanx.sim.known_durations import Durations
from phalanx.sim.running_work import DURATION
from phalanx.sim.world import World
from phalanx.testing import build

Document = dict[str, Any]
HOUR, DAY = 3600.0, 86_400.0
NOW = 1_767_600_000.0  # 2026-01-05T08:00:00Z


def gang(name: str, hours_ago: float, *, duration: str = "10m", queue: str = "default", tasks: int = 1) -> list[Document]:
    group, *pods = build.gang(name, tasks=tasks, gpus=1, queue=queue)
    for item in (group, *pods):
        item["metadata"]["creationTimestamp"] = moment_text(NOW - hours_ago * HOUR)
    group["metadata"]["annotations"] = {DURATION: duration} if duration else {}
    group["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name}]
    return [group, *pods]


def finished(name: str, hours_ago: float) -> list[Document]:
    group, pod = gang(name, hours_ago)
    pod["spec"]["nodeName"], pod["status"] = "node-0", {"phase": "Succeeded"}
    return [group, pod]


def old_node(hours: float = 100.0, gpus: int = 1) -> Document:
    node = build.node("node-0", gpus=gpus)
    node["metadata"]["creationTimestamp"] = moment_text(NOW - hours * HOUR)
    return node


def asked(*parts: Any) -> tuple[EtaQuestion, Arrivals]:
    documents = [item for part in parts for item in ([part] if isinstance(part, dict) else part)]
    cluster = ObjectCluster()
    for document in documents:
        cluster.put(document)
    snapshot = cluster.snapshot(NOW)
    durations = Durations(documents, snapshot)
    return question_of(documents, snapshot, ["default/w"], durations, 7 * DAY), arrivals_of(documents, snapshot, durations)


def world_of(question: EtaQuestion, seed: int = 0) -> World:
    chosen = build.policy()
    return World(Profile(chosen, catalogue_of(chosen.catalogue)), settings=question.settings(seed), seed=seed, start=NOW)


class Calendar:
    """Notes what is submitted when, and does nothing else."""

    def __init__(self) -> None:
        self.now = 0.0
        self.came: list[tuple[float, str]] = []
        self._deeds: list[tuple[float, Callable[[], object]]] = []

    def plan(self, offset: float, deed: Callable[[], object]) -> None:
        self._deeds.append((offset, deed))

    def submit(self, groups: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        self.came += [(self.now, group[0]["metadata"]["name"]) for group in groups]

    def advance(self, end: float) -> None:
        while self._deeds and (due := min(self._deeds, key=lambda item: item[0]))[0] < end:
            self._deeds.remove(due)
            self.now = due[0]
            due[1]()


def came(arrivals: Arrivals, seed: int = 0, seconds: float = DAY) -> list[tuple[float, str]]:
    """Return when which gangs come."""
    calendar = Calendar()
    arrivals.plan(calendar, seed, seconds)
    calendar.advance(seconds)
    return calendar.came


# --- what was submitted --------------------------------------------------------------------------------------------------


def test_gangs_of_the_last_day_are_seen_whether_they_wait_or_have_finished() -> None:
    _, found = asked(old_node(), gang("old", 30), finished("f", 20), gang("w", 2))
    assert [submission[0].created for submission in found.submissions] == [NOW - 20 * HOUR, NOW - 2 * HOUR]
    assert (found.gangs, found.seconds, found.is_enough) == (2, DAY, False)


def test_gangs_of_unknown_duration_and_those_without_their_pods_do_not_come_again() -> None:
    group, *_ = gang("half", 3, tasks=2)
    _, found = asked(old_node(), gang("x", 4, duration=""), group, gang("w", 2))
    assert found.gangs == 1


def test_pods_that_failed_and_were_replaced_do_not_come_again() -> None:
    group, failed, replaced = gang("a", 3, tasks=2)
    group["spec"]["minMember"], failed["status"] = 1, {"phase": "Failed"}
    _, found = asked(old_node(), group, failed, replaced)
    assert [pod["metadata"]["name"] for pod in found.submissions[0][0].pods] == [replaced["metadata"]["name"]]


def test_gangs_that_were_created_at_once_are_one_submission() -> None:
    _, found = asked(old_node(), gang("a", 5), gang("b", 5), gang("c", 5 - 50 / HOUR), gang("w", 2))
    assert [len(submission) for submission in found.submissions] == [3, 1]


def test_in_a_young_cluster_the_rate_is_that_since_it_exists_but_at_least_of_an_hour() -> None:
    assert asked(old_node(hours=6), gang("w", 2))[1].seconds == 6 * HOUR
    assert asked(old_node(hours=0.1), gang("w", 0.05))[1].seconds == HOUR


# --- what comes ----------------------------------------------------------------------------------------------------------


def hourly() -> Arrivals:
    return asked(old_node(), *(gang(f"g-{hour}", hour) for hour in range(23)), gang("w", 1.5))[1]


def test_the_same_seed_brings_the_same_gangs_and_another_seed_others() -> None:
    arrivals = hourly()
    first = came(arrivals)
    assert first == came(arrivals)
    assert first != came(arrivals, seed=1)


def test_as_many_come_as_did_and_on_every_day_anew() -> None:
    arrivals = hourly()
    counts = [len(came(arrivals, seed, 2 * DAY)) for seed in range(40)]
    assert 2 * 24 * 0.85 < sum(counts) / len(counts) < 2 * 24 * 1.15
    assert len(set(counts)) > 1


def test_no_gang_comes_after_the_end() -> None:
    calendar = Calendar()
    hourly().plan(calendar, 0, 6 * HOUR)
    calendar.advance(3 * DAY)
    assert 0 < len(calendar.came) < 15
    assert max(moment for moment, _ in calendar.came) < 6 * HOUR


def test_gangs_come_near_the_time_of_day_at_which_they_came() -> None:
    _, arrivals = asked(old_node(), *(gang(f"g-{number}", 6 + number / 10) for number in range(8)), gang("w", 6))
    moments = [moment for seed in range(5) for moment, _ in came(arrivals, seed)]
    assert moments
    assert all(16 * HOUR <= moment <= 19 * HOUR for moment in moments)


def test_what_comes_is_like_what_came_without_its_past() -> None:
    _, arrivals = asked(old_node(), gang("a", 5, queue="q", duration="1h..3h", tasks=2))
    group, *pods = arrivals.submissions[0][0].again("arrival-7", 0.5)
    assert (group["metadata"]["name"], group["spec"]["queue"], "status" in group) == ("arrival-7", "q", False)
    assert not {"ownerReferences", "creationTimestamp", "uid"} & {*group["metadata"], *pods[0]["metadata"]}
    assert [pod["metadata"]["name"] for pod in pods] == ["arrival-7-0", "arrival-7-1"]
    assert {pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods} == {"arrival-7"}
    assert {pod["metadata"]["annotations"][DURATION] for pod in pods} == {"7200.000s"}


# --- what that does to who waits -----------------------------------------------------------------------------------------


def crowded() -> tuple[EtaQuestion, Arrivals]:
    """A gang of two pods waits for a running one, while many small ones came in the last day."""
    running = gang("r", 0.5, duration="2h")
    running[1]["spec"]["nodeName"], running[1]["status"] = "node-0", {"phase": "Running", "startTime": moment_text(NOW - HOUR / 2)}
    past = [finished(f"g-{number}", number / 6) for number in range(1, 144)]
    return asked(old_node(gpus=2), *past, running, gang("w", 0.1, tasks=2))


def run(question: EtaQuestion, seed: int) -> EtaRun:
    return simulate_on(world_of(question, seed), question, seed)


def test_small_gangs_that_come_later_go_ahead_and_are_not_named() -> None:
    question, arrivals = crowded()
    (alone,) = {run(question, seed).starts["default/w"] for seed in range(2)}
    found = [run(replace(question, arrivals=arrivals), seed) for seed in range(4)]
    assert alone == pytest.approx(1.5 * HOUR, abs=3)
    assert max(one.starts["default/w"] for one in found) > alone + 60
    assert {name for one in found for name in one.after["default/w"]} <= {"default/r"}


def test_a_simulation_does_not_go_on_for_those_that_are_stuck() -> None:
    question, arrivals = crowded()
    found = run(replace(question, arrivals=arrivals, stuck=frozenset({"default/w"})), 0)
    assert (found.starts, found.reached) == ({}, 0.0)
