"""Small parts that several kinds of objects share: keys, times, selectors."""

from collections.abc import Mapping

from phalanx.dialects import schema
from phalanx.dialects.kinds.fields import PodGroupCondition
from phalanx.errors import SnapshotError
from phalanx.model.duration import grace_of
from phalanx.model.gang import Condition
from phalanx.model.moment import moment_of
from phalanx.model.selectors import LabelSelector, NodeSelectorTerm, Requirement

STALENESS_GRACE = "phalanx.dev/staleness-grace"


def key_of(meta: schema.Meta) -> str:
    """Return ``namespace/name``."""
    return f"{meta.namespace or 'default'}/{meta.name}"


def seconds(stamp: str | None, *, where: str = "timestamp") -> float:
    """Return a Kubernetes time stamp as seconds since 1970; 0 when absent. A time without a zone is in UTC on every machine."""
    if not stamp:
        return 0.0
    moment = moment_of(stamp)
    if moment is None:
        raise SnapshotError(f"{where}: {stamp!r} is not a time; write for example '2026-01-01T12:00:00Z'")
    return moment


def condition(read: schema.ConditionRead | PodGroupCondition) -> Condition:
    """Return a condition of a group."""
    name, stamp = read.type or "", read.last_transition_time
    since = seconds(stamp, where=f"status.conditions[{name}].lastTransitionTime")
    return Condition(name, read.status or "", read.reason or "", read.message or "", since)


def staleness_grace(annotations: Mapping[str, str]) -> float | None:
    """Return how long a gang may run with too few members, as its group says; None when it says nothing."""
    text = annotations.get(STALENESS_GRACE)
    if text is None:
        return None
    grace = grace_of(text)
    if grace is None:
        where = f"metadata.annotations[{STALENESS_GRACE!r}]"
        raise SnapshotError(f"{where}: {text!r} is not a period; write seconds, a duration such as '90s', or 'never'")
    return grace


def requirement(read: schema.Expression) -> Requirement:
    """Return one condition."""
    return Requirement(read.key, read.operator, tuple(read.values or ()))


def label_selector(read: schema.Selector | None) -> LabelSelector | None:
    """Return a label selector; absent stays absent, since that matches nothing."""
    if read is None:
        return None
    exact = tuple(Requirement(key, "In", (value,)) for key, value in sorted((read.match_labels or {}).items()))
    return LabelSelector(exact + tuple(map(requirement, read.match_expressions or ())))


def node_term(read: schema.NodeTerm) -> NodeSelectorTerm:
    """Return one term of a node selector."""
    return NodeSelectorTerm(tuple(map(requirement, read.match_expressions or ())), tuple(map(requirement, read.match_fields or ())))


def node_terms(read: schema.NodeTerms | None) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the terms of a node selector; absent stays absent, since that matches everything."""
    return None if read is None else tuple(map(node_term, read.node_selector_terms or ()))


def integer(text: str, *, where: str) -> int:
    """Return the whole number that an annotation holds."""
    try:
        return int(text)
    except ValueError:
        raise SnapshotError(f"{where}: {text!r} is not a whole number; write one, such as '4'") from None
