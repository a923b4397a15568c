"""The CustomResourceDefinitions of every kind that comes with one."""

from dataclasses import dataclass
from typing import Any

from phalanx.dialects.kinds import coscheduling, kai, volcano
from phalanx.dialects.kinds import volcano_flows as flows
from phalanx.dialects.kinds import volcano_jobs as jobs
from phalanx.dialects.kinds.fields import CustomObject
from phalanx.manifests.openapi import Schema, schema_of
from phalanx.model.kinds import Document, Kind, kind_of

CATEGORY = "phalanx"


@dataclass(frozen=True, slots=True)
class PrinterColumn:
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
    struct: type[CustomObject]
    columns: tuple[PrinterColumn, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema of its objects."""
        return schema_of(self.struct)


AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "date")
_PHASE, _RUNNING = PrinterColumn("Status", ".status.phase"), PrinterColumn("Running", ".status.running", "integer")
_JOB_STATE = PrinterColumn("Status", ".status.state.phase")
_COUNTED = ("Pending", "Succeeded", "Failed")
_MINIMUM, _QUEUE = PrinterColumn("Min", ".spec.minMember", "integer"), PrinterColumn("Queue", ".spec.queue")


def _defined(api_version: str, kind: str, struct: type[CustomObject], *columns: PrinterColumn) -> Definition:
    return Definition(kind_of({"apiVersion": api_version, "kind": kind}), struct, (*columns, AGE))


DEFINITIONS = (
    _defined("scheduling.volcano.sh/v1beta1", "PodGroup", volcano.VolcanoPodGroup, _PHASE, _MINIMUM, _RUNNING, _QUEUE),
    _defined("scheduling.volcano.sh/v1beta1", "Queue", volcano.VolcanoQueue, PrinterColumn("State", ".status.state"),
             PrinterColumn("Parent", ".spec.parent"), PrinterColumn("Weight", ".spec.weight", "integer"),
             PrinterColumn("Running", ".status.running", "integer"), PrinterColumn("Pending", ".status.pending", "integer")),
    _defined("batch.volcano.sh/v1alpha1", "Job", jobs.VolcanoJob, _JOB_STATE,
             PrinterColumn("MinAvailable", ".status.minAvailable", "integer"),
             PrinterColumn("Runnings", ".status.running", "integer"), PrinterColumn("Queue", ".spec.queue", is_wide=True),
             *(PrinterColumn(word, f".status.{word.lower()}", "integer", is_wide=True) for word in _COUNTED),
             PrinterColumn("Retries", ".status.retryCount", "integer", is_wide=True)),
    _defined("batch.volcano.sh/v1alpha1", "CronJob", jobs.CronJob, PrinterColumn("Schedule", ".spec.schedule"),
             PrinterColumn("Suspend", ".spec.suspend", "boolean"), PrinterColumn("Last", ".status.lastScheduleTime", "date")),
    _defined("bus.volcano.sh/v1alpha1", "Command", volcano.Command, PrinterColumn("Action", ".action"),
             PrinterColumn("Target", ".target.name")),
    _defined("flow.volcano.sh/v1alpha1", "JobFlow", flows.JobFlow, _JOB_STATE),
    _defined("flow.volcano.sh/v1alpha1", "JobTemplate", flows.VolcanoJobTemplate),
    _defined("topology.volcano.sh/v1alpha1", "HyperNode", volcano.VolcanoHyperNode, PrinterColumn("Tier", ".spec.tier", "integer"),
             PrinterColumn("TierName", ".spec.tierName"), PrinterColumn("Nodes", ".status.nodeCount", "integer")),
    _defined("nodeinfo.volcano.sh/v1alpha1", "Numatopology", volcano.Numatopology),
    _defined("shard.volcano.sh/v1alpha1", "NodeShard", volcano.NodeShard),
    _defined("scheduling.run.ai/v2alpha2", "PodGroup", kai.KaiPodGroup, _MINIMUM, _QUEUE,
             PrinterColumn("Priority", ".spec.priorityClassName")),
    _defined("scheduling.run.ai/v2", "Queue", kai.KaiQueue, PrinterColumn("Parent", ".spec.parentQueue"),
             PrinterColumn("Priority", ".spec.priority", "integer"),
             PrinterColumn("DisplayName", ".spec.displayName", is_wide=True)),
    _defined("scheduling.run.ai/v1alpha2", "BindRequest", kai.KaiBindRequest, PrinterColumn("Pod", ".spec.podName"),
             PrinterColumn("Node", ".spec.selectedNode"), _PHASE),
    _defined("kai.scheduler/v1alpha1", "Topology", kai.Topology),
    _defined("kai.scheduler/v1", "SchedulingShard", kai.SchedulingShard, PrinterColumn("NodePool", ".spec.partitionLabelValue")),
    _defined("scheduling.x-k8s.io/v1alpha1", "PodGroup", coscheduling.CoschedulingPodGroup, _PHASE, _MINIMUM, _RUNNING),
    _defined("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", coscheduling.OlderPodGroup, _PHASE, _MINIMUM, _RUNNING),
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
