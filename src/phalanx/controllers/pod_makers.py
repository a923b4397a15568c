"""Whose objects stand for pods, and for which of them a controller here creates the pods.

On a real cluster the Job controller, the training operator and others create pods, and our controllers group them. In an embedded
cluster nobody does that: an object of such a kind stays without pods, and whoever creates one should know.
"""

from typing import Any

from phalanx.controllers.objects import inside, meta_of
from phalanx.model.kinds import JOB_FLOW, VOLCANO_CRON_JOB, VOLCANO_JOB, WORKLOADS, Document, Kind, kind_of

MADE_HERE = (VOLCANO_JOB, VOLCANO_CRON_JOB, JOB_FLOW)
"""Their controllers run in every cluster of ours."""
MADE_ELSEWHERE = (
    *(kind_of({"apiVersion": "apps/v1", "kind": name}) for name in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
    *(kind_of({"apiVersion": "batch/v1", "kind": name}) for name in ("Job", "CronJob")),
    *WORKLOADS,
)
_WITH_PODS = frozenset({*MADE_HERE, *MADE_ELSEWHERE})
"""All of them, for a quick look: it is asked of every object of a cluster."""
STOPPED = ("Complete", "Failed", "Succeeded", "Completed", "Terminated", "Aborted", "Suspended")

SUSPENSIONS = (("suspend",), ("runPolicy", "suspend"))
"""Where a spec says that it is suspended; the second one is that of the training operator and of the MPI operator."""
NUMBERS = ("replicas", "parallelism")
REPLICATED = ("ReplicaSet", "StatefulSet", "Deployment")


def stands_for_pods(kind: Kind) -> bool:
    """Tell whether objects of a kind have pods, or others that have."""
    return kind in _WITH_PODS


def nobody_makes_pods(kind: Kind) -> bool:
    """Tell whether no controller of an embedded cluster creates the pods of a kind."""
    return kind in MADE_ELSEWHERE


def is_suspended(document: Document) -> bool:
    """Tell whether an object is suspended and makes no pods until somebody resumes it."""
    return any(inside(document, "spec", *path) is True for path in SUSPENSIONS)


def pods_wanted(document: Document) -> int | None:
    """Return how many pods an object makes at the same time; None where its kind says it in a way that is not known here."""
    spec: Any = document.get("spec") or {}
    if document["kind"] == "Job" and document["apiVersion"].startswith("batch/"):
        parallelism, completions = _number(spec.get("parallelism")), spec.get("completions")
        return min(parallelism, completions) if isinstance(completions, int) else parallelism
    if document["apiVersion"].startswith("apps/") and document["kind"] in REPLICATED:
        return _number(spec.get("replicas"))
    roles = spec.get("tasks") if document["kind"] == "Job" else _replica_specs(spec)
    return sum(_number(role.get("replicas")) for role in roles) if roles else None


def _number(value: object) -> int:
    """Return how many replicas are asked for; one by default, as in all these kinds."""
    return value if isinstance(value, int) else 1


def _replica_specs(spec: Any) -> list[Any]:  # Any: whatever the object holds
    """Return the roles of a training job: ``pytorchReplicaSpecs`` and the like."""
    return [role for key, roles in spec.items() if key.endswith("ReplicaSpecs") for role in roles.values()]


def wants_pods(document: Document) -> bool:
    """Tell whether an object still wants pods: it is not suspended, scaled to none, at its end or being deleted."""
    if is_suspended(document) or any(inside(document, "spec", name) == 0 for name in NUMBERS):
        return False
    return "deletionTimestamp" not in meta_of(document) and not _has_ended(document)


def _has_ended(document: Document) -> bool:
    conditions: Any = inside(document, "status", "conditions")
    found = conditions if isinstance(conditions, list) else []
    is_over = any(isinstance(item, dict) and (item.get("type") in STOPPED and item.get("status") == "True") for item in found)
    return is_over or inside(document, "status", "state", "phase") in STOPPED
