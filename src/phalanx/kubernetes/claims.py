"""Resource claims as filters: which nodes have the devices that a task asks for.

The plugin `predicates` makes one book per session and tells it of every operation. A claim that is allocated ties its
users to the nodes that reach its devices. Any other claim needs free devices, each of them for one request only.
Placing a task *grants* its claims: the devices are taken for the rest of the session, others that use the claim follow
it to the same nodes, and the grant ends when the last of them is undone.

Whether evictions *free* devices is a setting. If they do, a claim whose last user is evicted, or was leaving before, is as
good as not allocated: others can be pipelined onto its devices, but nobody starts on them in this session, and an eviction that is
taken back takes them again. If they do not, as in kube-scheduler, no eviction helps a task that lacks devices.

Holders are counted for each device. A flag would not do: the searches for victims take evictions back in any order, also after
another task was pipelined onto the device, and then two hold it until one of them is undone.

A request names a device class and may add expressions of its own, see `cel.py`. An expression without an answer for
some device spoils the claim on every node, as it does in Kubernetes. Constraints between devices, alternatives,
partitions, taints and admin access are not looked at.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from phalanx.kubernetes.devices import DeviceTable, nodes_of
from phalanx.model.shape import ClaimUse, Shape
from phalanx.model.storage import DeviceRequest, GrantedDevice, ResourceClaim
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.placement import Counts, Index, Mask
from phalanx.session.decision import ClaimGrant, Decisions
from phalanx.session.node_answers import Layer
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind
from phalanx.state.verdict import YES, Verdict

TOO_FEW = "cannot allocate all claims"
MOST_CONSUMERS = 256
"""How many pods may share a claim."""
MOST_OVERLAPPING_DEMANDS = 10
"""Requests for more different, overlapping sets of devices than this find no node: the check takes 2**n steps."""


class ClaimBook:
    """What the devices of the cluster allow in this session."""

    def __init__(self, session: Session, *, evictions_free: bool = False) -> None:
        """Read which users of claims are leaving; devices are laid out when the first shape with claims asks."""
        snapshot = session.snapshot
        self._table, self._world = snapshot.nodes, snapshot.surroundings
        live = (request for key, request in snapshot.bind_requests.items() if key not in snapshot.lost_requests)
        self._reserved = {device for request in live for device in request.devices}
        self._evictions_free = evictions_free
        self._users: dict[str, dict[TaskKey, Task]] = {}
        """Tasks that this session placed, by claim; those of earlier sessions are in `reserved_for` of the claim."""
        self._grants: dict[str, _Grant] = {}
        self._leaving: dict[str, set[str]] = {}
        """By claim, the uids in `reserved_for` that leave or are evicted."""
        self._suspended: dict[str, _Grant] = {}
        """Grants of this session whose users were all evicted again; an eviction that is taken back restores them."""
        self._selections: dict[tuple[str, tuple[str, ...]], _DeviceSelection] = {}
        self._reach_by_claim: dict[str, Mask] = {}
        if evictions_free and self.is_used:
            for tasks in session.snapshot.on_node.values():
                for task in (task for task in tasks.values() if task.status is Status.RELEASING and task.shape.resource_claims):
                    self._evict_user(task.shape, task)

    @property
    def is_used(self) -> bool:
        """Tell whether the cluster has any resource claim; without one only the prefilter has something to refuse."""
        return bool(self._world.resource_claims)

    @cached_property
    def _devices(self) -> "DeviceTable":
        return DeviceTable(self._world, self._table, self._reserved)

    def prefilter(self, shape: Shape) -> Verdict:
        """Refuse claims that no node can serve: missing, going away, shared by too many, or of an unknown class."""
        for use in shape.resource_claims:
            verdict = self._is_usable(shape.namespace, use)
            if not verdict.ok:
                return verdict
        return YES

    def _is_usable(self, namespace: str, use: ClaimUse) -> Verdict:
        if not use.claim:
            return _refuse("ClaimNotFound", f'resourceclaim for "{use.name}" is not created yet', template=use.name)
        claim = self._world.resource_claims.get(f"{namespace}/{use.claim}")
        if claim is None:
            key = f"{namespace}/{use.claim}"
            return _refuse("ClaimNotFound", f'could not find ResourceClaim "{key}"', claim=key)
        if claim.is_deleting:
            return _refuse("ClaimDeleted", f'resourceclaim "{use.claim}" is being deleted', claim=use.claim)
        users = len(claim.reserved_for) - len(self._leaving.get(claim.key, ())) + len(self._users.get(claim.key, ()))
        if users >= MOST_CONSUMERS:
            return _refuse("ClaimInUse", "resourceclaim in use")
        return YES if self._has_devices(claim) else self._has_classes(claim)

    def _has_classes(self, claim: ResourceClaim) -> Verdict:
        for request in claim.requests:
            if request.device_class not in self._world.device_classes:
                message = f"request {request.name}: device class {request.device_class} does not exist"
                return _refuse("DeviceClassNotFound", message, device_class=request.device_class)
        return YES

    def layers(self, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes without enough free devices, then nodes that cannot reach devices already given to a claim."""
        claims = self._claims(shape)
        if not claims:
            return []
        everywhere: Mask = np.ones(len(self._table), dtype=np.bool_)
        demands = self._demands(claims)
        failure = next((demand.failure for demand in demands if demand.failure), "")
        if failure:
            return [Layer(everywhere[nodes], failure, is_final=True)]
        reach = [self._reach(claim) for claim in claims if self._has_devices(claim)]
        # Where even all devices of a node, taken ones included, are too few, no eviction helps: the searches skip such nodes.
        never = ~self._can_serve(demands, self._devices.all_of_them) if self._evictions_free else everywhere
        short = ~self._can_serve(demands, self._devices.free)
        parts = [
            Layer((short & never)[nodes], TOO_FEW, is_final=True),
            Layer((short & ~never)[nodes], TOO_FEW),
            Layer(
                ~np.logical_and.reduce([everywhere, *reach])[nodes],
                "resourceclaim not available on the node",
                is_final=True,
            ),
        ]
        return [layer for layer in parts if layer.refused.any()]

    def waits_on(self, shape: Shape) -> Mask | None:
        """Mark the nodes that have devices for the shape only once evicted tasks have left; None when there is none."""
        if not self._devices.freed.any():
            return None
        demands = self._demands(self._claims(shape))
        return ~self._can_serve(demands, self._devices.free & ~self._devices.freed)

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation: a placed task is granted its claims, an undone one leaves them, an evicted one may free them."""
        shape = operation.shape
        if not shape.resource_claims or not self.is_used:
            return
        if operation.kind is OperationKind.EVICT:
            for task in operation.tasks if self._evictions_free else ():
                (self._restore_user if undone else self._evict_user)(shape, task.task)
            return
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            (self._remove_user if undone else self._add_user)(shape, task.task, node)

    def _evict_user(self, shape: Shape, task: Task) -> None:
        """Count a user of claims as leaving; what nobody else uses can be given to pipelined tasks."""
        for claim in self._claims(shape):
            if task.key in self._users.get(claim.key, ()):
                del self._users[claim.key][task.key]
                self._suspend_grant(claim.key, self._grants.get(claim.key))
            elif task.uid in claim.reserved_for:
                self._leaving.setdefault(claim.key, set()).add(task.uid)
                if self._is_vacated(claim):
                    self._devices.release(self._devices.held_by(claim))

    def _suspend_grant(self, key: str, grant: "_Grant | None") -> None:
        if grant is not None and not self._users[key]:
            self._suspended[key] = self._grants.pop(key)
            self._devices.release(grant.devices)

    def _restore_user(self, shape: Shape, task: Task) -> None:
        """Undo `_evict_user`: the claim holds its devices again, also if others were pipelined onto them meanwhile."""
        for claim in self._claims(shape):
            if task.uid in self._leaving.get(claim.key, ()):
                if self._is_vacated(claim):
                    self._devices.undo_release(self._devices.held_by(claim))
                self._leaving[claim.key].discard(task.uid)
            else:
                self._users.setdefault(claim.key, {})[task.key] = task
                if claim.key in self._suspended:
                    self._grants[claim.key] = self._suspended.pop(claim.key)
                    self._devices.undo_release(self._grants[claim.key].devices)

    def _add_user(self, shape: Shape, user: Task, node: int) -> None:
        claims = self._claims(shape)
        for key, chosen in self._choose(self._demands(claims), node).items():
            devices = np.array([device for device, _ in chosen], dtype=np.int64)
            self._grants[key] = _Grant(devices, tuple(request for _, request in chosen), self._devices.reach(devices))
            self._devices.take(devices)
        for claim in claims:
            self._users.setdefault(claim.key, {})[user.key] = user

    def _remove_user(self, shape: Shape, user: Task, _node: int) -> None:
        for claim in self._claims(shape):
            users = self._users.get(claim.key, {})
            users.pop(user.key, None)
            if not users and claim.key in self._grants:
                self._devices.undo_take(self._grants.pop(claim.key).devices)

    def outcomes(self, decisions: Decisions) -> Iterator[tuple[str, ClaimGrant]]:
        """Yield the claims that tasks get or leave by these decisions; claims of pipelined tasks stay as they are."""
        evicted = {eviction.task.uid for eviction in decisions.evictions.values()}
        for key, leaving in sorted(self._leaving.items()):
            if leaving & evicted and self._is_vacated(self._world.resource_claims[key]):
                yield key, ClaimGrant()
        for key, users in sorted(self._users.items()):
            bound = tuple(user for user in users.values() if user.key in decisions.binds)
            if bound and key in self._grants:
                grant = self._grants[key]
                names = (self._devices.name(device) for device in grant.devices.tolist())
                yield (
                    key,
                    ClaimGrant(
                        tuple(GrantedDevice(request, *name) for request, name in zip(grant.requests, names, strict=True)), bound
                    ),
                )

    def _claims(self, shape: Shape) -> list[ResourceClaim]:
        """Return the claims of the shape that exist, each once."""
        keys = dict.fromkeys(f"{shape.namespace}/{use.claim}" for use in shape.resource_claims)
        return [self._world.resource_claims[key] for key in keys if key in self._world.resource_claims]

    def _has_devices(self, claim: ResourceClaim) -> bool:
        """Tell whether a claim has its devices, from an earlier session or by a grant of this one."""
        return claim.key in self._grants or (claim.is_allocated and not self._is_vacated(claim))

    def _is_vacated(self, claim: ResourceClaim) -> bool:
        """Tell whether everybody who uses an allocated claim leaves."""
        return claim.key in self._leaving and self._leaving[claim.key] == set(claim.reserved_for)

    def _reach(self, claim: ResourceClaim) -> Mask:
        if claim.key in self._grants:
            return self._grants[claim.key].reach
        if claim.key not in self._reach_by_claim:
            self._reach_by_claim[claim.key] = nodes_of(claim.node_terms, self._table, otherwise=True)
        return self._reach_by_claim[claim.key]

    def _demands(self, claims: Iterable[ResourceClaim]) -> "list[_Demand]":
        waiting = (claim for claim in claims if not self._has_devices(claim))
        return [_Demand(claim, request, self._selection(request)) for claim in waiting for request in claim.requests]

    def _selection(self, request: DeviceRequest) -> "_DeviceSelection":
        key = (request.device_class, request.expressions)
        if key not in self._selections:
            self._selections[key] = self._make_selection(*key)
        return self._selections[key]

    def _make_selection(self, device_class: str, expressions: tuple[str, ...]) -> "_DeviceSelection":
        known = self._world.device_classes.get(device_class)
        if known is None:
            return _DeviceSelection(np.zeros(len(self._devices.all_of_them), dtype=np.bool_))
        accepted, failure = self._devices.select(known.expressions + expressions)
        if failure is None:
            return _DeviceSelection(accepted)
        own = failure.expression - len(known.expressions)
        if own < 0:
            return _DeviceSelection(accepted, f"class {device_class}: selector #{failure.expression}: {failure.text}", True)
        return _DeviceSelection(accepted, f"selector #{own}: {failure.text}")

    def _can_serve(self, demands: "Sequence[_Demand]", devices: Mask) -> Mask:
        """Mark the nodes that have one of these devices for every unit of every demand.

        Hall's theorem: it is so exactly when any set of demands together finds at least as many devices as it wants. That needs
        only counts, which are array operations over all nodes; a matching would have to be made node by node. The number of sets
        doubles with each demand, so demands are taken apart first: those whose devices do not overlap are independent, and those
        for the same devices are one.
        """
        mask = np.ones(len(self._table), dtype=np.bool_)
        for combined in _overlapping(self._combined(demands)):
            if len(combined) > MOST_OVERLAPPING_DEMANDS:
                return np.zeros(len(self._table), dtype=np.bool_)
            for size in range(1, len(combined) + 1):
                for some in combinations(combined, size):
                    accepted = np.logical_or.reduce([part.accepted for part in some])
                    mask &= self._devices.count(accepted & devices) >= sum(part.wanted for part in some)
        return mask

    def _combined(self, demands: "Iterable[_Demand]") -> "list[_CombinedDemand]":
        combined: dict[int, _CombinedDemand] = {}
        for demand in demands:
            nobody = np.zeros(len(self._table), dtype=np.int64)
            combined.setdefault(id(demand.selection), _CombinedDemand(demand.selection.accepted, nobody)).wanted += self._wanted(
                demand
            )
        return list(combined.values())

    def _wanted(self, demand: "_Demand") -> Counts | int:
        if not demand.request.takes_all:
            return demand.request.count
        # All devices, taken ones included, so that a taken one makes the node fail; and at least one.
        return np.maximum(self._devices.count(demand.selection.accepted), 1)

    def _choose(self, demands: "Sequence[_Demand]", node: int) -> dict[str, list[tuple[int, str]]]:
        """Return devices and their requests for each claim on this node; empty when the node has too few.

        Devices that are free now come first: on those that evicted tasks still use, the task could only be pipelined.
        """
        now = self._devices.free & ~self._devices.freed
        devices_for = next((free for free in (now, self._devices.free) if self._can_serve(demands, free)[node]), None)
        if devices_for is None:
            return {}
        here = self._devices.at(node) & devices_for
        options = [np.flatnonzero(demand.selection.accepted & here).tolist() for demand in demands]
        seekers: list[int] = []
        for place, demand in enumerate(demands):
            seekers += [place] * (len(options[place]) if demand.request.takes_all else demand.request.count)
        devices: dict[str, list[tuple[int, str]]] = {demand.claim.key: [] for demand in demands}
        for place, device in zip(seekers, _assign([options[place] for place in seekers]), strict=True):
            devices[demands[place].claim.key].append((device, demands[place].request.name))
        return devices


@dataclass(frozen=True, slots=True)
class _Grant:
    """The devices a claim was given in this session, for which of its requests, and the nodes that reach all of them."""

    devices: Index
    requests: tuple[str, ...]
    reach: Mask


@dataclass(frozen=True, slots=True)
class _DeviceSelection:
    """The devices that a request accepts, or why its expressions, or those of its class, cannot be evaluated."""

    accepted: Mask
    failure: str = ""
    is_failure_of_class: bool = False


@dataclass(frozen=True, slots=True)
class _Demand:
    """One request of a claim that is not allocated, and the devices it accepts."""

    claim: ResourceClaim
    request: DeviceRequest
    selection: _DeviceSelection

    @property
    def failure(self) -> str:
        """Why the request cannot be understood, or nothing."""
        failure = self.selection.failure
        return f"claim {self.claim.key}: {failure}" if failure and not self.selection.is_failure_of_class else failure


@dataclass(slots=True, eq=False)
class _CombinedDemand:
    """Demands for the same set of devices, added up: how many of them are wanted on each node."""

    accepted: Mask
    wanted: Counts


def _overlapping(combined: Iterable[_CombinedDemand]) -> list[list[_CombinedDemand]]:
    """Return the demands in groups; no device is accepted by demands of two groups."""
    groups: list[list[_CombinedDemand]] = []
    for part in combined:
        touched = [group for group in groups if any((part.accepted & other.accepted).any() for other in group)]
        groups = [group for group in groups if group not in touched]
        groups.append([part, *(other for group in touched for other in group)])
    return groups


def _assign(options: Sequence[Sequence[int]]) -> list[int]:
    """Return a device of its own for each seeker, earlier ones of its list first. There must be enough for all.

    A matching by augmenting paths: a seeker whose devices are all taken makes one of their holders move on. Taking the first free
    device and stopping there fails when an earlier seeker took the only device that a later one accepts.
    """
    holder: dict[int, int] = {}

    def assign(seeker: int, tried: set[int]) -> bool:
        for device in options[seeker]:
            if device not in holder:
                holder[device] = seeker
                return True
        for device in options[seeker]:
            if device not in tried:
                tried.add(device)
                if assign(holder[device], tried):
                    holder[device] = seeker
                    return True
        return False

    is_assigned = [assign(seeker, set()) for seeker in range(len(options))]
    assert all(is_assigned), "more devices are wanted than were counted"
    return sorted(holder, key=holder.__getitem__)


def _refuse(reason: str, message: str, **names: str) -> Verdict:
    return Verdict.refuse("predicates", reason, message, **names)
