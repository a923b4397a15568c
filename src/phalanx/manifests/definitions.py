"""The CustomResourceDefinitions of every kind that comes with one."""

from dataclasses import dataclass
from typing import Any

from phalanx.manifests import coscheduling, kai, volcano
from phalanx.manifests import volcano_flows as flows
from phalanx.manifests import volcano_jobs as jobs
from phalanx.manifests.fields import Fields
from phalanx.manifests.schema import Schema, schema_of
from phalanx.model.kinds import Document, Kind, kind_of

CATEGORY = "phalanx"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    is_wide: bool = False

    def document(self) -> dict[str, Any]:
        """Return it as a definition has it."""
        return {"name": self.name, "type": self.type, "jsonPath": self.path, **({"priority": 1} if self.is_wide else {})}


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind, its fields, and how it is shown."""

    kind: Kind
    struct: type[Fields]
    columns: tuple[Column, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema of its objects."""
        return schema_of(self.struct)


AGE = Column("Age", ".metadata.creationTimestamp", "date")
_PHASE, _RUNNING = Column("Status", ".status.phase"), Column("Running", ".status.running", "integer")
_MINIMUM, _QUEUE = Column("Min", ".spec.minMember", "integer"), Column("Queue", ".spec.queue")


def _defined(api_version: str, struct: type[Fields], *columns: Column, kind: str = "") -> Definition:
    found = kind_of({"apiVersion": api_version, "kind": kind or struct.__name__})
    return Definition(found, struct, (*columns, AGE))


DEFINITIONS = (
    _defined("scheduling.volcano.sh/v1beta1", volcano.PodGroup, _PHASE, _MINIMUM, _RUNNING, _QUEUE),
    _defined("scheduling.volcano.sh/v1beta1", volcano.Queue, Column("State", ".status.state"), Column("Parent", ".spec.parent"),
             Column("Weight", ".spec.weight", "integer"), Column("Running", ".status.running", "integer"),
             Column("Pending", ".status.pending", "integer")),
    _defined("batch.volcano.sh/v1alpha1", jobs.Job, Column("Status", ".status.state.phase"),
             Column("Min", ".spec.minAvailable", "integer"), _RUNNING, _QUEUE),
    _defined("batch.volcano.sh/v1alpha1", jobs.CronJob, Column("Schedule", ".spec.schedule"),
             Column("Suspend", ".spec.suspend", "boolean"), Column("Last", ".status.lastScheduleTime", "date")),
    _defined("bus.volcano.sh/v1alpha1", volcano.Command, Column("Action", ".action"), Column("Target", ".target.name")),
    _defined("flow.volcano.sh/v1alpha1", flows.JobFlow, Column("Status", ".status.state.phase")),
    _defined("flow.volcano.sh/v1alpha1", flows.JobTemplate),
    _defined("topology.volcano.sh/v1alpha1", volcano.HyperNode, Column("Tier", ".spec.tier", "integer"),
             Column("TierName", ".spec.tierName"), Column("Nodes", ".status.nodeCount", "integer")),
    _defined("nodeinfo.volcano.sh/v1alpha1", volcano.Numatopology),
    _defined("shard.volcano.sh/v1alpha1", volcano.NodeShard),
    _defined("scheduling.run.ai/v2alpha2", kai.PodGroup, _MINIMUM, _QUEUE, Column("Priority", ".spec.priorityClassName")),
    _defined("scheduling.run.ai/v2", kai.Queue, Column("Parent", ".spec.parentQueue"),
             Column("Priority", ".spec.priority", "integer"), Column("DisplayName", ".spec.displayName", is_wide=True)),
    _defined("scheduling.run.ai/v1alpha2", kai.BindRequest, Column("Pod", ".spec.podName"), Column("Node", ".spec.selectedNode"),
             _PHASE),
    _defined("kai.scheduler/v1alpha1", kai.Topology),
    _defined("kai.scheduler/v1", kai.SchedulingShard, Column("NodePool", ".spec.partitionLabelValue")),
    _defined("scheduling.x-k8s.io/v1alpha1", coscheduling.PodGroup, _PHASE, _MINIMUM, _RUNNING),
    _defined("scheduling.sigs.k8s.io/v1alpha1", coscheduling.OlderPodGroup, _PHASE, _MINIMUM, _RUNNING, kind="PodGroup"),
)  # fmt: skip
DEFINITION_BY_KIND = {definition.kind: definition for definition in DEFINITIONS}
SETS = {
    "volcano": ("volcano.sh",),
    "kai": ("run.ai", "kai.scheduler"),
    "coscheduling": ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io"),
}
"""How groups end that are installed together; a cluster may have some of them already."""


def definition_documents(*sets: str) -> list[Document]:
    """Return the CustomResourceDefinitions of some sets, or all, always in the same order."""
    ends = tuple(end for name in sets or SETS for end in SETS[name])
    return [_document(definition) for definition in DEFINITIONS if definition.kind.group.endswith(ends)]


def _document(definition: Definition) -> Document:
    kind = definition.kind
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource, **_approval(kind)},
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.is_namespaced else "Cluster",
            "versions": [_version(definition)],
        },
    }


def _approval(kind: Kind) -> dict[str, Any]:
    """Return the note without which the API server takes no definition in a group of Kubernetes itself."""
    if not kind.group.endswith((".k8s.io", ".kubernetes.io")):
        return {}
    return {"annotations": {"api-approved.kubernetes.io": "unapproved, defined by another project of the community"}}


def _names(kind: Kind) -> dict[str, Any]:
    short = {"shortNames": list(kind.short)} if kind.short else {}
    return {
        "kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower(),
        **short, "categories": [CATEGORY],
    }  # fmt: skip


def _version(definition: Definition) -> dict[str, Any]:
    subresources: dict[str, Any] = {"subresources": {"status": {}}} if definition.kind.has_status else {}
    return {
        "name": definition.kind.version,
        "served": True,
        "storage": True,
        **subresources,
        "additionalPrinterColumns": [column.document() for column in definition.columns],
        "schema": {"openAPIV3Schema": definition.schema},
    }
