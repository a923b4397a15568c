"""Which part of a cluster a scheduler sees, and may use, when several share it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from phalanx.model.queue import Queue, QueueBounds
from phalanx.model.shard import NODE_POOL
from phalanx.placement import Mask
from phalanx.session.policy import Policy, ProcessFlags
from phalanx.state.hypernodes import HyperTree
from phalanx.state.node_table import NodeTable
from phalanx.state.snapshot import Snapshot

GPU_WORKER, CPU_WORKER = "node-role.kubernetes.io/gpu-worker", "node-role.kubernetes.io/cpu-worker"
ONE_PARENT = "all queues"
"""Stands above all queues in a flat tree; no queue of a cluster can have this name."""


def shard_parts(flags: ProcessFlags, snapshot: Snapshot) -> list[Mask]:
    """Return the nodes of the own shard, then those of others when they may be used too."""
    if flags.sharding_mode == "none":
        return [np.ones(len(snapshot.nodes), dtype=np.bool_)]
    shard = snapshot.surroundings.shards.get(flags.shard_name)
    mine = np.array([shard is not None and name in shard.nodes for name in snapshot.nodes.names], dtype=np.bool_)
    return [mine, ~mine] if flags.sharding_mode == "soft" else [mine]


def seen_by(policy: Policy, snapshot: Snapshot) -> Snapshot:
    """Return the cluster as the scheduler with this policy sees it: its pool, its nodes, its tree of queues."""
    if policy.reads_kai_queues and snapshot.namesakes:
        snapshot = replace(snapshot, queues={**snapshot.queues, **snapshot.namesakes})
    if policy.node_pool is not None:
        snapshot = in_pools(snapshot, {policy.node_pool})
    if policy.options.get("restrictNodeScheduling") is True:
        snapshot = _on(snapshot, snapshot.nodes.label(GPU_WORKER).present | snapshot.nodes.label(CPU_WORKER).present)
    if policy.options.get("fullHierarchyFairness") is False:
        snapshot = replace(snapshot, queues=_flat(snapshot.queues), full_tree=snapshot.queues)
    return snapshot


def in_pools(snapshot: Snapshot, pools: set[str]) -> Snapshot:
    """Return the nodes and gangs of some pools only; pods of other gangs stay on the nodes that they hold."""
    gangs = {key: gang for key, gang in snapshot.gangs.items() if gang.node_pool in pools}
    active = tuple(key for key in snapshot.active if key in gangs)
    members = {key: tasks for key, tasks in snapshot.members.items() if key in gangs or key not in snapshot.gangs}
    seen = _on(snapshot, snapshot.nodes.label(NODE_POOL).where(lambda value: (value or "") in pools))
    return replace(seen, gangs=gangs, members=members, active=active)


def _on(snapshot: Snapshot, mask: Mask) -> Snapshot:
    """Return the snapshot with some of its nodes."""
    if mask.all():
        return snapshot
    table = NodeTable([snapshot.nodes.nodes[number] for number in np.flatnonzero(mask)], snapshot.space)
    tasks = {key: task for key, task in snapshot.affine.items() if task.node in table.number_by_name}
    return replace(
        snapshot, nodes=table, used=snapshot.used[:, mask], releasing=snapshot.releasing[:, mask], scored=snapshot.scored[:, mask],
        pods=snapshot.pods[mask], on_node={name: held for name, held in snapshot.on_node.items() if name in table.number_by_name},
        hypernodes=HyperTree((), table), affine=tasks,
        reservations={key: task for key, task in snapshot.reservations.items() if task.node in table.number_by_name},
    )  # fmt: skip


def _flat(queues: Mapping[str, Queue]) -> dict[str, Queue]:
    """Hang all queues that have a parent under a single one without bounds; those without a parent drop out."""
    free = (-1.0, -1.0, -1.0)
    top = Queue(ONE_PARENT, uid=ONE_PARENT, priority=100, bounds=QueueBounds(free, free, (1.0, 1.0, 1.0)))
    below = {name: replace(queue, parent=ONE_PARENT) for name, queue in queues.items() if queue.bounds is not None and queue.parent}
    return {ONE_PARENT: top, **below}
