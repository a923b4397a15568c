"""The cluster of one row, built from the nouns of the model: what a scheduler knows after it has read the API server.

Every gang has labels of its own, as real workloads have, so no two gangs share a shape; in the mixed rows no two of 1,000
gangs ask for the same either. All of them fit: a row measures placing, not refusing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from phalanx.bench.scenarios import BenchKind, BenchScenario
from phalanx.model.gang import Condition, Gang, SubGroup, TopologyConstraint
from phalanx.model.node import HyperNode, HyperNodeMember, Node
from phalanx.model.queue import Queue
from phalanx.model.resources import CPU, MEMORY, PODS
from phalanx.model.selectors import LabelSelector, Requirement
from phalanx.model.shape import AffinityTerm, PodAffinity, Shape, SpreadConstraint
from phalanx.model.task import GangKey, Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.cluster import ClusterState

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
GIB = 1 << 30
ZONES = 10
NODE = {CPU: 64_000, MEMORY: 512 * GIB, GPU: 8_000, PODS: 110}
PODS_PER_NODE = 10
"""More pods per node than this make the nodes larger, in whole multiples."""
SUBGROUP, SUBGROUP_SIZE = "bench.phalanx.dev/group", 10
QUEUE = "default"


@dataclass(frozen=True, slots=True)
class PodSize:
    """What each pod of a row asks for."""

    cpu_milli: int = 4_000
    memory_bytes: int = 16 * GIB
    gpus: int = 0

    def request(self) -> dict[str, int]:
        """Return it as the request of a shape."""
        request = {CPU: self.cpu_milli, MEMORY: self.memory_bytes, PODS: 1}
        return {**request, GPU: self.gpus * 1000} if self.gpus else request


SMALL = PodSize(500, 2 * GIB)
"""More than 1,000 of these fit into ten nodes."""
LIGHT = PodSize(1_000, 4 * GIB)
"""So many of these fit into one zone, a tenth of the nodes, that no gang begins in a zone that cannot hold all of it."""
WHOLE_NODE = PodSize(48_000, 384 * GIB, 8)


@dataclass(frozen=True, slots=True)
class Batch:
    """A gang with its members."""

    gang: Gang
    tasks: tuple[Task, ...]

    def put_into(self, state: ClusterState) -> None:
        """Let the gang arrive."""
        state.put_gang(self.gang)
        for task in self.tasks:
            state.put_task(task)

    def running(self, nodes: Iterable[str]) -> "Batch":
        """Return the gang as it is once its members run on these nodes: nothing is left to decide or to write."""
        tasks = tuple(replace(task, status=Status.RUNNING, node=node) for task, node in zip(self.tasks, nodes, strict=True))
        return Batch(replace(self.gang, phase="Running", conditions=(Condition("Scheduled", "True"),)), tasks)


def build(scenario: BenchScenario) -> ClusterState:
    """Return the cluster of a row before the measured cycle."""
    if scenario.kind in (BenchKind.BARE_PODS, BenchKind.REAL_PODS):
        return _build_from_objects(scenario)
    state = ClusterState()
    state.put_queue(Queue(QUEUE))
    for node in _nodes(scenario):
        state.put_node(node)
    for hypernode in _hypernodes(scenario):
        state.put_hypernode(hypernode)
    for batch in _batches(scenario):
        batch.put_into(state)
    return state


def _build_from_objects(scenario: BenchScenario) -> ClusterState:
    # Only these rows read objects; the others should not pay for the import.
    from phalanx.bench.pod_objects import put_gangs
    from phalanx.dialects.cluster import ObjectCluster

    cluster = ObjectCluster()
    for node in _nodes(scenario):
        cluster.state.put_node(node)
    put_gangs(cluster, pods=scenario.pods, gang=scenario.gang, is_real=scenario.kind is BenchKind.REAL_PODS)
    return cluster.state


def arrival(scenario: BenchScenario, number: int) -> Batch:
    """Return the gang of this number, waiting."""
    shape = _shape(scenario, number)
    gang = Gang(
        GangKey(f"bench/gang-{number}"), f"uid-gang-{number}", queue=QUEUE, min_member=scenario.gang, created=float(number),
        min_resources={name: amount * scenario.gang for name, amount in shape.request.items()},
        topology=_TOPOLOGY_BY_KIND.get(scenario.kind),
    )  # fmt: skip
    return Batch(gang, tuple(_task(gang, shape, member) for member in range(scenario.gang)))


def _nodes(scenario: BenchScenario) -> Iterator[Node]:
    factor = 1 if scenario.kind is BenchKind.STEADY else max(-(-scenario.pods // (scenario.nodes * PODS_PER_NODE)), 1)
    offered = {name: amount * factor for name, amount in NODE.items()}
    for number in range(scenario.nodes):
        name = _node_name(number)
        yield Node(name, {HOST: name, ZONE: f"zone-{number % ZONES}"}, allocatable=offered, reported=offered)


def _node_name(number: int) -> str:
    return f"node-{number:05}"


def _batches(scenario: BenchScenario) -> Iterator[Batch]:
    if scenario.kind is BenchKind.SUBGROUPS:
        yield _divided(scenario)
        return
    for number in range(scenario.pods // scenario.gang):
        batch = arrival(scenario, number)
        yield _running(batch, scenario, number) if scenario.kind is BenchKind.STEADY else batch


def _running(batch: Batch, scenario: BenchScenario, number: int) -> Batch:
    """Return the gang as it runs; all running pods are dealt out evenly, members side by side."""
    places = range(number * scenario.gang, (number + 1) * scenario.gang)
    return batch.running(_node_name(place * scenario.nodes // scenario.pods) for place in places)


def _task(gang: Gang, shape: Shape, member: int) -> Task:
    key = f"{gang.key}-worker-{member}"
    return Task(TaskKey(key), f"uid-{key}", shape, gang.key, role="worker", created=gang.created, labels=shape.labels)


def _shape(scenario: BenchScenario, number: int, **labels: str) -> Shape:
    size = _own_size(number) if scenario.kind is BenchKind.MIXED else _SIZE_BY_KIND.get(scenario.kind, PodSize())
    scored = (size.cpu_milli, size.memory_bytes)
    app = f"gang-{number}"
    shape = Shape(
        "bench", {"app": app, **labels}, size.request(), scoring_request=scored, booked_request=scored,
        images=("registry.example/worker:1",),
    )  # fmt: skip
    if scenario.kind is BenchKind.ANTI_AFFINITY:
        return replace(shape, anti_affinity=_to_own_kind(HOST, app))
    if scenario.kind is BenchKind.ZONE_AFFINITY:
        return replace(shape, affinity=_to_own_kind(ZONE, app))
    if scenario.kind in (BenchKind.SPREAD_HARD, BenchKind.SPREAD_SOFT):
        return replace(shape, spread=(_over_zones(scenario, app),))
    return shape


def _over_zones(scenario: BenchScenario, app: str) -> SpreadConstraint:
    # The profile volcano asks no zone again that refused a task of the gang: each must be able to take its whole share at once.
    share = max(scenario.gang // ZONES, 1)
    return SpreadConstraint(ZONE, share, scenario.kind is BenchKind.SPREAD_HARD, LabelSelector((Requirement("app", "In", (app,)),)))


def _own_size(number: int) -> PodSize:
    less = number % 1000
    return PodSize(4_000 - less, 16 * GIB - less * (1 << 20))


_TOPOLOGY_BY_KIND = {
    BenchKind.TOPOLOGY_SOFT: TopologyConstraint(is_hard=False),
    BenchKind.TOPOLOGY_HARD: TopologyConstraint(highest_tier=3),
    BenchKind.SUBGROUPS: TopologyConstraint(highest_tier=2),
}
_SIZE_BY_KIND = {
    BenchKind.ZONE_AFFINITY: LIGHT,
    BenchKind.TOPOLOGY_HARD: SMALL,
    BenchKind.SUBGROUPS: WHOLE_NODE,
    BenchKind.STEADY: LIGHT,
}


def _to_own_kind(topology_key: str, app: str) -> PodAffinity:
    return PodAffinity((AffinityTerm(topology_key, LabelSelector((Requirement("app", "In", (app,)),))),))


def _divided(scenario: BenchScenario) -> Batch:
    """Return one gang over two tiers whose sub-groups keep to one HyperNode of the first tier each."""
    plain = arrival(scenario, 0)
    count = scenario.gang // SUBGROUP_SIZE
    template = SubGroup(
        "group", min_member=SUBGROUP_SIZE, min_subgroups=count, match_keys=(SUBGROUP,),
        topology=TopologyConstraint(highest_tier=1),
    )  # fmt: skip
    gang = replace(plain.gang, subgroups=(template,))
    shapes = [_shape(scenario, 0, **{SUBGROUP: str(group)}) for group in range(count)]
    return Batch(gang, tuple(_task(gang, shapes[member // SUBGROUP_SIZE], member) for member in range(scenario.gang)))


def _hypernodes(scenario: BenchScenario) -> Iterator[HyperNode]:
    if scenario.kind is BenchKind.SUBGROUPS:
        leaves = _tier(1, [_node_name(number) for number in range(scenario.nodes)], SUBGROUP_SIZE)
        yield from leaves
        yield from _tier(2, [leaf.name for leaf in leaves], len(leaves))
    elif scenario.kind in (BenchKind.TOPOLOGY_SOFT, BenchKind.TOPOLOGY_HARD):
        names = [_node_name(number) for number in range(scenario.nodes)]
        for tier, size in ((1, 1), (2, 2), (3, 5)):
            made = _tier(tier, names, size)
            yield from made
            names = [hypernode.name for hypernode in made]


def _tier(tier: int, names: list[str], size: int) -> list[HyperNode]:
    groups = [names[start : start + size] for start in range(0, len(names), size)]
    return [
        HyperNode(f"tier{tier}-{number:05}", tier, members=tuple(HyperNodeMember(tier > 1, name) for name in group))
        for number, group in enumerate(groups)
    ]
