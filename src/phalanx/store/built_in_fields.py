"""The fields of Kubernetes' own kinds that decide how pods are scheduled, as of Kubernetes 1.36.

What is below a field without a tree is not looked into. A test on a real API server finds fields that are missing here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phalanx.model.kinds import LIMIT_RANGE, NODE, POD, PRIORITY, RESOURCE_CLAIM, STORAGE_CLASS, VOLUME_CLAIM, Kind, kind_of

Tree = Mapping[str, Any] | None  # Any: a Tree again
"""Known fields and what is below them; None where everything goes. The items of a list have the tree of the list."""


def fields(names: str, **below: Tree) -> dict[str, Any]:  # Any: a Tree
    """Return a tree: fields whose inside is not looked into, and others with what is below them."""
    return {**dict.fromkeys(names.split()), **below}


METADATA = fields(
    "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp"
    " deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields"
)
OBJECT = fields("apiVersion kind", metadata=METADATA)
_SELECTOR = fields("matchLabels", matchExpressions=fields("key operator values"))
_NODE_TERM = fields("", matchExpressions=fields("key operator values"), matchFields=fields("key operator values"))
_POD_TERM = fields("namespaces topologyKey matchLabelKeys mismatchLabelKeys", labelSelector=_SELECTOR, namespaceSelector=_SELECTOR)
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY = {_REQUIRED: fields("", nodeSelectorTerms=_NODE_TERM), _PREFERRED: fields("weight", preference=_NODE_TERM)}
_POD_AFFINITY = {_REQUIRED: _POD_TERM, _PREFERRED: fields("weight", podAffinityTerm=_POD_TERM)}
_RESOURCES = fields("limits requests", claims=fields("name request"))
CONTAINER = fields(
    "name image command args workingDir envFrom env resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices"
    " livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy"
    " securityContext stdin stdinOnce tty",
    ports=fields("name hostPort containerPort protocol hostIP"), resources=_RESOURCES,
)  # fmt: skip
POD_SPEC = fields(
    "volumes ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector"
    " serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork hostPID hostIPC shareProcessNamespace"
    " securityContext imagePullSecrets hostname subdomain schedulerName hostAliases priorityClassName priority dnsConfig"
    " readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead setHostnameAsFQDN os hostUsers hostnameOverride"
    " workloadRef schedulingGroup",
    containers=CONTAINER, initContainers=CONTAINER, resources=_RESOURCES,
    affinity=fields("", nodeAffinity=_NODE_AFFINITY, podAffinity=_POD_AFFINITY, podAntiAffinity=_POD_AFFINITY),
    tolerations=fields("key operator value effect tolerationSeconds"), schedulingGates=fields("name"),
    topologySpreadConstraints=fields(
        "maxSkew topologyKey whenUnsatisfiable minDomains nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys",
        labelSelector=_SELECTOR,
    ),
    resourceClaims=fields("name resourceClaimName resourceClaimTemplateName source"),
)  # fmt: skip
NODE_SPEC = fields("podCIDR podCIDRs providerID unschedulable configSource externalID", taints=fields("key value effect timeAdded"))
NODE_STATUS = fields(
    "capacity allocatable phase conditions addresses daemonEndpoints nodeInfo images volumesInUse volumesAttached config"
    " runtimeHandlers features declaredFeatures"
)
TEMPLATE = fields("", metadata=METADATA, spec=POD_SPEC)
JOB_SPEC = fields(
    "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector maxFailedIndexes"
    " parallelism podFailurePolicy podReplacementPolicy selector successPolicy suspend ttlSecondsAfterFinished",
    template=TEMPLATE,
)  # fmt: skip
_CRON_JOB_SPEC = fields(
    "concurrencyPolicy failedJobsHistoryLimit schedule startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone",
    jobTemplate=fields("", metadata=METADATA, spec=JOB_SPEC),
)  # fmt: skip
_SETS = "minReadySeconds revisionHistoryLimit selector"
VOLUME_CLAIM_SPEC = fields(
    "accessModes dataSource dataSourceRef storageClassName volumeAttributesClassName volumeMode volumeName",
    resources=fields("limits requests"), selector=_SELECTOR,
)  # fmt: skip
_DEVICES = fields("adminAccess allocationMode capacity count deviceClassName selectors tolerations")
_CLAIM_SPEC = fields(
    "",
    devices=fields(
        "config constraints", requests=fields("name", **_DEVICES, exactly=_DEVICES, firstAvailable={"name": None, **_DEVICES})
    ),
)
"""Before `v1` a request had the fields that are below `exactly` now."""


def _built_in(version: str, kind: str) -> Kind:
    return kind_of({"apiVersion": version, "kind": kind})


SPECS: Mapping[Kind, Tree] = MappingProxyType({
    POD: POD_SPEC,
    NODE: NODE_SPEC,
    _built_in("batch/v1", "Job"): JOB_SPEC,
    _built_in("batch/v1", "CronJob"): _CRON_JOB_SPEC,
    _built_in("apps/v1", "Deployment"): fields(f"{_SETS} replicas paused progressDeadlineSeconds strategy", template=TEMPLATE),
    _built_in("apps/v1", "ReplicaSet"): fields("minReadySeconds replicas selector", template=TEMPLATE),
    _built_in("apps/v1", "DaemonSet"): fields(f"{_SETS} updateStrategy", template=TEMPLATE),
    _built_in("apps/v1", "StatefulSet"): fields(
        f"{_SETS} replicas ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy serviceName updateStrategy",
        template=TEMPLATE, volumeClaimTemplates={**OBJECT, "spec": VOLUME_CLAIM_SPEC, "status": None},
    ),
    VOLUME_CLAIM: VOLUME_CLAIM_SPEC,
    LIMIT_RANGE: fields("", limits=fields("default defaultRequest max maxLimitRequestRatio min type")),
    _built_in("v1", "ResourceQuota"): fields("hard scopeSelector scopes"),
    _built_in("policy/v1", "PodDisruptionBudget"): fields(
        "maxUnavailable minAvailable unhealthyPodEvictionPolicy", selector=_SELECTOR
    ),
    RESOURCE_CLAIM: _CLAIM_SPEC,
    _built_in("resource.k8s.io/v1", "ResourceClaimTemplate"): fields("", metadata=METADATA, spec=_CLAIM_SPEC),
})  # fmt: skip
"""What is known below `spec`."""
TOPS: Mapping[Kind, Tree] = MappingProxyType({
    PRIORITY: fields("description globalDefault preemptionPolicy value"),
    STORAGE_CLASS: fields(
        "allowVolumeExpansion allowedTopologies mountOptions parameters provisioner reclaimPolicy volumeBindingMode"
    ),
})  # fmt: skip
"""What is known beside the metadata of kinds without a spec."""
