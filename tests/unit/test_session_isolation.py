"""A gang on which a session fails is left out and told; the others are decided about."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.dialects.cluster import ObjectCluster
from phalanx.errors import ConfigError
from phalanx.explain.quarantine import quarantine_condition
from phalanx.explain.why import why
from phalanx.model.kinds import POD
from phalanx.plugins.gang import GangPlugin
from phalanx.session.cycle import Catalogue, Decider, Profile, run_isolated
from phalanx.session.decision import Decisions
from phalanx.session.isolation import TRIED_AGAIN_SECONDS
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.sim.world import World
from phalanx.state.gang_state import GangState
from phalanx.state.verdict import Verdict
from phalanx.testing import build
from tests.support import sim_worlds as worlds

POLICY = build.policy([["priority", "gang"], ["predicates"]], "enqueue, allocate")


class Raising(GangPlugin):
    """Holds gangs to their minima, and cannot count those that are called bad."""

    def gang_valid(self, session: Session, gang: GangState) -> Verdict:
        if "bad" in gang.key:
            raise ZeroDivisionError("of a bad gang")
        return super().gang_valid(session, gang)


class RaisingAtTheOpening(GangPlugin):
    """Fails before any gang is looked at, for each bad one."""

    def open(self, session: Session) -> None:
        super().open(session)
        for gang in session.gangs.values():
            if "bad" in gang.key:
                raise KeyError("bad")


def catalogue_with(plugin: Callable[..., Any]) -> Catalogue:
    return replace(CATALOGUE, plugins={**CATALOGUE.plugins, "gang": plugin})


def cluster_of(*gangs: str) -> ObjectCluster:
    cluster = ObjectCluster()
    for document in (build.queue("default"), build.node("n0", cpu=32)):
        cluster.put(document)
    for name in gangs:
        for document in build.gang(name, tasks=2, cpu=1):
            cluster.put(document)
    return cluster


def started(decisions: Decisions) -> set[str]:
    return {key.split("/")[1].rpartition("-")[0] for key in decisions.binds}


@pytest.mark.parametrize("plugin", [Raising, RaisingAtTheOpening])
@pytest.mark.parametrize("bad", [["bad"], ["bad-0", "bad-1", "bad-2"]])
def test_the_others_start_and_the_bad_ones_are_told(plugin: type, bad: list[str]) -> None:
    snapshot = cluster_of("a", *bad, "z").snapshot(0.0)
    decisions = run_isolated(snapshot, POLICY, catalogue_with(plugin))
    assert started(decisions) == {"a", "z"}
    assert sorted(decisions.faults) == [f"default/{name}" for name in bad]
    for outcome in (outcome for outcome in decisions.outcomes if outcome.state.key in decisions.faults):
        condition = quarantine_condition(outcome, snapshot)
        assert condition is not None
        assert condition.reason == "SchedulerFault"
        assert "please report it" in why(outcome, snapshot)
    assert "Traceback" in decisions.faults[snapshot.active[1]].traceback


def test_it_is_looked_for_once_as_long_as_nothing_changes() -> None:
    runs: list[int] = []

    class Counting(Raising):
        def open(self, session: Session) -> None:
            super().open(session)
            runs.append(len(session.gangs))

    cluster, decider, catalogue = cluster_of("a", "bad", "c", "d"), Decider(), catalogue_with(Counting)

    def decide(now: float) -> int:
        runs.clear()
        assert started(decider.decide(cluster.snapshot(now), POLICY, catalogue)) == {"a", "c", "d"}
        return len(runs)

    assert decide(0.0) > 2
    assert decide(1.0) == 1
    cluster.put(build.pod_group("bad", min_member=1))
    assert decide(2.0) > 2
    assert decide(3.0) == 1
    assert decide(3.0 + TRIED_AGAIN_SECONDS) > 2


def test_each_shard_remembers_its_own() -> None:
    runs: list[int] = []

    class Counting(Raising):
        def open(self, session: Session) -> None:
            super().open(session)
            runs.append(len(session.gangs))

    first, second = cluster_of("a", "bad", "c"), cluster_of("d", "e")
    decider, catalogue = Decider(), catalogue_with(Counting)
    for now in (0.0, 1.0):
        runs.clear()
        decider.decide(first.snapshot(now), replace(POLICY, node_pool="x"), catalogue)
        decider.decide(second.snapshot(now), replace(POLICY, node_pool="y"), catalogue)
    assert len(runs) == 2


def test_a_cluster_that_users_look_at_goes_on_and_a_simulation_does_not() -> None:
    served, plain = (World(Profile(POLICY, catalogue_with(Raising)), is_served=is_served) for is_served in (True, False))
    for world in (served, plain):
        world.load(
            [build.node("n0", cpu=32), build.queue("default"), *build.gang("bad", cpu=1), *build.gang("good", tasks=2, cpu=1)]
        )
    worlds.run(served, 10)
    bound = {pod["metadata"]["name"] for pod in served.store.items(POD) if pod["spec"].get("nodeName")}
    assert bound == {"good-0", "good-1"}
    assert "please report it" in served.reasons()["default/bad"]
    with pytest.raises(ZeroDivisionError):
        worlds.run(plain, 10)


def test_where_no_gang_is_to_blame_the_session_fails() -> None:
    class Broken(GangPlugin):
        def open(self, session: Session) -> None:
            raise KeyError("always")

    with pytest.raises(KeyError, match="always"):
        run_isolated(cluster_of("a", "b").snapshot(0.0), POLICY, catalogue_with(Broken))


def test_a_wrong_configuration_is_nobody_s_fault() -> None:
    class Misconfigured(GangPlugin):
        def __init__(self, policy: PluginPolicy) -> None:
            raise ConfigError("no such argument")

    with pytest.raises(ConfigError):
        run_isolated(cluster_of("a").snapshot(0.0), POLICY, catalogue_with(Misconfigured))
