"""Those who judge a storm find what is wrong, and nothing else."""

import io
from math import inf
from pathlib import Path
from random import Random
from time import time as wall_clock
from typing import Any

import pytest

from phalanx.config.policies import DEFAULT_PROFILE, policy_of_profile
from phalanx.dev.replicas import Replica
from phalanx.live.catalogue import connected
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from phalanx.testing.storm.invariants import Rest
from tests.chaos.disorder import Sample, Watched, judge_life
from tests.chaos.evictions import AFTER_TROUBLE_SECONDS, Evictions
from tests.chaos.gangs import CHOSEN, DIALECTS, LABEL, OWNERS, QUEUE, QUEUES, drawn_gang, path_of
from tests.chaos.recorder import EXPLAINED_SECONDS, LASTING_SECONDS, Ledger
from tests.chaos.violations import Findings
from tests.chaos.weather import REQUESTS, WATCHES, Weather
from tests.support.fault_proxy import Blow, Harm, Proxy
from tests.support.http_api import served


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def findings() -> Findings:
    return Findings(io.StringIO())


@pytest.fixture
def ledger(time: Time, findings: Findings) -> Ledger:
    return Ledger({"n1": build.node("n1", cpu=4)}, findings, time)


def pod(name: str, node: str = "n1", phase: str = "Running", cpu: int = 2) -> dict[str, Any]:
    found = build.pod(name, cpu=cpu, spec={"nodeName": node} if node else {})
    meta = {**found["metadata"], "uid": f"u-{name}", "labels": {LABEL: "g"}}
    return {**found, "metadata": meta, "status": {"phase": phase}}


def kinds(findings: Findings) -> list[str]:
    return [item.kind for item in findings.violations]


def test_a_node_that_is_full_is_no_violation(ledger: Ledger, findings: Findings) -> None:
    for name in ("a", "b"):
        ledger.note("ADDED", pod(name))
    ledger.note("ADDED", pod("c", phase="Succeeded"))
    ledger.note("ADDED", pod("d", node=""))
    assert kinds(findings) == []


def test_a_node_that_holds_too_much_is_one_at_once_when_no_leader_changed(ledger: Ledger, findings: Findings) -> None:
    for name in ("a", "b", "c"):
        ledger.note("ADDED", pod(name))
    assert kinds(findings) == ["node over-committed"]
    assert "n1 holds" in findings.violations[0].text
    assert "a, b, c" in findings.violations[0].text


def test_what_an_old_leader_had_on_the_wire_may_land_and_go(ledger: Ledger, findings: Findings, time: Time) -> None:
    ledger.leader_since = time.now - EXPLAINED_SECONDS / 2
    for name in ("a", "b", "c"):
        ledger.note("ADDED", pod(name))
    time.now += LASTING_SECONDS / 2
    ledger.look()
    ledger.note("DELETED", pod("c"))
    time.now += LASTING_SECONDS
    ledger.look()
    assert (kinds(findings), findings.counts["passing over-commitments"]) == ([], 1)


def test_it_must_not_last(ledger: Ledger, findings: Findings, time: Time) -> None:
    ledger.leader_since = time.now
    for name in ("a", "b", "c"):
        ledger.note("ADDED", pod(name))
    time.now += LASTING_SECONDS + 1
    for _ in range(2):
        ledger.look()
    ledger.note("DELETED", pod("c"))
    assert (kinds(findings), findings.counts["passing over-commitments"]) == (["node over-committed for long"], 0)


def test_a_pod_with_a_second_node_is_seen(ledger: Ledger, findings: Findings) -> None:
    ledger.note("ADDED", pod("a"))
    ledger.note("MODIFIED", pod("a", node="n2"))
    assert kinds(findings) == ["pod bound twice"]


# --- queues --------------------------------------------------------------------------------------------------------------


SMALL = "chaos-small"
ROOM = int(QUEUES[SMALL]["capability"]["cpu"])


def in_queue(name: str, cpu: int, gang: str = "g", **more: Any) -> dict[str, Any]:
    found = pod(name, node=f"of-{name}", cpu=cpu, **more)
    return {**found, "metadata": {**found["metadata"], "labels": {LABEL: gang, QUEUE: SMALL}}}


def test_a_queue_that_has_reached_its_limit_is_no_violation(ledger: Ledger, findings: Findings) -> None:
    ledger.note("ADDED", in_queue("a", ROOM))
    ledger.note("ADDED", in_queue("b", ROOM, phase="Succeeded"))
    ledger.note("ADDED", pod("c", cpu=2))
    assert kinds(findings) == []


def test_a_bind_beyond_the_limit_of_a_queue_is_one(ledger: Ledger, findings: Findings) -> None:
    ledger.note("ADDED", in_queue("a", ROOM))
    ledger.note("ADDED", in_queue("b", 1))
    assert kinds(findings) == ["queue limit"]
    assert f"pods of queue {SMALL} hold" in findings.violations[0].text
    assert "a, b; no leader has changed" in findings.violations[0].text


def test_what_lands_in_a_queue_after_a_change_of_leaders_is_counted(ledger: Ledger, findings: Findings, time: Time) -> None:
    ledger.leader_since = time.now
    ledger.note("ADDED", in_queue("a", ROOM))
    ledger.note("ADDED", in_queue("b", 1))
    assert kinds(findings) == []
    assert findings.counts["binds beyond a limit that a change of leaders explains"] == 1
    time.now += EXPLAINED_SECONDS + 1
    ledger.note("ADDED", in_queue("c", 1))
    assert kinds(findings) == ["queue limit"]


def test_who_leaves_a_queue_or_has_lost_its_group_holds_nothing_of_it(ledger: Ledger, findings: Findings) -> None:
    leaving = in_queue("a", ROOM)
    ledger.note("ADDED", leaving)
    ledger.note("MODIFIED", {**leaving, "metadata": {**leaving["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    ledger.note("ADDED", in_queue("b", ROOM, gang="h"))
    ledger.withdrawn.add("h")
    ledger.note("ADDED", in_queue("c", ROOM))
    assert kinds(findings) == []


# --- evictions -----------------------------------------------------------------------------------------------------------


HIGH, LOW = 1000, 0


def member(name: str, gang: str, *, node: str = "", priority: int = LOW) -> dict[str, Any]:
    found = build.pod(name, cpu=2, group=gang, spec={"priority": priority, **({"nodeName": node} if node else {})})
    meta = {**found["metadata"], "uid": f"u-{name}", "labels": {LABEL: gang}}
    return {**found, "metadata": meta, "status": {"phase": "Running" if node else "Pending"}}


def preempted(name: str, whom: str) -> dict[str, Any]:
    about = {"name": name, "uid": f"u-{name}", "kind": "Pod"}
    return {"metadata": {"uid": f"e-{name}"}, "reason": "Preempted", "involvedObject": about,
            "message": f"By gangpreempt for default/{whom}: it has to go"}  # fmt: skip


def at_rest(ledger: Ledger) -> Rest:
    """Return a cluster of one node, with the pods of the ledger and the group of a gang that wants it."""
    (group,) = build.gang("want", tasks=1)[:1]
    policy = policy_of_profile(DEFAULT_PROFILE)
    return Rest([build.node("n1", cpu=2), group, *ledger.pods.values()], connected(policy), 0.0, frozenset())


@pytest.fixture
def evictions(ledger: Ledger, time: Time) -> Evictions:
    """A gang waits, for which a pod had to go in calm weather."""
    found = Evictions(ledger, calm_since=time.now)
    ledger.note("ADDED", member("want-0", "want"))
    ledger.note("ADDED", member("gone", "gave", node="n1"))
    time.now += AFTER_TROUBLE_SECONDS + 1
    ledger.note("DELETED", member("gone", "gave", node="n1"))
    found.note_event("ADDED", preempted("gone", "want"))
    time.now += 1
    return found


def in_vain(evictions: Evictions) -> list[str]:
    return [str(item) for item in evictions.violations(at_rest(evictions.ledger))]


def test_an_eviction_for_a_gang_that_waits_is_in_vain(evictions: Evictions) -> None:
    evictions.ledger.note("ADDED", member("thief", "thief", node="n1"))
    assert in_vain(evictions) == ["evicted in vain: pod gone for default/want, which waits"]


def test_one_for_a_gang_that_has_its_place_is_not(evictions: Evictions) -> None:
    evictions.ledger.note("MODIFIED", member("want-0", "want", node="n1"))
    assert (len(evictions.of_calm_weather()), in_vain(evictions)) == (1, [])


def test_one_for_a_gang_that_lost_its_place_again_is_not(evictions: Evictions) -> None:
    evictions.ledger.note("MODIFIED", member("want-0", "want", node="n1"))
    evictions.ledger.note("DELETED", member("want-0", "want", node="n1"))
    evictions.ledger.note("ADDED", member("want-1", "want"))
    assert in_vain(evictions) == []


@pytest.mark.parametrize(("priority", "count"), [(HIGH, 0), (LOW, 1)])
def test_somebody_more_important_may_come_in_between(evictions: Evictions, priority: int, count: int) -> None:
    evictions.ledger.note("ADDED", member("other", "other", node="n1", priority=priority))
    assert len(in_vain(evictions)) == count


def test_who_was_chosen_while_something_went_wrong_is_no_violation(evictions: Evictions) -> None:
    evictions.ledger.leader_since = evictions.ledger.clock() - 1
    assert in_vain(evictions) == []
    evictions.ledger.leader_since, evictions.calm_since = -inf, inf
    assert in_vain(evictions) == []


# --- gangs and processes -------------------------------------------------------------------------------------------------


def test_members_of_a_gang_are_counted(ledger: Ledger) -> None:
    for name, more in (("a", {"phase": "Succeeded"}), ("b", {}), ("c", {"node": ""}), ("d", {})):
        ledger.note("ADDED", pod(name, cpu=1, **more))
    ledger.note("DELETED", pod("d", cpu=1))
    assert dict(ledger.gang("g")) == {"all": 3, "bound": 2, "succeeded": 1}


@pytest.mark.parametrize(
    ("change", "kind"),
    [({}, []), ({"megabytes": 1.0}, ["grows"]), ({"files": 1}, ["grows"]), ({"tasks": 1}, ["grows"])],
    ids=["flat", "memory grows", "open files grow", "tasks grow"],
)
def test_a_process_must_stay_as_it_is(findings: Findings, change: dict[str, Any], kind: list[str]) -> None:
    start = {"megabytes": 80.0, "files": 60, "tasks": 50}
    samples = [Sample(**{name: value + change.get(name, 0) * number for name, value in start.items()}) for number in range(130)]
    judge_life("replica", samples, findings)
    assert kinds(findings) == kind


@pytest.mark.parametrize("most", [Sample(900.0, 60, 50), Sample(80.0, 900, 50), Sample(80.0, 60, 900)])
def test_a_process_must_not_use_too_much_even_for_a_moment(findings: Findings, most: Sample) -> None:
    judge_life("replica", [Sample(80.0, 60, 50), most], findings)
    assert kinds(findings) == ["uses too much"]


def test_what_a_process_uses_is_read_from_it(tmp_path: Path) -> None:
    with served(MemoryStore(wall_clock)) as connection, Proxy(connection) as proxy:
        config = proxy.write_kubeconfig(tmp_path / "config.yaml")
        watched = Watched(Replica(tmp_path, "alone", ["--kubeconfig", str(config), "--no-leader-elect"]), is_elder=True)
        with watched.replica:
            watched.sample()
            with watched.replica.asleep():
                watched.sample()  # who stands still says nothing, and is not waited for
    ((sample,),) = watched.samples.values()
    assert sample.megabytes > 20
    assert sample.files > 5
    assert sample.tasks > 5


def test_a_violation_is_told_once_and_says_when(findings: Findings) -> None:
    for _ in range(2):
        findings.violate("half-started", "gang a/b")
    assert str(findings.violations[0]).endswith(" s: half-started: gang a/b")
    assert findings.stream.getvalue().count("\n") == 1  # type: ignore[attr-defined]  # a StringIO


def test_every_harm_comes_and_the_same_seed_brings_the_same() -> None:
    def struck(seed: int) -> list[Blow | None]:
        time = Time()
        weather, found = Weather(Random(seed), time), []
        for number in range(20_000):
            time.now += 0.05
            found.append(weather.blow(is_watch=number % 10 == 0, is_read=number % 3 == 0))
        return found

    first = struck(1)
    assert first == struck(1) != struck(2)
    harms = {blow.harm for blow in first if blow is not None}
    assert harms == set(REQUESTS) | set(WATCHES) == set(Harm)


def test_gangs_of_all_dialects_and_owners_come_and_ask_for_no_more_than_they_have() -> None:
    chance = Random(1)
    gangs = [drawn_gang(chance, "chaos", f"g{number}", is_endless=number % 5 == 0) for number in range(400)]
    assert {gang.dialect for gang in gangs} == set(DIALECTS)
    assert {gang.owner for gang in gangs} == set(OWNERS)
    assert {gang.queue for gang in gangs} == set(CHOSEN) == {"", *QUEUES}
    assert all(1 <= gang.minimum <= gang.size for gang in gangs)
    assert all(path_of(document).startswith("/api") for gang in gangs for document in gang.documents())
