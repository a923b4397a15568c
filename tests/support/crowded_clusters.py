"""Small crowded clusters, as Kubernetes objects: running gangs in each other's way, and gangs that wait.

Small enough for an exhaustive search (`judge.py`) to say what could have been done. A seed repeats a cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from phalanx.testing import build
from phalanx.testing.build import Document

PRIORITIES = {"low": 1, "middle": 5, "high": 10}
QUEUES = ("blue", "green", "red")
MOST_RUNNING = 8


@dataclass(frozen=True, slots=True)
class Style:
    """What kind of clusters to draw."""

    queues: int = 1
    waiting: int = 1
    shapes: int = 1
    """Of the tasks of a waiting gang."""
    is_limited: bool = False
    """Some queues may not use the whole cluster."""
    has_budgets: bool = False
    """Some running gangs are covered by a disruption budget."""


def crowd(chance: Random, style: Style) -> list[Document]:
    """Return a cluster with running gangs, and waiting ones that are often more important or deserve more."""
    names = QUEUES[: style.queues]
    kinds = ["cpu", "memory", "gpus"][: chance.randint(1, 3)]
    nodes = [_Place(f"node-{number}", _offer(chance, kinds)) for number in range(chance.randint(2, 4))]
    found = [*(build.node(place.name, labels={}, spec={}, **place.left) for place in nodes), *classes()]
    found += [build.queue(name, weight=chance.randint(1, 3), **_shares(chance, kinds, nodes, style)) for name in names]
    running = 0
    for number in range(chance.randint(1, 5)):
        gang = _running(chance, f"run-{number}", chance.choice(names), _shapes(chance, kinds, 2), nodes)
        running += len(gang) - 1
        if running > MOST_RUNNING:
            break
        found += gang
        if style.has_budgets and gang and chance.random() < 0.7:
            found.append(_budget(chance, gang))
    for number in range(style.waiting):
        found += _waiting(chance, f"wait-{number}", chance.choice(names), _shapes(chance, kinds, style.shapes))
    return found


class _Place:
    """A node while pods are put on it."""

    def __init__(self, name: str, offers: Mapping[str, int]) -> None:
        self.name, self.left = name, dict(offers)
        self._free = dict(offers)

    def take(self, asks: Mapping[str, int]) -> bool:
        if any(self._free.get(kind, 0) < amount for kind, amount in asks.items()):
            return False
        self._free = {kind: amount - asks.get(kind, 0) for kind, amount in self._free.items()}
        return True


def _offer(chance: Random, kinds: list[str]) -> dict[str, int]:
    return {kind: chance.randint(2, 6) for kind in kinds}


def _shapes(chance: Random, kinds: list[str], count: int) -> list[dict[str, int]]:
    found = []
    for _ in range(count):
        asks = {"cpu": chance.randint(1, 4)}
        asks |= {kind: chance.randint(1, 4) for kind in kinds[1:] if chance.random() < 0.6}
        found.append(asks)
    return found


def classes() -> list[Document]:
    """Return the priority classes that gangs of a crowd name."""
    return [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        for name, value in PRIORITIES.items()
    ]


def _shares(chance: Random, kinds: list[str], nodes: list[_Place], style: Style) -> Document:
    spec: Document = {}
    total = {kind: sum(place.left[kind] for place in nodes) for kind in kinds}
    if style.queues > 1 and chance.random() < 0.5:
        spec["deserved"] = build.resources({kind: chance.randint(0, amount) for kind, amount in total.items()})
    if style.is_limited and chance.random() < 0.6:
        spec["capability"] = build.resources({"cpu": chance.randint(2, total["cpu"])})
    return spec


def _running(chance: Random, name: str, queue: str, shapes: list[dict[str, int]], nodes: list[_Place]) -> list[Document]:
    """Return a gang as far as it finds room; some are protected, some lack members."""
    pods, namespace = [], "kube-system" if chance.random() < 0.08 else "default"
    for number in range(chance.randint(1, 4)):
        asks, place = chance.choice(shapes), chance.choice(nodes)
        if place.take(asks):
            pod = _pod(f"{namespace}/{name}-{number}", name, asks, chance.choice(("chief", "worker")))
            pod["spec"]["nodeName"], pod["status"] = place.name, {"phase": "Running"}
            _protect(chance, pod)
            pods.append(pod)
    minimum = chance.randint(0, len(pods)) if chance.random() < 0.9 else len(pods) + 1
    group = _group(chance, name, queue, minimum, pods)
    group["metadata"]["namespace"] = namespace
    group["status"]["phase"] = "Running"
    if chance.random() < 0.1:
        group["metadata"]["annotations"] = {"volcano.sh/preemptable": "false"}
    return [group, *pods] if pods else []


def _pod(name: str, group: str, asks: Mapping[str, int], role: str) -> Document:
    return build.in_group(group, build.pod(name, group=group, on="", spec={}, **asks), role=role)


def _protect(chance: Random, pod: Document) -> None:
    if chance.random() < 0.08:
        pod["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    if chance.random() < 0.05:
        pod["spec"]["priorityClassName"] = "system-cluster-critical"


def _budget(chance: Random, gang: list[Document]) -> Document:
    """Return a budget for the pods of a gang, labelled for it here; now and then for half of them."""
    group, *pods = gang
    name, allowed = group["metadata"]["name"], chance.randint(0, 2)
    for pod in pods[chance.choice((0, 0, len(pods) // 2)) :]:
        pod["metadata"]["labels"] = {"app": name}
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": group["metadata"]["namespace"]},
        "spec": {"selector": {"matchLabels": {"app": name}}}, "status": {"disruptionsAllowed": allowed, "observedGeneration": 1},
    }  # fmt: skip


def _group(chance: Random, name: str, queue: str, minimum: int, pods: list[Document]) -> Document:
    spec: dict[str, Any] = {"queue": queue, "priorityClassName": chance.choice(tuple(PRIORITIES))}
    if chance.random() < 0.3:
        chiefs = sum(pod["metadata"]["annotations"]["volcano.sh/task-spec"] == "chief" for pod in pods)
        spec["minTaskMember"] = {"chief": chance.randint(0, chiefs), "worker": chance.randint(0, len(pods) - chiefs)}
    return build.pod_group(name, min_member=minimum, **spec)


def _waiting(chance: Random, name: str, queue: str, shapes: list[dict[str, int]]) -> list[Document]:
    count = chance.randint(1, 4)
    pods = [
        _pod(f"default/{name}-{number}", name, chance.choice(shapes), chance.choice(("chief", "worker"))) for number in range(count)
    ]
    group = _group(chance, name, queue, chance.randint(1, count), pods)
    if chance.random() < 0.7:
        group["spec"]["priorityClassName"] = "high"
    return [group, *pods]
