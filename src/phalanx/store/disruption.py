"""Disruption budgets: which pods one covers, and how many of them must stay."""

import math
from collections.abc import Iterable

from phalanx.model.selectors import LabelSelector, Requirement
from phalanx.store.kinds import Document


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
