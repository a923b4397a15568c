"""Workloads of every kind that people have, as their operators make them, and the groups that their pods have to get.

A workload is a tree of objects: what is below an object belongs to it. Deployments, StatefulSets and Jobs have nothing below them,
since Kubernetes' own controllers make their pods. The groups stand here as KAI's documentation says them, not as we make them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phalanx.controllers.objects import owner_reference
from phalanx.model.kinds import Document
from tests.support.store_contract import Api

QUEUE, LABEL = "research", "kai.scheduler/queue"
GROUP, PART = "pod-group-name", "kai.scheduler/subgroup-name"
TRAINING, JOBSET, LWS = "training.kubeflow.org", "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"
DEFINED = {
    "kubeflow.org/v1": ("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "Notebook", "MPIJob"),
    "kubeflow.org/v1beta1": ("ScheduledWorkflow",), "trainer.kubeflow.org/v1alpha1": ("TrainJob",),
    "ray.io/v1": ("RayCluster", "RayJob", "RayService"), "jobset.x-k8s.io/v1alpha2": ("JobSet",),
    "leaderworkerset.x-k8s.io/v1": ("LeaderWorkerSet",), "grove.io/v1alpha1": ("PodCliqueSet", "PodGangSet", "PodClique"),
    "scheduler.grove.io/v1alpha1": ("PodGang",), "serving.knative.dev/v1": ("Service", "Configuration", "Revision"),
    "amlarc.azureml.com/v1alpha1": ("AmlJob",), "egx.nvidia.io/v1": ("SPOTRequest",), "run.ai/v1": ("RunaiJob",),
    "machinelearning.seldon.io/v1": ("SeldonDeployment",), "kubevirt.io/v1": ("VirtualMachineInstance",),
    "tekton.dev/v1": ("TaskRun", "PipelineRun"), "workspace.devfile.io/v1alpha2": ("DevWorkspace",),
    "argoproj.io/v1alpha1": ("Workflow",), "nvidia.com/v1alpha1": ("DynamoGraphDeployment",), "example.com/v1": ("Simulation",),
}  # fmt: skip
"""Kinds that come with operators, the last with one that nobody knows."""
DEFAULTS = {"types": '[{"typeName": "Simulation", "group": "example.com", "priorityName": "build"}]'}
"""The data of a ConfigMap with defaults for kinds of owners."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group as it has to be."""

    minimum: int
    members: Mapping[str, int]
    """How many pods are in which part; those in none are under an empty name."""
    parts: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """How many pods each part needs, and the part above it."""
    priority: str = "train"
    queue: str = QUEUE


@dataclass(frozen=True, slots=True)
class Tree:
    """An object and what belongs to it."""

    document: dict[str, Any]
    below: Sequence["Tree"] = ()

    def make(self, api: Api, owner: Document | None = None) -> None:
        """Create everything, from the top."""
        document = {**self.document, "metadata": dict(self.document["metadata"])}
        if owner is not None:
            document["metadata"]["ownerReferences"] = [owner_reference(owner)]
        made = api.make(place_of(document), document)
        assert made.code == 201, made
        if "status" in document:
            path = f"{place_of(document)}/{document['metadata']['name']}/status"
            assert api.patch(path, {"status": document["status"]}).code == 200
        for tree in self.below:
            tree.make(api, {**document, "metadata": made.body["metadata"]})


@dataclass(frozen=True, slots=True)
class Workload:
    """A tree, and the groups of its pods; the names of all pods begin with that of the workload and a dash."""

    tree: Tree
    groups: Sequence[Group]

    @property
    def name(self) -> str:
        """As the top of the tree is called, but for the number of a pod."""
        return str(self.tree.document["metadata"]["name"]).removesuffix("-0")


def definitions() -> Iterator[Document]:
    """Yield a definition of each kind that comes with an operator; its objects may have any fields."""
    for api_version, names in DEFINED.items():
        group, _, version = api_version.partition("/")
        for name in names:
            yield _definition(group, version, name)


def _definition(group: str, version: str, kind: str) -> Document:
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": anything},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": [served],
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
        },
    }  # fmt: skip


def place_of(document: Document) -> str:
    """Return where objects of a kind are made."""
    version, plural = document["apiVersion"], f"{document['kind'].lower()}s"
    return plural if version == "v1" else f"{version}:{plural}"


def groups_found(pods: Iterable[Document], groups: Mapping[str, Document]) -> list[Group]:
    """Return the groups that pods are in, in an order that their contents decide; pods without one are left out."""
    members: dict[str, Counter[str]] = {}
    for pod in pods:
        name = pod["metadata"].get("annotations", {}).get(GROUP, "")
        members.setdefault(name, Counter())[pod["metadata"].get("labels", {}).get(PART, "")] += 1
    return in_order(_found(groups[name]["spec"], counts) for name, counts in members.items() if name in groups)


def _found(spec: Document, members: Mapping[str, int]) -> Group:
    parts = {part["name"]: (part.get("minMember", 0), part.get("parent", "")) for part in spec.get("subGroups") or ()}
    return Group(spec["minMember"], dict(members), parts, spec["priorityClassName"], spec["queue"])


def in_order(groups: Iterable[Group]) -> list[Group]:
    """Return groups in an order that their contents decide."""
    return sorted(groups, key=repr)


# --- pieces --------------------------------------------------------------------------------------------------------------


def _object(api_version: str, kind: str, name: str, spec: Any = None, **meta: Any) -> dict[str, Any]:
    """Return an object; `meta` are its labels and annotations."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}, "spec": {} if spec is None else spec}


def _top(api_version: str, kind: str, name: str, spec: Any = None, **annotations: str) -> dict[str, Any]:
    """Return an object that a user has written: it names the queue."""
    return _object(api_version, kind, name, spec, labels={LABEL: QUEUE}, annotations=annotations)


def _pod_spec() -> dict[str, Any]:
    container = {"name": "main", "image": "train:1", "resources": {"requests": {"cpu": "100m"}}}
    return {"schedulerName": "kai-scheduler", "containers": [container], "terminationGracePeriodSeconds": 0}


def _pod(name: str, **labels: str) -> Tree:
    return Tree(_object("v1", "Pod", name, _pod_spec(), labels=labels))


def _pods(name: str, count: int, **labels: str) -> list[Tree]:
    return [_pod(f"{name}-{number}", **labels) for number in range(count)]


def _set(kind: str, name: str, replicas: int, *below: Tree, **labels: str) -> Tree:
    """Return a Deployment or a StatefulSet, whose pods Kubernetes makes."""
    own = {"app": name, **labels}
    spec = {"replicas": replicas, "selector": {"matchLabels": own}, "template": {"metadata": {"labels": own}, "spec": _pod_spec()}}
    return Tree(_object("apps/v1", kind, name, spec), below)


def _job(name: str, pods: int, **labels: str) -> Tree:
    """Return a Job, whose pods Kubernetes makes."""
    template = {"metadata": {"labels": labels}, "spec": {**_pod_spec(), "restartPolicy": "Never"}}
    return Tree(_object("batch/v1", "Job", name, {"parallelism": pods, "completions": pods, "template": template}))


def _owned(top: dict[str, Any], *below: Tree) -> Tree:
    return Tree(top, below)


def _chain(*documents: dict[str, Any], below: Sequence[Tree]) -> Tree:
    """Return objects each of which belongs to the one before it."""
    *above, last = documents
    tree = Tree(last, below)
    for document in reversed(above):
        tree = Tree(document, (tree,))
    return tree


# --- Kubernetes' own kinds -----------------------------------------------------------------------------------------------


def _queued(tree: Tree) -> Tree:
    return Tree({**tree.document, "metadata": {**tree.document["metadata"], "labels": {LABEL: QUEUE}}}, tree.below)


def _own_kinds() -> Iterator[Workload]:
    spark = {"spark-app-name": "spark", "spark-app-selector": "spark-1", LABEL: QUEUE}
    yield Workload(_pod("pod-0", **{LABEL: QUEUE}), [Group(1, {"": 1})])
    yield Workload(_pod("spark-0", **spark), [Group(1, {"": 1})])
    yield Workload(_job("job", 2), [Group(1, {"": 1}, queue="default-queue")] * 2)
    yield Workload(_queued(_set("Deployment", "web", 2)), [Group(1, {"": 1}, priority="inference")] * 2)
    yield Workload(_queued(_set("StatefulSet", "store", 2)), [Group(1, {"": 2})])
    yield Workload(_queued(_set("ReplicaSet", "copies", 2)), [Group(1, {"": 2})])
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": _job("", 1).document["spec"]}}
    nights = [_job("nightly-1", 2), _job("nightly-2", 1)]
    yield Workload(_owned(_top("batch/v1", "CronJob", "nightly", spec), *nights), [Group(1, {"": 2}), Group(1, {"": 1})])


# --- Kubeflow ------------------------------------------------------------------------------------------------------------


def _roles(kind: str, name: str, field_name: str, counts: Mapping[str, int], **spec: Any) -> Tree:
    """Return a training job with the pods of each role."""
    replicas = {role: {"replicas": count} for role, count in counts.items()}
    return _owned(_top("kubeflow.org/v1", kind, name, {field_name: replicas, **spec}), *_role_pods(name, counts))


def _role_pods(name: str, counts: Mapping[str, int]) -> list[Tree]:
    return [
        _pod(f"{name}-{role.lower()}-{number}", **{f"{TRAINING}/replica-type": role.lower(), f"{TRAINING}/job-role": role.lower(),
                                                  f"{TRAINING}/replica-index": str(number)})
        for role, count in counts.items() for number in range(count)
    ]  # fmt: skip


def _training_jobs() -> Iterator[Workload]:
    pair = {"Master": 1, "Worker": 3}
    two = {"master": (1, ""), "worker": (3, "")}
    yield Workload(_roles("PyTorchJob", "torch", "pytorchReplicaSpecs", pair), [Group(4, {"master": 1, "worker": 3}, two)])
    elastic = _roles("PyTorchJob", "elastic", "pytorchReplicaSpecs", {"Worker": 3}, elasticPolicy={"minReplicas": 2})
    yield Workload(elastic, [Group(2, {"worker": 3}, {"worker": (2, "")})])
    yield Workload(_roles("TFJob", "tf", "tfReplicaSpecs", {"Chief": 1, "PS": 2, "Worker": 2}), [Group(5, {"": 5})])
    policy = {"schedulingPolicy": {"minAvailable": 2}}
    yield Workload(_roles("TFJob", "least", "tfReplicaSpecs", {"Worker": 3}, runPolicy=policy), [Group(2, {"": 3})])
    yield Workload(_roles("XGBoostJob", "xgb", "xgbReplicaSpecs", pair), [Group(4, {"": 4})])
    yield Workload(_roles("JAXJob", "jax", "jaxReplicaSpecs", {"Worker": 2}), [Group(2, {"": 2})])
    mpi = {"Launcher": 1, "Worker": 2}
    yield Workload(_roles("MPIJob", "mpi", "mpiReplicaSpecs", mpi), [Group(3, {"": 3})])
    replicas = {role: {"replicas": count} for role, count in mpi.items()}
    spec = {"mpiReplicaSpecs": replicas, "launcherCreationPolicy": "WaitForWorkersReady"}
    late = _owned(_top("kubeflow.org/v1", "MPIJob", "late", spec), *_role_pods("late", {"Worker": 2}))
    yield Workload(late, [Group(2, {"": 2})])
    notebook = _owned(_top("kubeflow.org/v1", "Notebook", "note"), _set("StatefulSet", "note", 1))
    yield Workload(notebook, [Group(1, {"": 1}, priority="build")])
    flow = _object("argoproj.io/v1alpha1", "Workflow", "monthly-1")
    pods = _pods("monthly-1-step", 2)
    yield Workload(_chain(_top("kubeflow.org/v1beta1", "ScheduledWorkflow", "monthly"), flow, below=pods), [Group(1, {"": 2})])


# --- Ray -----------------------------------------------------------------------------------------------------------------


def _ray_cluster(name: str) -> tuple[dict[str, Any], list[Tree], Group]:
    """Return a RayCluster, its pods and their group: a head, two groups of workers, and one that is suspended."""
    groups = [
        {"groupName": "small", "replicas": 2, "minReplicas": 1}, {"groupName": "large", "replicas": 1, "numOfHosts": 2},
        {"groupName": "off", "replicas": 3, "suspend": True},
    ]  # fmt: skip
    pods = [
        _pod(f"{name}-head", **{"ray.io/group": "headgroup"}), *_pods(f"{name}-small", 2, **{"ray.io/group": "small"}),
        *_pods(f"{name}-large", 2, **{"ray.io/group": "large"}),
    ]  # fmt: skip
    parts = {"headgroup": (1, ""), "small": (1, ""), "large": (2, "")}
    cluster = _object("ray.io/v1", "RayCluster", name, {"headGroupSpec": {}, "workerGroupSpecs": groups})
    return cluster, pods, Group(4, {"headgroup": 1, "small": 2, "large": 2}, parts)


def _ray() -> Iterator[Workload]:
    cluster, pods, group = _ray_cluster("ray")
    cluster["metadata"]["labels"] = {LABEL: QUEUE}
    yield Workload(Tree(cluster, pods), [group])
    cluster, pods, group = _ray_cluster("rayjob-1")
    job = {**_top("ray.io/v1", "RayJob", "rayjob"), "status": {"rayClusterName": "rayjob-1"}}
    yield Workload(_chain(job, cluster, below=pods), [group])
    cluster, pods, group = _ray_cluster("raysvc-1")
    service = {**_top("ray.io/v1", "RayService", "raysvc"), "status": {"activeServiceStatus": {"rayClusterName": "raysvc-1"}}}
    yield Workload(_chain(service, cluster, below=pods), [group])


# --- sets of sets --------------------------------------------------------------------------------------------------------


def _job_set(name: str, *, is_in_order: bool = True) -> Tree:
    """Return a JobSet of a driver and two jobs with two workers each."""
    shapes = {"driver": (1, 1), "workers": (2, 2)}
    jobs = [
        {"name": role, "replicas": count, "template": {"spec": {"parallelism": pods, "completions": pods}}}
        for role, (count, pods) in shapes.items()
    ]  # fmt: skip
    spec: dict[str, Any] = {"replicatedJobs": jobs}
    if not is_in_order:
        spec["startupPolicy"] = {"startupPolicyOrder": "AnyOrder"}
    labels = {role: {f"{JOBSET}/replicatedjob-name": role, f"{JOBSET}/jobset-name": name} for role in shapes}
    below = [
        _job(f"{name}-{role}-{number}", pods, **labels[role])
        for role, (count, pods) in shapes.items() for number in range(count)
    ]  # fmt: skip
    return _owned(_top("jobset.x-k8s.io/v1alpha2", "JobSet", name, spec), *below)


def _leader_workers(name: str, *replicas: Tree, **spec: Any) -> Tree:
    """Return a LeaderWorkerSet of replicas with two pods each."""
    top = _top("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", name, {"leaderWorkerTemplate": {"size": 2}, **spec})
    return _owned(top, *replicas)


def _leader(name: str, number: int, *below: Tree) -> Tree:
    labels = {f"{LWS}/name": name, f"{LWS}/group-index": str(number), f"{LWS}/worker-index": "0"}
    return Tree(_pod(f"{name}-{number}", **labels).document, below)


def _workers(name: str, number: int) -> Tree:
    """Return the set of the one worker of a replica; it belongs to the leader."""
    labels = {f"{LWS}/name": name, f"{LWS}/group-index": str(number), f"{LWS}/worker-index": "1"}
    found = _set("StatefulSet", f"{name}-{number}", 1, **labels)
    found.document["spec"]["ordinals"] = {"start": 1}
    return found


def _sets() -> Iterator[Workload]:
    yield Workload(_job_set("ordered"), [Group(1, {"": 1}), Group(4, {"": 4})])
    yield Workload(_job_set("anyorder", is_in_order=False), [Group(5, {"": 5})])
    parts = {"leader": (1, ""), "workers": (1, "")}
    pairs = [_leader("lws", number, _workers("lws", number)) for number in range(2)]
    yield Workload(_leader_workers("lws", *pairs), [Group(2, {"leader": 1, "workers": 1}, parts)] * 2)
    early = _leader_workers("early", _leader("early", 0), startupPolicy="LeaderReady")
    yield Workload(early, [Group(2, {"leader": 1}, parts)])
    inner = _job_set("trainer").document
    inner["metadata"].pop("labels")
    tree = _chain(_top("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainer"), inner, below=_job_set("trainer").below)
    yield Workload(tree, [Group(1, {"": 1}), Group(4, {"": 4})])


# --- Grove ---------------------------------------------------------------------------------------------------------------


def _grove(kind: str, name: str, *, is_top: bool = True) -> tuple[Tree, Group]:
    """Return a set of two cliques that start together; the decoders stand below a constraint."""
    sizes = {"prefill": 1, "decode": 2}
    label = {"grove.io/podgang": f"{name}-0"}
    cliques = [
        Tree(_object("grove.io/v1alpha1", "PodClique", f"{name}-{role}"),
             _pods(f"{name}-{role}", size, **label, **{"grove.io/podclique": f"{name}-{role}"}))
        for role, size in sizes.items()
    ]  # fmt: skip
    near = [{"name": "near", "podGroupNames": [f"{name}-decode"]}]
    named = [{"name": f"{name}-{role}", "minReplicas": size} for role, size in sizes.items()]
    gang = {"podgroups": named, "topologyConstraintGroupConfigs": near, "priorityClassName": "inference"}
    make = _top if is_top else _object
    top = make("grove.io/v1alpha1", kind, name)
    tree = _owned(top, *cliques, Tree(_object("scheduler.grove.io/v1alpha1", "PodGang", f"{name}-0", gang)))
    # A sub-group with others below it has no number: newer versions of KAI refuse one, and all below it are needed.
    parts = {f"{name}-prefill": (1, ""), "near": (0, ""), f"{name}-decode": (2, "near")}
    return tree, Group(3, {f"{name}-prefill": 1, f"{name}-decode": 2}, parts, priority="inference")


def _groves() -> Iterator[Workload]:
    for kind, name in (("PodCliqueSet", "cliques"), ("PodGangSet", "gangs")):
        tree, group = _grove(kind, name)
        yield Workload(tree, [group])
    tree, group = _grove("PodCliqueSet", "dynamo", is_top=False)
    yield Workload(_owned(_top("nvidia.com/v1alpha1", "DynamoGraphDeployment", "dynamo"), tree), [group])


# --- the rest ------------------------------------------------------------------------------------------------------------


def _knative() -> Workload:
    top, version = _top("serving.knative.dev/v1", "Service", "infer"), "serving.knative.dev/v1"
    revision = _object(version, "Revision", "infer-1", annotations={"autoscaling.knative.dev/min-scale": "2"})
    pods = _set("Deployment", "infer-1", 2, **{"serving.knative.dev/revision": "infer-1"})
    tree = _chain(top, _object(version, "Configuration", "infer"), revision, below=[pods])
    return Workload(tree, [Group(2, {"": 2}, priority="inference")])


def _plain(api_version: str, kind: str, name: str, priority: str = "train") -> Workload:
    """Return a workload whose pods each may start alone, in one group."""
    return Workload(_owned(_top(api_version, kind, name), *_pods(name, 2)), [Group(1, {"": 2}, priority=priority)])


def _others() -> Iterator[Workload]:
    yield _knative()
    yield _plain("kubevirt.io/v1", "VirtualMachineInstance", "vmi")
    yield _plain("egx.nvidia.io/v1", "SPOTRequest", "spot", "inference")
    simulation = _plain("example.com/v1", "Simulation", "unknown")
    yield Workload(simulation.tree, [Group(1, {"": 2}, priority="build", queue="default-queue")])
    yield _plain("tekton.dev/v1", "TaskRun", "task")
    step = _object("tekton.dev/v1", "TaskRun", "pipeline-1")
    yield Workload(
        _chain(_top("tekton.dev/v1", "PipelineRun", "pipeline"), step, below=_pods("pipeline-1", 2)), [Group(1, {"": 2})]
    )
    for api_version, kind, name in (
        ("machinelearning.seldon.io/v1", "SeldonDeployment", "seldon"), ("workspace.devfile.io/v1alpha2", "DevWorkspace", "space"),
    ):  # fmt: skip
        yield Workload(_owned(_top(api_version, kind, name), _set("Deployment", name, 2)), [Group(1, {"": 2})])
    nodes = {"job": {"options": {"envs": {"AZUREML_NODE_COUNT": 2}}}}
    yield Workload(_owned(_top("amlarc.azureml.com/v1alpha1", "AmlJob", "aml", nodes), *_pods("aml", 2)), [Group(2, {"": 2})])
    stems = _owned(_top("run.ai/v1", "RunaiJob", "runai"), *_pods("runai-a", 2), *_pods("runai-b", 1))
    yield Workload(stems, [Group(1, {"": 2}), Group(1, {"": 1})])


def _skipped() -> Iterator[Workload]:
    flow = _top("argoproj.io/v1alpha1", "Workflow", "flow")
    yield Workload(_owned(flow, *_pods("flow-step", 2)), [Group(1, {"": 1})] * 2)
    job = _roles("PyTorchJob", "argo-torch", "pytorchReplicaSpecs", {"Master": 1, "Worker": 1})
    job.document["metadata"].pop("labels")
    parts = {"master": (1, ""), "worker": (1, "")}
    tree = _owned(_top("argoproj.io/v1alpha1", "Workflow", "argo"), job)
    yield Workload(tree, [Group(2, {"master": 1, "worker": 1}, parts)])


def workloads() -> list[Workload]:
    """Return a workload of every kind."""
    return [*_own_kinds(), *_training_jobs(), *_ray(), *_sets(), *_groves(), *_others(), *_skipped()]
