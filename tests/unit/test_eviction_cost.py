"""Evictions that cost least, gangs that are left alone after one, and evictions that are not worth what they destroy."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.errors import ConfigError
from phalanx.model.moment import moment_text
from phalanx.model.task import GangKey
from phalanx.plugins.evictioncost import EVICTED, EvictionCostPlugin
from phalanx.session.policy import PluginPolicy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import crowded_clusters as crowds

NOW = 1_700_000_000.0
HOUR = 3600
POLICY = policy_of_profile("phalanx")


def runs(name: str, node: str, *, hours: float, gpus: int = 8, **annotations: str) -> list[Document]:
    """Return a gang of low priority that has run for so long."""
    group = build.pod_group(name, min_member=1, phase="Running", priorityClassName="low")
    group["metadata"]["annotations"] = {key.replace("_", "-"): value for key, value in annotations.items()}
    pod = build.pod(f"{name}-0", group=name, on=node, cpu=0, gpus=gpus)
    pod["status"]["startTime"] = moment_text(int(NOW - hours * HOUR))
    return [group, pod]


def annotated(documents: list[Document], **annotations: str) -> list[Document]:
    """Return a gang whose group says more: `duration`, `last_checkpoint`, `evicted`."""
    more = {f"phalanx.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    documents[0]["metadata"]["annotations"] = {**documents[0]["metadata"].get("annotations", {}), **more}
    return documents


def wants(name: str, *, gpus: int = 8, **spec: Any) -> list[Document]:
    """Return a gang of high priority that waits."""
    group = build.pod_group(name, min_member=1, phase="Inqueue", priorityClassName="high", **spec)
    group["metadata"]["creationTimestamp"] = moment_text(int(NOW - 60))
    return [group, build.pod(f"{name}-0", group=name, cpu=0, gpus=gpus)]


def cluster(nodes: int, *parts: list[Document]) -> Cluster:
    found = build.cluster(nodes=nodes, policy=POLICY, gpus=8)
    return found.submit(crowds.classes(), *parts)


def victims(of: Cluster) -> list[str]:
    return sorted(of.run_cycle(now=NOW).decisions.evictions)


def test_the_gang_goes_that_loses_least() -> None:
    assert victims(cluster(3, runs("old", "node-0", hours=9), runs("young", "node-1", hours=2), runs("older", "node-2", hours=11),
                           wants("urgent"))) == ["default/young-0"]  # fmt: skip


def test_what_was_saved_is_not_lost() -> None:
    saved = annotated(runs("old", "node-0", hours=9), last_checkpoint=moment_text(int(NOW - 600)))
    assert victims(cluster(2, saved, runs("young", "node-1", hours=2), wants("urgent"))) == ["default/old-0"]


def test_a_condition_tells_of_a_checkpoint_too() -> None:
    saved = runs("old", "node-0", hours=9)
    saved[0]["status"]["conditions"] = [{"type": "phalanx.dev/last-checkpoint", "status": "True",
                                         "lastTransitionTime": moment_text(int(NOW - 600))}]  # fmt: skip
    assert victims(cluster(2, saved, runs("young", "node-1", hours=2), wants("urgent"))) == ["default/old-0"]


def test_gpus_count_and_not_only_time() -> None:
    small = [part for number in range(2) for part in runs(f"small-{number}", "node-0", hours=3, gpus=1)]
    assert victims(cluster(2, small, runs("large", "node-1", hours=2), wants("urgent"))) == [
        "default/small-0-0",
        "default/small-1-0",
    ]


def test_a_gang_that_was_evicted_says_so_and_is_left_alone_after_it_has_started_again() -> None:
    found = cluster(2, runs("old", "node-0", hours=9), runs("young", "node-1", hours=0.5), wants("urgent"))
    stamps = found.run_cycle(now=NOW).decisions.stamps
    text = stamps[GangKey("default/young")][EVICTED]
    assert text == f"1 times, last at {moment_text(int(NOW))}"
    again = annotated(runs("young", "node-1", hours=0.5), evicted=f"1 times, last at {moment_text(int(NOW - HOUR))}")
    assert victims(cluster(2, runs("old", "node-0", hours=9), again, wants("urgent"))) == ["default/old-0"]


@pytest.mark.parametrize(
    ("times", "hours", "goes"), [(1, 0.9, False), (1, 1.1, True), (3, 3.9, False), (3, 4.1, True), (60, 23, False)]
)
def test_the_time_doubles_with_each_eviction_up_to_the_longest(times: int, hours: float, goes: bool) -> None:
    text = f"{times} times, last at {moment_text(int(NOW - (hours + 0.1) * HOUR))}"
    assert bool(victims(cluster(1, annotated(runs("again", "node-0", hours=hours), evicted=text), wants("urgent")))) is goes


def test_an_eviction_that_was_refused_is_none() -> None:
    """Its pods run on since before it: a budget or the API server has kept them."""
    text = f"3 times, last at {moment_text(int(NOW - 60))}"
    found = cluster(1, annotated(runs("still", "node-0", hours=1), evicted=text), wants("urgent")).run_cycle(now=NOW).decisions
    assert sorted(found.evictions) == ["default/still-0"]
    assert found.stamps[GangKey("default/still")][EVICTED] == f"3 times, last at {moment_text(int(NOW))}"


def test_evictions_long_ago_are_forgotten() -> None:
    text = f"60 times, last at {moment_text(int(NOW - 49 * HOUR))}"
    assert victims(cluster(1, annotated(runs("again", "node-0", hours=1), evicted=text), wants("urgent"))) == ["default/again-0"]


def test_nobody_is_evicted_for_less_than_is_lost_and_the_gang_hears_why() -> None:
    ends_soon = annotated(runs("old", "node-0", hours=9), duration="9h30m")
    cycle = cluster(1, ends_soon, wants("urgent")).run_cycle(now=NOW)
    assert not cycle.decisions.evictions
    (gang,) = [outcome.state for outcome in cycle.decisions.outcomes if outcome.state.gang.name == "urgent"]
    cause = gang.no_victims[0]
    assert cause.numbers["cause"] == "EvictionCostsMore"
    assert cause.message.startswith("its victims would lose 72 GPU h of work, and it would gain 4 GPU h: it can start at ")


def test_an_eviction_that_gives_more_than_it_destroys_is_made() -> None:
    runs_long = annotated(runs("old", "node-0", hours=1), duration="9h")
    assert victims(cluster(1, runs_long, wants("urgent"))) == ["default/old-0"]


def test_where_nobody_knows_how_long_it_would_wait_evictions_are_made() -> None:
    assert victims(cluster(1, runs("old", "node-0", hours=90), wants("urgent"))) == ["default/old-0"]


def test_the_longest_time_is_not_below_the_first() -> None:
    assert CATALOGUE.plugins["evictioncost"] is EvictionCostPlugin
    with pytest.raises(ConfigError, match="shorter than 'first'"):
        EvictionCostPlugin(PluginPolicy("evictioncost", arguments={"first": "2h", "longest": "1h"}))
