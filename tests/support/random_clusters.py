"""Random clusters, as Kubernetes objects, for properties that must hold for all of them.

Chance comes in as a `random.Random`, so a seed repeats a cluster, and a property test may pass one that it can shrink.
No node holds more than it offers when the cluster is made.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from phalanx.config.volcano import BEST_EFFORT_RULES
from phalanx.testing import build
from phalanx.testing.build import Document

QUEUES = ("default", "blue", "green")
ZONES = ("east", "west")
MI = 1 << 20
ACTIONS = (
    "enqueue, allocate, backfill", "allocate, backfill", "allocate", "enqueue, allocate, preempt, reclaim, backfill",
    "allocate, gangpreempt, gangreclaim",
)  # fmt: skip
WEIGHTS = ("leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration", "imagelocality")


def objects(chance: Random, *, is_simple: bool = False) -> list[Document]:
    """Return a cluster with running, leaving and waiting pods. A simple one has no affinity, spread, ports or network."""
    nodes = _nodes(chance)
    names = [node["metadata"]["name"] for node in nodes]
    found = [*nodes, *_queues(chance), *_classes(chance)]
    free = [_Free(node) for node in nodes]
    templates = [_template(chance, is_simple) for _ in range(chance.randint(1, 3))]
    for number in range(chance.randint(1, 5)):
        found += _gang(chance, f"gang-{number}", templates, free)
    for number in range(chance.randint(0, 4)):
        found += _loner(chance, f"loner-{number}", chance.choice(templates), free)
    if not is_simple and chance.random() < 0.4:
        found += _network(chance, names)
    return found


def config(chance: Random) -> Document:
    """Return a configuration with random plugins, order and weights; gangs are always guarded."""
    weights = {f"{name}.weight": chance.randint(0, 3) for name in WEIGHTS if chance.random() < 0.5}
    packing: dict[str, Any] = {"binpack.weight": chance.randint(0, 5), "binpack.cpu": chance.randint(0, 3)}
    if chance.random() < 0.5:
        packing |= {"binpack.resources": "nvidia.com/gpu", "binpack.resources.nvidia.com/gpu": chance.randint(1, 7)}
    second: list[Document] = [
        {"name": "nodeorder", "arguments": weights}, {"name": "binpack", "arguments": packing}, {"name": "drf"},
        {"name": chance.choice(("proportion", "capacity"))}, {"name": "overcommit"},
        {"name": "network-topology-aware"}, {"name": "resource-strategy-fit"},
    ]  # fmt: skip
    second = [entry for entry in second if chance.random() < 0.7]
    chance.shuffle(second)
    tiers = [{"plugins": [{"name": "priority"}, {"name": "gang"}]}, {"plugins": [{"name": "predicates"}, *second]}]
    return {"actions": chance.choice(ACTIONS), "tiers": tiers, "bestEffortMembers": chance.choice(BEST_EFFORT_RULES)}


class _Free:
    """What is left of a node while pods are put on it."""

    def __init__(self, node: Document) -> None:
        offered = node["status"]["allocatable"]
        self.name = node["metadata"]["name"]
        self._left = {name: int(amount) * (1000 if name == "cpu" else 1) for name, amount in offered.items()}

    def take(self, pod: Document) -> bool:
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        wanted = {name: int(str(amount).removesuffix("m")) for name, amount in requests.items()} | {"pods": 1}
        if any(self._left.get(name, 0) < amount for name, amount in wanted.items()):
            return False
        self._left |= {name: self._left[name] - amount for name, amount in wanted.items() if name in self._left}
        return True


def _nodes(chance: Random) -> list[Document]:
    found = []
    for number in range(chance.randint(1, 6)):
        gpus = {"gpus": chance.randint(0, 4)} if chance.random() < 0.6 else {}
        labels = {"zone": chance.choice(ZONES)} if chance.random() < 0.8 else {}
        taints = [{"key": "noisy", "effect": "PreferNoSchedule"}] if chance.random() < 0.3 else []
        taints += [{"key": "closed", "effect": "NoSchedule"}] if chance.random() < 0.1 else []
        found.append(
            build.node(
                f"n{number}", labels=labels, spec={"taints": taints, "unschedulable": chance.random() < 0.05},
                cpu=chance.choice((1, 2, 4, 7)), memory=chance.choice((1024, 3000, 8192)) * MI, pods=chance.choice((2, 5, 110)),
                **gpus,
            )
        )  # fmt: skip
    return found


def _queues(chance: Random) -> list[Document]:
    found = []
    for name in QUEUES:
        spec: Document = {"priority": chance.randint(0, 1)} if chance.random() < 0.3 else {}
        if chance.random() < 0.3:
            spec["capability"] = {"cpu": chance.randint(0, 8)}
        if chance.random() < 0.2:
            spec["deserved"] = {"cpu": chance.randint(1, 4), "memory": "2Gi"}
        if name != "green" or chance.random() < 0.8:
            found.append(build.queue(name, weight=chance.randint(1, 4), **spec))
    return found


def _classes(chance: Random) -> list[Document]:
    kinds = (("high", 100, False), ("low", 1, False), ("usual", 10, True))
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            "globalDefault": is_default,
        }
        for name, value, is_default in kinds if chance.random() < 0.6
    ]  # fmt: skip


def _template(chance: Random, is_simple: bool) -> Document:
    """Return the spec and labels that some pods share."""
    requests: Document = {"cpu": f"{chance.choice((100, 500, 1000, 1500))}m", "memory": chance.choice((100, 256, 1000)) * MI}
    if chance.random() < 0.3:
        requests["nvidia.com/gpu"] = chance.randint(1, 2)
    if chance.random() < 0.2:
        requests = {}
    spec: Document = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    if chance.random() < 0.3:
        spec["nodeSelector"] = {"zone": chance.choice(ZONES)}
    if chance.random() < 0.3:
        spec["tolerations"] = [{"key": chance.choice(("noisy", "closed")), "operator": "Exists"}]
    if chance.random() < 0.5:
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": _preferences(chance)}}
    if not is_simple and chance.random() < 0.4:
        _couple(chance, spec)
    return {"spec": spec, "labels": {"app": chance.choice(("web", "db"))}}


def _preferences(chance: Random) -> list[Document]:
    expressions = [{"key": "zone", "operator": "In", "values": [chance.choice(ZONES)]}]
    return [{"weight": chance.randint(1, 100), "preference": {"matchExpressions": expressions}}]


def _couple(chance: Random, spec: Document) -> None:
    """Make pods of this kind look at other pods."""
    term = {"topologyKey": chance.choice(("zone", "kubernetes.io/hostname")), "labelSelector": {"matchLabels": {"app": "web"}}}
    kind = chance.choice(("podAffinity", "podAntiAffinity"))
    match chance.randint(0, 3):
        case 0:
            spec.setdefault("affinity", {})[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        case 1:
            weighted = [{"weight": chance.randint(1, 100), "podAffinityTerm": term}]
            spec.setdefault("affinity", {})[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
        case 2:
            when = chance.choice(("DoNotSchedule", "ScheduleAnyway"))
            spec["topologySpreadConstraints"] = [{**term, "maxSkew": chance.randint(1, 2), "whenUnsatisfiable": when}]
        case 3:
            spec["containers"][0]["ports"] = [{"hostPort": 80}]


def _pod(chance: Random, name: str, template: Document) -> Document:
    pod = build.pod(name, spec=template["spec"])
    pod["metadata"]["labels"] = template["labels"]
    pod["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{chance.randint(0, 2)}Z"
    return pod


def _start(chance: Random, pod: Document, free: Sequence[_Free]) -> None:
    """Let a pod run where there is room; some are leaving already."""
    place = chance.choice(free)
    if place.take(pod):
        pod["spec"] = {**pod["spec"], "nodeName": place.name}
        pod["status"] = {"phase": chance.choice(("Running", "Running", "Pending"))}
        if chance.random() < 0.3:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"


def _loner(chance: Random, name: str, template: Document, free: Sequence[_Free]) -> list[Document]:
    pod = _pod(chance, name, template)
    _start(chance, pod, free)
    return [pod]


def _gang(chance: Random, name: str, templates: Sequence[Document], free: Sequence[_Free]) -> list[Document]:
    count, has_roles = chance.randint(0, 6), chance.random() < 0.4
    kinds = {"chief": chance.choice(templates), "worker": chance.choice(templates)}
    pods = []
    for number in range(count):
        role = chance.choice(tuple(kinds)) if has_roles else ""
        long_name = f"{name}-{number}" if chance.random() < 0.8 else f"x{number}{name}"
        pod = build.in_group(name, _pod(chance, long_name, kinds.get(role) or chance.choice(templates)), role=role)
        if chance.random() < 0.25:
            _start(chance, pod, free)
        if chance.random() < 0.05:
            pod["spec"] = {**pod["spec"], "schedulingGates": [{"name": "wait"}]}
        if chance.random() < 0.1:
            pod["status"] = {**pod["status"], "nominatedNodeName": chance.choice(free).name}
        pods.append(pod)
    return [_group(chance, name, count, has_roles), *pods]


def _group(chance: Random, name: str, count: int, has_roles: bool) -> Document:
    spec: Document = {"queue": chance.choice(QUEUES)}
    if has_roles:
        spec["minTaskMember"] = {"chief": chance.randint(0, 2), "worker": chance.randint(0, 2)}
    if chance.random() < 0.3:
        spec["minResources"] = {"cpu": chance.randint(0, 6), "memory": "1Gi"}
    if chance.random() < 0.5:
        spec["priorityClassName"] = chance.choice(("high", "low"))
    phase = chance.choice(("Pending", "Inqueue", "Running"))
    return build.pod_group(name, min_member=chance.randint(0, count), phase=phase, **spec)


def _network(chance: Random, names: Sequence[str]) -> list[Document]:
    leaves = [build.hypernode(f"s{number}", tier=1, members=names[number::2]) for number in range(2)]
    if chance.random() < 0.5:
        leaves.append(build.hypernode("s9", tier=2, members=["s0", "s1"], of="HyperNode"))
    return leaves
