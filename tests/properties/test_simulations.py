"""Laws of simulated clusters, whatever happens in them."""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.model.kinds import POD
from phalanx.session.cycle import Profile
from phalanx.sim.playback import play
from phalanx.sim.recorder import Recorder
from phalanx.sim.result import Run, result
from phalanx.sim.scenario import Failure, NodeEvent, Scenario
from phalanx.sim.settings import Delays, Settings, Span
from phalanx.sim.setup import set_stage
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import sim_worlds as worlds

HOURS = 3600.0
NODES = 4
GANG_PROFILES = ("phalanx", "volcano", "kai")
SECONDS = st.integers(0, 3600).map(float)
SPANS = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: Span(float(min(pair)), float(max(pair))))


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, what comes to it and what befalls it."""

    gangs: tuple[dict[str, Any], ...]
    nodes: tuple[NodeEvent, ...]
    failures: tuple[Failure, ...]
    settings: Settings
    seed: int


GANGS = st.fixed_dictionaries(
    {
        "tasks": st.integers(1, 6), "spare": st.integers(0, 2), "gpus": st.integers(1, 2), "duration": st.integers(1, 3000),
        "priority": st.sampled_from(["", "low", "high"]), "at": SECONDS,
    }
)  # fmt: skip
EVENTS = st.builds(
    NodeEvent, SECONDS, st.integers(0, NODES - 1).map(lambda number: f"node-{number}"),
    st.sampled_from(["die", "return", "drain", "cordon", "uncordon"]),
)  # fmt: skip
CASES = st.builds(
    Case,
    gangs=st.lists(GANGS, min_size=1, max_size=6).map(tuple),
    nodes=st.lists(EVENTS, max_size=5).map(tuple),
    failures=st.lists(st.builds(Failure, SECONDS, gang=st.just("default/gang-0")), max_size=2).map(tuple),
    settings=st.builds(
        Settings,
        delays=st.builds(Delays, bind=SPANS, pull=SPANS, start=SPANS, stop=SPANS),
        period=st.sampled_from([1.0, 7.0]),
        parks_up_to=st.sampled_from([0.0, 300.0]),
        restart_after=st.sampled_from([None, 1.0, 30.0]),
        keeps_progress=st.booleans(),
        heartbeat=st.just(900.0),
    ),
    seed=st.integers(0, 99),
)


def objects(case: Case) -> list[Any]:
    classes = [("low", 10), ("high", 90)]
    found: list[Any] = [build.node(f"node-{number}", gpus=4) for number in range(NODES)]
    found += [{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
              for name, value in classes]  # fmt: skip
    for number, wish in enumerate(case.gangs):
        minimum = max(wish["tasks"] - wish["spare"], 1)
        group, *pods = worlds.gang(f"gang-{number}", tasks=wish["tasks"], min_member=minimum, gpus=wish["gpus"])
        group["metadata"]["annotations"] = {
            "phalanx.dev/arrives": f"{wish['at']}", "phalanx.dev/duration": f"{wish['duration']}s",
        }  # fmt: skip
        for item in (group, *pods) if wish["priority"] else ():
            item["spec"]["priorityClassName"] = wish["priority"]
        found += [group, *pods]
    return found


def world_of(case: Case, profile: str) -> World:
    policy = policy_of_profile(profile)
    world = World(
        Profile(policy, catalogue_of(policy.catalogue)),
        settings=case.settings,
        seed=case.seed,
        is_solo=profile == "default-scheduler",
    )
    set_stage(world, worlds.parts(objects(case)), Scenario(nodes=case.nodes, failures=case.failures))
    return world


def outcome(case: Case, profile: str, until: float | None = 6 * HOURS) -> dict[str, Any]:
    world = world_of(case, profile)
    ending = play(world, until, lambda moment: moment)
    return result(world, Run(profile, case.seed, ending.seconds, ending.end.value, ending.is_quiet))


profiles = st.sampled_from(GANG_PROFILES)
everybody = st.sampled_from((*GANG_PROFILES, "default-scheduler"))


@settings(deadline=None, max_examples=25)
@given(CASES, everybody)
def test_the_same_twice_gives_the_same_bytes(case: Case, profile: str) -> None:
    assert json.dumps(outcome(case, profile)) == json.dumps(outcome(case, profile))


@settings(deadline=None, max_examples=25)
@given(CASES, profiles)
def test_no_gang_gets_places_below_its_minimum(case: Case, profile: str) -> None:
    """A session gives a gang its minimum or nothing; what nodes and failures take away later is another matter."""
    world = world_of(case, profile)

    def check(snapshot: Any, decisions: Any) -> None:
        placed: dict[str, int] = {}
        for key in decisions.binds:
            task = world.cluster.state.task(key)
            assert task is not None
            placed[str(task.gang)] = placed.get(str(task.gang), 0) + 1
        for key, count in placed.items():
            members = snapshot.members_of(key).values()
            there = sum(bool(task.node) or task.status.name == "SUCCEEDED" for task in members)
            assert there + count >= snapshot.gangs[key].min_member

    world.loop.decided.append(check)
    play(world, 6 * HOURS, lambda moment: moment)


@settings(deadline=None, max_examples=25)
@given(CASES, everybody)
def test_nodes_never_hold_more_than_they_have(case: Case, profile: str) -> None:
    world = world_of(case, profile)

    def check(event: Any) -> None:
        if event.kind is not POD:
            return
        held = held_by_node(world.recorder)
        assert all(0 <= amount <= 4 for amount in held.values()), held

    world.store.listen(check)
    ending = play(world, 6 * HOURS, lambda moment: moment)
    found = result(world, Run(profile, end=ending.seconds))
    assert 0 <= found["metrics"]["occupancy"] <= found["metrics"]["allocation"] + 1e-6
    assert all(0 <= part <= 1 for row in found["nodes"]["held"] for part in row)


def held_by_node(recorder: Recorder) -> dict[str, float]:
    found: dict[str, float] = {}
    for change in recorder.changes:
        found[change.node] = found.get(change.node, 0.0) + change.amount
    return found


@settings(deadline=None, max_examples=25)
@given(CASES, everybody)
def test_every_gang_that_started_finishes_or_was_interrupted(case: Case, profile: str) -> None:
    for gang in outcome(case, profile, None)["gangs"]:
        if gang["started"] is not None and gang["finished"] is None:
            assert gang["spans"][-1][1] is not None
            assert case.nodes or case.failures or gang["evicted"]
        assert all(since <= (since if to is None else to) for since, to in gang["spans"])
        if gang["finished"] is not None:
            assert gang["submitted"] <= gang["started"] <= gang["finished"]
