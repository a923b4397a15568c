"""Sets the stage: which objects are there at the beginning, which gangs come when, and what happens to pods and nodes.

Objects that are no part of a gang are there from the beginning, as they are, or come when their annotation
`phalanx.dev/arrives` says. A gang of which a pod has a node is there from the beginning; every other one comes when the scenario
or that annotation says, or else at 0. A node whose first event is to join is not there before.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from typing import Any

from phalanx.dialects.cluster import ObjectCluster, describe
from phalanx.dialects.group_references import GroupReference, first_named, with_group_name
from phalanx.errors import ConfigError, Missing, SnapshotError
from phalanx.model.duration import seconds_in
from phalanx.model.kinds import GROUP_BY_DIALECT, NAMESPACE, kind_of, object_key
from phalanx.model.task import TaskKey
from phalanx.model.work_annotations import ARRIVES as ARRIVES
from phalanx.model.work_annotations import CHECKPOINT_EVERY, DURATION
from phalanx.sim.scenario import Arrival, Failure, NodeEvent, Refusal, Scenario, long_name
from phalanx.sim.settings import span_in
from phalanx.sim.workload import Workload, WorkloadGang
from phalanx.sim.workload_objects import cluster_objects, gang_objects
from phalanx.sim.world import World

Document = Mapping[str, Any]
Known = Collection[tuple[str, str]]
"""Kinds and names of objects."""
DEFAULT_QUEUE: Document = {
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 1},
    "status": {"state": "Open"},
}  # fmt: skip

USERS_OF_QUEUES = (("scheduling.volcano.sh", "PodGroup"), ("batch.volcano.sh", "Job"))


@dataclass(slots=True)
class Cast:
    """Objects by the part they play."""

    there: list[Document] = field(default_factory=list)
    """From the beginning."""
    gangs: dict[str, list[Document]] = field(default_factory=dict)
    """Group and pods of those that come later, by name."""
    late: list[Document] = field(default_factory=list)
    """Others that come later."""
    nodes: dict[str, Document] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nobody."""
        return not (self.there or self.late or self.gangs or self.nodes)


def cast(documents: Sequence[Document], cluster: ObjectCluster) -> Cast:
    """Tell who belongs to which gang of the cluster that the objects describe, and which gangs run already."""
    gang_by_pod, running = dict[str, str](), set[str]()
    for document in documents:
        _check_times(document)
        task = cluster.state.task(TaskKey(object_key(document))) if document["kind"] == "Pod" else None
        if task is not None and task.gang is not None and cluster.state.gang(task.gang) is not None:
            gang_by_pod[object_key(document)] = str(task.gang)
            if _has_place(document):
                running.add(str(task.gang))
    return _sorted_by_part(documents, cluster, gang_by_pod, running)


def _sorted_by_part(
    documents: Sequence[Document], cluster: ObjectCluster, gang_by_pod: Mapping[str, str], running: Collection[str]
) -> Cast:
    parts = Cast()
    for document in documents:
        kind, key = document["kind"], object_key(document)
        gang = _gang_of_group(cluster, document) if kind == "PodGroup" else gang_by_pod.get(key) if kind == "Pod" else None
        if kind == "Node":
            parts.nodes[document["metadata"]["name"]] = document
        elif gang is None and _annotation(document, ARRIVES) is not None:
            parts.late.append(document)
        elif gang is None or gang in running:
            parts.there.append(document)
        else:
            parts.gangs.setdefault(gang, []).append(document)
    return parts


def _gang_of_group(cluster: ObjectCluster, group: Document) -> str:
    """Return the gang that a group is, or is a part of."""
    dialect = next((name for name, kind in GROUP_BY_DIALECT.items() if kind == kind_of(group)), "")
    return cluster.groups.key_of(GroupReference(dialect, object_key(group))) if dialect else object_key(group)


def _has_place(pod: Document) -> bool:
    return bool(pod["spec"].get("nodeName"))


TIMES: tuple[tuple[str, Callable[[str], object], str], ...] = (
    (ARRIVES, seconds_in, "'90s' or '2h30m'"), (DURATION, span_in, "'90s', '2h30m' or '30m..2h'"),
    (CHECKPOINT_EVERY, seconds_in, "'30m' or '1h30m'"),
)  # fmt: skip
"""Annotations that hold a duration, what reads each, and what may stand there."""


def _check_times(document: Document) -> None:
    for name, read, example in TIMES:
        text = _annotation(document, name)
        if text is not None and read(text) is None:
            raise SnapshotError(f"{describe(document)}: annotation {name}: {text!r} is not a duration; write for example {example}")


def _annotation(document: Document, name: str) -> str | None:
    found = (document.get("metadata", {}).get("annotations") or {}).get(name)
    return None if found is None else str(found)


# --- putting on ----------------------------------------------------------------------------------------------------------


def set_stage(world: World, parts: Cast, scenario: Scenario) -> None:
    """Load what is there and plan what comes; a scenario that names what does not exist is refused."""
    late = {event.node for event in reversed(scenario.nodes) if _first_event(scenario, event.node).event == "join"}
    nodes = [node for name, node in parts.nodes.items() if name not in late]
    everybody = [item for group in (*parts.gangs.values(), parts.there, parts.late) for item in group]
    load_absent(world, [*nodes, *default_queues(everybody), *parts.there])
    arrivals = list(_arrivals(parts, scenario))
    for at, gangs in _by_moment(arrivals):
        world.plan(at, partial(world.submit, gangs))
    for item in parts.late:
        world.plan(seconds_in(_annotation(item, ARRIVES) or "") or 0.0, partial(world.submit, [[item]]))
    for event in scenario.nodes:
        _plan_node_event(world, parts, event)
    known = {
        (item["kind"], object_key(item)) for group in (parts.there, parts.late, *(gang for _, gang in arrivals)) for item in group
    }
    for failure in scenario.failures:
        if isinstance(failure, Refusal):
            _plan_refusal(world, parts, failure, known)
        else:
            _plan_failure(world, failure, known)


def load_absent(world: World, documents: Iterable[Document]) -> None:
    """Enter all objects that the store does not have from the beginning; namespaces come first, as one that is missing is made."""
    new = []
    for item in documents:
        kind, meta = kind_of(item), item["metadata"]
        if world.store.find(kind, meta.get("namespace", "") if kind.is_namespaced else "", meta["name"]) is None:
            new.append(item)
        elif kind is NAMESPACE:
            world.store.patch(kind, "", meta["name"], {"metadata": {"labels": dict(meta.get("labels") or {})}})
    world.load(sorted(new, key=lambda item: kind_of(item) is not NAMESPACE))


def _plan_failure(world: World, failure: Failure, known: Known) -> None:
    kind, name = ("Pod", failure.pod) if failure.pod else ("PodGroup", failure.gang)
    _check_there(failure.where, f"{kind} {name!r}", (kind, name) in known or _may_come(name, known))
    world.plan(failure.at, partial(_fail, world, failure))


def _plan_refusal(world: World, parts: Cast, refusal: Refusal, known: Known) -> None:
    is_node = refusal.name in parts.nodes or _is_of_pool(world, refusal.name)
    name = refusal.name if is_node else long_name(refusal.name)
    _check_there(refusal.where, f"Node or Pod {refusal.name!r}", is_node or ("Pod", name) in known or _may_come(name, known))
    world.plan(refusal.at, partial(world.faults.refuse_binds, name, refusal.times))


def _check_there(where: str, what: str, is_there: bool) -> None:
    if not is_there:
        raise ConfigError(f"{where}: there is no {what}; write namespace and name as in the manifests")


def _may_come(name: str, known: Known) -> bool:
    """Tell whether something of this name may be made for a job that is known: it begins with the name of the job."""
    return any(kind == "Job" and name.startswith(f"{job}-") for kind, job in known)


def default_queues(documents: Sequence[Document]) -> list[Document]:
    """Return the queue that always exists, unless it is among the objects or nobody would use it."""
    names = {item["metadata"]["name"] for item in documents if item["kind"] == "Queue"}
    is_volcano = any((item["apiVersion"].partition("/")[0], item["kind"]) in USERS_OF_QUEUES for item in documents)
    return [DEFAULT_QUEUE] if is_volcano and "default" not in names else []


def _first_event(scenario: Scenario, node: str) -> NodeEvent:
    return min((event for event in scenario.nodes if event.node == node), key=lambda event: event.at)


def _plan_node_event(world: World, parts: Cast, event: NodeEvent) -> None:
    if _is_of_pool(world, event.node) and event.node not in parts.nodes:
        if event.event == "join":
            raise ConfigError(f"{event.where}: {event.node!r} joins when the autoscaler asks its pool for it; write another event")
    elif event.node not in parts.nodes:
        known = ", ".join(list(parts.nodes)[:5]) + (" and others" if len(parts.nodes) > 5 else "")
        raise ConfigError(f"{event.where}: {event.node!r} does not exist; write one of the nodes, such as {known or 'none'}")
    world.plan(event.at, partial(_do, world, parts.nodes.get(event.node), event))


def _is_of_pool(world: World, node: str) -> bool:
    """Tell whether a pool of the autoscaler may have a node of this name."""
    return world.autoscaler is not None and world.autoscaler.may_have(node)


def _do(world: World, node: Document | None, event: NodeEvent) -> None:
    if event.event == "join" and node is not None:
        world.faults.join(node)
    else:
        world.faults.by_name[event.event](event.node)
    world.recorder.node_events.append((event.at, event.node, event.event))


def _fail(world: World, failure: Failure) -> None:
    pods = world.pods_of(failure.gang) if failure.gang else [failure.pod]
    if not pods:
        raise Missing(f"gang {failure.gang} has no pods that could fail")
    for pod in pods:
        world.faults.fail(*pod.split("/", 1))


# --- arrivals ------------------------------------------------------------------------------------------------------------


def _arrivals(parts: Cast, scenario: Scenario) -> Iterator[tuple[float, list[Document]]]:
    """Yield every gang with the moment at which it comes, and pods that come apart from theirs."""
    apart = {object_key(pod): (arrival.at, [pod]) for arrival in scenario.arrivals for pod in _pods_apart(parts, arrival)}
    yield from apart.values()
    gangs = {name: [item for item in group if item["kind"] != "Pod" or object_key(item) not in apart]
             for name, group in parts.gangs.items()}  # fmt: skip
    named: set[str] = set()
    for arrival in scenario.arrivals:
        chosen = _chosen(gangs, arrival)
        named.update(chosen)
        for number in range(arrival.times):
            for name in chosen:
                yield arrival.at + number * arrival.every, copy_of(gangs[name], number) if number else gangs[name]
    for name, group in gangs.items():
        if name not in named:
            texts = [text for item in group if (text := _annotation(item, ARRIVES)) is not None]
            yield (seconds_in(texts[0]) or 0.0) if texts else 0.0, group


def _pods_apart(parts: Cast, arrival: Arrival) -> Iterator[Document]:
    pods = [item for group in parts.gangs.values() for item in group if item["kind"] == "Pod"]
    for pattern in arrival.pods:
        matching = [pod for pod in pods if fnmatchcase(object_key(pod), pattern)]
        if not matching:
            raise ConfigError(f"{arrival.where}: no pod of a gang that comes later is called {pattern!r}; write namespace and name")
        yield from matching


def _chosen(gangs: Mapping[str, object], arrival: Arrival) -> list[str]:
    found = []
    for pattern in arrival.gangs:
        matching = [name for name in gangs if fnmatchcase(name, pattern)]
        if not matching:
            known = ", ".join(gangs) or "none; gangs with a pod that has a node are there from the beginning"
            raise ConfigError(f"{arrival.where}: no gang is called {pattern!r}; known are {known}")
        found += matching
    return found


def copy_of(group: Sequence[Document], number: int) -> list[Document]:
    """Return a gang once more under another name: train-2 after train, its pods train-2-0 and so on."""
    names = {item["metadata"]["name"] for item in group if item["kind"] == "PodGroup"} or set(map(first_named, group))
    if len(names) != 1:
        members = ", ".join(object_key(item) for item in group[:2])
        raise ConfigError(f"arrivals: the gang of {members} has {len(names)} groups; only gangs with one can come several times")
    (name,) = names
    return [_renamed(item, name, f"{name}-{number + 1}") for item in group]


def _renamed(item: Document, old: str, new: str) -> dict[str, Any]:
    own = item["metadata"]["name"]
    name = new + own.removeprefix(old) if own.startswith(old) else f"{own}-{new}"
    meta = {key: value for key, value in item["metadata"].items() if key != "uid"}
    renamed = {**item, "metadata": {**meta, "name": name}}
    return with_group_name(renamed, new) if item["kind"] == "Pod" else renamed


def _by_moment(arrivals: Iterable[tuple[float, list[Document]]]) -> Iterator[tuple[float, list[list[Document]]]]:
    ordered = sorted(arrivals, key=lambda arrival: arrival[0])
    for moment, group in groupby(ordered, key=lambda arrival: arrival[0]):
        yield moment, [documents for _, documents in group]


# --- workloads -----------------------------------------------------------------------------------------------------------


def set_workload(world: World, workload: Workload, dialect: str) -> None:
    """Load the cluster of a workload and plan its gangs, in the dialect of the scheduler that decides."""
    world.load(cluster_objects(workload, dialect))
    for moment, gangs in groupby(workload.gangs, key=lambda gang: gang.submitted):
        world.plan(moment, partial(_submit, world, list(gangs), dialect))


def _submit(world: World, gangs: list[WorkloadGang], dialect: str) -> None:
    world.submit([gang_objects(gang, dialect) for gang in gangs])
