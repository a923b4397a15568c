"""Resource claims as filters: which nodes have the devices that a task asks for.

The plugin `predicates` makes one book per session and tells it of every operation. A claim that is allocated ties its
users to the nodes that reach its devices. Any other claim needs free devices, each of them for one request only.
Placing a task *grants* its claims: the devices are taken for the rest of the session, others that use the claim follow
it to the same nodes, and the grant ends when the last of them is undone.

A request names a device class and may add expressions of its own, see `cel.py`. An expression without an answer for
some device spoils the claim on every node, as it does in Kubernetes. Constraints between devices, alternatives,
partitions, taints and admin access are not looked at.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from phalanx.core.hooks import Layer
from phalanx.core.nodes import NodeTable
from phalanx.core.session import Session
from phalanx.core.snapshot import Surroundings
from phalanx.core.statement import Kind, Operation
from phalanx.core.verdict import YES, Verdict
from phalanx.kubernetes.cel import CelError, CelSyntaxError, compile_selector
from phalanx.kubernetes.nodeselection import matching_nodes
from phalanx.model.selectors import NodeSelectorTerm
from phalanx.model.shape import ClaimUse, Shape
from phalanx.model.storage import DeviceRequest, GrantedDevice, ResourceClaim, ResourceSlice
from phalanx.model.task import TaskKey
from phalanx.placement import Counts, Index, Mask

MOST_CONSUMERS = 256
"""How many pods may share a claim."""
MOST_OVERLAPPING_KINDS = 10
"""Requests for more different, overlapping sets of devices than this find no node: the check takes 2**n steps."""


class ClaimBook:
    """What the devices of the cluster allow in this session."""

    def __init__(self, session: Session) -> None:
        """Read nothing yet: devices are laid out when the first shape with claims asks."""
        snapshot = session.snapshot
        self._table, self._world = snapshot.nodes, snapshot.surroundings
        live = (request for key, request in snapshot.bind_requests.items() if key not in snapshot.lost_requests)
        self._promised = {device for request in live for device in request.devices}
        self._users: dict[str, set[TaskKey]] = {}
        self._grants: dict[str, _Grant] = {}
        self._choices: dict[tuple[str, tuple[str, ...]], _Choice] = {}
        self._reach_by_claim: dict[str, Mask] = {}

    @property
    def is_used(self) -> bool:
        """Tell whether the cluster has any resource claim; without one only the prefilter has something to refuse."""
        return bool(self._world.resource_claims)

    @cached_property
    def _devices(self) -> "_DeviceTable":
        return _DeviceTable(self._world, self._table, self._promised)

    def prefilter(self, shape: Shape) -> Verdict:
        """Refuse claims that no node can serve: missing, going away, shared by too many, or of an unknown class."""
        for use in shape.resource_claims:
            verdict = self._is_usable(shape.namespace, use)
            if not verdict.ok:
                return verdict
        return YES

    def _is_usable(self, namespace: str, use: ClaimUse) -> Verdict:
        if not use.claim:
            return _refuse("ClaimNotFound", f'resourceclaim for "{use.name}" is not created yet')
        claim = self._world.resource_claims.get(f"{namespace}/{use.claim}")
        if claim is None:
            return _refuse("ClaimNotFound", f'could not find ResourceClaim "{namespace}/{use.claim}"')
        if claim.is_deleting:
            return _refuse("ClaimDeleted", f'resourceclaim "{use.claim}" is being deleted')
        if len(claim.reserved_for) + len(self._users.get(claim.key, ())) >= MOST_CONSUMERS:
            return _refuse("ClaimInUse", "resourceclaim in use")
        return YES if self._is_settled(claim) else self._has_classes(claim)

    def _has_classes(self, claim: ResourceClaim) -> Verdict:
        for request in claim.requests:
            if request.device_class not in self._world.device_classes:
                message = f"request {request.name}: device class {request.device_class} does not exist"
                return _refuse("DeviceClassNotFound", message)
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
        reach = [self._reach(claim) for claim in claims if self._is_settled(claim)]
        parts = [
            Layer(~self._can_serve(demands)[nodes], "cannot allocate all claims", is_final=True),
            Layer(
                ~np.logical_and.reduce([everywhere, *reach])[nodes],
                "resourceclaim not available on the node",
                is_final=True,
            ),
        ]
        return [layer for layer in parts if layer.refused.any()]

    def changed(self, operation: Operation, undone: bool) -> None:
        """Follow an operation: a placed task is granted its claims, an undone one leaves them; evictions free none."""
        shape = operation.shape
        if not shape.resource_claims or not self.is_used or operation.kind is Kind.EVICT:
            return
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            (self._leave if undone else self._join)(shape, task.task.key, node)

    def _join(self, shape: Shape, user: TaskKey, node: int) -> None:
        claims = self._claims(shape)
        for key, (requests, devices) in self._choose(self._demands(claims), node).items():
            self._grants[key] = _Grant(devices, self._devices.reach(devices), requests)
            self._devices.free[devices] = False
        for claim in claims:
            self._users.setdefault(claim.key, set()).add(user)

    def _leave(self, shape: Shape, user: TaskKey, _node: int) -> None:
        for claim in self._claims(shape):
            users = self._users.get(claim.key, set())
            users.discard(user)
            if not users and claim.key in self._grants:
                self._devices.free[self._grants.pop(claim.key).devices] = True

    def _claims(self, shape: Shape) -> list[ResourceClaim]:
        """Return the claims of the shape that exist, each once."""
        keys = dict.fromkeys(f"{shape.namespace}/{use.claim}" for use in shape.resource_claims)
        return [self._world.resource_claims[key] for key in keys if key in self._world.resource_claims]

    def _is_settled(self, claim: ResourceClaim) -> bool:
        return claim.is_allocated or claim.key in self._grants

    def _reach(self, claim: ResourceClaim) -> Mask:
        if claim.key in self._grants:
            return self._grants[claim.key].reach
        if claim.key not in self._reach_by_claim:
            self._reach_by_claim[claim.key] = _nodes_of(claim.node_terms, self._table, otherwise=True)
        return self._reach_by_claim[claim.key]

    def _demands(self, claims: Iterable[ResourceClaim]) -> "list[_Demand]":
        waiting = (claim for claim in claims if not self._is_settled(claim))
        return [_Demand(claim, request, self._choice(request)) for claim in waiting for request in claim.requests]

    def _choice(self, request: DeviceRequest) -> "_Choice":
        key = (request.device_class, request.expressions)
        if key not in self._choices:
            self._choices[key] = self._make_choice(*key)
        return self._choices[key]

    def _make_choice(self, device_class: str, expressions: tuple[str, ...]) -> "_Choice":
        known = self._world.device_classes.get(device_class)
        if known is None:
            return _Choice(np.zeros(len(self._devices.free), dtype=np.bool_))
        accepted, failure = self._devices.select(known.expressions + expressions)
        if failure is None:
            return _Choice(accepted)
        own = failure.expression - len(known.expressions)
        if own < 0:
            return _Choice(accepted, f"class {device_class}: selector #{failure.expression}: {failure.text}", True)
        return _Choice(accepted, f"selector #{own}: {failure.text}")

    def _can_serve(self, demands: "Sequence[_Demand]") -> Mask:
        """Mark the nodes that have a free device for every unit of every demand.

        Hall's theorem: it is so exactly when any set of demands together finds at least as many devices as it wants.
        Demands whose devices do not overlap are independent, and demands for the same devices are one.
        """
        mask = np.ones(len(self._table), dtype=np.bool_)
        for kinds in _overlapping(self._kinds(demands)):
            if len(kinds) > MOST_OVERLAPPING_KINDS:
                return np.zeros(len(self._table), dtype=np.bool_)
            for size in range(1, len(kinds) + 1):
                for some in combinations(kinds, size):
                    accepted = np.logical_or.reduce([kind.accepted for kind in some])
                    mask &= self._devices.count(accepted & self._devices.free) >= sum(kind.wanted for kind in some)
        return mask

    def _kinds(self, demands: "Iterable[_Demand]") -> "list[_Kind]":
        kinds: dict[int, _Kind] = {}
        for demand in demands:
            nobody = np.zeros(len(self._table), dtype=np.int64)
            kinds.setdefault(id(demand.choice), _Kind(demand.choice.accepted, nobody)).wanted += self._wanted(demand)
        return list(kinds.values())

    def _wanted(self, demand: "_Demand") -> Counts | int:
        if not demand.request.takes_all:
            return demand.request.count
        # All devices, taken ones included, so that a taken one makes the node fail; and at least one.
        return np.maximum(self._devices.count(demand.choice.accepted), 1)

    def granted(self) -> dict[str, tuple[GrantedDevice, ...]]:
        """Return what this session gives to claims, by their keys."""
        return {key: tuple(self._granted(grant)) for key, grant in sorted(self._grants.items())}

    def _granted(self, grant: "_Grant") -> Iterator[GrantedDevice]:
        for request, number in zip(grant.requests, grant.devices.tolist(), strict=True):
            yield GrantedDevice(request, *self._devices.names[number])

    def _choose(self, demands: "Sequence[_Demand]", node: int) -> dict[str, tuple[list[str], Index]]:
        """Return devices for each claim on this node, and the requests they are for; nothing when there are not enough."""
        if not self._can_serve(demands)[node]:
            return {}
        here = self._devices.at(node) & self._devices.free
        options = [np.flatnonzero(demand.choice.accepted & here).tolist() for demand in demands]
        seekers: list[int] = []
        for place, demand in enumerate(demands):
            seekers += [place] * (len(options[place]) if demand.request.takes_all else demand.request.count)
        found: dict[str, tuple[list[str], list[int]]] = {demand.claim.key: ([], []) for demand in demands}
        for place, device in zip(seekers, _assign([options[place] for place in seekers]), strict=True):
            requests, devices = found[demands[place].claim.key]
            requests.append(demands[place].request.name)
            devices.append(device)
        return {key: (requests, np.array(devices, dtype=np.int64)) for key, (requests, devices) in found.items()}


@dataclass(frozen=True, slots=True)
class _Grant:
    """The devices a claim was given in this session, and the nodes that reach all of them."""

    devices: Index
    reach: Mask
    requests: Sequence[str]
    """The request that each device is for."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The devices that a request accepts, or why its expressions, or those of its class, have no answer."""

    accepted: Mask
    failure: str = ""
    is_failure_of_class: bool = False


@dataclass(frozen=True, slots=True)
class _Demand:
    """One request of a claim that is not allocated, and the devices it accepts."""

    claim: ResourceClaim
    request: DeviceRequest
    choice: _Choice

    @property
    def failure(self) -> str:
        """Why the request cannot be understood, or nothing."""
        failure = self.choice.failure
        return f"claim {self.claim.key}: {failure}" if failure and not self.choice.is_failure_of_class else failure


@dataclass(slots=True, eq=False)
class _Kind:
    """A set of devices and how many of them are wanted, on each node."""

    accepted: Mask
    wanted: Counts


@dataclass(frozen=True, slots=True)
class _Failure:
    """Which of several expressions has no answer, and why."""

    expression: int
    text: str


class _DeviceTable:
    """All devices as columns, and the places they can be used from: one node, every node, or those some terms match."""

    def __init__(self, world: Surroundings, table: NodeTable, promised: set[tuple[str, str, str]]) -> None:
        """Lay the devices out by driver, pool and slice; those of allocated claims and promised ones are taken."""
        self._table = table
        self._slices = sorted(world.resource_slices.values(), key=lambda part: (part.driver, part.pool, part.name))
        self._place_of: dict[object, int] = {}
        self._pinned: list[tuple[int, int]] = []
        self._wide: list[tuple[int, Mask]] = []
        sizes = [len(part.devices) for part in self._slices]
        self._places = np.repeat(np.array([self._place(part) for part in self._slices], dtype=np.int64), sizes)
        self._pins = np.array(self._pinned, dtype=np.int64).reshape(-1, 2).T
        self.free: Mask = np.ones(len(self._places), dtype=np.bool_)
        held = {device for claim in world.resource_claims.values() if claim.is_allocated for device in claim.devices}
        self.free[self._numbers(held | promised, np.cumsum([0, *sizes]).tolist())] = False

    @cached_property
    def names(self) -> list[tuple[str, str, str]]:
        """Driver, pool and name of each device."""
        return [(part.driver, part.pool, device.name) for part in self._slices for device in part.devices]

    def _numbers(self, names: set[tuple[str, str, str]], starts: Sequence[int]) -> list[int]:
        """Return the numbers of devices; `starts` has the first number of each slice."""
        pools = {(driver, pool) for driver, pool, _ in names}
        return [
            start + place
            for part, start in zip(self._slices, starts[:-1], strict=True)
            if (part.driver, part.pool) in pools
            for place, device in enumerate(part.devices)
            if (part.driver, part.pool, device.name) in names
        ]

    def _place(self, part: ResourceSlice) -> int:
        key: object = part.node or (part.for_all_nodes, part.node_terms)
        if key not in self._place_of:
            place = self._place_of[key] = len(self._place_of)
            node = self._table.number_by_name.get(part.node)
            if node is not None:
                self._pinned.append((place, node))
            elif not part.node:
                terms = None if part.for_all_nodes else part.node_terms
                self._wide.append((place, _nodes_of(terms, self._table, otherwise=part.for_all_nodes)))
        return self._place_of[key]

    def count(self, devices: Mask) -> Counts:
        """Return how many of these devices each node reaches."""
        by_place = np.bincount(self._places[devices], minlength=len(self._place_of))
        counts = np.zeros(len(self._table), dtype=np.int64)
        counts[self._pins[1]] = by_place[self._pins[0]]
        for place, nodes in self._wide:
            counts += by_place[place] * nodes
        return counts

    def at(self, node: int) -> Mask:
        """Mark the devices that a node reaches."""
        here = np.zeros(len(self._place_of), dtype=np.bool_)
        here[self._pins[0]] = self._pins[1] == node
        for place, nodes in self._wide:
            here[place] = nodes[node]
        return here[self._places]

    def reach(self, devices: Index) -> Mask:
        """Mark the nodes that reach every one of these devices."""
        mask = np.zeros(len(self.free), dtype=np.bool_)
        mask[devices] = True
        return np.equal(self.count(mask), len(devices))

    def select(self, expressions: tuple[str, ...]) -> tuple[Mask, _Failure | None]:
        """Mark the devices that every expression accepts, or give the first failure."""
        answers = [_accepted(part, expressions) for part in self._slices]
        failure = next((answer for answer in answers if isinstance(answer, _Failure)), None)
        masks = [np.zeros(0, dtype=np.bool_), *(answer for answer in answers if not isinstance(answer, _Failure))]
        return (np.concatenate(masks), None) if failure is None else (np.zeros_like(self.free), failure)


# Slices are the same objects from session to session until a driver changes them. Asking 80,000 devices takes 0.5 s.
@lru_cache(maxsize=1 << 16)
def _accepted(part: ResourceSlice, expressions: tuple[str, ...]) -> Mask | _Failure:
    """Mark the devices of a slice that every expression accepts; each sees only what the earlier ones accept."""
    accepted = np.ones(len(part.devices), dtype=np.bool_)
    for place, expression in enumerate(expressions):
        try:
            selector = compile_selector(expression)
            for number in np.flatnonzero(accepted).tolist():
                accepted[number] = selector.matches(part.driver, part.devices[number])
        except CelError as error:
            kind = "compile" if isinstance(error, CelSyntaxError) else "runtime"
            return _Failure(place, f"CEL {kind} error: {error}")
    return accepted


def _nodes_of(terms: tuple[NodeSelectorTerm, ...] | None, table: NodeTable, *, otherwise: bool) -> Mask:
    return np.full(len(table), otherwise) if terms is None else matching_nodes(terms, table)


def _overlapping(kinds: Iterable[_Kind]) -> list[list[_Kind]]:
    """Return the kinds in groups that have no device in common."""
    groups: list[list[_Kind]] = []
    for kind in kinds:
        touched = [group for group in groups if any((kind.accepted & other.accepted).any() for other in group)]
        groups = [group for group in groups if group not in touched]
        groups.append([kind, *(other for group in touched for other in group)])
    return groups


def _assign(options: Sequence[Sequence[int]]) -> list[int]:
    """Return a device of its own for each seeker, earlier ones of its list first. There must be enough for all."""
    holder: dict[int, int] = {}

    def settle(seeker: int, tried: set[int]) -> bool:
        for device in options[seeker]:
            if device not in holder:
                holder[device] = seeker
                return True
        for device in options[seeker]:
            if device not in tried:
                tried.add(device)
                if settle(holder[device], tried):
                    holder[device] = seeker
                    return True
        return False

    is_settled = [settle(seeker, set()) for seeker in range(len(options))]
    assert all(is_settled), "more devices are wanted than were counted"
    return sorted(holder, key=holder.__getitem__)


def _refuse(reason: str, message: str) -> Verdict:
    return Verdict.refuse("predicates", reason, message)
