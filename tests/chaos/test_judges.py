"""Those who judge a storm find what is wrong, and nothing else."""

import io
from random import Random
from typing import Any

import pytest

from phalanx.testing import build
from tests.chaos.disorder import Sample, judge_life
from tests.chaos.gangs import DIALECTS, LABEL, OWNERS, drawn_gang, path_of
from tests.chaos.recorder import EXPLAINED_SECONDS, LASTING_SECONDS, Ledger
from tests.chaos.violations import Findings
from tests.chaos.weather import REQUESTS, WATCHES, Weather
from tests.support.fault_proxy import Blow, Harm


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


def test_members_of_a_gang_are_counted(ledger: Ledger) -> None:
    for name, more in (("a", {"phase": "Succeeded"}), ("b", {}), ("c", {"node": ""}), ("d", {})):
        ledger.note("ADDED", pod(name, cpu=1, **more))
    ledger.note("DELETED", pod("d", cpu=1))
    assert dict(ledger.gang("g")) == {"all": 3, "bound": 2, "succeeded": 1}


@pytest.mark.parametrize(
    ("megabytes", "files", "kind"),
    [(lambda i: 80.0, lambda i: 60, []), (lambda i: 80.0 + i, lambda i: 60, ["grows"]),
     (lambda i: 80.0, lambda i: 60 + i, ["grows"]), (lambda i: 900.0, lambda i: 60, ["uses too much"])],
    ids=["flat", "memory grows", "open files grow", "too large"],
)  # fmt: skip
def test_a_process_must_stay_as_it_is(findings: Findings, megabytes: Any, files: Any, kind: list[str]) -> None:
    judge_life("replica", [Sample(megabytes(i), files(i)) for i in range(130)], findings)
    assert kinds(findings) == kind


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
    assert all(1 <= gang.minimum <= gang.size for gang in gangs)
    assert all(path_of(document).startswith("/api") for gang in gangs for document in gang.documents())
