"""Small clusters whose sessions are traced: together they show every kind of line, family by family."""

from collections.abc import Callable
from functools import cache
from typing import Any

from phalanx.config.builtin import catalogue_of
from phalanx.config.policies import policy_of_profile
from phalanx.session.cycle import run_cycle
from phalanx.session.policy import Policy
from phalanx.session.shards import seen_by
from phalanx.session.trace import TraceEvent
from phalanx.testing import build
from phalanx.testing.build import Cluster, Document
from tests.support import crowded_clusters as crowds
from tests.support import kai_objects as kai
from tests.support.reserving_policy import reserving_policy

FIRST = ["priority", "gang", "conformance"]
SECOND = ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack", "pdb"]
VOLCANO = build.policy([FIRST, SECOND], "enqueue, allocate, preempt, reclaim, backfill")
BREAKS_GANGS = build.policy(
    [["priority", {"name": "gang", "enablePreemptable": False}, "conformance"], ["predicates", "nodeorder"]], "allocate, preempt"
)
TOPOLOGY = build.policy([FIRST, ["predicates", "network-topology-aware", "nodeorder"]], "allocate, gangpreempt")
LEAVING = "2026-01-01T00:00:00Z"


def traced(cluster: Cluster, *, level: int = 5, gangs: tuple[str, ...] = ()) -> list[TraceEvent]:
    """Return the trace of one session on a cluster."""
    snapshot = seen_by(cluster.policy, cluster.objects.snapshot(0.0))
    catalogue = catalogue_of(cluster.policy.catalogue)
    return run_cycle(snapshot, cluster.policy, catalogue, trace_level=level, traced_gangs=gangs).trace


@cache
def events(family: str) -> list[TraceEvent]:
    """Return all entries of the sessions on the clusters of a family."""
    return [event for make in FAMILIES[family] for event in traced(make())]


@cache
def lines(family: str) -> list[tuple[int, str]]:
    """Return the level and the sentence of every line that the clusters of a family show."""
    return [(event.level, event.text) for event in events(family)]


def kinds(family: str) -> set[str]:
    """Return the kinds of entries that the clusters of a family show."""
    return {type(event).__name__ for event in events(family)}


# --- gangs ---------------------------------------------------------------------------------------------------------------


def gang(name: str, places: list[str], *, minimum: int, cpu: int = 4, **spec: Any) -> list[Document]:
    """Return an admitted gang with a task per place; an empty place is a task that waits."""
    group = build.pod_group(name, min_member=minimum, phase="Inqueue", **{"queue": "blue", **spec})
    return [group, *(build.pod(f"{name}-{number}", group=name, on=place, cpu=cpu) for number, place in enumerate(places))]


def important(name: str, places: list[str], *, minimum: int, cpu: int = 4, **spec: Any) -> list[Document]:
    """Return a gang of high priority."""
    return gang(name, places, minimum=minimum, cpu=cpu, priorityClassName="high", **spec)


def humble(name: str, places: list[str], *, minimum: int = 1, cpu: int = 4, **spec: Any) -> list[Document]:
    """Return a gang of low priority."""
    return gang(name, places, minimum=minimum, cpu=cpu, priorityClassName="low", **spec)


def nodes(policy: Policy, count: int, *parts: Any, cpu: int = 4) -> Cluster:
    """Return equal nodes and the queues `blue` and `green`."""
    found = build.cluster(nodes=count, policy=policy, cpu=cpu)
    return found.submit(crowds.classes(), build.queue("blue"), build.queue("green"), *parts)


def hypernodes() -> list[Document]:
    """Return two leaves with two nodes each, below one spine."""
    leaves = [build.hypernode(f"leaf-{n}", tier=1, members=[f"node-{2 * n}", f"node-{2 * n + 1}"]) for n in range(2)]
    return [*leaves, build.hypernode("spine", tier=2, members=["leaf-0", "leaf-1"], of="HyperNode")]


def close_together(highest_tier: int) -> dict[str, Any]:
    """Return the part of a group that keeps its pods in a domain of this tier."""
    return {"networkTopology": {"mode": "hard", "highestTierAllowed": highest_tier}}


# --- clusters of every family but KAI's ----------------------------------------------------------------------------------


def starts_and_waits(policy: Policy) -> Cluster:
    """Return a cluster on which one gang starts, and another one gets a part and gives it back."""
    return nodes(policy, 3, gang("first", ["", ""], minimum=2), gang("second", ["", ""], minimum=2))


def waits_for_leaving(policy: Policy) -> Cluster:
    """Return a cluster on which a gang is pipelined onto room that another one still holds."""
    old = humble("old", ["node-0"])
    old[1]["metadata"]["deletionTimestamp"] = LEAVING
    return nodes(policy, 1, old, important("new", [""], minimum=1))


def makes_room(policy: Policy) -> Cluster:
    """Return a cluster on which an important gang evicts another one."""
    return nodes(policy, 1, humble("old", ["node-0"]), important("new", [""], minimum=1))


def makes_room_in_vain(policy: Policy) -> Cluster:
    """Return a cluster on which a gang could evict for one of its tasks only, so that nobody goes."""
    return nodes(policy, 1, humble("old", ["node-0"]), important("new", ["", ""], minimum=2))


def is_protected(policy: Policy) -> Cluster:
    """Return a cluster on which plugins protect a gang that has nothing to spare, and pods that may not be preempted."""
    never = important("meek", [""], minimum=1)
    never[1]["spec"]["preemptionPolicy"] = "Never"
    return nodes(policy, 2, humble("old", ["node-0", "node-1"], minimum=2), important("new", [""], minimum=1), never)


def is_of_equal_rank(policy: Policy) -> Cluster:
    """Return a cluster on which nobody is less important than the gang that waits."""
    return nodes(policy, 1, important("old", ["node-0"], minimum=1), important("new", [""], minimum=1))


def has_a_poor_queue(policy: Policy) -> Cluster:
    """Return a cluster on which one queue has all, and another one takes its part back."""
    rich = humble("rich", ["node-0"] * 4, cpu=1)
    return nodes(policy, 1, rich, gang("poor", [""], minimum=1, cpu=1, queue="green"))


def has_domains(policy: Policy) -> Cluster:
    """Return a cluster with a full leaf and a free one, for a gang that has to stay together."""
    busy = gang("busy", ["node-0", "node-1"], minimum=2, queue="green")
    return nodes(policy, 4, hypernodes(), busy, gang("near", ["", ""], minimum=2, **close_together(1)))


def has_small_domains(policy: Policy) -> Cluster:
    """Return a cluster on which no leaf has room for a gang that has to stay together."""
    return nodes(policy, 4, hypernodes(), gang("near", ["", "", ""], minimum=3, **close_together(1)))


def is_invalid(policy: Policy) -> Cluster:
    """Return a cluster with a gang of which pods are missing."""
    return nodes(policy, 1, gang("short", [""], minimum=3))


def has_a_selector(policy: Policy) -> Cluster:
    """Return a cluster on which no node has the label that a gang asks for."""
    found = gang("picky", [""], minimum=1)
    found[1]["spec"]["nodeSelector"] = {"disk": "fast"}
    return nodes(policy, 1, found)


def has_a_gang_on_a_full_node(policy: Policy) -> Cluster:
    """Return a node that was given to two gangs."""
    found = build.cluster(nodes=1, policy=policy, cpu=4).submit(build.queue("blue"))
    for second, name in enumerate(("first", "second")):
        group, pod = gang(name, ["node-0"], minimum=1)
        stamp = f"1970-01-01T00:00:0{second + 1}Z"
        pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}]
        found.submit(group, pod)
    return found


def has_a_stale_gang(policy: Policy) -> Cluster:
    """Return a cluster on which a gang runs with one of the two members that it needs."""
    group, *pods = gang("broken", ["node-0", ""], minimum=2)
    return nodes(policy, 1, build.bound_for(group, *pods))


def has_nominated(policy: Policy) -> Cluster:
    """Return a cluster on which a gang has its nodes from an earlier session."""
    found = gang("back", ["", ""], minimum=2)
    for number, pod in enumerate(found[1:]):
        pod["status"] = {"phase": "Pending", "nominatedNodeName": f"node-{number}"}
    return nodes(policy, 2, found)


COMMON: list[Callable[[Policy], Cluster]] = [
    starts_and_waits, waits_for_leaving, makes_room, makes_room_in_vain, is_protected, is_of_equal_rank, has_a_poor_queue,
    has_domains, has_small_domains, is_invalid, has_a_selector, has_a_stale_gang, has_a_gang_on_a_full_node, has_nominated,
]  # fmt: skip


# --- Volcano's -----------------------------------------------------------------------------------------------------------


def asks_for_admission() -> Cluster:
    """Return a cluster with a group that is admitted, and another one that asks for too much."""
    groups = (build.pod_group(name, queue="blue", minResources={"cpu": cpu}) for name, cpu in (("small", 1), ("huge", 100)))
    return nodes(VOLCANO, 1, groups)


def has_roles() -> Cluster:
    """Return a cluster on which a task is skipped because another one of its role found no node."""
    pods = [build.in_group("roles", build.pod(f"roles-{n}", cpu=8), role="worker") for n in range(2)]
    small = [build.in_group("roles", build.pod(f"roles-{n}", cpu=1), role="server") for n in (2, 3)]
    minima = {"minTaskMember": {"worker": 2, "server": 2}}
    policy = build.policy([FIRST, ["predicates", "nodeorder"]], "allocate")
    return nodes(policy, 1, build.pod_group("roles", min_member=2, phase="Inqueue", queue="blue", **minima), *pods, *small)


def has_a_claim_without_volume() -> Cluster:
    """Return a cluster on which a pod names a volume claim that does not exist."""
    found = gang("disk", [""], minimum=1)
    found[1]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "nowhere"}}]
    return nodes(VOLCANO, 1, found)


def has_a_wish_that_cannot_be_read() -> Cluster:
    """Return a cluster with a gang whose task topology names a role that it does not have."""
    found = gang("wish", [""], minimum=1)
    found[0]["metadata"]["annotations"] = {"volcano.sh/task-topology-affinity": "nobody,nowhere"}
    return nodes(build.policy([["gang", "predicates", "task-topology"]], "allocate"), 1, found)


def has_domains_of_unequal_score() -> Cluster:
    """Return a cluster on which the fuller of two leaves wins, so that the other one need not be tried."""
    busy = gang("busy", ["node-0"], minimum=1, cpu=2, queue="green")
    return nodes(TOPOLOGY, 4, hypernodes(), busy, gang("near", [""], minimum=1, cpu=2, **close_together(1)))


def has_spare_victims() -> Cluster:
    """Return a cluster on which Volcano's gangpreempt evicts what a gang can spare."""
    return nodes(TOPOLOGY, 2, humble("old", ["node-0", "node-1"]), important("new", [""], minimum=1))


# --- KAI's ---------------------------------------------------------------------------------------------------------------


def jobs_wait() -> Cluster:
    """Return a cluster with jobs that are alike and do not fit, and one that gets a part and gives it back."""
    found = kai.cluster(actions="allocate").submit(kai.queue("a", quota=8))
    return found.submit(kai.gang("part", tasks=3, gpus=2), *(kai.gang(f"large-{number}", gpus=8) for number in range(2)))


def is_scattered() -> Cluster:
    """Return two nodes with two of four GPUs in use on each; a job that needs four waits."""
    found = kai.cluster(nodes=2, actions="allocate, consolidation").submit(kai.queue("a", quota=8))
    return found.submit(*(kai.gang(f"old-{n}", on=f"node-{n}", gpus=2) for n in range(2)), kai.gang("train", gpus=4))


def is_too_full_to_move() -> Cluster:
    """Return a scattered cluster on which one job would have no other place."""
    return is_scattered().submit(kai.gang("third", on="node-0", gpus=1))


def is_lopsided(quota: float = 2) -> Cluster:
    """Return four GPUs, all used by a rich queue; a poor one with a quota wants two of them."""
    found = kai.cluster(actions="allocate, reclaim").submit(kai.queue("rich", quota=2), kai.queue("poor", quota=quota))
    found.submit(*(kai.gang(f"old-{n}", queue="rich", on="node-0", gpus=1) for n in range(4)))
    return found.submit(kai.gang("train", tasks=2, queue="poor", gpus=1))


def is_fair_already() -> Cluster:
    """Return two queues that have what they can count on; one of them wants more."""
    found = kai.cluster(actions="allocate, reclaim").submit(kai.queue("rich", quota=2), kai.queue("poor", quota=2))
    found.submit(
        kai.gang("old", tasks=2, queue="rich", on="node-0", gpus=1), kai.gang("mine", tasks=2, queue="poor", on="node-0", gpus=1)
    )
    return found.submit(kai.gang("train", queue="poor", gpus=1))


def has_less_important_jobs() -> Cluster:
    """Return a cluster on which an important job preempts one of its queue, and one of equal rank stays."""
    found = kai.cluster(actions="allocate, preempt").submit(kai.queue("a", quota=8))
    equal = kai.gang("equal", on="node-0", gpus=2, priorityClassName="build-preemptible")
    new = [kai.gang(f"new-{gpus}", gpus=gpus, priorityClassName="build-preemptible") for gpus in (2, 4)]
    return found.submit(kai.gang("old", on="node-0", gpus=2), equal, *new)


def has_racks() -> Cluster:
    """Return two racks of one node each; a job of two tasks has to stay in one of them."""
    found = kai.cluster(nodes=0, actions="allocate").submit(kai.queue("a", quota=8))
    racks = [build.node(f"node-{n}", labels={"rack": f"r{n}"}, cpu=64, memory="256Gi", gpus=4) for n in range(2)]
    levels = {"levels": [{"nodeLabel": "rack"}]}
    tree = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "racks"}, "spec": levels}
    found.submit(*racks, tree, kai.gang("busy", on="node-0", gpus=3))
    constraint = {"topology": "racks", "requiredTopologyLevel": "rack"}
    return found.submit(kai.gang("near", tasks=2, gpus=2, topologyConstraint=constraint))


def has_racks_of_small_nodes() -> Cluster:
    """Return a rack that has enough GPUs in all and on no node enough for the larger of two tasks."""
    found = has_racks().submit(*(kai.gang(f"more-{n}", on=f"node-{n}", gpus=n + 1) for n in range(2)))
    constraint = {"topology": "racks", "requiredTopologyLevel": "rack"}
    found.submit(*(build.node(f"node-{n}", labels={"rack": "r2"}, cpu=64, memory="256Gi", gpus=2) for n in (2, 3)))
    group = kai.pod_group("mixed", min_member=2, topologyConstraint=constraint)
    return found.submit(group, kai.pod("mixed-0", "mixed", gpus=0), kai.pod("mixed-1", "mixed", gpus=3))


def cannot_move_together(tasks: int = 5) -> Cluster:
    """Return two racks of four GPUs, five of them free, and a job of five tasks that has to stay in one of them."""
    found = kai.cluster(nodes=0, actions="allocate, consolidation").submit(kai.queue("a", quota=8), kai.topology("racks", "rack"))
    found.submit(*(build.node(f"node-{n}", labels={"rack": f"r{n // 2}"}, cpu=64, memory="256Gi", gpus=2) for n in range(4)))
    constraint = {"topology": "racks", "requiredTopologyLevel": "rack"}
    found.submit(kai.gang("busy", tasks=3, on=["node-0", "node-0", "node-1"], gpus=1))
    return found.submit(kai.gang("near", tasks=tasks, gpus=1, topologyConstraint=constraint))


def cannot_move_to_its_node() -> Cluster:
    """Return two racks with room for a job that asks for a node which does not exist."""
    found = cannot_move_together(tasks=0)
    group, pod = kai.gang("picky", gpus=2, topologyConstraint={"topology": "racks", "requiredTopologyLevel": "rack"})
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    return found.submit(group, pod)


def made_with(policy: Policy, makers: list[Callable[[Policy], Cluster]] = COMMON) -> list[Callable[[], Cluster]]:
    """Return the common clusters under a policy."""
    return [lambda make=make: make(policy) for make in makers]  # type: ignore[misc]  # bound per loop


def has_a_reserved_start() -> Cluster:
    """Return a gang that waits for another to end, and one behind it that must not take its node."""
    runs, waits = gang("runs", ["node-0"], minimum=1), gang("waits", ["", ""], minimum=2)
    runs[0]["metadata"]["annotations"] = {"phalanx.dev/duration": "1h"}
    return nodes(reserving_policy(), 2, runs, waits, gang("x-behind", [""], minimum=1))


def has_an_overdue_gang() -> Cluster:
    """Return a gang that runs longer than its queue lets it."""
    runs = gang("runs", ["node-0"], minimum=1, queue="strict")
    runs[1]["status"]["startTime"] = "1969-12-31T00:00:00Z"
    strict = build.queue("strict")
    strict["metadata"]["annotations"] = {"phalanx.dev/max-duration": "1h", "phalanx.dev/overdue": "evict"}
    return nodes(policy_of_profile("phalanx"), 1, strict, runs)


FAMILIES: dict[str, list[Callable[[], Cluster]]] = {
    "volcano": [
        *made_with(VOLCANO), *made_with(BREAKS_GANGS, [makes_room, makes_room_in_vain]),
        *made_with(TOPOLOGY, [has_domains, has_small_domains]),
        asks_for_admission, has_roles, has_a_claim_without_volume, has_a_wish_that_cannot_be_read, has_domains_of_unequal_score,
        has_spare_victims,
    ],
    "phalanx": [*made_with(policy_of_profile("phalanx")), has_a_reserved_start, has_an_overdue_gang],
    "coscheduling": made_with(policy_of_profile("coscheduling")),
    "kai": [
        jobs_wait, is_scattered, is_too_full_to_move, is_lopsided, is_fair_already, has_less_important_jobs, has_racks,
        has_racks_of_small_nodes, cannot_move_together, cannot_move_to_its_node,
    ],
}  # fmt: skip
