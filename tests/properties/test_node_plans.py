"""Gangs of one class that follow each other are placed from one plan or in one run, as if each had looked at the nodes itself."""

from collections.abc import Callable, Sequence
from itertools import chain
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.actions.gang_runs import GangRuns
from phalanx.config.builtin import CATALOGUE, KAI_CATALOGUE
from phalanx.config.policies import policy_of_profile
from phalanx.dialects.cluster import ObjectCluster
from phalanx.explain.answer import answer
from phalanx.session.cycle import Profile, run_cycle
from phalanx.session.decision import Decisions
from phalanx.session.node_plan import NodePlan
from phalanx.session.node_view import NodeView
from phalanx.session.score_steps import ScoreSteps
from phalanx.session.session import Session
from phalanx.state.snapshot import Snapshot
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai
from tests.support import random_kai_clusters as kai_chance
from tests.support import random_pod_terms as pod_terms

QUEUES = ("default", "blue", "green")
SEEDS = st.integers(0, 2**40)
PROFILES = pytest.mark.parametrize("profile", ["volcano", "phalanx", "kai", "coscheduling"])


def objects(random: Random, queues: Sequence[str] = QUEUES) -> list[Document]:
    """Return nodes that differ a little and many gangs, most of one pod, of a few classes; some gangs and pods run."""
    names = [f"n{number:02}" for number in range(random.randint(1, 12))]
    found = [build.node(name, cpu=random.choice((2, 4, 4, 8)), gpus=random.choice((0, 0, 2))) for name in names]
    found += [build.queue(name, weight=random.randint(1, 3), **_limits(random)) for name in queues]
    found += [_priority_class(name, value) for name, value in (("high", 100), ("low", 1))]
    sizes: list[Document] = [{"cpu": 1}, {"cpu": 2}, {"cpu": "500m"}, {"cpu": 1, "gpus": 1}]
    sizes = sizes[: random.randint(1, 4)]
    for number in range(random.randint(2, 30)):
        queue = random.choice((*queues, "default", "default"))
        found += _gang(random, f"gang-{number:02}", {**random.choice(sizes), "queue": queue}, names)
    return found


def _priority_class(name: str, value: int) -> Document:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _limits(random: Random) -> Document:
    spec: Document = {"capability": {"cpu": random.randint(1, 12)}} if random.random() < 0.3 else {}
    return {**spec, "priority": random.randint(0, 1)} if random.random() < 0.3 else spec


def _gang(random: Random, name: str, size: Document, nodes: list[str]) -> list[Document]:
    tasks = random.choice((1, 1, 1, 1, 1, 2, 3, 5))
    group, *pods = build.gang(name, tasks=tasks, **size)
    group["spec"]["minMember"] = random.randint(1, tasks)
    group["spec"] |= {"priorityClassName": random.choice(("high", "low"))} if random.random() < 0.2 else {}
    for pod in pods:
        pod["metadata"].setdefault("labels", {})["app"] = name
        if random.random() < 0.1:
            pod["spec"]["nodeName"], pod["status"] = random.choice(nodes), {"phase": "Running"}
            if random.random() < 0.3:
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
        elif random.random() < 0.03:
            pod["status"] = {**pod.get("status", {}), "nominatedNodeName": random.choice(nodes)}
    return [group, *pods]


def snapshot_of(documents: list[Document]) -> Snapshot:
    cluster = ObjectCluster()
    for document in documents:
        assert cluster.put(document)
    return cluster.snapshot(0.0)


def told(snapshot: Snapshot, decisions: Decisions) -> tuple[Any, ...]:
    """Return all that a session says: its answer, its binds in their order, its trace."""
    steps = [(type(step).__name__, step.text) for step in decisions.trace]
    return msgspec.json.encode(answer(snapshot, decisions)), list(decisions.binds.items()), steps


def scene(profile: str, random: Random) -> tuple[Snapshot, Profile]:
    if profile == "kai":
        return snapshot_of(kai_chance.objects(random)), Profile(kai.policy(**kai_chance.config(random)), KAI_CATALOGUE)
    return snapshot_of(objects(random)), Profile(policy_of_profile(profile), CATALOGUE)


def run(snapshot: Snapshot, profile: Profile, trace_level: int = 0) -> tuple[Any, ...]:
    return told(snapshot, run_cycle(snapshot, profile.policy, profile.catalogue, trace_level=trace_level))


def look_each_time(plan: NodePlan, view: NodeView, count: int) -> tuple[list[int], list[int]]:
    view.refresh()
    return view.place(count)


@PROFILES
@settings(deadline=None, max_examples=100)
@given(seed=SEEDS, trace_level=st.sampled_from((0, 0, 5)))
def test_a_plan_decides_as_if_each_gang_looked_for_itself(profile: str, seed: int, trace_level: int) -> None:
    snapshot, decider = scene(profile, Random(seed))
    planned = run(snapshot, decider, trace_level)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodePlan, "place", look_each_time)
        assert run(snapshot, decider, trace_level) == planned


@PROFILES
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_a_plan_binds_what_placing_task_by_task_binds(profile: str, seed: int) -> None:
    snapshot, decider = scene(profile, Random(seed))
    _, planned, _ = run(snapshot, decider)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "is_local", lambda session, shape: False)
        assert run(snapshot, decider)[1] == planned


def never(runs: GangRuns, line: object, queue: object, *, is_alone: bool) -> bool:
    """Place no gangs together."""
    return False


@pytest.mark.parametrize("profile", ["volcano", "phalanx", "coscheduling", "default-scheduler"])
@settings(deadline=None, max_examples=100)
@given(seed=SEEDS)
def test_a_run_of_gangs_decides_as_if_each_was_tried_by_itself(profile: str, seed: int) -> None:
    random = Random(seed)
    queues = random.choice((["default"], QUEUES))
    snapshot, decider = snapshot_of(objects(random, queues)), Profile(policy_of_profile(profile), CATALOGUE)
    together = run(snapshot, decider)
    assert run(snapshot, decider, trace_level=5)[:2] == together[:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GangRuns, "place", never)
        assert run(snapshot, decider) == together


def scene_among_pods(profile: str, random: Random) -> tuple[Snapshot, Profile]:
    """Return zones, and gangs some of which look at other pods: plans and runs of such gangs take turns."""
    documents = objects(random)
    for document in documents:
        if document["kind"] == "Node":
            name = document["metadata"]["name"]
            document["metadata"].setdefault("labels", {}).update({pod_terms.HOST: name, pod_terms.ZONE: random.choice("abc")})
    specs = [{}, {}, *(pod_terms.terms(random, app) for app in pod_terms.APPS)]
    by_gang: dict[str, tuple[str, Document]] = {}
    for document in documents:
        if document["kind"] == "Pod":
            app, spec = by_gang.setdefault(
                document["metadata"]["labels"]["app"], (random.choice(pod_terms.APPS), random.choice(specs))
            )
            document["metadata"]["labels"]["app"] = app
            document["spec"] |= spec
    return snapshot_of(documents), Profile(policy_of_profile(profile), CATALOGUE)


@pytest.mark.parametrize("profile", ["volcano", "phalanx", "coscheduling", "default-scheduler"])
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS)
def test_plans_hold_among_gangs_that_look_at_other_pods(profile: str, seed: int) -> None:
    snapshot, decider = scene_among_pods(profile, Random(seed))
    planned = run(snapshot, decider)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodePlan, "place", look_each_time)
        patch.setattr(Session, "apart_from_pods", lambda session, shape: None)
        assert run(snapshot, decider) == planned
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "is_local", lambda session, shape: False)
        assert run(snapshot, decider)[1] == planned[1]


@pytest.mark.parametrize("profile", ["volcano", "phalanx", "coscheduling", "default-scheduler"])
@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, makes_scene=st.sampled_from((scene, scene_among_pods)))
def test_scores_that_are_known_ahead_decide_as_those_that_are_asked_for(
    profile: str, seed: int, makes_scene: Callable[[str, Random], tuple[Snapshot, Profile]]
) -> None:
    snapshot, decider = makes_scene(profile, Random(seed))
    known = run(snapshot, decider)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScoreSteps, "at", lambda steps, site, room: None)
        assert run(snapshot, decider) == known


def looks_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that fills with the number of tasks of each run."""
    counts: list[int] = []
    place: Callable[..., tuple[list[int], list[int]]] = NodeView.place

    def counted(view: NodeView, count: int, **within: Any) -> tuple[list[int], list[int]]:
        counts.append(count)
        return place(view, count, **within)

    monkeypatch.setattr(NodeView, "place", counted)
    return counts


def test_a_hundred_gangs_of_one_pod_need_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = looks_at(monkeypatch)
    documents = [build.queue("default"), *(build.node(f"n{number}", cpu=8) for number in range(20))]
    for number in range(100):
        documents += build.gang(f"gang-{number:03}", tasks=1, cpu=1)
    _, binds, _ = run(snapshot_of(documents), Profile(policy_of_profile("volcano"), CATALOGUE))
    assert len(binds) == 100
    assert len(counts) < 10


def test_gangs_that_follow_each_other_in_the_only_queue_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = looks_at(monkeypatch)
    documents = [build.queue("default"), *(build.node(f"n{number}", cpu=8) for number in range(20))]
    for number in range(60):
        documents += build.gang(f"gang-{number:03}", tasks=1 + number % 3, cpu=1)
    _, binds, _ = run(snapshot_of(documents), Profile(policy_of_profile("volcano"), CATALOGUE))
    assert (len(binds), counts) == (120, [120])


def test_a_run_of_gangs_ends_where_the_queue_has_all_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = looks_at(monkeypatch)
    queue, nodes = build.queue("default", capability={"cpu": 7}), [build.node(f"n{number}", cpu=8) for number in range(2)]
    gangs = [build.gang(f"gang-{number}", tasks=2, cpu=1) for number in range(5)]
    _, binds, _ = run(snapshot_of([queue, *nodes, *chain.from_iterable(gangs)]), Profile(policy_of_profile("volcano"), CATALOGUE))
    assert (len(binds), counts[0]) == (6, 6)


def test_two_classes_that_take_turns_never_look_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = looks_at(monkeypatch)
    documents = [build.queue("default"), *(build.node(f"n{number}", cpu=8) for number in range(20))]
    for number in range(20):
        documents += build.gang(f"gang-{number:03}", tasks=1, cpu=1 + number % 2)
    _, binds, _ = run(snapshot_of(documents), Profile(policy_of_profile("volcano"), CATALOGUE))
    assert len(binds) == 20
    assert counts == [1] * 20
