"""Gangs in the dialects of the contenders: the same pods for all, with what names their group; and the group itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.job_pods import job, of_job
from benchmarks.race.rows import Row

from phalanx.model.kinds import GROUP_BY_DIALECT, Document, Kind

Dialect = Literal["", "native", "volcano", "coscheduling"]
"""Whose groups; none where every pod is for itself."""
GROUP_ANNOTATION, GROUP_LABEL = "scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group"
JOB_LABEL = "job-name"
"""The Job controller writes the name of the Job on its pods; here a gang bears the name of its Job."""
QUEUE = "default"


@dataclass(frozen=True, slots=True)
class Submitted:
    """Whose gangs these are, and where."""

    namespace: str
    scheduler: str
    dialect: Dialect
    row: Row

    @property
    def group_kind(self) -> Kind | None:
        """The kind of the groups."""
        return GROUP_BY_DIALECT[self.dialect] if self.dialect else None

    def group(self, gang: str) -> Document | None:
        """Return the group of a gang, if this dialect has any."""
        kind, size = self.group_kind, self.row.size
        if kind is None:
            return None
        specs: dict[str, dict[str, Any]] = {
            "native": {"schedulingPolicy": {"gang": {"minCount": size}}},
            "volcano": {"minMember": size, "queue": QUEUE},
            "coscheduling": {"minMember": size},
        }
        meta = {"name": gang, "namespace": self.namespace}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": specs[self.dialect]}

    def job(self, gang: str) -> Document:
        """Return the Job that owns the pods of a gang."""
        return job(self._pod(gang), name=gang, size=self.row.size)

    def pods(self, gang: str, owner: Document, nodes: list[str] | None = None) -> list[Document]:
        """Return the pods of a gang as the controller of its Job writes them; with nodes, those that run there already."""
        made = [of_job(self._pod(gang, number), owner, number) for number in range(self.row.size)]
        if nodes is None:
            return made
        return [{**pod, "spec": {**pod["spec"], "nodeName": node}} for pod, node in zip(made, nodes, strict=True)]

    def _pod(self, gang: str, number: int = 0) -> Document:
        meta: dict[str, Any] = {"name": f"{gang}-{number}", "namespace": self.namespace}
        requests = {"cpu": str(self.row.cpu), "memory": "1Gi"}
        spec: dict[str, Any] = {
            "schedulerName": self.scheduler,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        }
        match self.dialect:
            case "native":
                spec["schedulingGroup"] = {"podGroupName": gang}
            case "volcano":
                meta["annotations"] = {GROUP_ANNOTATION: gang}
            case "coscheduling":
                meta["labels"] = {GROUP_LABEL: gang}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def in_turn(gangs: list[list[Document]]) -> Iterator[Document]:
    """Yield the first pods of all gangs, then the second ones: so they come when several Jobs begin at once."""
    for pods in zip(*gangs, strict=True):
        yield from pods
