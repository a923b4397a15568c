"""Several schedulers decide at the same time on one cluster, each for its own NodeShard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.replicas import scheduling
from phalanx.model.kinds import Document
from phalanx.testing import build
from tests.support.live_site import Site

pytestmark = pytest.mark.xdist_group("controlplane")
NODES = {"batch": ("gpu-1", "gpu-2", "gpu-3"), "serving": ("gpu-4", "gpu-5")}


def shard(site: Site, name: str) -> Document:
    nodes = [site.node(node) for node in NODES[name]]
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard", "metadata": {"name": name}, "spec": {"nodesDesired": nodes},
    }  # fmt: skip


def gang(name: str, tasks: int, scheduler: str) -> list[Document]:
    group, *pods = build.gang(name, tasks=tasks, cpu=4)
    return [group, *({**pod, "spec": {**pod["spec"], "schedulerName": scheduler}} for pod in pods)]


@pytest.fixture
def schedulers(plane: ControlPlane, site: Site, tmp_path: Path) -> Iterator[None]:
    """One scheduler for each shard, which uses no other nodes."""
    site.make([build.node(node, cpu=4) for nodes in NODES.values() for node in nodes])
    site.make([shard(site, name) for name in NODES])
    flags = {name: tmp_path / name for name in NODES}
    for name, folder in flags.items():
        folder.mkdir()
        (folder / "config.yaml").write_text(f"profile: volcano\nflags: {{shardName: {name}, shardingMode: hard}}\n")
    batch, serving = ((folder, f"--config={folder / 'config.yaml'}", f"--scheduler-name={name}") for name, folder in flags.items())
    with scheduling(plane, *batch), scheduling(plane, *serving):
        yield


@pytest.mark.usefixtures("schedulers")
def test_each_scheduler_fills_its_own_shard_and_no_other(site: Site) -> None:
    site.make([*gang("train", 3, "batch"), *gang("chat", 1, "serving")])
    site.await_phases("train-", {"Running": 3})
    site.await_phases("chat-", {"Running": 1})
    assert set(site.bound("train-").values()) == {site.node(node) for node in NODES["batch"]}
    assert set(site.bound("chat-").values()) < {site.node(node) for node in NODES["serving"]}
    site.make(gang("more", 1, "batch"))
    said = "-o=jsonpath={.status.conditions[*].reason}"
    site.wait(lambda: "NotEnoughResources" in site.kubectl("get", "pg", "more", said), lambda: "more does not wait")
    site.await_phases("more-", {"Pending": 1})
    site.kubectl("delete", "pod", "train-0", "--now")
    site.await_phases("more-", {"Running": 1})
    assert set(site.bound("more-").values()) < {site.node(node) for node in NODES["batch"]}
