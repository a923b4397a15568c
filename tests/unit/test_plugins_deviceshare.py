"""Shared GPUs: what single cards can take, which ones tasks get, and what is written on their pods."""

from typing import Any

import numpy as np
import pytest

from phalanx.config.builtin import CATALOGUE
from phalanx.errors import ConfigError
from phalanx.model.task import TaskKey
from phalanx.session.cycle import open_session
from phalanx.session.session import Session
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
SHARING, WHOLE, VGPUS = "GPUSharingEnable", "GPUNumberEnable", "VGPUEnable"
INDEX = "volcano.sh/gpu-index"


def cluster(*nodes: Document, way: str = SHARING, policy: str = "", weight: int = 1) -> Cluster:
    arguments = {
        f"deviceshare.{way}": True, "deviceshare.SchedulePolicy": policy, "deviceshare.ScheduleWeight": weight,
    }  # fmt: skip
    checked = build.policy([["gang", "predicates", {"name": "deviceshare", "arguments": arguments}]])
    group = build.pod_group("train", min_member=0, phase="Inqueue")
    return build.cluster(nodes=0, policy=checked).submit(nodes, group)


def node(name: str, offers: dict[str, int], annotations: dict[str, str] | None = None) -> Document:
    found = build.node(name)
    found["status"]["allocatable"].update(offers)
    found["metadata"]["annotations"] = annotations or {}
    return found


def gpu_node(name: str, cards: int = 2, memory: int = 20, unhealthy: str = "") -> Document:
    return node(name, {MEMORY: memory, NUMBER: cards}, {"volcano.sh/gpu-unhealthy-ids": unhealthy})


def vgpu_node(name: str, *cards: str) -> Document:
    """Cards as ``memory/slots``, with optional ``/model/healthy/mode``."""
    offers = {"volcano.sh/vgpu-number": 40, "volcano.sh/vgpu-memory": 100000, "volcano.sh/vgpu-cores": 400}
    rows = []
    for number, card in enumerate(cards):
        memory, slots, model, healthy, mode = (*card.split("/"), *("NVIDIA-A100", "true", "hami-core")[card.count("/") - 1 :])
        rows.append(f"GPU-{name}-{number},{slots},{memory},{model},{healthy},{mode}")
    return node(name, offers, {"volcano.sh/node-vgpu-register": ":".join(rows) + ":"})


def pod(name: str, *containers: dict[str, int], on: str = "", **annotations: str) -> Document:
    found = build.pod(name, group="train", on=on)
    found["spec"]["containers"] = [
        {"name": f"c{place}", "resources": {"requests": asks, "limits": asks}} for place, asks in enumerate(containers)
    ]
    found["metadata"]["annotations"].update(annotations)
    return found


def vgpu(number: int = 1, memory: int = 0, cores: int = 0) -> dict[str, int]:
    asks = {"volcano.sh/vgpu-number": number, "volcano.sh/vgpu-memory": memory, "volcano.sh/vgpu-cores": cores}
    return {name: amount for name, amount in asks.items() if amount}


def binds(found: Cluster, *pods: Document) -> dict[str, str]:
    return dict(found.submit(*pods).run_cycle().binds)


def written(found: Cluster, name: str) -> dict[str, str]:
    return found.run_cycle(now=100.0).decisions.annotations[TaskKey(f"default/{name}")]


def test_memory_of_two_cards_is_not_one_piece() -> None:
    found = cluster(gpu_node("a"))
    assert binds(found, pod("big", {MEMORY: 12})) == {}
    assert "has too few GPUs with enough left" in found.why("train")


def test_tasks_share_cards_as_far_as_their_memory_goes() -> None:
    pods = [pod(f"p-{number}", {MEMORY: 6}) for number in range(3)]
    assert len(binds(cluster(gpu_node("a")), *pods)) == 2


def test_running_pods_hold_the_cards_that_their_annotations_name() -> None:
    found = cluster(gpu_node("a")).submit(pod("old", {MEMORY: 4}, on="a", **{INDEX: "0"}))
    assert binds(found, pod("new", {MEMORY: 8})) == {"new": "a"}
    assert written(found, "new")[INDEX] == "1"


def test_a_bound_pod_is_told_its_card_and_the_time() -> None:
    found = cluster(gpu_node("a")).submit(pod("new", {MEMORY: 8}))
    assert written(found, "new") == {INDEX: "0", "volcano.sh/predicate-time": "100000000000"}


def test_unhealthy_cards_are_left_out() -> None:
    found = cluster(gpu_node("a", unhealthy="0"))
    found.submit(pod("new", {MEMORY: 8}))
    assert written(found, "new")[INDEX] == "1"


def test_whole_cards_go_to_one_task_each() -> None:
    found = cluster(gpu_node("a", cards=4), way=WHOLE)
    found.submit(pod("old", {NUMBER: 1}, on="a", **{INDEX: "1"}))
    assert binds(found, pod("x", {NUMBER: 2}), pod("y", {NUMBER: 2})) == {"x": "a"}
    assert written(found, "x")[INDEX] == "0,2"


def test_a_node_without_cards_is_refused_for_good() -> None:
    found = cluster(node("plain", {"volcano.sh/vgpu-number": 4}), way=VGPUS)
    assert binds(found, pod("x", vgpu())) == {}
    assert "has no GPUs to share" in found.why("train")


def test_tasks_without_gpus_go_anywhere() -> None:
    assert binds(cluster(build.node("plain")), pod("x", {"cpu": 1})) == {"x": "plain"}


@pytest.mark.parametrize(
    ("ask", "taken", "fits"),
    [
        (vgpu(memory=600), "GPU-a-0,NVIDIA,400,10:", True),
        (vgpu(memory=601), "GPU-a-0,NVIDIA,400,10:", False),
        (vgpu(cores=91), "GPU-a-0,NVIDIA,0,10:", False),
        (vgpu(memory=1, cores=90), "GPU-a-0,NVIDIA,0,10:", True),
        (vgpu(memory=1, cores=100), "GPU-a-0,NVIDIA,0,0:", False),
        (vgpu(memory=1), "GPU-a-0,NVIDIA,0,100:", False),
        (vgpu(), "GPU-a-0,NVIDIA,1,0:", False),
        (vgpu(memory=1), "GPU-a-0,NVIDIA,1,1:;GPU-a-0,NVIDIA,1,1:", False),
        (vgpu(number=2, memory=1), "", False),
        (vgpu(memory=1), "GPU-gone,NVIDIA,1000,100:", True),
    ],
)
def test_a_vgpu_needs_memory_cores_and_a_slot_on_one_card(ask: dict[str, int], taken: str, fits: bool) -> None:
    found = cluster(vgpu_node("a", "1000/2"), way=VGPUS)
    found.submit(pod("old", vgpu(memory=1), on="a", **{"volcano.sh/vgpu-ids-new": taken}))
    assert binds(found, pod("new", ask)) == ({"new": "a"} if fits else {})


def test_several_containers_and_cards_are_written_in_the_words_of_the_device_plugin() -> None:
    found = cluster(vgpu_node("a", "1000/4", "1000/4"), way=VGPUS)
    found.submit(pod("new", vgpu(number=2, memory=300, cores=20), {"cpu": 1}, vgpu(memory=100)))
    ids = "GPU-a-1,NVIDIA,300,20:GPU-a-0,NVIDIA,300,20:;GPU-a-1,NVIDIA,100,0:"
    assert written(found, "new") == {
        "volcano.sh/vgpu-ids-new": ids, "volcano.sh/devices-to-allocate": ids, "volcano.sh/vgpu-node": "a",
        "volcano.sh/vgpu-time": "100", "volcano.sh/bind-phase": "allocating", "volcano.sh/bind-time": "100",
    }  # fmt: skip


@pytest.mark.parametrize("card", ["1000/4/NVIDIA-A100/false", "1000/4/NVIDIA-A100/true/mig"])
def test_cards_that_cannot_be_shared_are_left_out(card: str) -> None:
    assert binds(cluster(vgpu_node("a", card), way=VGPUS), pod("x", vgpu(memory=1))) == {}


def test_pods_choose_and_avoid_models() -> None:
    nodes = (vgpu_node("a", "1000/4/NVIDIA-A100"), vgpu_node("v", "1000/4/NVIDIA-V100"))
    wants = pod("x", vgpu(memory=1), **{"nvidia.com/use-gputype": "v100"})
    avoids = pod("y", vgpu(memory=1), **{"nvidia.com/nouse-gputype": "V100"})
    assert binds(cluster(*nodes, way=VGPUS), wants, avoids) == {"x": "v", "y": "a"}


def test_a_pod_that_asks_for_another_mode_is_refused() -> None:
    found = cluster(vgpu_node("a", "1000/4"), way=VGPUS)
    assert binds(found, pod("x", vgpu(memory=1), **{"volcano.sh/vgpu-mode": "mig"})) == {}
    assert "shares its GPUs in another mode" in found.why("train")


@pytest.mark.parametrize(("policy", "node"), [("binpack", "full"), ("spread", "idle")])
def test_full_or_idle_cards_are_preferred(policy: str, node: str) -> None:
    found = cluster(vgpu_node("full", "1000/4"), vgpu_node("idle", "1000/4"), way=VGPUS, policy=policy)
    found.submit(pod("old", vgpu(memory=500), on="full", **{"volcano.sh/vgpu-ids-new": "GPU-full-0,NVIDIA,500,10:"}))
    assert binds(found, pod("new", vgpu(memory=100))) == {"new": node}


def session_of(found: Cluster) -> Session:
    return open_session(found.objects.snapshot(0.0), found.policy, CATALOGUE)


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_a_run_of_tasks_is_placed_as_if_one_by_one(policy: str) -> None:
    nodes = [vgpu_node(f"n{number}", *["1000/3"] * (number + 1)) for number in range(3)]
    found = cluster(*nodes, way=VGPUS, policy=policy).submit(pod(f"p-{number:02}", vgpu(memory=300)) for number in range(20))
    session = session_of(found)
    tasks = next(iter(session.gangs.values())).tasks
    together, later = session.node_view(tasks[0].task.shape).place(len(tasks))
    one_by_one = []
    with session.statement() as statement:
        for task in tasks:
            now, _ = session.node_view(task.task.shape).place(1)
            if now:
                statement.allocate([task], now)
                one_by_one += now
    assert (together, later) == (one_by_one, [])
    assert len(together) == 18


def test_undoing_and_evicting_give_cards_back() -> None:
    found = cluster(gpu_node("a", cards=1, memory=10)).submit(
        pod("old", {MEMORY: 8}, on="a", **{INDEX: "0"}), pod("new", {MEMORY: 8})
    )
    session = session_of(found)
    (victim,) = session.running_on(0)
    shape = next(task for task in victim.gang.tasks if task is not victim).task.shape
    with session.statement() as statement:
        statement.evict(victim, action="preempt", preemptor="x", reason="y")
        assert session.screen(shape, np.array([0])) == session.screen(victim.task.shape, np.array([0]))
        assert session.node_view(shape).allows(0)
    assert not session.node_view(shape).allows(0)


def test_two_ways_of_sharing_exclude_each_other() -> None:
    arguments: dict[str, Any] = {f"deviceshare.{SHARING}": True, f"deviceshare.{VGPUS}": True}
    policy = build.policy([[{"name": "deviceshare", "arguments": arguments}]])
    with pytest.raises(ConfigError, match="exclude each other"):
        build.cluster(policy=policy).run_cycle()


def test_an_unknown_schedule_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="write 'binpack' or 'spread'"):
        cluster(policy="pack").run_cycle()
