"""Clusters on which an urgent gang, `new`, hopes that another one, `old`, makes room for it, and nobody does; by the cause."""

from collections.abc import Callable
from typing import Any

from phalanx.session.policy import Policy
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support.crowded_clusters import classes
from tests.support.traced_clusters import humble, important

PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN = "volcano.sh/cooldown-time"


def crowd(policy: Policy, *parts: Any, nodes: int = 1, cpu: int = 4) -> Cluster:
    """Return equal nodes and the queues `blue` and `green`."""
    return build.cluster(nodes=nodes, policy=policy, cpu=cpu).submit(
        classes(), build.queue("blue"), build.queue("green"), *parts
    )  # fmt: skip


def old(*places: str, **spec: Any) -> list[Document]:
    """Return a running gang of low priority."""
    return humble("old", list(places) or ["node-0"], **spec)


def new(tasks: int = 1, **spec: Any) -> list[Document]:
    """Return a waiting gang of high priority, all of whose tasks are needed."""
    return important("new", [""] * tasks, minimum=tasks, **spec)


def budget(allowed: int) -> Document:
    """Return a budget that covers the pods of `old`."""
    selector = {"matchLabels": {"app": "old"}}
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed},
    }  # fmt: skip


def is_not_preemptable(policy: Policy) -> Cluster:
    """Return a cluster on which the only victim is marked."""
    group, pod = old()
    pod["metadata"].setdefault("annotations", {})[PREEMPTABLE] = "false"
    return crowd(policy, group, pod, new())


def is_as_important(policy: Policy) -> Cluster:
    """Return a cluster on which the only victim has the same priority."""
    return crowd(policy, important("old", ["node-0"], minimum=1), new())


def never_preempts(policy: Policy) -> Cluster:
    """Return a cluster on which the urgent gang may not preempt."""
    group, pod = new()
    pod["spec"]["preemptionPolicy"] = "Never"
    return crowd(policy, old(), group, pod)


def asks_for_a_label(policy: Policy) -> Cluster:
    """Return a cluster on which no node has the label that the urgent gang asks for."""
    group, pod = new()
    pod["spec"]["nodeSelector"] = {"disk": "fast"}
    return crowd(policy, old(minimum=0), group, pod)


def is_too_large(policy: Policy) -> Cluster:
    """Return a cluster on which no node is large enough for the urgent gang; the victim may go."""
    return crowd(policy, old(minimum=0), new(cpu=8))


def has_a_budget(policy: Policy) -> Cluster:
    """Return a cluster on which a disruption budget covers the victim."""
    group, pod = old(minimum=0)
    pod["metadata"]["labels"] = {"app": "old"}
    return crowd(policy, group, pod, budget(0), new())


def is_of_the_system(policy: Policy) -> Cluster:
    """Return a cluster on which the victim has a class of the system."""
    group, pod = old(minimum=0)
    pod["spec"]["priorityClassName"] = "system-node-critical"
    return crowd(policy, group, pod, new())


def is_in_another_queue(policy: Policy) -> Cluster:
    """Return a cluster on which a queue that is not reclaimable has everything."""
    found = crowd(policy, old(queue="green", cpu=2), old_two("green"), new(cpu=2))
    return found.submit(build.queue("green", reclaimable=False))


def old_two(queue: str) -> list[Document]:
    """Return another running gang that fills the rest of the node."""
    return humble("older", ["node-0"], queue=queue, cpu=2)


def queue_has_its_share(policy: Policy) -> Cluster:
    """Return a cluster on which both queues have what they deserve; one gang of `blue` wants more."""
    return crowd(policy, old(queue="green", cpu=2), important("mine", ["node-0"], minimum=1, cpu=2), new(cpu=1))


def would_break(policy: Policy) -> Cluster:
    """Return a cluster on which the victim has nothing to spare."""
    return crowd(policy, old("node-0", "node-1", minimum=2), new(), nodes=2)


CLUSTERS: dict[str, Callable[[Policy], Cluster]] = {
    "NotPreemptable": is_not_preemptable,
    "NotLowerPriority": is_as_important,
    "PreemptionNever": never_preempts,
    "NoNodeSuits": asks_for_a_label,
    "StillNoRoom": is_too_large,
    "DisruptionBudget": has_a_budget,
    "SystemPod": is_of_the_system,
    "QueueNotReclaimable": is_in_another_queue,
    "QueueQuotaExceeded": queue_has_its_share,
    "GangWouldBreak": would_break,
}
"""By the cause."""
