"""Parts of GPUs in the profile kai: joining a shared device, pipelined parts, packing and spreading."""

from typing import Any

import pytest

from phalanx.errors import SnapshotError
from phalanx.testing import build
from phalanx.testing.build import Cluster, Cycle
from tests.support import kai_objects as kai

A = kai.queue("a", quota=4)
SPREAD = {"gpupack": {"enabled": False}, "gpuspread": {"enabled": True}}
NEITHER = {"gpupack": {"enabled": False}}


def cluster(*, nodes: int = 1, gpus: int = 2, **more: Any) -> Cluster:
    return kai.cluster(nodes=nodes, gpus=gpus, actions="allocate", **more).submit(A)


def sharer(name: str, share: float, device: str = "", on: str = "node-0") -> list[dict[str, Any]]:
    """A job of one pod that runs on a shared device, or waits."""
    return kai.gang(name, share=share, on=on if device else "", device=device)


def device_of(cycle: Cycle, pod: str) -> list[str]:
    found: list[str] = cycle.answer["tasks"][f"default/{pod}"].get("gpuGroups", [])
    return found


def test_a_part_joins_a_device_that_is_shared_already() -> None:
    cycle = cluster(nodes=2).submit(sharer("old", 0.5, "d1", on="node-1"), sharer("new", 0.5)).run_cycle()
    assert cycle.binds == [("new-0", "node-1")]
    assert device_of(cycle, "new-0") == ["d1"]


def test_a_part_that_does_not_fit_beside_others_opens_a_device() -> None:
    cycle = cluster().submit(sharer("old", 0.6, "d1"), sharer("new", 0.5)).run_cycle()
    (device,) = device_of(cycle, "new-0")
    assert device != "d1"


def test_an_open_device_is_no_longer_there_for_whole_requests() -> None:
    assert cluster().submit(sharer("old", 0.1, "d1"), kai.gang("whole", gpus=2)).run_cycle().binds == []
    assert len(cluster().submit(sharer("old", 0.1, "d1"), kai.gang("whole", gpus=1)).run_cycle().binds) == 1


@pytest.mark.parametrize("plugins", [NEITHER, SPREAD])
def test_an_open_device_is_not_given_away_whatever_plugins_are_loaded(plugins: Any) -> None:
    found = cluster(plugins=plugins).submit(sharer("old", 0.1, "d1"), kai.gang("whole", gpus=2))
    assert found.run_cycle().binds == []


def test_parts_of_one_gang_share_a_device() -> None:
    cycle = cluster().submit(kai.gang("train", tasks=4, share=0.25)).run_cycle()
    assert len(cycle.binds) == 4
    assert len({device_of(cycle, f"train-{number}")[0] for number in range(4)}) == 1


def test_no_device_gives_more_than_it_has() -> None:
    cycle = cluster(gpus=1).submit(kai.gang("train", tasks=4, min_member=1, share=0.3)).run_cycle()
    assert len(cycle.binds) == 3
    assert "no place for 0.3 of a GPU, 1 cpu (1 node: 1 lacks nvidia.com/gpu)" in cycle.why("train")


def test_ten_tenths_fill_a_device_exactly() -> None:
    assert len(cluster(gpus=1).submit(kai.gang("train", tasks=11, min_member=1, share=0.1)).run_cycle().binds) == 10


def test_the_fullest_device_is_taken_when_packing_and_a_whole_one_when_spreading() -> None:
    old = [*sharer("less", 0.2, "d1"), *sharer("more", 0.5, "d2")]
    assert device_of(cluster(gpus=3).submit(old, sharer("new", 0.2)).run_cycle(), "new-0") == ["d2"]
    (device,) = device_of(cluster(gpus=3, plugins=SPREAD).submit(old, sharer("new", 0.2)).run_cycle(), "new-0")
    assert device not in ("d1", "d2")


def test_the_emptiest_device_is_taken_when_spreading_and_none_is_whole() -> None:
    old = [*sharer("less", 0.2, "d1"), *sharer("more", 0.5, "d2")]
    assert device_of(cluster(plugins=SPREAD).submit(old, sharer("new", 0.2)).run_cycle(), "new-0") == ["d1"]


def test_a_part_that_fits_only_once_others_leave_is_pipelined() -> None:
    stays, (group, goes) = sharer("stays", 0.2, "d1"), sharer("goes", 0.8, "d1")
    cycle = cluster(gpus=1).submit(stays, group, kai.leaving(goes), sharer("new", 0.5)).run_cycle()
    assert cycle.binds == []
    assert cycle.pipelined == [("new-0", "node-0")]


def test_a_part_goes_to_the_fullest_device_even_if_somebody_is_still_leaving_it() -> None:
    full, (group, goes) = sharer("stays", 0.75, "d1", on="node-1"), sharer("goes", 0.25, "d1", on="node-1")
    whole = kai.gang("whole", gpus=1, on="node-1")
    cycle = (
        cluster(nodes=2).submit(sharer("old", 0.5, "d0"), full, whole, group, kai.leaving(goes), sharer("new", 0.25)).run_cycle()
    )
    assert cycle.pipelined == [("new-0", "node-1")]


def test_a_part_of_a_gpu_is_not_placed_where_gpus_are_mig_devices() -> None:
    found = cluster()
    found.submit(build.node("node-0", cpu=64, memory="256Gi", gpus=2, labels={"nvidia.com/mig.strategy": "single"}))
    cycle = found.submit(sharer("part", 0.5), kai.gang("whole", gpus=1)).run_cycle()
    assert cycle.binds == [("whole-0", "node-0")]
    assert "1 node: 1 gives only whole MIG devices" in cycle.why("part")


def test_a_device_whose_users_all_leave_is_given_to_pipelined_tasks_as_a_whole() -> None:
    group, goes = sharer("goes", 0.8, "d1")
    cycle = cluster(gpus=1).submit(group, kai.leaving(goes), kai.gang("whole", gpus=1)).run_cycle()
    assert cycle.binds == []
    assert cycle.pipelined == [("whole-0", "node-0")]


def test_a_part_counts_as_a_part_of_the_quota() -> None:
    limited = kai.cluster(gpus=4, actions="allocate").submit(kai.queue("a", limit=1))
    cycle = limited.submit(kai.gang("train", tasks=4, min_member=1, share=0.4)).run_cycle()
    assert len(cycle.binds) == 2
    assert "over limit: queue 'a' has 0.8 of its limit of 1 GPUs, 0.4 more wanted" in cycle.why("train")


def test_memory_of_a_device_is_a_part_of_it() -> None:
    found = cluster(gpus=1)
    node = build.node("big", labels={"nvidia.com/gpu.memory": "80000"}, gpus=1, cpu=64)
    group, *pods = kai.gang("train", tasks=3, min_member=1)
    for pod in pods:
        pod["metadata"]["annotations"]["gpu-memory"] = "40000"
    found.remove("Node", "node-0")
    assert len(found.submit(node, group, *pods).run_cycle().binds) == 2


@pytest.mark.parametrize("label", ["0", "many", ""])
def test_a_node_that_does_not_say_how_large_its_devices_are_breaks_nothing(label: str) -> None:
    node = build.node("odd", labels={"nvidia.com/gpu.memory": label}, gpus=1, cpu=64)
    group, pod = kai.gang("train")
    pod["metadata"]["annotations"]["gpu-memory"] = "50"
    cycle = cluster(nodes=0).submit(node, group, pod, kai.gang("half", share=0.5)).run_cycle()
    assert len(cycle.binds) == 2


def test_several_devices_are_shared_at_once() -> None:
    group, pod = kai.gang("train", share=0.5)
    pod["metadata"]["annotations"]["gpu-fraction-num-devices"] = "2"
    cycle = cluster().submit(group, pod).run_cycle()
    assert len(device_of(cycle, "train-0")) == 2
    assert cluster(gpus=1).submit(group, pod).run_cycle().binds == []


@pytest.mark.parametrize("text", ["1.5", "0", "-0.5", "nan", "half"])
def test_a_part_that_is_no_part_is_refused_alone_with_the_reason(text: str) -> None:
    group, pod = kai.gang("train", share=0.5)
    pod["metadata"]["annotations"]["gpu-fraction"] = text
    found = cluster().submit(group, kai.gang("other", gpus=1))
    with pytest.raises(SnapshotError, match=rf"Pod default/train-0: metadata.annotations\['gpu-fraction'\]: '{text}' is not a"):
        found.submit(pod)
    assert found.run_cycle().binds == [("other-0", "node-0")]


@pytest.mark.parametrize(("key", "text"), [("gpu-fraction-num-devices", "0"), ("gpu-fraction-num-devices", "-1")])
def test_a_number_of_devices_below_one_is_refused(key: str, text: str) -> None:
    group, pod = kai.gang("train", share=0.5)
    pod["metadata"]["annotations"][key] = text
    with pytest.raises(SnapshotError, match=key):
        cluster().submit(group, pod)


@pytest.mark.parametrize("text", ["0", "-5"])
def test_no_memory_of_a_device_is_refused(text: str) -> None:
    group, pod = kai.gang("train")
    pod["metadata"]["annotations"]["gpu-memory"] = text
    with pytest.raises(SnapshotError, match="gpu-memory"):
        cluster().submit(group, pod)


def test_a_pod_without_gpus_is_drawn_to_a_node_with_a_shared_device() -> None:
    cluster = kai.cluster(nodes=2, actions="allocate", gpus=2).submit(kai.queue("a", quota=4), build.node("cpus", cpu=64))
    cluster.submit(kai.gang("part", share=0.5, device="g0", on="node-1"), kai.gang("plain"))
    assert cluster.run_cycle().binds == [("plain-0", "node-1")]
