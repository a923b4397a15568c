"""Changes of queues, Volcano's and KAI's. Amounts are quantities as Kubernetes writes them, whatever unit an object has them in."""

from dataclasses import dataclass
from typing import Any

from phalanx.dialects.kai import BYTES_PER_MEMORY_UNIT, UNLIMITED
from phalanx.dialects.queue_objects import IMPLIED_QUEUES
from phalanx.model.kinds import QUEUE, Document, kind_of
from phalanx.model.resources import CPU, GPU, MEMORY, amount_of, quantity_text
from phalanx.whatif.changes.object_change import NONE, ObjectChange, edited, part
from phalanx.whatif.trial_cluster import Edit, TrialCluster

KAI_QUEUE = kind_of({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"})
VOLCANO_AMOUNTS = {
    "capability": ("spec", "capability"),
    "deserved": ("spec", "deserved"),
    "guarantee": ("spec", "guarantee", "resource"),
}
KAI_AMOUNTS = ("limit", "quota")
KAI_NAMES = {CPU: "cpu", MEMORY: "memory", GPU: "gpu", "gpu": "gpu"}
QUEUE_STATES = ("Open", "Closed", "Closing")
OF_BOTH = ("priority", "parent")


@dataclass(frozen=True, slots=True)
class QueueChange(ObjectChange):
    """What would be different about a queue."""

    word = "queue"
    states = ("new", "gone")
    fields = {  # noqa: RUF012  read only
        **dict.fromkeys((*VOLCANO_AMOUNTS, *KAI_AMOUNTS), "+4"), "state": "Open", "weight": "3", "overQuotaWeight": "3",
        "reclaimable": "true", "priority": "10", "parent": "root",
    }  # fmt: skip

    def edits(self, cluster: TrialCluster) -> list[Edit]:
        """Return the objects that it changes."""
        if not self.field:
            return self._whole(cluster)
        is_kai = self._is_about_kai(cluster)
        found = cluster.find(KAI_QUEUE if is_kai else QUEUE, self.name)
        if found is None and not is_kai and self.name in IMPLIED_QUEUES:
            found = _volcano_queue(self.name)
        if found is None:
            raise self._unknown(cluster, is_kai)
        problem = self.unknown_resource(cluster) if self.field in VOLCANO_AMOUNTS else None
        if problem is not None:
            raise problem
        return [Edit(cluster.find(KAI_QUEUE if is_kai else QUEUE, self.name), self._kai(found) if is_kai else self._volcano(found))]

    def _is_about_kai(self, cluster: TrialCluster) -> bool:
        if self.field in OF_BOTH:
            return cluster.find(QUEUE, self.name) is None and cluster.find(KAI_QUEUE, self.name) is not None
        return self.field in (*KAI_AMOUNTS, "overQuotaWeight")

    def _unknown(self, cluster: TrialCluster, is_kai: bool) -> Exception:
        other = cluster.find(QUEUE if is_kai else KAI_QUEUE, self.name)
        if other is not None:
            own, theirs = ("KAI", "Volcano") if is_kai else ("Volcano", "KAI")
            instead = ", ".join(VOLCANO_AMOUNTS if is_kai else KAI_AMOUNTS)
            return self.refuse(f"only queues of {own} have a {self.field}, and {self.name!r} is one of {theirs}; it has: {instead}")
        return self.unknown(_names(cluster))

    def _whole(self, cluster: TrialCluster) -> list[Edit]:
        there = [found for kind in (QUEUE, KAI_QUEUE) if (found := cluster.find(kind, self.name)) is not None]
        if self.value == "new":
            if there:
                raise self.refuse(f"queue {self.name!r} exists")
            is_kai = cluster.profile.policy.dialect == "kai"
            return [Edit(None, _kai_queue(self.name, cluster) if is_kai else _volcano_queue(self.name))]
        if not there:
            raise self.unknown(_names(cluster))
        return self.gone(*there)

    # --- fields ------------------------------------------------------------------------------------------------------

    def _volcano(self, queue: Document) -> Document:
        match self.field:
            case "capability" | "deserved" | "guarantee":
                path = VOLCANO_AMOUNTS[self.field]
                before = part(queue, *path, self.key)
                return edited(queue, *path, self.key, to=(self.bound if self.field == "capability" else self.quantity)(before))
            case "state":
                if self.value not in QUEUE_STATES:
                    raise self.refuse(f"{self.value!r} is no state of a queue; write one of: {', '.join(QUEUE_STATES)}")
                return edited(queue, "status", "state", to=self.value)
            case "reclaimable":
                return edited(queue, "spec", "reclaimable", to=self.switch())
            case "parent":
                return edited(queue, "spec", "parent", to=self.value)
        least = 1 if self.field == "weight" else None
        return edited(queue, "spec", self.field, to=self.whole_number(part(queue, "spec", self.field), least=least))

    def _kai(self, queue: Document) -> Document:
        if self.field == "parent":
            return edited(queue, "spec", "parentQueue", to=self.value)
        if self.field == "priority":
            return edited(queue, "spec", "priority", to=self.whole_number(part(queue, "spec", "priority")))
        if self.key not in KAI_NAMES:
            raise self.refuse(f"a queue of KAI bounds cpu, memory and nvidia.com/gpu, not {self.key!r}")
        name = KAI_NAMES[self.key]
        if self.field == "overQuotaWeight":
            before = part(queue, "spec", "resources", name, "overQuotaWeight")
            return edited(queue, "spec", "resources", name, "overQuotaWeight", to=self.whole_number(before, least=0))
        return edited(queue, "spec", "resources", name, self.field, to=self._kai_amount(queue, name))

    def _kai_amount(self, queue: Document, name: str) -> float:
        """Return an amount in KAI's unit: thousandths of a cpu, a million bytes, devices."""
        resource = GPU if name == "gpu" else name
        unit = {"cpu": 1, "memory": BYTES_PER_MEMORY_UNIT, "gpu": 1000}[name]
        if self.value == NONE:
            return UNLIMITED
        before = part(queue, "spec", "resources", name, self.field)
        held = None if before in (None, UNLIMITED) else quantity_text(resource, round(float(before) * unit))
        own = QueueChange(self.name, self.field, resource, self.value)
        return amount_of(resource, own.bound(held)) / unit


def _names(cluster: TrialCluster) -> set[str]:
    found = {str(item["metadata"]["name"]) for kind in (QUEUE, KAI_QUEUE) for item in cluster.all_of(kind)}
    return found | {IMPLIED_QUEUES[0]}


def _volcano_queue(name: str) -> dict[str, Any]:
    return {
        "apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": True},
        "status": {"state": "Open"},
    }  # fmt: skip


def _kai_queue(name: str, cluster: TrialCluster) -> dict[str, Any]:
    """Return a queue without bounds, below the parent of those that are there."""
    parents = [parent for item in cluster.all_of(KAI_QUEUE) if (parent := part(item, "spec", "parentQueue"))]
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": {"cpu": free, "memory": free, "gpu": free}, **({"parentQueue": parents[0]} if parents else {})}
    return {"apiVersion": KAI_QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
