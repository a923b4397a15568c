"""The pod that reserves a shared GPU: what it runs, as whom, and where it says which device it got.

It asks for one GPU as any pod does, so that the device plugin gives it one and nobody else gets that. What runs in it,
`phalanx reserve-gpu`, writes which one it is on the pod itself.
"""

from typing import Any

from phalanx import __version__
from phalanx.dialects.pods import GPU_GROUP, RESERVATION
from phalanx.model.resources import GPU

HOME = "kai-resource-reservation"
"""The namespace of reservation pods."""
ACCOUNT = "gpu-reservation"
"""As whom they run: may write on the pods there and do nothing else. Their priority class is called so too."""
DEVICE = "run.ai/reserve_for_gpu_index"
"""Annotation by which a reservation pod says which device it got."""
VISIBLE = "phalanx.dev/visible-devices"
"""Annotation of a pod on shared GPUs: their devices, separated by commas."""
VISIBLE_VARIABLE = "NVIDIA_VISIBLE_DEVICES"
"""By which a container is told its devices, by the device plugin as well as by us."""
POD_NAME, POD_NAMESPACE = "POD_NAME", "POD_NAMESPACE"
"""Variables by which the program knows its pod."""
COMMAND = "reserve-gpu"
IMAGE = f"phalanx:{__version__}"
"""What they run by default: the program itself."""


def reservation_name(group: str) -> str:
    """Return what the pod that reserves a GPU for a group is called."""
    return f"gpu-reservation-{group}"


def reservation(group: str, node: str, image: str) -> dict[str, Any]:
    """Return the pod that reserves a GPU for a group on a node; its name follows from the group, so that there is one."""
    labels = {RESERVATION[0]: RESERVATION[1], GPU_GROUP: group}
    spec = {
        "nodeName": node,
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": True,
        "priorityClassName": ACCOUNT,
        "restartPolicy": "Always",
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(image)],
    }
    meta = {"namespace": HOME, "name": reservation_name(group), "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _container(image: str) -> dict[str, Any]:
    """Return what runs: it asks for next to nothing besides the GPU, since sessions leave no room for it."""
    fields = {POD_NAME: "metadata.name", POD_NAMESPACE: "metadata.namespace"}
    return {
        "name": "reservation",
        "image": image,
        "args": [COMMAND],
        "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()],
        "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1", "cpu": "1m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
    }  # fmt: skip
