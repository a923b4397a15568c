"""Time division multiplexing: nodes that are lent for a part of the day."""

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.errors import ConfigError
from phalanx.model.task import GangKey
from phalanx.plugins.tdm import TdmPlugin
from phalanx.session.cycle import open_session
from phalanx.session.node_answers import Site
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

ZONE, PREEMPTABLE = "volcano.sh/revocable-zone", "volcano.sh/preemptable"
MIN_AVAILABLE, MAX_UNAVAILABLE = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
MIDNIGHT = 1767225600.0
"""2026-01-01T00:00:00Z."""
HOUR = 3600.0
DAY_SHIFT = {"tdm.revocable-zone.rz1": "10:00-21:00"}


def at(hour: float) -> float:
    return MIDNIGHT + hour * HOUR


def lent(name: str, zone: str = "rz1", *, cpu: int = 8) -> Document:
    return build.node(name, labels={ZONE: zone}, cpu=cpu)


def pod(name: str, group: str, annotations: dict[str, str] | None = None, *, on: str = "") -> Document:
    document = build.pod(name, group=group, on=on, cpu=1)
    document["metadata"]["annotations"].update(annotations or {})
    return document


def group(name: str, annotations: dict[str, str] | None = None, *, phase: str = "Inqueue") -> Document:
    document = build.pod_group(name, min_member=0, phase=phase)
    document["metadata"]["annotations"] = annotations or {}
    return document


def cluster_with(
    *nodes: Document, arguments: Document | None = None, actions: str = "allocate", more: tuple[str, ...] = ()
) -> Cluster:
    policy = build.policy([[*more, {"name": "tdm", "arguments": arguments or DAY_SHIFT}]], actions=actions)
    return build.cluster(nodes=0, policy=policy).submit(nodes)


def session_of(cluster: Cluster, hour: float) -> Session:
    return open_session(cluster.objects.snapshot(at(hour)), cluster.policy, CATALOGUE)


def nodes_for(annotations: dict[str, str], *, hour: float, arguments: Document | None = None) -> dict[str, float]:
    """Return the nodes that the filters let a pod onto, each with its score."""
    cluster = cluster_with(lent("lent"), lent("stray", "rz9"), build.node("own"), arguments=arguments)
    session = session_of(cluster.submit(group("batch"), pod("batch-0", "batch", annotations)), hour)
    shape = session.gangs[GangKey("default/batch")].tasks[0].task.shape
    refused = np.any([layer.refused for _, layers in session.screen(shape, slice(None)) for layer in layers], axis=0)
    valuation, _ = session.value(shape, Site(slice(None)))
    assert valuation is not None
    scores = dict(zip(session.snapshot.nodes.names, valuation.floats.tolist(), strict=True))
    return {name: scores[name] for name, away in zip(scores, refused, strict=True) if not away}


@pytest.mark.parametrize(
    ("window", "open_at", "shut_at"),
    [
        ("10:00-21:00", [10, 15.5, 21], [0, 9.99, 21.01, 23.5]),
        ("22:00-6:00", [22, 23.9, 0, 6], [6.01, 12, 21.99]),
        ("8:00-8:00", [0, 7.5, 8, 9, 23.9], []),
        (" 0:00-23:59 ", [0, 12, 23.98], [23.99]),
    ],
)
def test_a_window_is_a_part_of_every_day(window: str, open_at: list[float], shut_at: list[float]) -> None:
    answers = [
        bool(nodes_for({ZONE: "*"}, hour=hour, arguments={"tdm.revocable-zone.rz1": window}).get("lent"))
        for hour in open_at + shut_at
    ]
    assert answers == [True] * len(open_at) + [False] * len(shut_at)


@pytest.mark.parametrize("window", ["", "10:00", "10:00_21:00", "1:0-2:0", "24:00-1:00", "10:60-11:00", 5])
def test_what_is_not_a_window_is_refused_with_an_example(window: object) -> None:
    with pytest.raises(
        ConfigError, match=r"argument 'tdm.revocable-zone.rz1': .* is not a window; write for example '10:00-21:00'"
    ):
        TdmPlugin(PluginPolicy("tdm", arguments={"tdm.revocable-zone.rz1": window}))


def test_a_revocable_task_prefers_lent_nodes_while_they_are_open() -> None:
    assert nodes_for({ZONE: "*"}, hour=12) == {"lent": 100.0, "own": 0.0}
    assert nodes_for({PREEMPTABLE: "true"}, hour=12) == {"lent": 100.0, "own": 0.0}


def test_a_task_that_is_not_revocable_stays_off_lent_nodes() -> None:
    assert nodes_for({}, hour=12) == {"own": 0.0}


def test_nobody_uses_lent_nodes_outside_their_window() -> None:
    assert nodes_for({ZONE: "*"}, hour=22) == {"own": 0.0}


def test_a_gang_that_finds_no_node_is_told_about_the_zones() -> None:
    cluster = cluster_with(lent("a"), lent("b"), lent("stray", "rz9"), more=("gang",))
    cluster.submit(build.gang("batch", tasks=1, cpu=1))
    closed, reserved = (cluster.run_cycle(now=at(hour)).why("batch") for hour in (22, 12))
    assert "2 node(s) were in revocable zone rz1 (open 10:00-21:00 UTC)" in closed
    assert "1 node(s) were in revocable zone rz9 (without a window)" in closed
    assert "2 are in a revocable zone that it must not use" in reserved


def evicted(cluster: Cluster, hour: float) -> list[str]:
    return sorted(key.removeprefix("default/") for key in cluster.run_cycle(now=at(hour)).decisions.evictions)


def full_cluster(tasks: int, annotations: dict[str, str], arguments: Document | None = None) -> Cluster:
    cluster = cluster_with(lent("lent"), actions="shuffle", arguments=arguments).submit(
        group("batch", annotations, phase="Running")
    )
    return cluster.submit(pod(f"batch-{number}", "batch", {PREEMPTABLE: "true"}, on="lent") for number in range(tasks))


@pytest.mark.parametrize(
    ("annotations", "victims"),
    [
        ({}, 1),
        ({MAX_UNAVAILABLE: "50%"}, 3),
        ({MAX_UNAVAILABLE: "30%"}, 2),
        ({MAX_UNAVAILABLE: "3"}, 3),
        ({MIN_AVAILABLE: "3"}, 2),
        ({MIN_AVAILABLE: "30%"}, 3),
        ({MIN_AVAILABLE: "9"}, 0),
        ({MAX_UNAVAILABLE: "half"}, 1),
    ],
)
def test_after_the_window_a_gang_loses_as_many_tasks_as_its_budget_allows(annotations: dict[str, str], victims: int) -> None:
    cluster = full_cluster(5, annotations)
    assert [len(evicted(cluster, hour)) for hour in (12, 22)] == [0, victims]


def test_tasks_that_are_not_preemptable_or_on_other_nodes_stay() -> None:
    cluster = cluster_with(lent("lent"), lent("stray", "rz9"), build.node("own"), actions="shuffle")
    cluster.submit(
        group("batch", {MAX_UNAVAILABLE: "100%"}, phase="Running"), pod("batch-0", "batch", {PREEMPTABLE: "false"}, on="lent")
    )
    cluster.submit(pod("batch-1", "batch", on="own"), pod("batch-2", "batch", on="stray"), pod("batch-3", "batch", on="lent"))
    assert evicted(cluster, 22) == ["batch-3"]


def test_tasks_that_are_away_already_count_against_the_budget() -> None:
    cluster = full_cluster(4, {MAX_UNAVAILABLE: "2"})
    cluster.submit(pod("batch-4", "batch"))
    assert len(evicted(cluster, 22)) == 1


def test_a_gang_is_left_in_peace_while_a_task_is_leaving_but_not_longer_than_the_period() -> None:
    cluster = full_cluster(2, {}, {**DAY_SHIFT, "tdm.evict.period": "10m"})
    leaving = pod("batch-2", "batch", {PREEMPTABLE: "true"}, on="lent")
    leaving["metadata"].update(deletionTimestamp="2026-01-01T23:00:00Z", deletionGracePeriodSeconds=3600)
    cluster.submit(leaving)
    assert [len(evicted(cluster, hour)) for hour in (22.01, 22.16, 22.17)] == [0, 0, 1]


def starving_cluster(preemptor: dict[str, str]) -> Cluster:
    cluster = cluster_with(lent("lent", cpu=2), build.node("own", cpu=2), actions="preempt")
    cluster.submit(group("batch", {PREEMPTABLE: "true", MAX_UNAVAILABLE: "100%"}, phase="Running"))
    cluster.submit(pod(f"batch-{number}", "batch", on="lent" if number < 2 else "own") for number in range(4))
    return cluster.submit(group("web"), pod("web-0", "web", preemptor))


def test_a_task_that_is_not_preemptable_pushes_a_preemptable_one_off_an_ordinary_node() -> None:
    (victim,) = evicted(starving_cluster({PREEMPTABLE: "false"}), 12)
    assert victim in ("batch-2", "batch-3")


@pytest.mark.parametrize("annotations", [{}, {PREEMPTABLE: "true"}, {PREEMPTABLE: "false", ZONE: "*"}])
def test_a_task_that_is_preemptable_or_revocable_pushes_nobody_out(annotations: dict[str, str]) -> None:
    assert evicted(starving_cluster(annotations), 12) == []


def test_gangs_that_are_not_preemptable_come_first_and_starve_while_a_task_waits() -> None:
    cluster = cluster_with(build.node("own"))
    for name, annotations in (("batch", {PREEMPTABLE: "true"}), ("web", {}), ("running", {})):
        cluster.submit(group(name, annotations), pod(f"{name}-0", name, on="own" if name == "running" else ""))
    session = session_of(cluster, 12)
    gangs = sorted(session.gangs.values(), key=session.gang_key)
    assert [gang.gang.name for gang in gangs][-1] == "batch"
    assert {gang.gang.name: session.gang_starving(gang).reason for gang in gangs} == {
        "batch": "Preemptable", "running": "NotStarving", "web": "",
    }  # fmt: skip


def test_promises_count_for_a_gang_only_when_they_make_it_whole() -> None:
    cluster = cluster_with(build.node("own")).submit(build.gang("batch", tasks=2, cpu=1))
    session = session_of(cluster, 12)
    gang = session.gangs[GangKey("default/batch")]
    with session.statement() as statement:
        answers = [session.gang_pipelined(gang)]
        for task in gang.tasks:
            statement.pipeline([task], [0])
            answers.append(session.gang_pipelined(gang))
    assert answers == [False, False, True]
