"""Volume claims as filters: attach limits, zones and binding, for all nodes at once.

The plugin `predicates` makes one book per session and tells it of every operation. A claim is *bound* to a volume, or
*delayed* (its class waits for the first consumer), or *immediate* and then nobody may start before it is bound.

For a delayed claim each node offers the smallest volume that suits, or else a class that provisions one there. What a placed
task gets is *reserved* for the rest of the session: nobody else gets the volume, and other tasks that use the claim can only go
where that volume, or the node that provisions it, can be reached. Undoing the placement ends the reservation.

Without reservations the tasks of a gang, which are all placed before any is bound, would each be offered the same smallest volume:
all binds but the first would fail. kube-scheduler reserves in the same place, for one pod at a time.

Nodes are asked all at once. A loop over nodes and volumes is quadratic exactly where it hurts, with one local volume per node, so
volumes are grouped by the nodes that reach them (`_ClassVolumes`) and offers are made with array operations on pairs of both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phalanx.kubernetes.attached_volumes import AttachedVolumes, claims_of
from phalanx.kubernetes.nodeselection import NodeFinder, label_selector_mask, matching_nodes
from phalanx.model.selectors import NodeSelectorTerm
from phalanx.model.shape import Shape
from phalanx.model.storage import Volume, VolumeClaim
from phalanx.model.task import TaskKey
from phalanx.placement import Counts, Index, Mask
from phalanx.session.node_answers import Layer
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.verdict import YES, Verdict

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_NEWER_KEY = {ZONE: ZONE, REGION: REGION, OLD_ZONE: ZONE, OLD_REGION: REGION}

# One bit each: claims of a pod can fail for several reasons on one node, and Kubernetes names all of them, in this order.
_ELSEWHERE, _NOTHING_TO_BIND, _NO_SPACE, _NO_VOLUME = 1, 2, 4, 8
_REASONS = {
    _ELSEWHERE: "node(s) didn't match PersistentVolume's node affinity",
    _NOTHING_TO_BIND: "node(s) didn't find available persistent volumes to bind",
    _NO_SPACE: "node(s) did not have enough free storage",
    _NO_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeBook:
    """What the volumes of the cluster allow in this session."""

    def __init__(self, session: Session) -> None:
        """Start empty; volumes are read when the first shape with claims asks."""
        self._snapshot = session.snapshot
        self._table, self._world = session.snapshot.nodes, session.snapshot.surroundings
        self._finder = NodeFinder(self._table)
        self._classes: dict[str, _ClassVolumes] = {}
        self._reach_by_volume: dict[str, Mask] = {}
        self._provisioning: dict[tuple[str, int], Counts] = {}
        self._reservations: dict[str, _Reservation] = {}
        self._last_plan: tuple[Shape, _BindingPlan] | None = None

    @property
    def is_used(self) -> bool:
        """Tell whether the cluster has any volume claim; without one only the prefilters have something to refuse."""
        return bool(self._world.volume_claims)

    @cached_property
    def _attachments(self) -> "AttachedVolumes":
        return AttachedVolumes(self._snapshot)

    def zone_prefilter(self, shape: Shape) -> Verdict:
        """Refuse claims whose zone cannot be known: missing, or unbound although their class does not wait for a consumer."""
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
        if all(_is_bound(claim) or self._is_delayed(claim) for claim in claims_of(shape, self._world)):
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
        labels = [pair for claim in claims_of(shape, self._world) for pair in self._zone_labels(claim)]
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
        """Follow an operation: attach or detach volumes, reserve what a placed task gets or end the reservation."""
        shape = operation.shape
        if not shape.volume_claims or not self.is_used:
            return
        joins = (operation.kind is OperationKind.EVICT) == undone
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            if operation.kind is not OperationKind.EVICT:  # a claim stays bound to its volume when its pod is evicted
                (self._reserve if joins else self._unreserve)(shape, task.task.key, node)
            self._attachments.attach(shape, node, 1 if joins else -1)

    def _plan(self, shape: Shape) -> "_BindingPlan":
        # The filters of a shape and the reservation that follows ask in turn, so one plan is enough to remember.
        if self._last_plan is None or self._last_plan[0] is not shape:
            self._last_plan = (shape, self._make_plan(shape))
        return self._last_plan[1]

    def _make_plan(self, shape: Shape) -> "_BindingPlan":
        claims = claims_of(shape, self._world)
        delayed = [claim for claim in claims if not _is_bound(claim) and self._is_delayed(claim)]
        bound_conflicts = self._bound_conflicts([claim for claim in claims if _is_bound(claim)])
        is_tied_elsewhere = self._tied_elsewhere(delayed)
        offers = self._offers([claim for claim in delayed if claim.key not in self._reservations and not claim.selected_node])
        to_provision = [(claim, np.ones(len(self._table), dtype=np.bool_)) for claim in delayed if claim.selected_node]
        to_provision += [(offer.claim, offer.volumes < 0) for offer in offers]
        delayed_conflicts = np.where(is_tied_elsewhere, _NOTHING_TO_BIND, self._provisioning_conflicts(to_provision))
        return _BindingPlan(bound_conflicts | delayed_conflicts, offers)

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
        """Mark nodes that cannot use what was reserved for a claim, in this session or by an earlier scheduling attempt."""
        mask = np.zeros(len(self._table), dtype=np.bool_)
        for claim in claims:
            reservation = self._reservations.get(claim.key)
            if reservation is not None:
                mask |= ~reservation.reach
            elif claim.selected_node:
                mask |= ~self._only(self._table.number_by_name.get(claim.selected_node))
        return mask

    def _only(self, node: int | None) -> Mask:
        mask = np.zeros(len(self._table), dtype=np.bool_)
        if node is not None:
            mask[node] = True
        return mask

    def _offers(self, claims: Iterable[VolumeClaim]) -> "list[_VolumeOffer]":
        """Return what each node offers to each claim, small claims first: a large one must not take what a small one could use."""
        offers: list[_VolumeOffer] = []
        for claim in sorted(claims, key=lambda claim: claim.request_bytes):
            volumes_of_class = self._volumes_of_class(claim.storage_class or "")
            earlier = [offer.volumes for offer in offers if offer.volumes_of_class is volumes_of_class]
            offers.append(_VolumeOffer(claim, volumes_of_class, volumes_of_class.offer(claim, earlier)))
        return offers

    def _volumes_of_class(self, storage_class: str) -> "_ClassVolumes":
        if storage_class not in self._classes:
            volumes = [volume for volume in self._world.volumes.values() if volume.storage_class == storage_class]
            self._classes[storage_class] = _ClassVolumes(volumes, self._finder, len(self._table))
        return self._classes[storage_class]

    def _provisioning_conflicts(self, claims: Iterable[tuple[VolumeClaim, Mask]]) -> Counts:
        """Check claims in order, each on the nodes that need a new volume for it; the first failure is the reason."""
        conflicts = np.zeros(len(self._table), dtype=np.int64)
        for claim, needed in claims:
            conflicts = np.where((conflicts == 0) & needed, self._provisioning_refusals(claim), conflicts)
        return conflicts

    def _provisioning_refusals(self, claim: VolumeClaim) -> Counts:
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
        # A driver that publishes no capacities is trusted to have space everywhere, as in kube-scheduler.
        mask = np.full(len(self._table), request_bytes == 0 or provisioner not in self._world.capacity_drivers)
        for capacity in self._world.storage_capacities.values():
            fits = capacity.storage_class == storage_class and capacity.capacity_bytes >= request_bytes
            if fits and capacity.node_selector is not None:
                mask |= label_selector_mask(capacity.node_selector, self._table)
        return mask

    def _reserve(self, shape: Shape, user: TaskKey, node: int) -> None:
        plan = self._plan(shape)
        if plan.conflicts[node]:
            return  # placed by an action that does not filter, such as one that counts tasks against a queue on any node
        self._last_plan = None
        for offer in plan.offers:
            volume = int(offer.volumes[node])
            reach = offer.volumes_of_class.take(volume) if volume >= 0 else self._only(node)
            self._reservations[offer.claim.key] = _Reservation(reach, offer.volumes_of_class, volume)
        for claim in claims_of(shape, self._world):
            if claim.key in self._reservations:
                self._reservations[claim.key].users.add(user)

    def _unreserve(self, shape: Shape, user: TaskKey, _node: int) -> None:
        self._last_plan = None
        for claim in claims_of(shape, self._world):
            reservation = self._reservations.get(claim.key)
            if reservation is None or user not in reservation.users:
                continue
            reservation.users.remove(user)
            if not reservation.users:
                reservation.volumes_of_class.put_back(reservation.volume)
                del self._reservations[claim.key]


@dataclass(frozen=True, slots=True)
class _VolumeOffer:
    """The volume of a class that each node offers to a claim, by number; -1 where it has none."""

    claim: VolumeClaim
    volumes_of_class: "_ClassVolumes"
    volumes: Index


@dataclass(frozen=True, slots=True)
class _BindingPlan:
    """What stands against each node, as a sum of reasons (0: nothing), and what each offers to the delayed claims."""

    conflicts: Counts
    offers: list[_VolumeOffer]


@dataclass(frozen=True, slots=True)
class _Reservation:
    """What a claim gets in this session: a volume, or with -1 one that its node provisions; and where it can be used.

    It ends with the last of its users: tasks that share a claim share its reservation.
    """

    reach: Mask
    volumes_of_class: "_ClassVolumes"
    volume: int
    users: set[TaskKey] = field(default_factory=set)


class _ClassVolumes:
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

    def offer(self, claim: VolumeClaim, earlier: Sequence[Index]) -> Index:
        """Return for each node the number of the smallest volume that it offers to the claim; -1 where it has none.

        `earlier` holds such answers for other claims of the same task: a node offers no volume twice.
        """
        own = [number for number in self._by_claim.get(claim.key, ()) if self._volumes[number].is_big_enough(claim)]
        # A volume made for this claim wins, also where it cannot be reached: there the claim gets none.
        candidates = np.array(own[:1], dtype=np.int64) if own else self._free(claim, len(earlier) + 1)
        volumes, nodes = self._pairs(candidates)
        for others in earlier:
            is_left = others[nodes] != volumes
            volumes, nodes = volumes[is_left], nodes[is_left]
        # Volumes are numbered by size, so the least number is the smallest volume.
        chosen = np.full(self._count, len(self._volumes), dtype=np.int64)
        np.minimum.at(chosen, nodes, volumes)
        return np.where(chosen == len(self._volumes), -1, chosen)

    def _free(self, claim: VolumeClaim, limit: int) -> Index:
        """Return the first `limit` volumes of each group that suit the claim.

        Each earlier claim takes at most one volume of a group on a node, so one more than there are earlier claims is enough:
        a class of ten thousand volumes that every node reaches costs a few pairs per node, not ten thousand.
        """
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
        """Return each volume once per node that reaches it, and beside it that node."""
        # Nodes of all groups lie in one array, group after group: a volume stands for the slice of its group.
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


def _is_bound(claim: VolumeClaim) -> bool:
    return claim.is_bound and bool(claim.volume)


def _label_terms(volume: Volume) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the terms that can match: a volume is compared with the labels of a node, never with its name."""
    if volume.node_terms is None:
        return None
    return tuple(term for term in volume.node_terms if term.names() is None)


def _reason(conflicts: int) -> str:
    return ", ".join(reason for kind, reason in _REASONS.items() if conflicts & kind)


def _claim_not_found(name: str) -> Verdict:
    return _refuse("VolumeClaimNotFound", f'persistentvolumeclaim "{name}" not found', claim=name)


def _volume_not_found(name: str) -> Verdict:
    return _refuse("VolumeNotFound", f'persistentvolume "{name}" not found', volume=name)


def _refuse(reason: str, message: str, **names: str) -> Verdict:
    return Verdict.refuse("predicates", reason, message, **names)
