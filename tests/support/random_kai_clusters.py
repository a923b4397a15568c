"""Random clusters of KAI's objects, for properties that must hold for all of them. A seed repeats a cluster.

No node and no device holds more than it offers when the cluster is made.
"""

import json
from random import Random
from typing import Any

from phalanx.dialects.bind_requests import FAILED_BINDS
from phalanx.testing import build
from phalanx.testing.build import Document
from tests.support import kai_objects as kai

LEAVES = ("a", "b", "c")
PORTIONS = (0.2, 0.25, 0.5, 0.6, 1.0)
ORDER = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
NOW = 1_767_268_800.0
STAMPS = ("2026-01-01T11:58:00Z", "2026-01-01T11:59:50Z", "never")


def objects(chance: Random) -> list[Document]:
    """Return nodes, a tree of queues, and jobs that run, leave, wait, are bound or were refused; some shared GPUs are reserved."""
    nodes = [_node(chance, number) for number in range(chance.randint(1, 4))]
    free = [_Free(node) for node in nodes]
    found = [*nodes, *_queues(chance), *map(kai.priority_class, kai.CLASSES), kai.topology("net", "zone", "rack")]
    for number in range(chance.randint(1, 7)):
        found += _job(chance, f"job-{number}", free)
    return [*found, *(kai.reservation(device, on=node.name) for node in free for device in node.devices if chance.random() < 0.5)]


def config(chance: Random) -> dict[str, Any]:
    """Return the actions, plugins and options of a policy."""
    actions = ", ".join(name for name in ORDER if chance.random() < 0.75) or "allocate"
    plugins: dict[str, Any] = {}
    if chance.random() < 0.3:
        plugins |= {"gpupack": {"enabled": False}, "gpuspread": {"enabled": True}}
    if chance.random() < 0.3:
        plugins["nodeplacement"] = {"arguments": {"gpu": "spread", "cpu": chance.choice(("binpack", "spread"))}}
    if chance.random() < 0.3:
        plugins["minruntime"] = {"arguments": {"defaultPreemptMinRuntime": "60s", "defaultReclaimMinRuntime": "60s"}}
    if chance.random() < 0.5:
        plugins["bindbackoff"] = {"enabled": True}
    options: dict[str, Any] = {
        "maxConsolidationPreemptees": chance.choice((-1, 0, 16)), "stalenessGracePeriodSeconds": chance.choice((-1, 0, 60)),
        "allowConsolidatingReclaim": chance.random() < 0.7,
    }  # fmt: skip
    if chance.random() < 0.2:
        options["queueDepthPerAction"] = {chance.choice(ORDER[:4]): chance.randint(0, 3)}
    return {"actions": actions, "plugins": plugins, "options": options}


class _Free:
    """What is left of a node while pods are put on it."""

    def __init__(self, node: Document) -> None:
        offered = node["status"]["allocatable"]
        self.name = str(node["metadata"]["name"])
        self._cpu, self._gpus, self._pods = int(offered["cpu"]), int(offered.get("nvidia.com/gpu", 0)), int(offered["pods"])
        self.devices: dict[str, float] = {}

    def take(self, chance: Random, cpu: int, gpus: int, share: float) -> tuple[bool, str]:
        """Put a pod on the node if it fits; return the device that it shares."""
        if self._cpu < cpu or self._gpus < gpus or not self._pods:
            return False, ""
        device = self._share(chance, share) if share else ""
        if share and not device:
            return False, ""
        self._cpu, self._gpus, self._pods = self._cpu - cpu, self._gpus - gpus, self._pods - 1
        return True, device

    def _share(self, chance: Random, share: float) -> str:
        open_devices = [name for name, left in self.devices.items() if left >= share - 1e-9]
        if open_devices and chance.random() < 0.7:
            name = chance.choice(open_devices)
        elif self._gpus:
            name, self._gpus = f"{self.name}-d{len(self.devices)}", self._gpus - 1
            self.devices[name] = 1.0
        else:
            return ""
        self.devices[name] -= share
        return name


def _node(chance: Random, number: int) -> Document:
    labels = {"zone": chance.choice("xy"), "rack": chance.choice("pqr")} if chance.random() < 0.9 else {}
    gpus = chance.choice((0, 1, 2, 4))
    offers: dict[str, Any] = {"gpus": gpus} if gpus else {}
    return build.node(f"n{number}", labels=labels, cpu=chance.choice((4, 8, 16)), pods=chance.choice((3, 110)), **offers)


def _queues(chance: Random) -> list[Document]:
    top = kai.queue("top", parent="", quota=chance.choice((-1, 2, 4, 8)), limit=chance.choice((-1, -1, 4)))
    found = [top]
    for name in LEAVES:
        bounds = {
            "quota": chance.choice((0, 1, 2, 4, -1)),
            "limit": chance.choice((-1, -1, 2, 6)),
            "weight": chance.choice((0, 1, 3)),
        }
        parent = "top" if name != "c" or chance.random() < 0.5 else ""
        queue = kai.queue(name, parent=parent, **bounds, priority=chance.choice((100, 100, 200)))
        if chance.random() < 0.3:
            queue["spec"]["resources"]["cpu"] = {"quota": chance.choice((0, 4000)), "limit": chance.choice((-1, 6000))}
        if chance.random() < 0.9:
            found.append(queue)
    return found


def _job(chance: Random, name: str, free: list[_Free]) -> list[Document]:
    tasks = chance.randint(1, 5)
    parts = chance.choice((("",), ("",), ("left", "right"), ("left", "right", "far")))
    asks = [_asks(chance) for _ in range(2)]
    runs, found = chance.random(), list[Document]()
    pods = [_pod(chance, f"{name}-{number}", name, chance.choice(asks), chance.choice(parts)) for number in range(tasks)]
    for pod, share in pods:
        if chance.random() < runs - 0.3:
            _start(chance, pod, share, free)
        elif chance.random() < 0.1:
            found += _request(chance, pod, share, free)
        elif chance.random() < 0.05:
            kai.gated(pod)
        elif chance.random() < 0.1:
            refuse(chance, pod, [place.name for place in free])
    return [_group(chance, name, tasks, parts), *(pod for pod, _ in pods), *found]


def refuse(chance: Random, pod: Document, nodes: list[str]) -> None:
    """Let binds of a waiting pod have failed, seldom or often, on one node of some."""
    failure = {"node": chance.choice(nodes), "attempts": chance.choice((1, 1, 9)), "latest": chance.choice(STAMPS[:2])}
    pod["metadata"]["annotations"][FAILED_BINDS] = json.dumps([failure])


def _asks(chance: Random) -> dict[str, Any]:
    cpu = chance.choice((1, 1, 2, 4))
    kind = chance.random()
    if kind < 0.4:
        return {"cpu": cpu, "gpus": chance.choice((1, 1, 2))}
    return {"cpu": cpu, "share": chance.choice(PORTIONS)} if kind < 0.8 else {"cpu": cpu}


def _pod(chance: Random, name: str, group: str, asks: dict[str, Any], part: str) -> tuple[Document, float]:
    pod = kai.pod(name, group, part=part, **asks)
    pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{chance.randint(0, 3)}Z"
    return pod, asks.get("share", 0.0)


def _request(chance: Random, pod: Document, share: float, free: list[_Free]) -> list[Document]:
    """Return the wish to bind a pod where there is room, or one that failed or names a node that is gone."""
    place, name = chance.choice(free), pod["metadata"]["name"]
    if chance.random() < 0.3:
        return [chance.choice((kai.bind_request(name, place.name, phase="Failed"), kai.bind_request(name, "gone")))]
    is_placed, device = _take(chance, pod, share, place)
    return [kai.bind_request(name, place.name, groups=[device] if device else [])] if is_placed else []


def _take(chance: Random, pod: Document, share: float, place: _Free) -> tuple[bool, str]:
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    return place.take(chance, requests["cpu"], requests.get("nvidia.com/gpu", 0), share)


def _start(chance: Random, pod: Document, share: float, free: list[_Free]) -> None:
    place = chance.choice(free)
    is_placed, device = _take(chance, pod, share, place)
    if is_placed:
        pod["spec"]["nodeName"], pod["status"] = place.name, {"phase": "Running"}
        pod["metadata"]["labels"] |= {kai.DEVICE: device} if device else {}
        if chance.random() < 0.2:
            kai.leaving(pod)


def _group(chance: Random, name: str, tasks: int, parts: tuple[str, ...]) -> Document:
    group = kai.pod_group(name, min_member=chance.randint(1, tasks), queue=chance.choice(LEAVES))
    group["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{chance.randint(0, 3)}Z"
    spec = group["spec"]
    spec["priorityClassName"] = chance.choice(tuple(kai.CLASSES))
    if chance.random() < 0.5:
        spec["preemptibility"] = chance.choice(("preemptible", "preemptible", "non-preemptible"))
    if chance.random() < 0.5:
        group["metadata"]["annotations"] |= {chance.choice((kai.LAST_START, kai.STALE_SINCE)): chance.choice(STAMPS)}
    if parts != ("",):
        inner = [{"name": "inner"}] if "far" in parts else []
        spec["subGroups"] = [*inner, *({"name": part, "minMember": 1, **_inside(part, parts)} for part in parts)]
    if chance.random() < 0.3:
        level = {chance.choice(("requiredTopologyLevel", "preferredTopologyLevel")): chance.choice(("zone", "rack"))}
        chance.choice([spec, *spec.get("subGroups", [])])["topologyConstraint"] = {"topology": "net", **level}
    return group


def _inside(part: str, parts: tuple[str, ...]) -> dict[str, str]:
    return {"parent": "inner"} if "far" in parts and part != "far" else {}
