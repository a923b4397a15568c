"""Whole CPUs on few NUMA nodes: guaranteed pods go where the kubelet can align their CPUs as they ask.

A pod asks with the annotation `volcano.sh/numa-topology-policy`; then its node must have the static cpu manager and the same
topology manager policy. A guaranteed pod that asks for nothing is still kept from nodes whose kubelet would refuse it.

What a node has free is what its Numatopology object says, less the placements of this session. CPUs that an evicted pod holds are
not known by name, so evictions free none here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from phalanx.model.numa import NumaTopology
from phalanx.model.resources import CPU
from phalanx.model.shape import Shape
from phalanx.model.task import TaskKey
from phalanx.placement import Index
from phalanx.placement.score import normalise
from phalanx.session.arguments import Arguments
from phalanx.session.node_answers import Layer, Site, Term
from phalanx.session.policy import PluginPolicy
from phalanx.session.session import Session
from phalanx.session.statement import Operation, OperationKind

POLICY = "volcano.sh/numa-topology-policy"
NONE, BEST_EFFORT, SINGLE = "none", "best-effort", "single-numa-node"
FITS, NO_INFORMATION, NOT_STATIC, OTHER_POLICY, NO_CPUS, NOT_ALIGNED = range(6)
REASONS = {
    NO_INFORMATION: "node(s) had no NUMA information",
    NOT_STATIC: "node(s) didn't have the static cpu manager policy",
    OTHER_POLICY: "node(s) had another topology manager policy",
    NO_CPUS: "node(s) had no CPUs left to give away",
    NOT_ALIGNED: "node(s) couldn't align the requested CPUs with NUMA nodes",
}
FINAL = (NO_INFORMATION, NOT_STATIC, OTHER_POLICY)

Cpus = tuple[int, ...]
"""CPUs per NUMA node."""


@dataclass(frozen=True, slots=True)
class _State:
    """All that matters about a node: nodes in the same state get the same answer."""

    topology: NumaTopology | None
    """With an empty name, so that alike nodes are equal."""
    free: Cpus = ()


@dataclass(frozen=True, slots=True)
class _Answer:
    """Whether a task fits, and the CPUs it would take."""

    code: int
    taken: Cpus = ()

    @property
    def spans(self) -> int:
        """On how many NUMA nodes the CPUs are."""
        return sum(count > 0 for count in self.taken)


class NumaAwarePlugin:
    """Filters and scores nodes by how the CPUs of a task lie on NUMA nodes."""

    name = "numa-aware"

    def __init__(self, policy: PluginPolicy) -> None:
        """Read the weight."""
        settings = Arguments(self.name, policy.arguments)
        self._weight = settings.integer("weight", 1)
        settings.done()
        self._answers: dict[Shape, list[_Answer]] = {}
        self._taken: dict[TaskKey, Cpus] = {}

    def open(self, session: Session) -> None:
        """Give every distinct state of a node a number."""
        topologies = session.snapshot.surroundings.numa_topologies
        self._has_information = bool(topologies)
        self._code_by_state: dict[_State, int] = {}
        self._states: list[_State] = []
        codes = [self._code(_state_of(topologies.get(name))) for name in session.snapshot.nodes.names]
        self._codes: NDArray[np.int64] = np.array(codes, dtype=np.int64)

    def _code(self, state: _State) -> int:
        if state not in self._code_by_state:
            self._code_by_state[state] = len(self._states)
            self._states.append(state)
        return self._code_by_state[state]

    def couples_nodes(self, session: Session, shape: Shape) -> bool:
        """Scores are relative to the widest spread among the candidates, so a placement anywhere can change them."""
        return shape.is_guaranteed and self._has_information

    def changed(self, session: Session, operation: Operation, undone: bool) -> None:
        """Take CPUs for allocated and pipelined tasks, and give them back when that is undone."""
        if operation.kind is OperationKind.EVICT or not operation.shape.is_guaranteed:
            return
        for task, node in zip(operation.tasks, operation.nodes, strict=True):
            key, state = task.task.key, self._states[self._codes[node]]
            if undone:
                self._change(node, state, self._taken.pop(key), 1)
            else:
                self._taken[key] = self._answers_for(operation.shape)[self._codes[node]].taken
                self._change(node, state, self._taken[key], -1)

    def _change(self, node: int, state: _State, cpus: Cpus, sign: int) -> None:
        if cpus:
            free = tuple(have + sign * count for have, count in zip(state.free, cpus, strict=True))
            self._codes[node] = self._code(_State(state.topology, free))

    def _answers_for(self, shape: Shape) -> list[_Answer]:
        """Return the answer for each state, asking only about new ones."""
        known = self._answers.setdefault(shape, [])
        known.extend(_try(shape, state) for state in self._states[len(known) :])
        return known

    def screen(self, session: Session, shape: Shape, nodes: Index | slice) -> list[Layer]:
        """Refuse nodes whose kubelet would refuse the pod."""
        if not shape.is_guaranteed:
            return []
        found = np.array([answer.code for answer in self._answers_for(shape)], dtype=np.int64)[self._codes[nodes]]
        return [Layer(found == code, reason, is_final=code in FINAL) for code, reason in REASONS.items() if (found == code).any()]

    def batch_scores(self, session: Session, shape: Shape, site: Site) -> Sequence[Term]:
        """Score fewer NUMA nodes higher, for tasks that ask for a policy."""
        if not shape.is_guaranteed or _policy(shape) == NONE:
            return []
        spans = np.array([answer.spans for answer in self._answers_for(shape)], dtype=np.int64)[self._codes]
        return [Term(self._weight, among=lambda nodes: normalise(spans[nodes], is_reversed=True), is_static=False)]


def _state_of(topology: NumaTopology | None) -> _State:
    if topology is None:
        return _State(None)
    alike = NumaTopology("", topology.cpu_policy, topology.topology_policy, topology.cpus)
    return _State(alike, topology.free)


def _policy(shape: Shape) -> str:
    return shape.annotations.get(POLICY) or NONE


def _try(shape: Shape, state: _State) -> _Answer:
    """Ask whether a guaranteed pod fits a node in this state."""
    code = _precondition(_policy(shape), state)
    if code is not None:
        return _Answer(code)
    assert state.topology is not None
    return _align(list(_whole_cpus(shape)), state.topology, state.free)


def _precondition(policy: str, state: _State) -> int | None:
    """Return the answer when alignment need not be asked."""
    topology = state.topology
    if policy == NONE:
        is_lenient = topology is None or topology.cpu_policy != "static" or topology.topology_policy == NONE
        return FITS if is_lenient else None
    if topology is None:
        return NO_INFORMATION
    if topology.cpu_policy != "static":
        return NOT_STATIC
    if topology.topology_policy != policy:
        return OTHER_POLICY
    return None if any(state.free) else NO_CPUS


def _whole_cpus(shape: Shape) -> Iterator[int]:
    """Return the CPUs of each container that gets them for its own: only whole numbers of them are given away."""
    for limits in shape.container_limits:
        milli = dict(limits).get(CPU, 0)
        if milli and milli % 1000 == 0:
            yield milli // 1000


def _align(wanted: Sequence[int], topology: NumaTopology, free: Cpus) -> _Answer:
    """Place the containers one after the other, each on the fewest NUMA nodes that have room."""
    left = list(free)
    for count in wanted:
        chosen = _best_nodes(count, tuple(left))
        if not _admits(topology, count, chosen):
            return _Answer(NOT_ALIGNED)
        _take(left, chosen, count)
    return _Answer(FITS, tuple(have - rest for have, rest in zip(free, left, strict=True)))


def _admits(topology: NumaTopology, count: int, chosen: Cpus) -> bool:
    """Tell whether the kubelet's policy takes this choice: the narrowest possible one, or any."""
    if topology.topology_policy == BEST_EFFORT:
        return True
    if topology.topology_policy == SINGLE:
        return len(chosen) == 1
    return bool(chosen) and len(chosen) == _narrowest(count, topology.cpus)


def _best_nodes(count: int, free: Cpus) -> Cpus:
    """Return the fewest NUMA nodes with so many free CPUs: the first that suffices, else the roomiest; none if all are too few."""
    enough = next(((number,) for number, have in enumerate(free) if have >= count), None)
    if enough is not None:
        return enough
    roomiest = sorted(range(len(free)), key=lambda number: (-free[number], number))
    sums = list(accumulate(free[number] for number in roomiest))
    size = next((size for size, total in enumerate(sums, start=1) if total >= count), 0)
    return tuple(sorted(roomiest[:size]))


def _narrowest(count: int, cpus: Cpus) -> int:
    """Return on how many NUMA nodes so many CPUs could be if all were free; all of them when they never fit."""
    return len(_best_nodes(count, cpus)) or len(cpus)


def _take(left: list[int], chosen: Cpus, count: int) -> None:
    for number in chosen:
        part = min(left[number], count)
        left[number] -= part
        count -= part
