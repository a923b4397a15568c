"""The stage: who is there at the beginning, who comes when, and what happens to them."""

from typing import Any

import pytest

from phalanx.config.builtin import CATALOGUE, catalogue_of
from phalanx.controllers.volcano_job.job import JOB
from phalanx.errors import ConfigError, SnapshotError
from phalanx.model.kinds import BUDGET, QUEUE, kind_at
from phalanx.model.watch_event import WatchEvent
from phalanx.session.cycle import Profile
from phalanx.sim.generate import generate
from phalanx.sim.node_pools import AutoscalerSettings, NodePool, NodeTemplate
from phalanx.sim.scenario import Arrival, Failure, NodeEvent, Refusal, Scenario
from phalanx.sim.settings import Settings
from phalanx.sim.setup import ARRIVES, copy_of, set_stage, set_workload
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import sim_worlds as worlds
from tests.support import volcano_jobs as jobs

NODES = [build.node(f"gpu-{number}", gpus=1) for number in range(3)]


def staged(*objects: Any, **scenario: Any) -> World:
    world = World(Profile(build.policy(), CATALOGUE))
    documents = [document for part in (NODES, *objects) for document in ([part] if isinstance(part, dict) else part)]
    set_stage(world, worlds.parts(documents), Scenario(**scenario))
    return world


def arrivals(world: World, until: float = 10_000) -> dict[str, float]:
    worlds.run(world, until)
    return {key.removeprefix("default/"): record.submitted for key, record in world.recorder.gangs.items()}


def test_gangs_come_at_0_or_when_their_annotation_or_the_scenario_says() -> None:
    late = build.gang("late", gpus=1)
    late[0]["metadata"]["annotations"] = {ARRIVES: "1m"}
    both = build.gang("both", gpus=1)
    both[0]["metadata"]["annotations"] = {ARRIVES: "1m"}
    world = staged(build.gang("early", gpus=1), late, both, arrivals=(Arrival(300, ("default/bo*",)),))
    assert arrivals(world) == {"early": 0.0, "late": 60.0, "both": 300.0}


def test_gangs_may_come_again_and_again_under_other_names() -> None:
    world = staged(build.gang("train", tasks=2), arrivals=(Arrival(10, ("default/train",), every=60, times=3),))
    assert arrivals(world) == {"train": 10.0, "train-2": 70.0, "train-3": 130.0}
    assert sorted(worlds.phases(world.store)) == ["train-0", "train-1", "train-2-0", "train-2-1", "train-3-0", "train-3-1"]


def test_pods_may_come_apart_from_their_gang() -> None:
    named = (Arrival(10, ("default/train",)), Arrival(60, pods=("default/train-[12]",)), Arrival(90, pods=("default/train-2",)))
    world = staged(build.gang("train", tasks=3), arrivals=named)
    came: dict[str, float] = {}

    def hear(event: WatchEvent) -> None:
        came.setdefault(event.object["metadata"]["name"], world.now - world.start)

    world.store.listen(hear)
    world.advance(world.start + 100)
    assert {name: moment for name, moment in came.items() if "-" in name} == {"train-0": 10.0, "train-1": 60.0, "train-2": 90.0}


@pytest.mark.parametrize("group", [build.gang("a", tasks=1), kai.gang("a", tasks=1)])
def test_a_copy_belongs_to_its_own_group(group: list[dict[str, Any]]) -> None:
    first, pod = copy_of(group, 1)
    assert first["metadata"]["name"] == "a-2"
    assert pod["metadata"]["name"] == "a-2-0"
    assert "a-2" in pod["metadata"]["annotations"].values()
    assert "uid" not in pod["metadata"]


def test_a_gang_of_which_a_pod_has_a_node_is_there_from_the_beginning_as_it_is() -> None:
    group, first, second = build.gang("runs", tasks=2, gpus=1)
    first["spec"]["nodeName"], first["status"] = "gpu-0", {"phase": "Running"}
    world = staged([group, first, second])
    assert worlds.phases(world.store) == {"runs-0": "Running", "runs-1": "Pending"}


def test_pods_without_a_group_are_there_from_the_beginning() -> None:
    world = staged(build.pod("alone", on="gpu-0", gpus=1), build.pod("orphan", group="nobody"))
    assert worlds.phases(world.store) == {"alone": "Running", "orphan": "Pending"}


def test_a_node_whose_first_event_is_to_join_is_not_there_before() -> None:
    events = (
        NodeEvent(50, "gpu-1", "join"),
        NodeEvent(80, "gpu-1", "drain"),
        NodeEvent(20, "gpu-2", "leave"),
        NodeEvent(60, "gpu-2", "join"),
    )
    world = staged(nodes=events)
    worlds.run(world, 100)
    changes = [(moment, name) for moment, name, level in world.recorder.capacity_changes if level]
    assert changes == [(0.0, "gpu-0"), (0.0, "gpu-2"), (50.0, "gpu-1"), (60.0, "gpu-2")]
    assert world.recorder.node_events == [
        (20, "gpu-2", "leave"),
        (50, "gpu-1", "join"),
        (60, "gpu-2", "join"),
        (80, "gpu-1", "drain"),
    ]


def test_pods_and_gangs_fail_when_the_scenario_says() -> None:
    failures = (Failure(100, pod="default/a-0"), Failure(200, gang="default/a"))
    world = staged(worlds.gang("a", tasks=2, gpus=1), failures=failures, settings=Settings())
    worlds.run(world, 300)
    assert [since for since, _ in worlds.record(world, "a").spans[1:]] == pytest.approx([105, 205], abs=5)


def test_volcanos_queue_default_is_there_unless_it_is_among_the_objects() -> None:
    world = staged(build.gang("a", gpus=1))
    assert world.cluster.state.queue("default") is not None
    own = staged(build.gang("a", gpus=1), build.queue("default", weight=7)).cluster.state.queue("default")
    assert own is not None
    assert own.weight == 7


NAMES = [
    ({"nodes": (NodeEvent(1, "gpu-9", "die", "s.yaml, line 3: nodes[0].node"),)},
     "s.yaml, line 3: nodes[0].node: 'gpu-9' does not exist; write one of the nodes, such as gpu-0, gpu-1, gpu-2"),
    ({"arrivals": (Arrival(1, pods=("default/nope",), where="s.yaml, line 3: arrivals[0].pods"),)},
     "s.yaml, line 3: arrivals[0].pods: no pod of a gang that comes later is called 'default/nope'; write namespace and name"),
    ({"arrivals": (Arrival(1, ("default/nope",), where="s.yaml, line 3: arrivals[0].gangs"),)},
     "s.yaml, line 3: arrivals[0].gangs: no gang is called 'default/nope'; known are default/a"),
    ({"failures": (Failure(1, pod="default/nope", where="s.yaml, line 3: failures[0]"),)},
     "s.yaml, line 3: failures[0]: there is no Pod 'default/nope'; write namespace and name as in the manifests"),
    ({"failures": (Refusal(0, "nope", 1, where="s.yaml, line 3: failures[0]"),)},
     "s.yaml, line 3: failures[0]: there is no Node or Pod 'nope'; write namespace and name as in the manifests"),
    ({"failures": (Failure(1, gang="default/nope", where="s.yaml, line 3: failures[0]"),)},
     "s.yaml, line 3: failures[0]: there is no PodGroup 'default/nope'; write namespace and name as in the manifests"),
]  # fmt: skip


@pytest.mark.parametrize(("scenario", "problem"), NAMES)
def test_a_scenario_that_names_what_does_not_exist_is_refused(scenario: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        staged(build.gang("a"), **scenario)
    assert str(caught.value) == problem


@pytest.mark.parametrize("name", ["phalanx.dev/arrives", "phalanx.dev/checkpoint-every", "phalanx.dev/duration"])
def test_an_annotation_that_is_no_duration_is_refused_with_its_object(name: str) -> None:
    group, pod = build.gang("a")
    group["metadata"]["annotations"] = {name: "tomorrow"}
    with pytest.raises(
        SnapshotError, match=f"PodGroup default/a: annotation {name}: 'tomorrow' is not a duration; write for example"
    ):
        staged([group, pod])


@pytest.mark.parametrize(("family", "policy"), [("kai", kai.policy()), ("volcano", None)])
def test_a_workload_runs_in_the_words_of_its_scheduler(family: str, policy: Any) -> None:
    workload = generate(3, jobs=20, nodes=4, days=1, load=0.3)
    chosen = policy or build.policy()
    world = World(Profile(chosen, catalogue_of(chosen.catalogue)), settings=Settings(removes_finished=True, heartbeat=600))
    set_workload(world, workload, family)
    worlds.run(world, 10 * 86400)
    assert len(world.recorder.gangs) == 20
    assert all(record.finished is not None for record in world.recorder.gangs.values())
    assert world.problems == []


def test_an_object_that_belongs_to_no_gang_comes_when_its_annotation_says() -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "late", "annotations": {ARRIVES: "5m"}},
    }
    world = staged(budget, jobs.job("train", jobs.task("worker"), annotations={ARRIVES: "2m"}))
    worlds.run(world, 110)
    assert world.store.items(JOB) == []
    worlds.run(world, 130)
    assert [item["metadata"]["creationTimestamp"] for item in world.store.items(JOB)] == ["2026-01-01T00:02:00Z"]
    assert world.store.items(BUDGET) == []
    worlds.run(world, 310)
    assert len(world.store.items(BUDGET)) == 1


def test_a_job_brings_the_queue_that_always_exists() -> None:
    world = staged(jobs.job("train", jobs.task("worker")))
    assert [item["metadata"]["name"] for item in world.store.items(kind_at("scheduling.volcano.sh", "queues"))] == ["default"]


@pytest.mark.parametrize(
    ("refusal", "started"), [(Refusal(0, "a-0", 2), 3.0), (Refusal(0, "gpu-0", 1), 2.0), (Refusal(1, "a-0", 9), 1.0)]
)
def test_binds_of_a_pod_or_to_a_node_are_refused_from_a_moment_on_and_so_often(refusal: Refusal, started: float) -> None:
    world = staged(build.gang("a", gpus=1), failures=(refusal,))
    worlds.run(world, 50)
    assert worlds.record(world, "a").started == started


def test_a_pod_may_fail_that_a_job_makes_later() -> None:
    staged(jobs.job("train", jobs.task("worker")), failures=(Failure(10, pod="default/train-worker-0"),))
    with pytest.raises(ConfigError, match="there is no Pod 'default/trains-worker-0'"):
        staged(jobs.job("train", jobs.task("worker")), failures=(Failure(10, pod="default/trains-worker-0"),))


def test_an_object_of_no_gang_comes_when_it_says() -> None:
    late = build.queue("late")
    late["metadata"]["annotations"] = {"phalanx.dev/arrives": "10s"}
    world = worlds.world(nodes=1)
    set_stage(world, worlds.parts([late]), Scenario())
    worlds.run(world, 5)
    assert world.store.find(QUEUE, "", "late") is None
    worlds.run(world, 15)
    assert world.store.find(QUEUE, "", "late") is not None


# --- pools -----------------------------------------------------------------------------------------------------------------


def scaled_world() -> World:
    pool = NodePool("gpu", NodeTemplate({"cpu": "8", "nvidia.com/gpu": "8"}), 4, 1)
    return worlds.world(nodes=0, settings=Settings(autoscaler=AutoscalerSettings((pool,))))


def test_something_may_happen_to_a_node_of_a_pool() -> None:
    world = scaled_world()
    set_stage(world, worlds.parts([]), Scenario(nodes=(NodeEvent(60.0, "gpu-1", "die"), NodeEvent(90.0, "gpu-4", "drain"))))
    worlds.run(world, 100)
    assert world.recorder.node_events == [(60.0, "gpu-1", "die")]
    assert world.problems == ['90 s: nodes "gpu-4" not found']


def test_binds_to_a_node_of_a_pool_may_be_refused() -> None:
    world = scaled_world()
    set_stage(world, worlds.parts([]), Scenario(failures=(Refusal(0.0, "gpu-1", 1),)))
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=8), at=30)
    worlds.run(world, 31)
    assert worlds.phases(world.store) == {"a-0": "Pending"}


@pytest.mark.parametrize(("node", "event"), [("gpu-5", "die"), ("gpu-0", "die"), ("cpu-1", "die"), ("gpu-1", "join")])
def test_what_no_pool_may_have_and_a_node_that_only_the_autoscaler_adds_are_refused(node: str, event: str) -> None:
    with pytest.raises(ConfigError, match=f"s.yaml: '{node}' "):
        set_stage(scaled_world(), worlds.parts([]), Scenario(nodes=(NodeEvent(60.0, node, event, "s.yaml"),)))
