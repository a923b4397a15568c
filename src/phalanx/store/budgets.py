"""Disruption budgets: which pods one covers, and how many of them must stay."""

import math
from collections.abc import Iterable

from phalanx.errors import Busy, ServerError
from phalanx.model.kinds import Document
from phalanx.model.selectors import LabelSelector, Requirement

VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def refuse(pod: Document, budgets: Iterable[Document], pods: Iterable[Document]) -> None:
    """Raise if the budgets do not let a pod go; one that has not started, has ended or is leaving may always go."""
    if "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") != "Running":
        return
    name, covering = pod["metadata"]["name"], [budget for budget in budgets if covers(budget, pod)]
    if len(covering) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ServerError(text, kind="pods", name=name)
    for budget in covering:
        healthy, needed = count(budget, pods)
        if not _allows(budget, is_healthy(pod), healthy, needed):
            cause = f"The disruption budget {budget['metadata']['name']} needs {needed} healthy pods and has {healthy} currently"
            raise Busy(VIOLATED, kind="pods", name=name, cause=("DisruptionBudget", cause))


def _allows(budget: Document, is_healthy: bool, healthy: int, needed: int) -> bool:
    """Tell whether a pod may go; one that is not healthy may if enough others are, or if the budget says so."""
    if not is_healthy and budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return healthy > needed or (not is_healthy and healthy >= needed > 0)


def covers(budget: Document, pod: Document) -> bool:
    """Tell whether a budget counts a pod."""
    if budget["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    selector = budget.get("spec", {}).get("selector")
    return selector is not None and _selector(selector).matches(pod["metadata"].get("labels") or {})


def _selector(read: Document) -> LabelSelector:
    exact = [Requirement(key, "In", (value,)) for key, value in (read.get("matchLabels") or {}).items()]
    others = read.get("matchExpressions") or ()
    return LabelSelector((*exact, *(Requirement(one["key"], one["operator"], tuple(one.get("values") or ())) for one in others)))


def is_healthy(pod: Document) -> bool:
    """Tell whether a pod counts as one that is there."""
    if "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") != "Running":
        return False
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def count(budget: Document, pods: Iterable[Document]) -> tuple[int, int]:
    """Return how many pods of a budget are healthy, and how many it needs."""
    covered = [pod for pod in pods if covers(budget, pod)]
    spec = budget.get("spec", {})
    if "maxUnavailable" in spec:
        needed = len(covered) - _amount(spec["maxUnavailable"], len(covered))
    else:
        needed = _amount(spec.get("minAvailable", 0), len(covered))
    return sum(map(is_healthy, covered)), max(needed, 0)


def _amount(value: int | str, total: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(total * int(value[:-1]) / 100)
    return int(value)
