"""Cluster Autoscaler itself, unpatched, beside the control plane of the tests; its machines are nodes that kwok plays.

    with cluster_autoscaler(plane, folder, Pool("small", most=8)) as autoscaler:
        autoscaler.scale_ups()    # [("small", 8)]

Its cloud provider `kwok` makes and deletes real Node objects. What it waits for on a real cloud takes seconds here. It ends with
the block, and its nodes with it.
"""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from phalanx.dev.kwok_nodes import READY
from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import LOCALHOST, Process, free_ports
from phalanx.model.kinds import Document
from tests.support.real_operators import ASK_SECONDS, READY_SECONDS, is_healthy, started

POOL = "example.com/pool"
"""The label by which the cloud provider knows the nodes of a pool."""
LIMITS = "cluster-autoscaler.kwok.nodegroup"
HOME = "kube-system"
"""The namespace of its ConfigMaps."""
CPU, POD_CPU = 4, 3
"""What a node has, and what a pod asks for so that there is room for one: the autoscaler takes a part for a kube-proxy."""
UNNEEDED_SECONDS = 3
"""For how long a node has to be idle before it goes."""
FLAGS = (
    "--cloud-provider=kwok", f"--namespace={HOME}", "--leader-elect=false", "--scan-interval=1s",
    "--kube-api-content-type=application/json", "--enable-provisioning-requests=true",
    "--provisioning-request-initial-backoff-time=2s", "--initial-node-group-backoff-duration=3s",
    "--max-node-group-backoff-duration=3s", "--scale-down-delay-after-add=3s", "--scale-down-delay-after-failure=1s",
    f"--scale-down-unneeded-time={UNNEEDED_SECONDS}s", "--node-delete-delay-after-taint=0s",
    "--unremovable-node-recheck-timeout=1s",
)  # fmt: skip
PATIENT = ("--scan-interval=5s",)
"""Nearly as seldom as it looks by default: every second, it would often look while the pods of a gang are being told."""
_SCALE_UP = re.compile(r"Scale-up: setting group (\S+) size to (\d+)")
_LOOPS = re.compile(r'^cluster_autoscaler_function_duration_seconds_count\{function="main"\} (\d+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pool:
    """Machines of a kind, of which there are none at first."""

    name: str
    most: int

    def template(self) -> Document:
        """Return a node as it comes from this pool."""
        offers = {"cpu": str(CPU), "memory": "16Gi", "pods": "110"}
        limits = {f"{LIMITS}/min-count": "0", f"{LIMITS}/max-count": str(self.most)}
        return {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": {POOL: self.name}, "annotations": limits},
            "status": {"capacity": offers, "allocatable": offers, **READY},
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """One that runs."""

    plane: ControlPlane
    process: Process
    address: str

    def scale_ups(self) -> list[tuple[str, int]]:
        """Return every scale-up: the pool, and how many nodes it was to have."""
        return [(pool, int(size)) for pool, size in _SCALE_UP.findall(self.process.log.read_text())]

    def nodes(self) -> set[str]:
        """Return the names of the nodes that it has brought and not removed."""
        return set(self.plane.kubectl("get", "nodes", "-l", POOL, "-o", "name").split())

    def loops(self) -> int:
        """Return how often it has looked at the cluster."""
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=ASK_SECONDS) as answer:
            found = _LOOPS.search(answer.read().decode())
        return int(found[1]) if found else 0


@contextmanager
def cluster_autoscaler(
    plane: ControlPlane, folder: Path, *pools: Pool, flags: tuple[str, ...] = (), kubeconfig: Path | None = None
) -> Iterator[Autoscaler]:
    """Run it with some pools, and more flags; by another kubeconfig it asks the API server through a proxy."""
    _configure(plane, pools)
    (port,) = free_ports(1)
    address = f"http://{LOCALHOST}:{port}"
    way_in = kubeconfig or plane.kubeconfig
    own = {"KUBECONFIG": str(way_in), "KWOK_PROVIDER_MODE": "local", "POD_NAMESPACE": HOME}
    arguments = (f"--kubeconfig={way_in}", f"--address={LOCALHOST}:{port}", *FLAGS, *flags)
    try:
        with started(plane, folder, "cluster-autoscaler", arguments, own) as process:
            process.wait_for(lambda: is_healthy(f"{address}/health-check"), READY_SECONDS)
            yield Autoscaler(plane, process, address)
    finally:
        plane.kubectl("delete", "nodes", "-l", POOL)


def _configure(plane: ControlPlane, pools: tuple[Pool, ...]) -> None:
    """Write the ConfigMaps that the cloud provider reads."""
    templates = "kwok-provider-templates"
    config = {
        "apiVersion": "v1alpha1", "readNodesFrom": "configmap", "nodegroups": {"fromNodeLabelKey": POOL},
        "nodes": {"skipTaint": True}, "configmap": {"name": templates},
    }  # fmt: skip
    nodes = {"apiVersion": "v1", "kind": "List", "items": [pool.template() for pool in pools]}
    plane.apply([_map("kwok-provider-config", "config", yaml.safe_dump(config)), _map(templates, "templates", json.dumps(nodes))])


def _map(name: str, key: str, text: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": HOME}, "data": {key: text}}
