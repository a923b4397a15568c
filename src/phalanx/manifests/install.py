"""What runs on a cluster: the configuration, two replicas of the program, and what keeps one of them there.

The program does not schedule itself: its pods are left to the scheduler that every cluster has. Probes and figures are served
without TLS: the kubelet and Prometheus need no certificate for them, there is none to renew, and they show no more than counters.
"""

from typing import Any

from phalanx.manifests.install_settings import NAME, SELECTED, InstallSettings
from phalanx.model.kinds import Document

PORT = 8080
REPLICAS = 2
GRACE_SECONDS = 30
"""Time to finish the binds that are under way and to hand over the lease."""
FOLDER, FILE = "/etc/phalanx", "config.yaml"
ARGUMENTS = (
    "run", "--config", f"{FOLDER}/{FILE}", "--leader-elect", "--http", f"0.0.0.0:{PORT}", "--log-format", "json", "-v", "2",
)  # fmt: skip
KEEP_NODES = "--keep-nominated-nodes"
NOBODY = 65532
"""A user without a name or rights, as images without a shell have it."""
RESOURCES = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}}


def install_documents(settings: InstallSettings) -> list[Document]:
    """Return the objects beside definitions, policies and roles, always in the same order."""
    return [
        settings.document("v1", "ConfigMap", data={FILE: settings.config}),
        settings.document("apps/v1", "Deployment", spec=_deployment(settings)),
        settings.document("v1", "Service", spec=_service()),
        settings.document("policy/v1", "PodDisruptionBudget", spec={"minAvailable": 1, "selector": {"matchLabels": SELECTED}}),
    ]


def _service() -> dict[str, Any]:
    return {"selector": SELECTED, "ports": [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}]}


def _deployment(settings: InstallSettings) -> dict[str, Any]:
    return {
        "replicas": REPLICAS,
        "selector": {"matchLabels": SELECTED},
        "template": {"metadata": {"labels": settings.labels}, "spec": _pod(settings)},
    }


def _pod(settings: InstallSettings) -> dict[str, Any]:
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "schedulerName": "default-scheduler",
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": NOBODY, "runAsGroup": NOBODY, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "affinity": {"podAntiAffinity": _apart()},
        "containers": [_container(settings)],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}, {"name": "tmp", "emptyDir": {}}],
    }  # fmt: skip


def _apart() -> dict[str, Any]:
    """Return that replicas go to different nodes if there are any; a cluster of one node gets both nevertheless."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": SELECTED}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _container(settings: InstallSettings) -> dict[str, Any]:
    return {
        "name": NAME,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [*ARGUMENTS, "--reservation-image", settings.image, *([KEEP_NODES] if settings.keeps_nodes else [])],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": _probe("/livez", period_seconds=10),
        "readinessProbe": _probe("/readyz", period_seconds=5),
        "resources": RESOURCES,
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": FOLDER, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }  # fmt: skip


def _probe(path: str, *, period_seconds: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "http"}, "initialDelaySeconds": 5, "periodSeconds": period_seconds, "timeoutSeconds": 5,
    }  # fmt: skip
