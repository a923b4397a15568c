"""The table of owner kinds: by which rule the pods of each are grouped, and which kinds are read for it."""

from collections.abc import Callable
from dataclasses import dataclass

from phalanx.controllers.grouper import grove, kubeflow, ray
from phalanx.controllers.grouper import job_sets as sets
from phalanx.controllers.grouper import knative as serving
from phalanx.controllers.grouper import other_kinds as plain
from phalanx.controllers.grouper.grouping import BUILD, INFERENCE, TRAIN, Grouping
from phalanx.controllers.grouper.owners import BETWEEN, SKIPPED, OwnerChain, kind_pair
from phalanx.model.kinds import KINDS, POD, PRIORITY, Document, Kind, kind_of

Pair = tuple[str, str]
TF_ROLES = ("Chief", "Master", "PS", "Worker", "Evaluator")
MASTER_AND_WORKERS = ("Master", "Worker")


@dataclass(frozen=True, slots=True)
class GroupingRule:
    """How the pods of some kinds of owners are grouped."""

    kinds: tuple[Pair, ...]
    group: Callable[[OwnerChain], Grouping]
    says: str
    """In one sentence, for the reference."""
    priority: str = TRAIN
    """The class of a group where nothing names one."""
    reads_spec: bool = False
    """The rule reads how large the gang is from the spec of the owner, so the owner itself is needed."""


def _kubeflow(*names: str) -> tuple[Pair, ...]:
    return tuple(("kubeflow.org", name) for name in names)


_SUM = "one group; `runPolicy.schedulingPolicy.minAvailable`, else all replicas"
UNKNOWN = GroupingRule((), plain.one, "one group, each pod may start alone")
RULES = (
    GroupingRule(
        (("", "Pod"),),
        plain.bare,
        "a group of its own; pods of one Spark application (labels `spark-app-name` and `spark-app-selector`) share one",
    ),
    GroupingRule((("batch", "Job"),), plain.each, "a group for each pod"),
    GroupingRule((("batch", "CronJob"),), plain.spawned, "a group for each Job that it makes, each pod may start alone"),
    GroupingRule((("apps", "Deployment"),), plain.each, "a group for each pod", INFERENCE),
    GroupingRule(
        (
            ("apps", "StatefulSet"),
            ("apps", "ReplicaSet"),
            ("apps", "DaemonSet"),
            ("machinelearning.seldon.io", "SeldonDeployment"),
            ("kubevirt.io", "VirtualMachine"),
            ("kubevirt.io", "VirtualMachineInstance"),
            ("tekton.dev", "PipelineRun"),
            ("tekton.dev", "TaskRun"),
            ("kubeflow.org", "ScheduledWorkflow"),
            ("workspace.devfile.io", "DevWorkspace"),
            ("sparkoperator.k8s.io", "SparkApplication"),
        ),
        plain.one,
        UNKNOWN.says,
    ),
    GroupingRule(_kubeflow("TFJob"), kubeflow.distributed("tfReplicaSpecs", TF_ROLES), _SUM, reads_spec=True),
    GroupingRule(
        _kubeflow("XGBoostJob"),
        kubeflow.distributed("xgbReplicaSpecs", MASTER_AND_WORKERS, needed=("Master",)),
        _SUM,
        reads_spec=True,
    ),
    GroupingRule(_kubeflow("JAXJob"), kubeflow.distributed("jaxReplicaSpecs", ("Worker",)), _SUM, reads_spec=True),
    GroupingRule(_kubeflow("PaddleJob"), kubeflow.distributed("paddleReplicaSpecs", MASTER_AND_WORKERS), _SUM, reads_spec=True),
    GroupingRule(
        _kubeflow("PyTorchJob"),
        kubeflow.pytorch,
        "one group; `minAvailable`, else `elasticPolicy.minReplicas`, else all replicas; parts `master` and"
        " `worker`, and with a segment size `worker-0`, `worker-1` and so on below `worker`",
        reads_spec=True,
    ),
    GroupingRule(
        _kubeflow("MPIJob"),
        kubeflow.mpi,
        "one group of all replicas, also of a launcher alone; with `launcherCreationPolicy: WaitForWorkersReady` the launcher"
        " counts once its pod is there",
        reads_spec=True,
    ),
    GroupingRule(_kubeflow("Notebook"), plain.one, UNKNOWN.says, BUILD),
    GroupingRule(
        (("ray.io", "RayCluster"),),
        ray.cluster,
        "one group; the head, and `minReplicas`, else `replicas`, up to `maxReplicas`, times `numOfHosts` of each worker"
        " group that is not suspended; parts `headgroup` and one for each worker group; the pod that empties Redis after a"
        " cluster was deleted (label `ray.io/node-type: redis-cleanup`) has a group of its own",
        reads_spec=True,
    ),
    GroupingRule(
        (("ray.io", "RayJob"), ("ray.io", "RayService")), ray.of_cluster, "as the RayCluster that is made for it", reads_spec=True
    ),
    GroupingRule(
        (("jobset.x-k8s.io", "JobSet"),),
        sets.job_set,
        "a group for each replicated job, `replicas` times the smaller of `parallelism` and `completions`;"
        " with `startupPolicyOrder: AnyOrder` and no `dependsOn` one group of all of them",
        reads_spec=True,
    ),
    GroupingRule(
        (("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),),
        sets.leader_worker_set,
        "a group for each replica, of its `size`; with `startupPolicy: LeaderReady` of 1 until the leader has"
        " a node; parts `leader` and `workers`, or `segment-0` and so on",
        reads_spec=True,
    ),
    GroupingRule(
        (("grove.io", "PodCliqueSet"), ("grove.io", "PodGangSet")),
        grove.pod_gang,
        "a group for each PodGang; a part of `minReplicas` for each PodClique, below one for each of its"
        " `topologyConstraintGroupConfigs`",
    ),
    GroupingRule(
        (("serving.knative.dev", "Service"),),
        serving.knative,
        "a group for each Revision, of its `autoscaling.knative.dev/min-scale`; with the setting"
        " `knativeGangs: false` one for each pod",
        INFERENCE,
    ),
    GroupingRule((("amlarc.azureml.com", "AmlJob"),), plain.aml, "one group of `AZUREML_NODE_COUNT`", reads_spec=True),
    GroupingRule((("egx.nvidia.io", "SPOTRequest"),), plain.one, UNKNOWN.says, INFERENCE),
    GroupingRule((("run.ai", "RunaiJob"),), plain.stem, "a group for pods whose names are equal up to the last dash"),
)
_BY_KIND = {pair: rule for rule in RULES for pair in rule.kinds}
PLAIN_KINDS = frozenset({("", "Pod"), *(("apps", name) for name in ("ReplicaSet", "StatefulSet", "Deployment", "DaemonSet"))})
"""Kinds whose pods another controller groups for schedulers that share them."""


def rule_for(head: Document) -> GroupingRule:
    """Return the rule for the pods of an owner; unknown kinds share one."""
    return _BY_KIND.get(kind_pair(head), UNKNOWN)


def is_workload(head: Document) -> bool:
    """Tell whether an owner is of a kind in the table that no other controller groups."""
    pair = kind_pair(head)
    return pair in _BY_KIND and pair not in PLAIN_KINDS


def owner_kinds() -> tuple[Kind, ...]:
    """Return the kinds of owners whose changes may change a group, in the order of all kinds."""
    pairs = {*_BY_KIND, *SKIPPED, *(pair_of(kind) for kind in BETWEEN), pair_of(serving.REVISION), pair_of(grove.POD_GANG)}
    return tuple(kind for kind in KINDS if pair_of(kind) in pairs - {pair_of(POD)})


def read_kinds() -> tuple[Kind, ...]:
    """Return every kind that is read, for the roles that allow it."""
    return (POD, PRIORITY, kind_of({"apiVersion": "v1", "kind": "ConfigMap"}), *owner_kinds())


def pair_of(kind: Kind) -> Pair:
    """Return the API group and the name of a kind."""
    return kind.group, kind.kind
