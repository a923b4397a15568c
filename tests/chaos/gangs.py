"""The gangs of a storm: of several dialects and owners, drawn from a seed, as objects for a real API server."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from phalanx.model.kinds import Document

Dialect = Literal["volcano", "coscheduling", "grouped", "volcano job"]
Owner = Literal["pods", "Job", "indexed Job", "StatefulSet", "Deployment"]
DIALECTS: Mapping[Dialect, float] = {"volcano": 4, "coscheduling": 3, "grouped": 2, "volcano job": 2}
"""`grouped` gangs have no group when they come: an annotation says how large they are, and a controller of ours makes it."""
WITH_QUEUES: tuple[Dialect, ...] = ("volcano", "volcano job")
OWNERS: Mapping[Owner, float] = {"Job": 3, "indexed Job": 3, "StatefulSet": 2, "Deployment": 1, "pods": 1}
SIZES: Mapping[int, float] = {1: 1, 2: 2, 4: 4, 6: 3, 8: 3, 12: 2, 20: 1, 40: 0.3}
CPUS = ("500m", "1", "1", "2")
QUEUES: Mapping[str, Document] = {
    "chaos-capped": {"weight": 1, "capability": {"cpu": "24"}}, "chaos-small": {"weight": 1, "capability": {"cpu": "6"}},
}  # fmt: skip
"""Queues with limits, which most of what wants into them reaches."""
CHOSEN: Mapping[str, float] = {"": 4, "chaos-capped": 4, "chaos-small": 1}
"""In which queue a gang is whose dialect has queues; the first is the one that everybody has."""
LABEL, QUEUE = "chaos-gang", "chaos-queue"
"""Labels of pods: whose they are, and in which queue, where that has a limit."""
DURATION, GRACE = "phalanx.dev/duration", "phalanx.dev/staleness-grace"
PATIENCE = 10_000
"""A Job counts pods that had to go as failed, and gives up after six by default."""
PATHS: Mapping[tuple[str, str], str] = {
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): "podgroups",
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): "podgroups",
    ("batch.volcano.sh/v1alpha1", "Job"): "jobs",
    ("batch/v1", "Job"): "jobs",
    ("apps/v1", "StatefulSet"): "statefulsets",
    ("apps/v1", "Deployment"): "deployments",
    ("v1", "Pod"): "pods",
}


def path_of(document: Document) -> str:
    """Return where objects of its kind are, in its namespace."""
    version = document["apiVersion"]
    start = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{start}/namespaces/{document['metadata']['namespace']}/{PATHS[version, document['kind']]}"


@dataclass(frozen=True, slots=True)
class ChaosGang:
    """One gang; all its pods are alike."""

    namespace: str
    name: str
    size: int
    minimum: int
    dialect: Dialect
    owner: Owner
    cpu: str
    priority: str
    seconds: int
    """For how long its pods work; 0 for ever."""
    queue: str = ""

    @property
    def ends(self) -> bool:
        """Tell whether its pods end by themselves: others are deleted after their time, for their owner would make them anew."""
        return self.owner in ("Job", "indexed Job", "pods") or self.dialect == "volcano job"

    def documents(self) -> list[Document]:
        """Return its objects, in the order in which they come."""
        if self.dialect == "volcano job":
            return [self._volcano_job()]
        return [*self._group(), *(self._pods() if self.owner == "pods" else [self._workload()])]

    def _meta(self, name: str = "", **more: Any) -> dict[str, Any]:
        return {"name": name or self.name, "namespace": self.namespace, **more}

    def _group(self) -> list[Document]:
        versions = {"volcano": "scheduling.volcano.sh/v1beta1", "coscheduling": "scheduling.x-k8s.io/v1alpha1"}
        if self.dialect not in versions:
            return []
        spec = {"minMember": self.minimum, **({"queue": self.queue} if self.queue else {})}
        priority = {"priorityClassName": self.priority} if self.priority and self.dialect == "volcano" else {}
        meta = self._meta(annotations={GRACE: "5s"})
        return [{"apiVersion": versions[self.dialect], "kind": "PodGroup", "metadata": meta, "spec": {**spec, **priority}}]

    def _annotations(self) -> dict[str, str]:
        return {"phalanx.dev/min-member": str(self.minimum), GRACE: "5s"} if self.dialect == "grouped" else {}

    def _template(self) -> dict[str, Any]:
        labels = {LABEL: self.name} | ({QUEUE: self.queue} if self.queue else {})
        labels |= {"scheduling.x-k8s.io/pod-group": self.name} if self.dialect == "coscheduling" else {}
        annotations = {"scheduling.k8s.io/group-name": self.name} if self.dialect == "volcano" else {}
        lasts = {DURATION: f"{self.seconds}s"} if self.seconds and self.ends else {}
        main = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": self.cpu, "memory": "64Mi"}}}
        spec: dict[str, Any] = {"schedulerName": self.namespace, "containers": [main], "terminationGracePeriodSeconds": 1}
        spec |= {"priorityClassName": self.priority} if self.priority else {}
        meta = {"labels": labels, "annotations": {**annotations, **lasts, **(self._annotations() if self.owner == "pods" else {})}}
        return {"metadata": meta, "spec": spec}

    def _pods(self) -> list[Document]:
        template = self._template()
        template["spec"]["restartPolicy"] = "Never"
        return [
            {"apiVersion": "v1", "kind": "Pod", "metadata": self._meta(f"{self.name}-{number}", **template["metadata"]),
             "spec": template["spec"]}
            for number in range(self.size)
        ]  # fmt: skip

    def _workload(self) -> Document:
        version, spec = ("batch/v1", self._job()) if "Job" in self.owner else ("apps/v1", self._replicas())
        meta = self._meta(annotations=self._annotations())
        return {"apiVersion": version, "kind": self.owner.rpartition(" ")[2], "metadata": meta, "spec": spec}

    def _job(self) -> dict[str, Any]:
        template = self._template()
        template["spec"]["restartPolicy"] = "Never"
        mode = "Indexed" if self.owner == "indexed Job" else "NonIndexed"
        sizes = {"parallelism": self.size, "completions": self.size, "backoffLimit": PATIENCE}
        return {**sizes, "completionMode": mode, "template": template}

    def _replicas(self) -> dict[str, Any]:
        at_once = {"podManagementPolicy": "Parallel"} if self.owner == "StatefulSet" else {}
        chosen = {"matchLabels": {LABEL: self.name}}
        return {"replicas": self.size, "selector": chosen, "template": self._template(), **at_once}

    def _volcano_job(self) -> Document:
        template = self._template()
        template["spec"]["restartPolicy"] = "Never"
        again = [{"event": "PodEvicted", "action": "RestartJob"}, {"event": "TaskCompleted", "action": "CompleteJob"}]
        spec: dict[str, Any] = {
            "schedulerName": self.namespace, "minAvailable": self.minimum, "maxRetry": PATIENCE, "policies": again,
            "tasks": [{"name": "worker", "replicas": self.size, "template": template}],
        }  # fmt: skip
        spec |= {"queue": self.queue} if self.queue else {}
        spec |= {"priorityClassName": self.priority} if self.priority else {}
        meta = self._meta(annotations={GRACE: "5s"})
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": spec}


def drawn_gang(chance: Random, namespace: str, name: str, *, is_endless: bool = False) -> ChaosGang:
    """Draw a gang; an endless one works until it is deleted, and is of those whose owner makes their pods anew."""
    dialect = chance.choices(list(DIALECTS), list(DIALECTS.values()))[0]
    size = chance.choices(list(SIZES), list(SIZES.values()))[0]
    owner = chance.choices(list(OWNERS), list(OWNERS.values()))[0]
    is_elastic = chance.random() < 0.2
    return ChaosGang(
        namespace, name, size, minimum=max(1, size // 2) if is_elastic else size, dialect=dialect,
        owner="Job" if owner == "pods" and (is_endless or dialect == "grouped") else owner, cpu=chance.choice(CPUS),
        priority=chance.choice(["", "", f"{namespace}-low", f"{namespace}-high"]),
        seconds=0 if is_endless else chance.randint(2, 6),
        queue=chance.choices(list(CHOSEN), list(CHOSEN.values()))[0] if dialect in WITH_QUEUES else "",
    )  # fmt: skip
