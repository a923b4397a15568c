"""Volume claims as filters: attach limits, zones and binding, for all nodes at once.

The plugin `predicates` makes one book per session and tells it of every operation. A claim is *bound* to a volume, or
*delayed* (its class waits for the first consumer), or *immediate* and then nobody may start before it is bound.

For a delayed claim each node looks for the smallest volume that suits, and else for a class that makes one there. What
a placed task was given is *promised* for the rest of the session: the volume is taken, and others that share the claim
can only go where that volume, or the node that makes it, can be reached. Undoing the placement takes the promise back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from phalanx.kubernetes.nodeselection import NodeFinder, label_selector_mask, matching_nodes
from phalanx.model.selectors import NodeSelectorTerm
from phalanx.model.shape import Shape
from phalanx.model.storage import Volume, VolumeClaim
from phalanx.model.task import TaskKey
from phalanx.placement import NO_LIMIT, Counts, Index, Mask
from phalanx.session.hooks import Layer
from phalanx.session.session import Session
from phalanx.session.statement import Kind, Operation
from phalanx.state.snapshot import Snapshot, Surroundings
from phalanx.state.verdict import YES, Verdict

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_NEWER_KEY = {ZONE: ZONE, REGION: REGION, OLD_ZONE: ZONE, OLD_REGION: REGION}

_ELSEWHERE, _NOTHING_TO_BIND, _NO_SPACE, _NO_VOLUME = 1, 2, 4, 8
_REASONS = {
    _ELSEWHERE: "node(s) didn't match PersistentVolume's node affinity",
    _NOTHING_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    _NO_SPACE: "node(s) did not have enough free storage",
    _NO_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}

CsiVolume: TypeAlias = tuple[str, str]
"""A driver and its handle of a volume."""


class VolumeBook:
    """What the volumes of the cluster allow in this session."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet: everything is looked up when the first shape with claims asks."""
        self._snapshot = session.snapshot
        self._table, self._world = session.snapshot.nodes, session.snapshot.surroundings
        self._finder = NodeFinder(self._table)
        self._shelves: dict[str, _Shelf] = {}
        self._reach_by_volume: dict[str, Mask] = {}
        self._provisioning: dict[tuple[str, int], Counts] = {}
        self._promises: dict[str, _Promise] = {}
        self._last_plan: tuple[Shape, _Plan] | None = None

    @property
    def is_used(self) -> bool:
        """Tell whether the cluster has any volume claim; without one only the prefilters have something to refuse."""
        return bool(self._world.volume_claims)

    @cached_property
    def _attachments(self) -> "_Attachments":
        return _Attachments(self._snapshot)

    def zone_prefilter(self, shape: Shape) -> Verdict:
        """Refuse claims whose zone cannot be known: missing, or unbound although nobody waits for a consumer."""
        for name in shape.volume_claims:
            claim = self._world.volume_claims.get(f"{shape.namespace}/{name}")
            verdict = self._has_zone(claim) if claim is not None else _claim_not_found(name)
            if not verdict.ok:
                return verdict
        return YES

    def _has_zone(self, claim: VolumeClaim) -> Verdict:
        if claim.volume:
            known = claim.volume in self._world.volumes
            return YES if known else _volume_not_found(claim.volume)
        if not claim.storage_class:
            return _refuse("UnboundVolumeClaim", "PersistentVolumeClaim had no pv name and storageClass name", storage_class="")
        storage_class = self._world.storage_classes.get(claim.storage_class)
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
            return _refuse("StorageClassNotFound", message, storage_class=claim.storage_class)
        return YES if storage_class.waits_for_consumer else _refuse("UnboundVolumeClaim", "PersistentVolume had no name")

    def binding_prefilter(self, shape: Shape) -> Verdict:
        """Refuse claims that are missing, lost or going away, then those that must be bound first and are not."""
        for name in shape.volume_claims:
            verdict = self._is_usable(name, self._world.volume_claims.get(f"{shape.namespace}/{name}"))
            if not verdict.ok:
                return verdict
        if all(_is_bound(claim) or self._is_delayed(claim) for claim in _claims_of(shape, self._world)):
            return YES
        return _refuse("UnboundVolumeClaim", "pod has unbound immediate PersistentVolumeClaims")

    def _is_usable(self, name: str, claim: VolumeClaim | None) -> Verdict:
        if claim is None:
            return _claim_not_found(name)
        if claim.is_lost:
            message = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume}"'
            return _refuse("VolumeNotFound", message, claim=name, volume=claim.volume)
        if claim.is_deleting:
            return _refuse("VolumeClaimDeleted", f'persistentvolumeclaim "{name}" is being deleted', claim=name)
        return YES

    def _is_delayed(self, claim: VolumeClaim) -> bool:
        storage_class = self._world.storage_classes.get(claim.storage_class or "")
        return not claim.volume and storage_class is not None and storage_class.waits_for_consumer

    def limit_layers(self, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes that cannot attach the new volumes of the shape on top of those they have."""
        if not shape.volume_claims:
            return []
        refused = self._attachments.exceeded(shape)[nodes]
        return [Layer(refused, "node(s) exceed max volume count")] if refused.any() else []

    def zone_layers(self, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes in other zones or regions than a bound volume; a node without such labels takes any volume."""
        labels = [pair for claim in _claims_of(shape, self._world) for pair in self._zone_labels(claim)]
        if not labels:
            return []
        suits = np.logical_and.reduce([self._in_zone(key, values) for key, values in labels])
        labelled = np.logical_or.reduce([self._table.label(key).present for key in _NEWER_KEY])
        refused = (labelled & ~suits)[nodes]
        return [Layer(refused, "node(s) had no available volume zone", is_final=True)] if refused.any() else []

    def _zone_labels(self, claim: VolumeClaim) -> list[tuple[str, frozenset[str]]]:
        volume = self._world.volumes.get(claim.volume)
        if volume is None:
            return []
        zones = [(key, [part.strip() for part in volume.labels[key].split("__")]) for key in _NEWER_KEY if key in volume.labels]
        return [(key, frozenset(parts)) for key, parts in zones if all(parts)]

    def _in_zone(self, key: str, values: frozenset[str]) -> Mask:
        column, newer = self._table.label(key), self._table.label(_NEWER_KEY[key])
        return np.where(column.present, column.where(values.__contains__), newer.where(values.__contains__))

    def binding_layers(self, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes that cannot reach a bound volume, or have none to bind or make; one layer per set of reasons."""
        if not shape.volume_claims:
            return []
        conflicts = self._plan(shape).conflicts[nodes]
        kinds = np.unique(conflicts[conflicts > 0]).tolist()
        return [Layer(conflicts == kind, _reason(kind), is_final=True) for kind in kinds]

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation: attach or detach volumes, promise what a placed task needs or take the promise back."""
        shape = operation.shape
        if not shape.volume_claims or not self.is_used:
            return
        joins = (operation.kind is Kind.EVICT) == undone
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            if operation.kind is not Kind.EVICT:
                (self._promise if joins else self._take_back)(shape, task.task.key, node)
            self._attachments.attach(shape, node, 1 if joins else -1)

    def _plan(self, shape: Shape) -> "_Plan":
        if self._last_plan is None or self._last_plan[0] is not shape:
            self._last_plan = (shape, self._make_plan(shape))
        return self._last_plan[1]

    def _make_plan(self, shape: Shape) -> "_Plan":
        claims = _claims_of(shape, self._world)
        delayed = [claim for claim in claims if not _is_bound(claim) and self._is_delayed(claim)]
        bound_conflicts = self._bound_conflicts([claim for claim in claims if _is_bound(claim)])
        settled = self._tied_elsewhere(delayed)
        picks = self._pick([claim for claim in delayed if claim.key not in self._promises and not claim.selected_node])
        to_make = [(claim, np.ones(len(self._table), dtype=np.bool_)) for claim in delayed if claim.selected_node]
        to_make += [(pick.claim, pick.volumes < 0) for pick in picks]
        delayed_conflicts = np.where(settled, _NOTHING_TO_BIND, self._provisioning_conflicts(to_make))
        return _Plan(bound_conflicts | delayed_conflicts, picks)

    def _bound_conflicts(self, claims: Iterable[VolumeClaim]) -> Counts:
        """Check claims in order; the first one that a node cannot serve gives the reason there."""
        conflicts = np.zeros(len(self._table), dtype=np.int64)
        for claim in claims:
            volume = self._world.volumes.get(claim.volume)
            if volume is None:
                conflicts[conflicts == 0] = _NO_VOLUME
                break
            conflicts[(conflicts == 0) & ~self._reach(volume)] = _ELSEWHERE
        return conflicts

    def _reach(self, volume: Volume) -> Mask:
        if volume.name not in self._reach_by_volume:
            everywhere = np.ones(len(self._table), dtype=np.bool_)
            terms = _label_terms(volume)
            self._reach_by_volume[volume.name] = everywhere if terms is None else matching_nodes(terms, self._table)
        return self._reach_by_volume[volume.name]

    def _tied_elsewhere(self, claims: Iterable[VolumeClaim]) -> Mask:
        """Mark nodes other than the one chosen for a claim, in an earlier session or in this one."""
        mask = np.zeros(len(self._table), dtype=np.bool_)
        for claim in claims:
            promise = self._promises.get(claim.key)
            if promise is not None:
                mask |= ~promise.reach
            elif claim.selected_node:
                mask |= ~self._only(self._table.number_by_name.get(claim.selected_node))
        return mask

    def _only(self, node: int | None) -> Mask:
        mask = np.zeros(len(self._table), dtype=np.bool_)
        if node is not None:
            mask[node] = True
        return mask

    def _pick(self, claims: Iterable[VolumeClaim]) -> "list[_Pick]":
        picks: list[_Pick] = []
        for claim in sorted(claims, key=lambda claim: claim.request_bytes):
            shelf = self._shelf(claim.storage_class or "")
            earlier = [pick.volumes for pick in picks if pick.shelf is shelf]
            picks.append(_Pick(claim, shelf, shelf.pick(claim, earlier)))
        return picks

    def _shelf(self, storage_class: str) -> "_Shelf":
        if storage_class not in self._shelves:
            volumes = [volume for volume in self._world.volumes.values() if volume.storage_class == storage_class]
            self._shelves[storage_class] = _Shelf(volumes, self._finder, len(self._table))
        return self._shelves[storage_class]

    def _provisioning_conflicts(self, claims: Iterable[tuple[VolumeClaim, Mask]]) -> Counts:
        """Check claims in order, each on the nodes that need a new volume for it; the first failure is the reason."""
        conflicts = np.zeros(len(self._table), dtype=np.int64)
        for claim, needed in claims:
            conflicts = np.where((conflicts == 0) & needed, self._cannot_make(claim), conflicts)
        return conflicts

    def _cannot_make(self, claim: VolumeClaim) -> Counts:
        key = (claim.storage_class or "", claim.request_bytes)
        if key not in self._provisioning:
            storage_class = self._world.storage_classes[key[0]]
            allowed = np.full(len(self._table), storage_class.can_provision)
            if storage_class.allowed_topologies:
                allowed &= matching_nodes(storage_class.allowed_topologies, self._table)
            space = np.where(self._has_space(*key, storage_class.provisioner), 0, _NO_SPACE)
            self._provisioning[key] = np.where(allowed, space, _NOTHING_TO_BIND)
        return self._provisioning[key]

    def _has_space(self, storage_class: str, request_bytes: int, provisioner: str) -> Mask:
        mask = np.full(len(self._table), request_bytes == 0 or provisioner not in self._world.capacity_drivers)
        for capacity in self._world.storage_capacities.values():
            fits = capacity.storage_class == storage_class and capacity.capacity_bytes >= request_bytes
            if fits and capacity.node_selector is not None:
                mask |= label_selector_mask(capacity.node_selector, self._table)
        return mask

    def _promise(self, shape: Shape, user: TaskKey, node: int) -> None:
        plan = self._plan(shape)
        if plan.conflicts[node]:
            return
        self._last_plan = None
        for pick in plan.picks:
            volume = int(pick.volumes[node])
            reach = pick.shelf.take(volume) if volume >= 0 else self._only(node)
            self._promises[pick.claim.key] = _Promise(reach, pick.shelf, volume)
        for claim in _claims_of(shape, self._world):
            if claim.key in self._promises:
                self._promises[claim.key].users.add(user)

    def _take_back(self, shape: Shape, user: TaskKey, _node: int) -> None:
        self._last_plan = None
        for claim in _claims_of(shape, self._world):
            promise = self._promises.get(claim.key)
            if promise is None or user not in promise.users:
                continue
            promise.users.remove(user)
            if not promise.users:
                promise.shelf.put_back(promise.volume)
                del self._promises[claim.key]


@dataclass(frozen=True, slots=True)
class _Pick:
    """The volume of a shelf that each node would give a claim, or -1."""

    claim: VolumeClaim
    shelf: "_Shelf"
    volumes: Index


@dataclass(frozen=True, slots=True)
class _Plan:
    """What stands against each node, as a sum of reasons, and what each would give to the delayed claims."""

    conflicts: Counts
    picks: list[_Pick]


@dataclass(frozen=True, slots=True)
class _Promise:
    """What a claim was given in this session: a volume, or with -1 a node that makes one; and where it can be used."""

    reach: Mask
    shelf: "_Shelf"
    volume: int
    users: set[TaskKey] = field(default_factory=set)


class _Shelf:
    """The volumes of one storage class, smallest first, and the nodes that reach them.

    Volumes with the same node affinity form a group, so that a thousand volumes which every node reaches cost one list
    of nodes, and a thousand local ones a thousand lists of one node.
    """

    def __init__(self, volumes: Iterable[Volume], finder: NodeFinder, nodes: int) -> None:
        """Sort the volumes and find their nodes."""
        self._volumes = sorted(volumes, key=lambda volume: (volume.capacity_bytes, volume.name))
        self._count = nodes
        terms = [_label_terms(volume) for volume in self._volumes]
        group_by_terms = {each: group for group, each in enumerate(dict.fromkeys(terms))}
        self._group = np.array([group_by_terms[each] for each in terms], dtype=np.int64)
        reached = [np.arange(nodes) if each is None else finder.numbers(each) for each in group_by_terms]
        self._starts = np.cumsum([0, *map(len, reached)], dtype=np.int64)
        self._nodes = np.concatenate([np.empty(0, dtype=np.int64), *reached])
        self._taken: Mask = np.zeros(len(self._volumes), dtype=np.bool_)
        self._suitable: dict[tuple[object, ...], Mask] = {}
        self._by_claim: dict[str, list[int]] = {}
        for number, volume in enumerate(self._volumes):
            if volume.claimed_by:
                self._by_claim.setdefault(volume.claimed_by, []).append(number)

    def pick(self, claim: VolumeClaim, earlier: Sequence[Index]) -> Index:
        """Return for each node the number of the volume it would give the claim, or -1.

        `earlier` holds such answers for other claims: a node gives no volume twice.
        """
        own = [number for number in self._by_claim.get(claim.key, ()) if self._volumes[number].is_big_enough(claim)]
        # A volume made for this claim wins, also where it cannot be reached: there the claim gets none.
        candidates = np.array(own[:1], dtype=np.int64) if own else self._free(claim, len(earlier) + 1)
        volumes, nodes = self._pairs(candidates)
        for others in earlier:
            is_left = others[nodes] != volumes
            volumes, nodes = volumes[is_left], nodes[is_left]
        chosen = np.full(self._count, len(self._volumes), dtype=np.int64)
        np.minimum.at(chosen, nodes, volumes)
        return np.where(chosen == len(self._volumes), -1, chosen)

    def _free(self, claim: VolumeClaim, limit: int) -> Index:
        """Return the first `limit` volumes of each group that suit the claim; earlier claims take fewer than that."""
        candidates = np.flatnonzero(self._suits(claim) & ~self._taken)
        groups = self._group[candidates]
        order = np.argsort(groups, kind="stable")
        place = np.arange(len(order)) - np.searchsorted(groups[order], groups[order])
        return candidates[order[place < limit]]

    def _suits(self, claim: VolumeClaim) -> Mask:
        key = (claim.request_bytes, claim.volume_mode, claim.attributes_class, claim.access_modes, claim.selector)
        if key not in self._suitable:
            answers = [volume.is_big_enough(claim) and volume.is_offered(claim) for volume in self._volumes]
            self._suitable[key] = np.array(answers, dtype=np.bool_)
        return self._suitable[key]

    def _pairs(self, volumes: Index) -> tuple[Index, Index]:
        """Return each volume once per node that reaches it, and that node."""
        starts = self._starts[self._group[volumes]]
        counts = self._starts[self._group[volumes] + 1] - starts
        shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return np.repeat(volumes, counts), self._nodes[np.arange(len(shift)) + shift]

    def take(self, volume: int) -> Mask:
        """Keep a volume from others, and mark the nodes that reach it."""
        self._taken[volume] = True
        reach = np.zeros(self._count, dtype=np.bool_)
        reach[self._pairs(np.array([volume]))[1]] = True
        return reach

    def put_back(self, volume: int) -> None:
        """Give a volume back; -1 was none."""
        if volume >= 0:
            self._taken[volume] = False


class _Attachments:
    """The distinct CSI volumes that each node has attached, by driver, beside what it can attach."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Count the volumes of the tasks on nodes; without any limit nothing is counted."""
        self._world, self._count = snapshot.surroundings, len(snapshot.nodes)
        self._limits: dict[str, Counts] = {}
        self._attached: dict[str, Counts] = {}
        self._users: dict[CsiVolume, dict[int, int]] = {}
        numbers = snapshot.nodes.number_by_name
        for limits in self._world.volume_limits.values():
            for driver, limit in limits.limit_by_driver.items():
                if limit is not None and limits.node in numbers:
                    self._limit(driver)[numbers[limits.node]] = limit
        if self._limits:
            self._read(snapshot, numbers)

    def _limit(self, driver: str) -> Counts:
        if driver not in self._limits:
            self._limits[driver] = np.full(self._count, NO_LIMIT, dtype=np.int64)
            self._attached[driver] = np.zeros(self._count, dtype=np.int64)
        return self._limits[driver]

    def _read(self, snapshot: Snapshot, numbers: dict[str, int]) -> None:
        for limits in self._world.volume_limits.values():
            if limits.node in numbers:
                self._change(limits.attached, numbers[limits.node], 1)
        for name, tasks in snapshot.on_node.items():
            for task in tasks.values():
                if task.shape.volume_claims and name in numbers:
                    self.attach(task.shape, numbers[name], 1)

    def attach(self, shape: Shape, node: int, tasks: int) -> None:
        """Count the volumes of some more tasks of the shape on a node, or with -1 of one less."""
        if self._limits:
            self._change(self._volumes(shape), node, tasks)

    def _change(self, volumes: Iterable[CsiVolume], node: int, amount: int) -> None:
        for volume in volumes:
            if volume[0] not in self._limits:
                continue
            users = self._users.setdefault(volume, {})
            before = users.get(node, 0)
            users[node] = before + amount
            self._attached[volume[0]][node] += int(before + amount > 0) - int(before > 0)

    def _volumes(self, shape: Shape) -> set[CsiVolume]:
        found = (_csi_volume(claim, self._world) for claim in _claims_of(shape, self._world))
        return {volume for volume in found if volume is not None}

    def exceeded(self, shape: Shape) -> Mask:
        """Mark the nodes that would have more volumes of a driver than they can attach."""
        exceeded = np.zeros(self._count, dtype=np.bool_)
        volumes = self._volumes(shape)
        for driver in {driver for driver, _ in volumes} & self._limits.keys():
            fresh = np.zeros(self._count, dtype=np.int64)
            for volume in volumes:
                if volume[0] == driver:
                    fresh += 1
                    fresh[[node for node, users in self._users.get(volume, {}).items() if users > 0]] -= 1
            exceeded |= (fresh > 0) & (self._attached[driver] + fresh > self._limits[driver])
        return exceeded


def _claims_of(shape: Shape, world: Surroundings) -> list[VolumeClaim]:
    """Return the claims of the shape that exist, each once."""
    keys = dict.fromkeys(f"{shape.namespace}/{name}" for name in shape.volume_claims)
    return [world.volume_claims[key] for key in keys if key in world.volume_claims]


def _is_bound(claim: VolumeClaim) -> bool:
    return claim.is_bound and bool(claim.volume)


def _label_terms(volume: Volume) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the terms that can match: a volume is compared with the labels of a node, never with its name."""
    if volume.node_terms is None:
        return None
    return tuple(term for term in volume.node_terms if term.names() is None)


def _csi_volume(claim: VolumeClaim, world: Surroundings) -> CsiVolume | None:
    """Return what a claim attaches: its volume, or one yet to be made by its class; None when it is not CSI."""
    volume = world.volumes.get(claim.volume)
    if volume is not None:
        return (volume.csi_driver, volume.csi_handle) if volume.csi_driver and volume.csi_handle else None
    storage_class = world.storage_classes.get(claim.storage_class or "")
    if storage_class is None or not storage_class.provisioner:
        return None
    return storage_class.provisioner, f"yet to be made for {claim.key}"


def _reason(conflicts: int) -> str:
    return ", ".join(reason for kind, reason in _REASONS.items() if conflicts & kind)


def _claim_not_found(name: str) -> Verdict:
    return _refuse("VolumeClaimNotFound", f'persistentvolumeclaim "{name}" not found', claim=name)


def _volume_not_found(name: str) -> Verdict:
    return _refuse("VolumeNotFound", f'persistentvolume "{name}" not found', volume=name)


def _refuse(reason: str, message: str, **names: str) -> Verdict:
    return Verdict.refuse("predicates", reason, message, **names)
