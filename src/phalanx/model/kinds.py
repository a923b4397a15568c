"""The kinds of objects that are read and written, and what each is called in a manifest, a path and a command."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.errors import Missing

Document = Mapping[str, Any]
_FOREIGN = frozenset({"sparkoperator.k8s.io", "scheduling.sigs.k8s.io"})
"""Groups of custom objects that are called as if they were Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True
    has_status: bool = True
    """Its status is written through the status subresource alone."""
    short: tuple[str, ...] = ()
    other_versions: tuple[str, ...] = ()
    """Versions that are read besides, the best first."""

    def __hash__(self) -> int:
        """Kinds are keys of many tables; a string remembers its hash, seven fields do not."""
        return hash(self.plural)

    @property
    def api_version(self) -> str:
        """As a manifest names it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def is_built_in(self) -> bool:
        """Tell whether every cluster serves it; others came with a CustomResourceDefinition, and take no strategic merge patch."""
        return "." not in self.group or (self.group.endswith(".k8s.io") and self.group not in _FOREIGN)

    @property
    def resource(self) -> str:
        """As messages of the API server name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _wide(group: str, version: str, kind: str, plural: str, *short: str, has_status: bool = False) -> Kind:
    return Kind(group, version, kind, plural, False, has_status, short)


def _kinds(group: str, version: str, *names: str) -> tuple[Kind, ...]:
    return tuple(Kind(group, version, name, f"{name.lower()}s") for name in names)


WORKLOADS = (
    *_kinds("kubeflow.org", "v1", "PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "Notebook"),
    *_kinds("kubeflow.org", "v2beta1", "MPIJob"),
    *_kinds("kubeflow.org", "v1beta1", "ScheduledWorkflow"),
    *_kinds("trainer.kubeflow.org", "v1alpha1", "TrainJob"),
    *_kinds("ray.io", "v1", "RayCluster", "RayJob", "RayService"),
    *_kinds("jobset.x-k8s.io", "v1alpha2", "JobSet"),
    Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets", short=("lws",)),
    *_kinds("grove.io", "v1alpha1", "PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGangSet"),
    *_kinds("scheduler.grove.io", "v1alpha1", "PodGang"),
    *_kinds("nvidia.com", "v1alpha1", "DynamoGraphDeployment"),
    *_kinds("serving.knative.dev", "v1", "Service", "Configuration", "Revision"),
    *_kinds("sparkoperator.k8s.io", "v1beta2", "SparkApplication"),
    *_kinds("argoproj.io", "v1alpha1", "Workflow", "CronWorkflow"),
    *_kinds("machinelearning.seldon.io", "v1", "SeldonDeployment"),
    *_kinds("kubevirt.io", "v1", "VirtualMachine", "VirtualMachineInstance"),
    *_kinds("tekton.dev", "v1", "PipelineRun", "TaskRun"),
    *_kinds("workspace.devfile.io", "v1alpha2", "DevWorkspace"),
    *_kinds("amlarc.azureml.com", "v1alpha1", "AmlJob"),
    *_kinds("egx.nvidia.io", "v1", "SPOTRequest"),
    *_kinds("run.ai", "v1", "RunaiJob"),
    *_kinds(
        "run.ai", "v2alpha1", "TrainingWorkload", "InteractiveWorkload", "DistributedWorkload", "InferenceWorkload",
        "DistributedInferenceWorkload",
    ),
)  # fmt: skip
"""Kinds of other projects whose pods are grouped by what their objects say."""
PROVISIONING_REQUEST = Kind(
    "autoscaling.x-k8s.io", "v1", "ProvisioningRequest", "provisioningrequests", short=("provreq", "provreqs"),
    other_versions=("v1beta1",),
)  # fmt: skip
"""Cluster Autoscaler's; whoever runs it installs its definition."""
KINDS = (
    Kind("", "v1", "Pod", "pods", short=("po",)),
    _wide("", "v1", "Node", "nodes", "no", has_status=True),
    _wide("", "v1", "Namespace", "namespaces", "ns", has_status=True),
    Kind("", "v1", "Service", "services", short=("svc",)),
    Kind("", "v1", "ConfigMap", "configmaps", has_status=False, short=("cm",)),
    Kind("", "v1", "PodTemplate", "podtemplates", has_status=False),
    Kind("", "v1", "Secret", "secrets", has_status=False),
    Kind("", "v1", "Event", "events", has_status=False, short=("ev",)),
    Kind("", "v1", "LimitRange", "limitranges", has_status=False, short=("limits",)),
    Kind("", "v1", "ResourceQuota", "resourcequotas", short=("quota",)),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short=("pvc",)),
    _wide("", "v1", "PersistentVolume", "persistentvolumes", "pv", has_status=True),
    Kind("apps", "v1", "Deployment", "deployments", short=("deploy",)),
    Kind("apps", "v1", "ReplicaSet", "replicasets", short=("rs",)),
    Kind("apps", "v1", "StatefulSet", "statefulsets", short=("sts",)),
    Kind("apps", "v1", "DaemonSet", "daemonsets", short=("ds",)),
    Kind("batch", "v1", "Job", "jobs"),
    Kind("batch", "v1", "CronJob", "cronjobs", short=("cj",)),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", has_status=False, short=("netpol",)),
    Kind("coordination.k8s.io", "v1", "Lease", "leases", has_status=False),
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", short=("pdb",)),
    _wide("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc"),
    Kind("scheduling.k8s.io", "v1alpha2", "Workload", "workloads", has_status=False, other_versions=("v1beta1",)),
    Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups", other_versions=("v1beta1",)),
    _wide("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses"),
    _wide("storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc"),
    _wide("storage.k8s.io", "v1", "CSINode", "csinodes"),
    _wide("storage.k8s.io", "v1", "CSIDriver", "csidrivers"),
    Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", has_status=False),
    Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims"),
    Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", has_status=False),
    _wide("resource.k8s.io", "v1", "DeviceClass", "deviceclasses"),
    _wide("resource.k8s.io", "v1", "ResourceSlice", "resourceslices"),
    Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False, has_status=False),
    Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", short=("pg", "vcpg")),
    _wide("scheduling.volcano.sh", "v1beta1", "Queue", "queues", "q", "vcqueue", has_status=True),
    Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs", short=("vcjob", "vj")),
    Kind("batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs", short=("vccronjob",)),
    Kind("bus.volcano.sh", "v1alpha1", "Command", "commands", has_status=False),
    Kind("flow.volcano.sh", "v1alpha1", "JobFlow", "jobflows", short=("jf",)),
    Kind("flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates", short=("jt",)),
    _wide("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", "hn", has_status=True),
    _wide("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", "numatopo"),
    _wide("shard.volcano.sh", "v1alpha1", "NodeShard", "nodeshards", "nsh", has_status=True),
    Kind("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups"),
    _wide("scheduling.run.ai", "v2", "Queue", "queues", has_status=True),
    Kind("scheduling.run.ai", "v1alpha2", "BindRequest", "bindrequests"),
    _wide("kai.scheduler", "v1alpha1", "Topology", "topologies", has_status=True),
    _wide("kai.scheduler", "v1", "SchedulingShard", "schedulingshards", has_status=True),
    Kind("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", short=("pgs",)),
    Kind("scheduling.sigs.k8s.io", "v1alpha1", "PodGroup", "podgroups"),
    PROVISIONING_REQUEST,
    *WORKLOADS,
)
_BY_KIND = {(kind.group, kind.kind): kind for kind in KINDS}
_BY_PATH = {(kind.group, kind.plural): kind for kind in KINDS}


def kind_of(document: Document) -> Kind:
    """Return the kind of an object; versions of one group are one kind."""
    group = str(document.get("apiVersion", "")).rpartition("/")[0]
    found = _BY_KIND.get((group, str(document.get("kind", ""))))
    if found is None:
        raise Missing(f"no kind {document.get('kind', '')!r} in group {group!r} is served here; served are {', '.join(names())}")
    return found


POD, NODE, NAMESPACE, EVENT = (kind_of({"apiVersion": "v1", "kind": name}) for name in ("Pod", "Node", "Namespace", "Event"))
PRIORITY = kind_of({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"})
LIMIT_RANGE, RESOURCE_QUOTA = (kind_of({"apiVersion": "v1", "kind": name}) for name in ("LimitRange", "ResourceQuota"))
RUNTIME_CLASS = kind_of({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"})
BUDGET = kind_of({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"})
GROUP_BY_DIALECT = {
    "volcano": kind_of({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}),
    "kai": kind_of({"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}),
    "coscheduling": kind_of({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}),
    "koordinator": kind_of({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup"}),
    "native": kind_of({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}),
}


def _volcano(group: str, version: str, *names: str) -> tuple[Kind, ...]:
    return tuple(kind_of({"apiVersion": f"{group}.volcano.sh/{version}", "kind": name}) for name in names)


QUEUE, *_ = _volcano("scheduling", "v1beta1", "Queue")
KAI_QUEUE = kind_of({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"})
POD_TEMPLATE = kind_of({"apiVersion": "v1", "kind": "PodTemplate"})
COMMAND, *_ = _volcano("bus", "v1alpha1", "Command")
HYPERNODE, *_ = _volcano("topology", "v1alpha1", "HyperNode")
VOLCANO_JOB, VOLCANO_CRON_JOB = _volcano("batch", "v1alpha1", "Job", "CronJob")
JOB_FLOW, JOB_TEMPLATE = _volcano("flow", "v1alpha1", "JobFlow", "JobTemplate")
REPLICA_SET, STATEFUL_SET = (kind_of({"apiVersion": "apps/v1", "kind": name}) for name in ("ReplicaSet", "StatefulSet"))
BIND_REQUEST = kind_of({"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest"})
VOLUME, VOLUME_CLAIM = (kind_of({"apiVersion": "v1", "kind": name}) for name in ("PersistentVolume", "PersistentVolumeClaim"))
STORAGE_CLASS = kind_of({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"})
RESOURCE_SLICE = kind_of({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"})
RESOURCE_CLAIM = kind_of({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"})
CLAIM_TEMPLATE = kind_of({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"})
SILENT = frozenset({"Event", "Lease", "ConfigMap", "Secret", "PodTemplate", "ProvisioningRequest"})
"""Kinds whose objects may change as they like: no session looks at them."""
GROUP_KINDS = tuple(kind for kind in KINDS if kind.kind == "PodGroup")


def object_key(document: Document) -> str:
    """Return ``namespace/name`` of an object; nobody has checked it, so it may have neither."""
    meta = document.get("metadata")
    found: Document = meta if isinstance(meta, Mapping) else {}
    return f"{found.get('namespace') or 'default'}/{found.get('name') or ''}"


def split_key(key: str) -> tuple[str, str]:
    """Return namespace and name of a key such as research/train-0."""
    namespace, _, name = key.partition("/")
    return namespace, name


def kind_at(group: str, plural: str) -> Kind:
    """Return the kind that a path names."""
    found = _BY_PATH.get((group, plural))
    if found is None:
        raise Missing("the server could not find the requested resource")
    return found


def kinds_called(word: str) -> list[Kind]:
    """Return the kinds that a word on the command line means: pods, pod, po, podgroups.scheduling.run.ai."""
    low = word.lower()
    return [kind for kind in KINDS if low in (kind.plural, kind.kind.lower(), kind.resource, *_short_names(kind))]


def _short_names(kind: Kind) -> Iterator[str]:
    """Yield the short names of a kind, also as people form their plurals: ``vcjobs``."""
    for name in kind.short:
        yield from (name, f"{name}s")


def names() -> list[str]:
    """Return what is served, as one would type it."""
    return sorted({kind.plural for kind in KINDS})
