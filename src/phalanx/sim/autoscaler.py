"""A simulated autoscaler, modelled on Cluster Autoscaler.

Every scan it takes the pods whose condition PodScheduled is False with the reason Unschedulable, and nothing else; leaves out those
that fit on nodes that are there or on their way; and asks one pool for as many nodes as the others need, all at once. Of several
pools it takes the one of which the least is wasted. A scan without a scale-up removes nodes that had no pods for a while.

It knows pods and no gangs, as Cluster Autoscaler does: a gang that needs more nodes than a pool may have gets those it may have.
With `is_atomic` the pods of a gang get all nodes that they need or none, as with a ProvisioningRequest of the class
best-effort-atomic-scale-up.

Scans take place at whole intervals from the start. Those at which nothing could be different are left out, so that a quiet week
costs nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from phalanx.controllers.objects import annotations_of, is_leaving, is_of_its_node
from phalanx.explain.reason_text import as_counted
from phalanx.model.conditions import POD_SCHEDULED
from phalanx.model.kinds import NODE, POD, Document, object_key, split_key
from phalanx.model.resources import PODS, Resources, add
from phalanx.model.task import Task, TaskKey
from phalanx.model.task_status import COMPLETED
from phalanx.model.watch_event import DELETED, WatchEvent
from phalanx.sim.cloud_provider import CloudProvider, NodeGroup
from phalanx.sim.node_pools import AutoscalerSettings
from phalanx.sim.scale_up_trial import ScaleUpTrial
from phalanx.sim.virtual_time import Precedence, VirtualTime, VirtualTimer
from phalanx.store.memory import MemoryStore

UNSCHEDULABLE = "Unschedulable"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
TINY = 1e-6
"""Seconds by which a moment may miss a whole interval."""


@dataclass(frozen=True, slots=True)
class ScaleUpOption:
    """A pool that could help, and how."""

    group: NodeGroup
    nodes: int
    pods: int
    waste: float
    """Which part of the new nodes nobody would use: the mean over the resources that the pods ask for."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What is known about pods besides their objects."""

    task: Callable[[TaskKey], Task | None]
    on_node: Callable[[str], Mapping[TaskKey, Task]]
    """The pods on a node, also those that are about to be bound to it."""


class Autoscaler:
    """Scans a cluster."""

    def __init__(
        self, settings: AutoscalerSettings, provider: CloudProvider, store: MemoryStore, time: VirtualTime, view: ClusterView
    ) -> None:  # fmt: skip
        """Begin to listen."""
        self._settings, self.provider, self._store, self._time, self._view = settings, provider, store, time, view
        self._trial = ScaleUpTrial(store)
        self._start, self._last_scale_up = time.now, -float("inf")
        self._unschedulable: dict[str, Document] = {}
        """Pods that wait for nodes, by key."""
        self._unneeded_since: dict[str, float] = {}
        self._wanted: set[str] = set()
        """Nodes on which pods that wait would fit."""
        self._timer: VirtualTimer | None = None
        store.listen(self._hear)
        provider.failed.append(lambda: self._scan_after(self._time.now))

    def may_have(self, node: str) -> bool:
        """Tell whether a node of a pool may have this name."""
        return any(group.pool.may_have(node) for group in self.provider.groups)

    # --- when to look ------------------------------------------------------------------------------------------------

    def _hear(self, event: WatchEvent) -> None:
        if event.kind is POD:
            key = object_key(event.object)
            if event.type != DELETED and is_unschedulable(event.object):
                self._unschedulable[key] = event.object
            else:
                self._unschedulable.pop(key, None)
        if event.kind in (POD, NODE):
            self._scan_after(self._time.now)

    def _scan_after(self, moment: float) -> None:
        """Scan at the first whole interval after a moment."""
        self._scan_at(floor((moment - self._start + TINY) / self._settings.scan_interval) + 1)

    def _scan_by(self, moment: float) -> None:
        """Scan at the first whole interval that is not before a moment."""
        self._scan_at(ceil((moment - self._start - TINY) / self._settings.scan_interval))

    def _scan_at(self, number: int) -> None:
        moment = self._start + number * self._settings.scan_interval
        if self._timer is not None and self._timer.moment <= moment:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._time.at(moment, Precedence.PLAN, self._scan)

    def _scan(self) -> None:
        self._timer = None
        has_scaled_up = self._scale_up()
        self._find_unneeded()
        if has_scaled_up:
            self._scan_after(self._time.now)
        else:
            self._scale_down()
        for moment in self._deadlines():
            self._scan_by(moment)

    def _deadlines(self) -> Iterator[float]:
        """Yield when time alone makes a difference: a node has been idle for long enough, a back-off is over."""
        now = self._time.now
        for group in self.provider.groups:
            if group.target > group.pool.min:
                yield from (self._removable_at(name) for name in group.nodes if name in self._unneeded_since)
            if self._unschedulable and group.backs_off_until > now:
                yield group.backs_off_until

    # --- scale-up ----------------------------------------------------------------------------------------------------

    def _scale_up(self) -> bool:
        """Ask for nodes if pods need some; tell whether that was so."""
        self._wanted = set()
        pods, groups = self._waiting_pods(), [group for group in self.provider.groups if self._may_grow(group)]
        if not pods or not (groups or self._settings.keeps_for_pending):
            return False
        upcoming = [node for group in self.provider.groups for node in group.placeholders(group.upcoming)]
        places = self._trial.placed(pods, nodes=upcoming, now=self._time.now)
        self._wanted = set(places.values())
        for batch in self._batches([pod for pod in pods if object_key(pod) not in places]):
            options = (self._option(group, batch, upcoming, pods, places) for group in groups)
            best = min(filter(None, options), key=lambda option: (option.waste, option.group.pool.name), default=None)
            if best is not None:
                self._last_scale_up = self._time.now
                self.provider.request(best.group, best.nodes, f"for {best.pods} of {len(pods)} unschedulable pods")
                return True
        return False

    def _may_grow(self, group: NodeGroup) -> bool:
        return group.room > 0 and group.backs_off_until <= self._time.now

    def _waiting_pods(self) -> list[Document]:
        """Return the pods that need help, those with the highest priority first, and then in the order in which they said so."""
        return sorted(self._unschedulable.values(), key=lambda pod: -int(pod["spec"].get("priority") or 0))

    def _batches(self, pods: Sequence[Document]) -> list[list[Document]]:
        """Return pods that are helped together: all of them, or those of each gang where a gang gets all or nothing."""
        found: dict[str, list[Document]] = {}
        for pod in pods:
            found.setdefault(self._gang_of(pod) if self._settings.is_atomic else "", []).append(pod)
        return list(found.values())

    def _gang_of(self, pod: Document) -> str:
        task = self._view.task(TaskKey(object_key(pod)))
        return object_key(pod) if task is None or task.gang is None else task.gang

    def _option(
        self, group: NodeGroup, batch: Sequence[Document], upcoming: Sequence[Document], pods: Sequence[Document],
        places: Mapping[str, str],
    ) -> ScaleUpOption | None:  # fmt: skip
        """Return how a pool would help some pods; None if it would not. Large pods are placed first."""
        more = group.placeholders(min(group.room, len(batch)), first=group.upcoming)
        fitting = [pod for pod in pods if object_key(pod) in places]
        ordered = sorted(batch, key=lambda pod: -self._part(pod, group))
        found = self._trial.placed([*fitting, *ordered], nodes=[*upcoming, *more], bound=places, now=self._time.now)
        names = {node["metadata"]["name"] for node in more}
        helped = [key for key, node in found.items() if node in names]
        if not helped or (self._settings.is_atomic and len(helped) < len(batch)):
            return None
        nodes = len({found[key] for key in helped})
        return ScaleUpOption(group, nodes, len(helped), self._waste(group, nodes, helped))

    def _request(self, key: str) -> Resources:
        task = self._view.task(TaskKey(key))
        return {} if task is None else {name: amount for name, amount in task.shape.request.items() if name != PODS and amount}

    def _part(self, pod: Document, group: NodeGroup) -> float:
        """Return how large a pod is: the parts of a node that it takes, over all resources."""
        offers = group.pool.template.amounts
        return sum(amount / offers[name] for name, amount in self._request(object_key(pod)).items() if offers.get(name))

    def _waste(self, group: NodeGroup, nodes: int, keys: Sequence[str]) -> float:
        asked: Resources = {}
        for key in keys:
            asked = add(asked, self._request(key))
        offers = group.pool.template.amounts
        parts = [1 - amount / (nodes * offers[name]) for name, amount in asked.items() if offers.get(name)]
        return round(sum(parts) / len(parts), 9) if parts else 1.0

    # --- scale-down --------------------------------------------------------------------------------------------------

    def _find_unneeded(self) -> None:
        """Note since when each node is not needed."""
        idle = [name for group in self.provider.groups for name in group.nodes if self._is_unneeded(name)]
        self._unneeded_since = {name: self._unneeded_since.get(name, self._time.now) for name in idle}

    def _is_unneeded(self, name: str) -> bool:
        node = self._store.find(NODE, "", name)
        if node is None or annotations_of(node).get(SCALE_DOWN_DISABLED) == "true":
            return False
        is_kept = self._settings.keeps_for_pending and name in self._wanted
        return not is_kept and not any(map(self._needs_its_node, self._view.on_node(name).values()))

    def _needs_its_node(self, task: Task) -> bool:
        pod = self._store.find(POD, *split_key(task.key))
        return task.status not in COMPLETED and not (pod is not None and is_of_its_node(pod))

    def _removable_at(self, name: str) -> float:
        since = self._unneeded_since[name]
        return max(since + self._settings.unneeded_time, self._last_scale_up + self._settings.delay_after_add)

    def _scale_down(self) -> None:
        """Give back the nodes that nobody has needed for long enough, but not so many that a pool is below its minimum."""
        for group in self.provider.groups:
            due = [name for name in group.nodes if name in self._unneeded_since and self._removable_at(name) <= self._time.now]
            spare = max(0, min(group.target - group.pool.min, len(due)))
            names = sorted(due, key=as_counted)[len(due) - spare :]
            if names:
                self.provider.remove(group, names)
            for name in names:
                del self._unneeded_since[name]


def is_unschedulable(pod: Document) -> bool:
    """Tell whether a pod waits and its scheduler says that no node has room for it: these are the pods that nodes are added for."""
    if pod["spec"].get("nodeName") or is_leaving(pod):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    said: Document = next((item for item in conditions if item.get("type") == POD_SCHEDULED), {})
    return said.get("status") == "False" and said.get("reason") == UNSCHEDULABLE
