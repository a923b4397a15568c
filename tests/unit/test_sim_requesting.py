"""Sessions that ask for binds by BindRequests: what becomes of gangs when a binder carries them out, and when binds are refused."""

import json
from collections.abc import Sequence
from typing import Any

from phalanx.controllers.binder.controller import Binder
from phalanx.controllers.binder.gpu_reservations import GpuReservations
from phalanx.controllers.binder.reservation_pod import HOME
from phalanx.model.kinds import BIND_REQUEST, POD, RESOURCE_CLAIM, Document
from phalanx.sim.settings import Settings
from phalanx.sim.world import World
from phalanx.testing import build
from tests.support import kai_objects as kai
from tests.support import sim_worlds as worlds

PATIENT = build.policy((("priority", "gang", "bindbackoff"), ("drf", "predicates", "proportion", "nodeorder", "binpack")))
"""With the plugin that lets gangs wait after binds that failed."""


def bound_world(**more: Any) -> World:
    return worlds.world(settings=Settings(has_binder=True), controllers=[Binder(), GpuReservations()], **more)


def kai_world(*, nodes: int = 1, gpus: int = 1) -> World:
    world = bound_world(nodes=nodes, cpu=64, gpus=gpus, policy=kai.policy())
    world.load([kai.queue("top", parent="", quota=-1), kai.queue("a", parent="top", quota=-1)])
    return world


def places(world: World) -> dict[str, str]:
    pods = world.store.items(POD)
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def phases(world: World) -> dict[str, str]:
    return {item["metadata"]["name"]: item.get("status", {}).get("phase", "") for item in world.store.items(BIND_REQUEST)}


def test_a_gang_gets_requests_and_the_binder_binds_it() -> None:
    world = bound_world(nodes=2, gpus=1)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1, duration="10s"))
    worlds.run(world, 5)
    assert worlds.phases(world.store) == {"a-0": "Running", "a-1": "Running"}
    assert phases(world) == {"a-0": "Succeeded", "a-1": "Succeeded"}
    worlds.run(world, 20)
    assert worlds.record(world, "a").finished == 11.0
    assert world.problems == []


def test_a_pod_that_waits_for_its_bind_keeps_its_place_from_others() -> None:
    world = bound_world(nodes=1, gpus=1)
    world.faults.refuse_binds("node-0", 2)
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.submit(world, worlds.gang("b", tasks=1, gpus=1), at=1)
    worlds.run(world, 20)
    assert worlds.phases(world.store) == {"a-0": "Running", "b-0": "Pending"}
    assert worlds.record(world, "a").started == 7.0


def test_a_gang_that_was_rolled_back_goes_to_other_nodes_and_its_pods_come_back() -> None:
    world = bound_world(nodes=3, gpus=1, policy=PATIENT)
    world.faults.refuse_binds("node-1", 99)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 30)
    assert set(places(world).values()) == {"node-0", "node-2"}
    assert worlds.phases(world.store) == {"a-0": "Running", "a-1": "Running"}
    assert [(item.pod, item.action) for item in world.recorder.evictions] == [("default/a-0", "bind")]
    assert world.recorder.evictions[0].message.startswith("rolled back: binding to node node-1 was refused")
    assert world.problems == []


def test_a_pod_remembers_its_failures_and_no_node_that_refused_nothing() -> None:
    world = bound_world(nodes=3, gpus=1, policy=PATIENT)
    world.faults.refuse_binds("node-0", 99)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 6.5)
    annotations = {pod["metadata"]["name"]: pod["metadata"]["annotations"] for pod in world.store.items(POD)}
    remembered = json.loads(annotations["a-0"]["phalanx.dev/failed-binds"])
    said = remembered[0].pop("message")
    assert said.endswith("the scenario refuses binds to node node-0")
    assert remembered == [{"node": "node-0", "attempts": 3, "latest": "2026-01-01T00:00:06Z"}]
    assert "phalanx.dev/failed-binds" not in annotations["a-1"]
    assert phases(world) == {}
    assert world.reasons() == {"default/a": "bind to node-0 failed 3 times, tried again in 4 s"}


def test_the_next_session_comes_when_the_wait_is_over() -> None:
    world = bound_world(nodes=1, gpus=1, policy=PATIENT)
    world.faults.refuse_binds("node-0", 3)
    worlds.submit(world, worlds.gang("a", tasks=1, gpus=1))
    worlds.run(world, 59)
    assert worlds.record(world, "a").started == 11.0


def test_pods_that_are_placed_one_by_one_are_bound_at_once() -> None:
    world = bound_world(nodes=1, gpus=1, is_solo=True)
    worlds.submit(world, worlds.gang("a", tasks=2, gpus=1))
    worlds.run(world, 5)
    assert (places(world), phases(world)) == ({"a-0": "node-0"}, {})


def test_pods_that_share_a_gpu_start_beside_its_reservation_which_goes_with_them() -> None:
    world = kai_world()
    for name in "xyz":
        worlds.submit(world, with_duration(kai.gang(name, share=0.5), "1m"))
    worlds.run(world, 10)
    (reserving,) = world.store.within(POD, HOME)
    device = reserving["metadata"]["labels"][kai.DEVICE]
    sharing = [
        pod["metadata"]["name"] for pod in world.store.items(POD) if pod["metadata"].get("labels", {}).get(kai.DEVICE) == device
    ]
    assert sorted(sharing) == [f"gpu-reservation-{device}", "x-0", "y-0"]
    assert sum(change.amount for change in world.recorder.changes) == 1.0
    worlds.run(world, 300)
    assert (worlds.record(world, "z").finished, world.store.within(POD, HOME)) == (124.0, [])


def with_duration(gang: Sequence[Document], duration: str) -> list[Document]:
    group, *pods = gang
    return [{**group, "metadata": {**group["metadata"], "annotations": {"phalanx.dev/duration": duration}}}, *pods]


def test_an_evicted_pod_comes_back_without_the_mark_of_its_old_gpu() -> None:
    world = kai_world()
    worlds.submit(world, with_duration(kai.gang("x", share=0.5), "1h"))
    worlds.run(world, 10)
    assert kai.DEVICE in world.store.get(POD, "default", "x-0")["metadata"]["labels"]
    world.faults.cordon("node-0")
    world.faults.fail("default", "x-0")
    worlds.run(world, 20)
    assert worlds.phases(world.store) == {"x-0": "Pending"}
    assert world.store.get(POD, "default", "x-0")["metadata"]["labels"] == {}


def resource(kind: str, name: str, spec: Document, **meta: str) -> Document:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def test_a_resource_claim_gets_the_device_that_the_session_chose() -> None:
    world = bound_world(nodes=1, cpu=8)
    exactly = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    pool = {"name": "p", "resourceSliceCount": 1}
    slices = {"driver": "gpu.example", "nodeName": "node-0", "pool": pool, "devices": [{"name": "gpu-7"}]}
    world.load([
        resource("DeviceClass", "gpu", {"selectors": []}), resource("ResourceSlice", "s", slices),
        resource("ResourceClaim", "mine", exactly, namespace="default"),
    ])  # fmt: skip
    group, pod = worlds.gang("a", tasks=1, cpu=1)
    pod["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimName": "mine"}]
    worlds.submit(world, [group, pod])
    worlds.run(world, 5)
    status = world.store.get(RESOURCE_CLAIM, "default", "mine")["status"]
    assert [result["device"] for result in status["allocation"]["devices"]["results"]] == ["gpu-7"]
    assert [user["name"] for user in status["reservedFor"]] == ["a-0"]
    assert worlds.phases(world.store) == {"a-0": "Running"}
