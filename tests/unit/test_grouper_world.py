"""The pod grouper at work in a simulated cluster: workloads start as gangs, whoever decides."""

from typing import Any

import pytest

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.controllers.builtin import ControllerSettings, standard_controllers
from phalanx.controllers.controller import Controller, Write
from phalanx.controllers.grouper.controller import PodGrouper
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, Document, kind_of
from phalanx.session.cycle import Profile
from phalanx.sim.settings import Settings
from phalanx.sim.sshkeys import pair_for
from phalanx.sim.world import World
from phalanx.store.memory import MemoryStore
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import owned_pods as workloads
from tests.support import sim_worlds as worlds
from tests.support.owned_pods import owner, pod

SCHEDULERS = {"kai": "kai-scheduler", "phalanx": "phalanx"}
TRAINING = "training.kubeflow.org"
GANG = "default/pg-bert-pytorchjob-bert"


def world_of(profile: str, *, gpus: int, settings: Settings | None = None) -> World:
    policy = policy_of_profile(profile)
    world = World(
        Profile(policy, catalogue_of(policy.catalogue)),
        settings=settings,
        controllers=standard_controllers(pair_for, has_admission=False),
    )
    queue = kai.queue("research", parent="", quota=-1) if profile == "kai" else build.queue("research")
    world.load([build.node("node-0", gpus=gpus), queue])
    return world


def job(name: str = "bert", workers: int = 3, **more: Any) -> dict[str, Any]:
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": workers}}}
    return owner("kubeflow.org/v1", "PyTorchJob", name, spec=spec, labels={"kai.scheduler/queue": "research"}, **more)


def pods(top: Document, scheduler: str, workers: int = 3) -> list[Document]:
    """Return the pods of a PyTorchJob as the training operator makes them."""
    name, found = top["metadata"]["name"], list[Document]()
    for role, count in (("master", 1), ("worker", workers)):
        for index in range(count):
            labels = {f"{TRAINING}/job-name": name, f"{TRAINING}/replica-type": role, f"{TRAINING}/replica-index": str(index)}
            labels |= {f"{TRAINING}/job-role": "master"} if role == "master" else {}
            found.append(pod(f"{name}-{role}-{index}", by=top, labels=labels, scheduler=scheduler, gpus=1))
    return found


@pytest.mark.parametrize("profile", SCHEDULERS)
def test_a_pytorchjob_starts_as_one_gang(profile: str) -> None:
    world, top = world_of(profile, gpus=3), job(annotations={"phalanx.dev/duration": "60s"})
    world.load([top, *pods(top, SCHEDULERS[profile])])
    worlds.run(world, 30)
    assert set(worlds.phases(world.store).values()) == {"Pending"}
    assert world.reasons()[GANG].startswith("3 of 4 tasks fit")
    world.load([build.node("node-1", gpus=1)])
    worlds.run(world, 40)
    assert list(worlds.phases(world.store).values()) == ["Running"] * 4
    worlds.run(world, 200)
    record = worlds.record(world, GANG)
    assert (record.minimum, record.tasks, record.submitted, record.started is not None) == (4, 4, 0.0, True)
    assert record.finished is not None
    assert world.problems == []


@pytest.mark.parametrize("profile", SCHEDULERS)
def test_pods_that_come_one_after_the_other_are_one_gang(profile: str) -> None:
    world, top = world_of(profile, gpus=4), job()
    world.load([top])
    for number, member in enumerate(pods(top, SCHEDULERS[profile])):
        world.plan(5.0 * number, lambda member=member: world.submit([[member]]))  # type: ignore[misc]  # bound now, not later
    worlds.run(world, 14)
    assert set(worlds.phases(world.store).values()) == {"Pending"}
    worlds.run(world, 25)
    assert list(worlds.phases(world.store).values()) == ["Running"] * 4


def test_a_broken_job_is_set_aside_alone() -> None:
    world, good, bad = world_of("kai", gpus=8), job(), job("broken")
    bad["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = "three"
    told: list[tuple[str, str]] = []
    world.on_event(lambda event: told.append((event.about["metadata"]["name"], event.message)))
    world.load([good, bad, *pods(bad, "kai-scheduler"), *pods(good, "kai-scheduler")])
    worlds.run(world, 10)
    running = {name for name, phase in worlds.phases(world.store).items() if phase == "Running"}
    assert running == {"bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2"}
    assert {name for name, _ in told} == {"broken", "broken-master-0", *(f"broken-worker-{number}" for number in range(3))}
    assert all("spec.pytorchReplicaSpecs" in message for _, message in told)


def test_a_job_that_is_mended_is_grouped() -> None:
    world, top = world_of("kai", gpus=4), job(workers=0)
    top["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = 0
    world.load([top, *pods(top, "kai-scheduler")])
    worlds.run(world, 5)
    assert world.store.items(GROUP_BY_DIALECT["kai"]) == []
    replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
    world.store.patch(kind_of(top), "default", "bert", {"spec": {"pytorchReplicaSpecs": replicas}})
    worlds.run(world, 15)
    assert list(worlds.phases(world.store).values()) == ["Running"] * 4


def test_a_pod_that_comes_back_is_in_the_group_that_its_owner_has() -> None:
    world, top = world_of("kai", gpus=4, settings=Settings(restart_after=1.0)), job()
    world.load([top, *pods(top, "kai-scheduler")])
    worlds.run(world, 10)
    world.faults.fail("default", "bert-worker-1")
    worlds.run(world, 30)
    assert worlds.phases(world.store)["bert-worker-1"] == "Running"
    assert len(world.store.items(GROUP_BY_DIALECT["kai"])) == 1


def test_a_bare_pod_that_comes_back_gets_a_group_of_its_own_again() -> None:
    world = world_of("kai", gpus=1, settings=Settings(restart_after=1.0))
    world.load([pod("lone", labels={"kai.scheduler/queue": "research"}, gpus=1)])
    worlds.run(world, 10)
    world.faults.fail("default", "lone")
    worlds.run(world, 30)
    [group] = world.store.items(GROUP_BY_DIALECT["kai"])
    assert worlds.phases(world.store) == {"lone": "Running"}
    assert group["metadata"]["ownerReferences"][0]["uid"] == world.store.get(POD, "default", "lone")["metadata"]["uid"]


def test_controllers_that_start_anew_write_nothing() -> None:
    world, top = world_of("kai", gpus=4), job()
    world.load([top, *pods(top, "kai-scheduler")])
    worlds.run(world, 10)
    grouper = PodGrouper()
    keys = [key for item in world.store.items(POD) for key in grouper.concerns(world.store, POD, item)]
    assert [grouper.reconcile(world.store, key).writes for key in keys] == [[]] * 4


@pytest.mark.parametrize("scheduler", SCHEDULERS.values())
def test_one_controller_alone_makes_the_group_of_a_pod(scheduler: str) -> None:
    top, settings = job(), ControllerSettings(schedulers=frozenset(SCHEDULERS.values()))
    store = workloads.store(top, *pods(top, scheduler), pod("alone", scheduler=scheduler))
    controllers = standard_controllers(pair_for, settings, has_admission=False)
    for name in ("bert-master-0", "alone"):
        found = store.get(POD, "default", name)
        busy = [item.name for item in controllers if POD in item.watches and writes(item, store, found)]
        assert len(busy) == 1, busy


def writes(controller: Controller, store: MemoryStore, pod: Document) -> list[Write]:
    """Return what a controller writes when a pod has come."""
    return [write for key in controller.concerns(store, POD, pod) for write in controller.reconcile(store, key).writes]
