"""The cluster state made of Kubernetes objects: each object is read, checked and entered; events may come in any order.

How some objects are read depends on others: a pod with volumes takes volume slots that depend on its claims, volumes and storage
classes, and a node has as many slots as its CSINode says. When those change, the pods and nodes concerned are read again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from phalanx.dialects import bind_requests as binding
from phalanx.dialects import coscheduling, kai, kai_shards, koordinator, native, nodes, schema, storage_schema, volcano
from phalanx.dialects import node_reports as nodeinfo
from phalanx.dialects import supporting as surroundings
from phalanx.dialects.attached_volumes import AttachedVolumes
from phalanx.dialects.field_values import key_of
from phalanx.dialects.group_references import GroupReference, references_of
from phalanx.dialects.groups import Groups
from phalanx.dialects.kinds.coscheduling import CoschedulingPodGroup, OlderPodGroup
from phalanx.dialects.kinds.kai import KaiBindRequest, KaiPodGroup, KaiQueue, SchedulingShard, Topology
from phalanx.dialects.kinds.reader import reader_of
from phalanx.dialects.kinds.volcano import NodeShard, Numatopology, VolcanoHyperNode, VolcanoPodGroup, VolcanoQueue
from phalanx.dialects.pod_gangs import POD_GANG_READERS, PodGangs
from phalanx.dialects.pods import GangMembership, PodReader, differs_only_in_progress, own_role
from phalanx.dialects.queue_objects import KAI, QueueObjects
from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError
from phalanx.model.gang import Gang
from phalanx.model.kinds import KINDS, Kind, object_key
from phalanx.model.queue_usage import QueueHistory
from phalanx.model.storage import AttachRules
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import Status
from phalanx.state.cluster import ClusterState
from phalanx.state.snapshot import Snapshot

Document = Mapping[str, Any]
Struct = TypeVar("Struct", bound=msgspec.Struct)

ATTACH = AttachRules()
IGNORED = frozenset({"Event", "Endpoints", "EndpointSlice", "Lease", "ConfigMap", "Secret", "ServiceAccount"})


class ObjectCluster:
    """Takes objects as they come and makes snapshots of them."""

    def __init__(self, *, attach: AttachRules = ATTACH, schedulers: frozenset[str] = frozenset()) -> None:
        """Start with the two queues that always exist; pods that wait for a scheduler not in `schedulers`, if any, are gated."""
        self.schedulers = schedulers
        self.state = ClusterState()
        self.state.tables.note(schedulers=schedulers)
        self.as_assumed: Callable[[Task], Task] = lambda task: task
        """Asked about every pod that is read: a write may be under way that its object does not show yet."""
        self._volumes = AttachedVolumes(self.state.tables, attach)
        self.groups = Groups(self.state)
        self._pods = PodReader(self._volumes.slots, self._membership)
        self._contested: dict[str, tuple[Document, str]] = {}
        """Pods that name several groups, each with what is wrong with that, if anything."""
        self._pod_gangs = PodGangs(self.groups, self._read_again)
        self._last_read: dict[TaskKey, Document] = {}
        """Pods as they were when they were last understood."""
        self._nodes: dict[str, schema.NodeRead] = {}
        self._measurements: dict[str, nodeinfo.Measurement] = {}
        self.queues = QueueObjects(self.state)

    @property
    def attach(self) -> AttachRules:
        """Whose volumes count towards what nodes can attach: whoever decides has the rules of a policy."""
        return self._volumes.rules

    @attach.setter
    def attach(self, rules: AttachRules) -> None:
        for document in self._volumes.follow(rules):
            self._read_again(document)

    @property
    def contested(self) -> dict[str, str]:
        """Return the pods that are in no gang because they name several, each with what is wrong."""
        return {key: problem for key, (_, problem) in self._contested.items() if problem}

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as it is now."""
        classes = self._pods.classes
        if classes.is_outdated:
            self.state.reshape(lambda task: classes.again(task.shape, task.labels))
            classes.is_outdated = False
        self.queues.serve_others(is_needed=self.groups.has_any_beside(KAI))
        return self.state.snapshot(now)

    def put(self, document: Document) -> bool:
        """Enter an object; tell whether its kind is one we know. A broken object raises and changes nothing."""
        handler = _HANDLERS.get(group_and_kind(document))
        if handler is None:
            return False
        if not _name(document):
            instead = "; generateName is for the API server, here write the name" if _meta(document).get("generateName") else ""
            raise SnapshotError(f"{describe(document)}: metadata.name: missing{instead}")
        try:
            handler.put(self, document)
        except msgspec.ValidationError as problem:
            raise SnapshotError(f"{describe(document)}: {readable(problem)}") from problem
        except SnapshotError as problem:
            raise SnapshotError(f"{describe(document)}: {problem}") from problem
        except Exception as problem:  # nobody thought of it: even so only this object is left out
            raise SnapshotError(f"{describe(document)}: cannot be understood: {type(problem).__name__}: {problem}") from problem
        return True

    def remove(self, document: Document) -> bool:
        """Remove an object; tell whether its kind is one we know."""
        handler = _HANDLERS.get(group_and_kind(document))
        try:
            if handler is not None:
                handler.remove(self, document)
        except Exception as problem:  # as above
            raise SnapshotError(f"{describe(document)}: cannot be removed: {type(problem).__name__}: {problem}") from problem
        return handler is not None

    # --- pods and nodes ----------------------------------------------------------------------------------------------

    def put_pod(self, document: Document) -> None:
        """Enter a pod; one that belongs to two groups takes its room on a node, but is in no gang."""
        if self._advance(document):
            return
        self._last_read.pop(TaskKey(object_key(document)), None)
        task = self._left_to_others(self._read(document))
        if task.key in self._contested:  # whatever fails from here on, this is what is read again
            self._contested[task.key] = (document, self._contested[task.key][1])
        self._volumes.put(task.key, document, task.namespace, tuple(task.shape.volume_claims))
        problem = self._pod_gangs.put(task, document)
        self.state.put_task(self.as_assumed(_without_gang(task) if problem else self._with_gang(task)))
        if task.key in self._contested:
            problem = problem or self._contested[task.key][1]
        if problem:
            raise SnapshotError(problem)
        self._last_read[task.key] = document

    def _advance(self, document: Document) -> bool:
        """Enter a pod of which only node and status have changed; tell whether it is such a pod.

        Most events of a busy cluster are of this kind, and to read a whole pod takes far longer.
        """
        key = TaskKey(object_key(document))
        before, task = self._last_read.get(key), self.state.task(key)
        if before is None or task is None or not self._is_plain(task) or not differs_only_in_progress(before, document):
            return False
        try:
            task = self._pods.read_on(task, document)
        except (msgspec.ValidationError, SnapshotError):
            return False  # whoever reads all of it says where it is wrong
        self._last_read[key] = document
        self.state.put_task(self.as_assumed(task))
        return True

    def _is_plain(self, task: Task) -> bool:
        """Tell whether the task of a pod depends on no other object, so that a change of its status alone can be read."""
        is_ours = not self.schedulers or task.scheduler_name in self.schedulers
        return is_ours and self.stands_alone(task) and not task.shape.resource_claims and not self.state.has_request(task.key)

    def stands_alone(self, task: Task) -> bool:
        """Tell whether a pod is read the same whatever other objects there are, and says nothing about a gang itself."""
        is_plain = task.key not in self._contested and not self._volumes.has(task.key)
        return is_plain and task.dialect not in POD_GANG_READERS

    def _left_to_others(self, task: Task) -> Task:
        """Gate a pod that waits for another scheduler."""
        is_ours = not self.schedulers or task.status is not Status.PENDING or task.scheduler_name in self.schedulers
        return task if is_ours else replace(task, is_gated=True, is_foreign=True)

    def _read(self, document: Document) -> Task:
        """Read a pod; one that cannot be read keeps what is known of its groups."""
        before = self._contested.pop(object_key(document), None)
        try:
            return self._pods.read(document)
        except Exception:
            self._contested.pop(object_key(document), None)
            if before is not None:
                self._contested[object_key(document)] = before
            raise

    def remove_pod(self, document: Document) -> None:
        """Remove a pod."""
        key = TaskKey(object_key(document))
        self._volumes.remove(key)
        self._contested.pop(key, None)
        self._last_read.pop(key, None)
        self._pods.classes.forget_pod(key)
        self.state.drop_task(key)
        self._pod_gangs.remove(key)

    def _membership(self, pod: schema.Pod) -> GangMembership:
        """Find the gang of a pod."""
        named = references_of(pod.metadata, pod.spec)
        problem = ""
        try:
            group = self.groups.choose(named)
        except SnapshotError as refusal:
            group, problem = None, str(refusal)
        if len(named) > 1:  # another group may come or go
            self._contested[key_of(pod.metadata)] = ({}, problem)
        if group is None:
            return GangMembership()
        return GangMembership(self.groups.key_of(group), group.dialect, group.group, self.groups.role_of(group))

    def _with_gang(self, task: Task) -> Task:
        """Return a pod in the gang that exists now: what it says itself may have made its group, or moved it to a gang group."""
        if task.dialect not in POD_GANG_READERS:
            return task
        group = GroupReference(task.dialect, task.group)
        return replace(task, gang=self.groups.key_of(group), role=self.groups.role_of(group) or _role(task))

    def put_group(self, gang: Gang) -> None:
        """Enter a group object."""
        self.groups.put(gang)
        self._pod_gangs.reread(GroupReference(gang.dialect, gang.key))
        self._reread_contested()

    def remove_group(self, dialect: str, document: Document) -> None:
        """Remove a group object."""
        self.groups.remove(dialect, object_key(document))
        self._pod_gangs.reread(GroupReference(dialect, object_key(document)))
        self._reread_contested()

    def _reread_contested(self) -> None:
        """Read pods again that name several groups: which of them exist may have changed."""
        for document, _ in list(self._contested.values()):
            self._read_again(document)

    def _read_again(self, document: Document) -> None:
        with suppress(Exception):  # its own entry has said what is wrong with it, and what changed now is another object
            self.put_pod(document)

    def put_node(self, document: Document) -> None:
        """Enter a node."""
        read = _convert(document, schema.NodeRead)
        self.state.put_node(nodes.node(read, self._limits(read.metadata.name)))
        self._nodes[read.metadata.name] = read
        self._measure(read.metadata.name)

    def remove_node(self, document: Document) -> None:
        """Remove a node."""
        self._nodes.pop(_name(document), None)
        self.state.drop_node(_name(document))
        self._measure(_name(document))

    def put_metrics(self, document: Document) -> None:
        """Enter how much of a node is in use."""
        self._measurements[_name(document)] = nodeinfo.measurement(_convert(document, nodeinfo.NodeMetrics))
        self._measure(_name(document))

    def remove_metrics(self, document: Document) -> None:
        """Forget how much of a node is in use."""
        self._measurements.pop(_name(document), None)
        self._measure(_name(document))

    def _measure(self, node: str) -> None:
        """Set the usage of a node when both what it uses and what it has are known."""
        measured, read = self._measurements.get(node), self._nodes.get(node)
        if measured is not None and read is not None:
            self.put_entry("node_usage", node, nodeinfo.node_usage(measured, read))
        else:
            self.remove_entry("node_usage", node)

    def _limits(self, node: str) -> Mapping[str, int | None]:
        limits = self.state.tables.table("volume_limits").get(node)
        return {} if limits is None else limits.limit_by_driver

    def put_history(self, history: QueueHistory | None) -> None:
        """Set what queues have used over time."""
        self.state.tables.note(queue_history=history)

    # --- other objects that plugins read -----------------------------------------------------------------------------

    def put_entry(self, table: str, key: str, value: Any) -> None:
        """Set one entry of a table of the surroundings."""
        self.state.tables.put(table, key, value)
        self._follow(table, key)

    def remove_entry(self, table: str, key: str) -> None:
        """Remove one entry of a table of the surroundings."""
        if self.state.tables.drop(table, key):
            self._follow(table, key)

    def _follow(self, table: str, key: str) -> None:
        """Read again what depends on an entry of a table."""
        if table == "volume_limits" and key in self._nodes:
            self.state.put_node(nodes.node(self._nodes[key], self._limits(key)))
        if table == "service_selectors":
            selector = self.state.tables.table(table).get(key)
            if selector is None:
                self._pods.classes.forget_service(key)
            else:
                self._pods.classes.note_service(key, *selector)
        for document in self._volumes.changed(table, key):
            self._read_again(document)


def _without_gang(task: Task) -> Task:
    return replace(task, gang=None, dialect="", group="", role=_role(task))


def _role(task: Task) -> str:
    return own_role(task.annotations, task.labels)


class _Handler:
    """How one kind of object is entered and removed, and the structs that are read of it."""

    def __init__(
        self, put: Callable[[ObjectCluster, Document], None], remove: Callable[[ObjectCluster, Document], None],
        *structs: type[msgspec.Struct],
    ) -> None:  # fmt: skip
        self.put, self.remove, self.structs = put, remove, structs


def _convert(document: Document, kind: type[Struct]) -> Struct:
    return read_as(document, reader_of(kind))


def _meta(document: Document) -> Mapping[str, Any]:
    meta = document.get("metadata")
    return meta if isinstance(meta, Mapping) else {}


def _name(document: Document) -> str:
    return str(_meta(document).get("name") or "")


def group_and_kind(document: Document) -> tuple[str, str]:
    """Return what says how an object is read: its API group and kind, whatever its version."""
    group = str(document.get("apiVersion", "")).rpartition("/")[0]
    return group, str(document.get("kind", ""))


def describe(document: Document) -> str:
    """Name an object for a message: ``Pod research/train-0``."""
    meta = _meta(document)
    name = str(meta.get("name") or "without a name")
    return (
        f"{document.get('kind', 'object')} {meta['namespace']}/{name}"
        if meta.get("namespace")
        else f"{document.get('kind', 'object')} {name}"
    )


def _table(table: str, kind: type[Struct], read: Callable[[Struct], Any], *, is_namespaced: bool = False) -> _Handler:
    key = object_key if is_namespaced else _name

    def put(cluster: ObjectCluster, document: Document) -> None:
        cluster.put_entry(table, key(document), read(_convert(document, kind)))

    return _Handler(put, lambda cluster, document: cluster.remove_entry(table, key(document)), kind)


def _put_priority(cluster: ObjectCluster, document: Document) -> None:
    read = _convert(document, schema.PriorityClass)
    cluster.state.put_priority(read.metadata.name, read.value, is_default=bool(read.global_default))


def _put_csi_driver(cluster: ObjectCluster, document: Document) -> None:
    read = _convert(document, storage_schema.CsiDriver)
    if read.spec and read.spec.storage_capacity:
        cluster.put_entry("capacity_drivers", read.metadata.name, True)
    else:
        cluster.remove_entry("capacity_drivers", read.metadata.name)


class _PodShape(schema.Read):
    """The part of a pod that is read when its class is not known yet."""

    spec: schema.ShapeSpec


_CLASSES = ("scheduling.k8s.io", "PriorityClass")
_HANDLERS: dict[tuple[str, str], _Handler] = {
    ("", "Pod"): _Handler(ObjectCluster.put_pod, ObjectCluster.remove_pod, schema.Pod, _PodShape),
    ("", "Node"): _Handler(ObjectCluster.put_node, ObjectCluster.remove_node, schema.NodeRead),
    _CLASSES: _Handler(_put_priority, lambda cluster, document: cluster.state.drop_priority(_name(document)), schema.PriorityClass),
    ("scheduling.volcano.sh", "PodGroup"): _Handler(
        lambda cluster, document: cluster.put_group(volcano.gang(_convert(document, VolcanoPodGroup))),
        lambda cluster, document: cluster.remove_group("volcano", document),
        VolcanoPodGroup,
    ),
    ("scheduling.volcano.sh", "Queue"): _Handler(
        lambda cluster, document: cluster.queues.put("volcano", volcano.queue(_convert(document, VolcanoQueue))),
        lambda cluster, document: cluster.queues.remove("volcano", _name(document)),
        VolcanoQueue,
    ),
    ("scheduling.run.ai", "PodGroup"): _Handler(
        lambda cluster, document: cluster.put_group(kai.gang(_convert(document, KaiPodGroup))),
        lambda cluster, document: cluster.remove_group("kai", document),
        KaiPodGroup,
    ),
    ("scheduling.x-k8s.io", "PodGroup"): _Handler(
        lambda cluster, document: cluster.put_group(coscheduling.gang(_convert(document, CoschedulingPodGroup))),
        lambda cluster, document: cluster.remove_group(coscheduling.DIALECT, document),
        CoschedulingPodGroup,
    ),
    ("scheduling.sigs.k8s.io", "PodGroup"): _Handler(
        lambda cluster, document: cluster.put_group(koordinator.gang(_convert(document, OlderPodGroup))),
        lambda cluster, document: cluster.remove_group(koordinator.DIALECT, document),
        OlderPodGroup,
    ),
    ("scheduling.k8s.io", "PodGroup"): _Handler(
        lambda cluster, document: cluster.put_group(native.gang(_convert(document, native.NativePodGroupRead))),
        lambda cluster, document: cluster.remove_group("native", document),
        native.NativePodGroupRead,
    ),
    ("scheduling.run.ai", "Queue"): _Handler(
        lambda cluster, document: cluster.queues.put("kai", kai.queue(_convert(document, KaiQueue))),
        lambda cluster, document: cluster.queues.remove("kai", _name(document)),
        KaiQueue,
    ),
    ("scheduling.run.ai", "BindRequest"): _Handler(
        lambda cluster, document: cluster.state.put_bind_request(binding.bind_request(_convert(document, KaiBindRequest))),
        lambda cluster, document: cluster.state.drop_bind_request(object_key(document)),
        KaiBindRequest,
    ),
    ("kai.scheduler", "SchedulingShard"): _table("pool_shards", SchedulingShard, kai_shards.shard),
    ("kai.scheduler", "Topology"): _table("label_trees", Topology, kai.topology),
    ("topology.volcano.sh", "HyperNode"): _Handler(
        lambda cluster, document: cluster.state.put_hypernode(volcano.hypernode(_convert(document, VolcanoHyperNode))),
        lambda cluster, document: cluster.state.drop_hypernode(_name(document)),
        VolcanoHyperNode,
    ),
    ("nodeinfo.volcano.sh", "Numatopology"): _table("numa_topologies", Numatopology, nodeinfo.numa_topology),
    ("metrics.k8s.io", "NodeMetrics"): _Handler(ObjectCluster.put_metrics, ObjectCluster.remove_metrics, nodeinfo.NodeMetrics),
    ("shard.volcano.sh", "NodeShard"): _table("shards", NodeShard, volcano.shard),
    ("storage.k8s.io", "StorageClass"): _table("storage_classes", storage_schema.StorageClassRead, surroundings.storage_class),
    ("storage.k8s.io", "CSINode"): _table("volume_limits", storage_schema.CsiNode, surroundings.volume_limits),
    ("storage.k8s.io", "CSIDriver"): _Handler(
        _put_csi_driver,
        lambda cluster, document: cluster.remove_entry("capacity_drivers", _name(document)),
        storage_schema.CsiDriver,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): _table(
        "storage_capacities", storage_schema.StorageCapacityRead, surroundings.storage_capacity, is_namespaced=True
    ),
    ("", "PersistentVolume"): _table("volumes", storage_schema.VolumeRead, surroundings.volume),
    ("", "PersistentVolumeClaim"): _table(
        "volume_claims", storage_schema.VolumeClaimRead, surroundings.volume_claim, is_namespaced=True
    ),
    ("resource.k8s.io", "ResourceClaim"): _table(
        "resource_claims", storage_schema.ResourceClaimRead, surroundings.resource_claim, is_namespaced=True
    ),
    ("resource.k8s.io", "DeviceClass"): _table("device_classes", storage_schema.DeviceClassRead, surroundings.device_class),
    ("resource.k8s.io", "ResourceSlice"): _table("resource_slices", storage_schema.ResourceSliceRead, surroundings.resource_slice),
    ("", "Namespace"): _table("namespace_labels", schema.Named, lambda read: read.metadata.labels or {}),
    ("policy", "PodDisruptionBudget"): _table(
        "disruption_budgets", schema.DisruptionBudgetRead, surroundings.disruption_budget, is_namespaced=True
    ),
    ("", "ResourceQuota"): _table("resource_quotas", schema.QuotaRead, surroundings.resource_quota, is_namespaced=True),
    ("", "Service"): _table("service_selectors", schema.Service, surroundings.service_selector, is_namespaced=True),
}
"""By API group and kind; the version does not matter for the fields we read."""


def known_kinds() -> list[str]:
    """Return the kinds that are read, for a message."""
    return sorted({kind for _, kind in _HANDLERS})


def kinds_read() -> tuple[Kind, ...]:
    """Return the kinds that are read, in the order of all kinds."""
    return tuple(kind for kind in KINDS if (kind.group, kind.kind) in _HANDLERS)


def places_read() -> frozenset[tuple[str, str]]:
    """Return the API group and kind of all objects that are read."""
    return frozenset(_HANDLERS)


def structs_read(place: tuple[str, str]) -> tuple[type[msgspec.Struct], ...]:
    """Return the structs by which a kind is read; to make those of all kinds takes 10 ms, and a cluster has few of them."""
    return tuple(map(reader_of, _HANDLERS[place].structs))
