"""Reclaim: queues that have less than they deserve take it back from those that have more."""

from dataclasses import replace
from typing import Any

import pytest

from phalanx.actions.reclaim import ReclaimAction
from phalanx.config.builtin import CATALOGUE
from phalanx.errors import ConfigError
from phalanx.session.cycle import run_cycle
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import crowded_clusters as crowds

POLICY = build.policy([("priority",), ("gang", "conformance", "predicates", "capacity", "nodeorder")], "allocate, reclaim")


def queue(name: str, cpu: int, **spec: Any) -> Document:
    return build.queue(name, deserved={"cpu": cpu}, **spec)


def cluster_of(*queues: Document, nodes: int = 1) -> Cluster:
    return build.cluster(nodes=nodes, policy=POLICY, cpu=4).submit(crowds.classes(), queues)


def gang(name: str, of: str, places: list[str], *, minimum: int = 1, cpu: int = 1) -> list[Document]:
    """Return a gang with a task per place; an empty place is a task that waits."""
    group = build.pod_group(name, min_member=minimum, phase="Inqueue", queue=of)
    return [group, *(build.pod(f"{name}-{n}", group=name, on=place, cpu=cpu) for n, place in enumerate(places))]


def test_a_queue_takes_back_what_it_deserves() -> None:
    cluster = cluster_of(queue("greedy", 2), queue("patient", 2))
    cycle = cluster.submit(gang("old", "greedy", ["node-0"] * 4), gang("new", "patient", [""])).run_cycle()
    assert cycle.pipelined == [("new-0", "node-0")]
    (entry,) = cycle.answer["evictions"].values()
    assert (entry["action"], entry["for"]) == ("reclaim", "default/new")
    assert entry["message"] == (
        "reclaimed from queue greedy for gang default/new of queue patient;"
        " let go by gang, conformance, capacity; number 1 of 1 in the order of victims on node-0"
    )


def test_a_queue_keeps_what_it_deserves() -> None:
    cluster = cluster_of(queue("modest", 4), queue("patient", 2))
    assert not cluster.submit(gang("old", "modest", ["node-0"] * 4), gang("new", "patient", [""])).run_cycle().decisions.evictions


def test_a_queue_that_has_what_it_deserves_takes_nothing() -> None:
    cluster = cluster_of(queue("greedy", 1), queue("full", 1))
    cluster.submit(gang("old", "greedy", ["node-0"] * 3), gang("mine", "full", ["node-0"]), gang("new", "full", [""]))
    assert not cluster.run_cycle().decisions.evictions


def test_a_queue_that_is_not_to_be_reclaimed_keeps_all() -> None:
    cluster = cluster_of(queue("greedy", 1, reclaimable=False), queue("patient", 2))
    assert not cluster.submit(gang("old", "greedy", ["node-0"] * 4), gang("new", "patient", [""])).run_cycle().decisions.evictions


def test_a_guarantee_under_a_name_of_quotas_holds_nothing_back() -> None:
    cluster = cluster_of(queue("greedy", 2, guarantee={"resource": {"requests.cpu": 4, "count/pods": 4}}), queue("patient", 2))
    cycle = cluster.submit(gang("old", "greedy", ["node-0"] * 4), gang("new", "patient", [""])).run_cycle()
    assert cycle.pipelined == [("new-0", "node-0")]


def test_nobody_goes_for_a_gang_that_cannot_be_whole() -> None:
    cluster = cluster_of(queue("greedy", 1), queue("patient", 3))
    cluster.submit(gang("old", "greedy", ["node-0"] * 4), gang("new", "patient", ["", ""], minimum=2, cpu=3))
    cycle = cluster.run_cycle()
    assert (cycle.decisions.evictions, cycle.pipelined) == ({}, [])


def test_protected_tasks_stay() -> None:
    old = gang("old", "greedy", ["node-0"] * 4)
    for pod in old[1:]:
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    cluster = cluster_of(queue("greedy", 1), queue("patient", 2))
    assert not cluster.submit(old, gang("new", "patient", [""])).run_cycle().decisions.evictions


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="'reclaim', argument 'victims': unknown setting"):
        ReclaimAction({"victims": "fewest"})


def test_a_hierarchy_of_shares_counts_gangs_that_the_session_does_not_look_at() -> None:
    hierarchy = {"name": "drf", "enableHierarchy": True}
    policy = build.policy([["gang", hierarchy], ["predicates", "nodeorder"]], "allocate, reclaim")
    cluster = build.cluster(nodes=1, policy=policy, cpu=4).submit(queue("greedy", 1), queue("patient", 2))
    snapshot = cluster.submit(gang("old", "greedy", ["node-0"] * 4), gang("new", "patient", [""])).objects.snapshot(0.0)
    settled = replace(snapshot, active=tuple(key for key in snapshot.active if key == "default/new"))
    found = [run_cycle(seen, policy, CATALOGUE) for seen in (snapshot, settled)]
    assert found[0].evictions.keys() == found[1].evictions.keys()
