"""What the pods need that reserve shared GPUs: a namespace, an account that may write on them, and a priority."""

from typing import Any

from phalanx.controllers.binder.reservation_pod import ACCOUNT, HOME
from phalanx.manifests.install_settings import InstallSettings
from phalanx.model.kinds import POD, Document

PRIORITY = 1_000_000_000
"""The highest that is not the system's: the default scheduler takes no GPU from its users by preempting the pod that reserves it,
and for one that finds no room the kubelet sends nobody away, as it does for system pods."""
_RBAC = "rbac.authorization.k8s.io"


def reservation_rules() -> list[dict[str, Any]]:
    """Return what a reservation pod may do: say on itself which device it got."""
    return [{"apiGroups": [POD.group], "resources": [POD.plural], "verbs": ["patch"]}]


def home_documents(labels: dict[str, str]) -> list[Document]:
    """Return where reservation pods are, and how important they are."""
    policy = {"value": PRIORITY, "preemptionPolicy": "Never", "description": "Pods that reserve shared GPUs."}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME, "labels": labels}},
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": ACCOUNT, "labels": labels},
            **policy,
        },
    ]  # fmt: skip


def reservation_documents(settings: InstallSettings) -> list[Document]:
    """Return all of it, always in the same order."""
    meta = {"name": ACCOUNT, "namespace": HOME, "labels": settings.labels}
    bound = {
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}],
    }
    return [
        *home_documents(settings.labels),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": meta, "rules": reservation_rules()},
        {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": meta, **bound},
    ]
