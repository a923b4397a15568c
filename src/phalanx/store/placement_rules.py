"""Rules of a pod about nodes that the API server refuses: tolerations, node and pod affinity, spread constraints.

A misspelt operator or a missing topology key would otherwise change a placement without a word. Messages are the API server's.
"""

from collections.abc import Iterable, Iterator

from phalanx.model.kinds import Document

Faults = Iterator[str]
OF_LABELS, OF_NODES = ("In", "NotIn", "Exists", "DoesNotExist"), ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
OF_TOLERATIONS = ("Equal", "Exists")
NEWER_OF_TOLERATIONS = ("Gt", "Lt")
"""A server may have accepted these; to us they tolerate nothing."""
WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
NO_KEY = "Required value: can not be empty"


def placement_faults(spec: Document, path: str) -> Faults:
    """Yield what is wrong with the rules of a pod about nodes, or with those of a template of pods."""
    for place, item in _placed(spec.get("tolerations"), f"{path}.tolerations"):
        yield from _toleration_faults(item, place)
    affinity = spec.get("affinity") or {}
    yield from _node_affinity_faults(affinity.get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity_faults(affinity.get(name) or {}, f"{path}.affinity.{name}")
    for place, item in _placed(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints"):
        yield from _spread_faults(item, place)


def _placed(items: Iterable[Document] | None, path: str) -> Iterator[tuple[str, Document]]:
    yield from ((f"{path}[{number}]", item) for number, item in enumerate(items or ()))


def unsupported(value: object, known: Iterable[str]) -> str:
    """Say that a value is none of those that are known."""
    listed = ", ".join(f'"{name}"' for name in known)
    return f'Unsupported value: "{value}": supported values: {listed}'


# --- tolerations and spread ----------------------------------------------------------------------------------------------


def _toleration_faults(toleration: Document, path: str) -> Faults:
    operator = toleration.get("operator") or "Equal"
    if operator not in (*OF_TOLERATIONS, *NEWER_OF_TOLERATIONS):
        yield f"{path}.operator: {unsupported(operator, OF_TOLERATIONS)}"
    elif operator == "Exists" and toleration.get("value"):
        yield f"{path}.operator: Invalid value: \"{toleration['value']}\": value must be empty when `operator` is 'Exists'"
    elif operator != "Exists" and not toleration.get("key"):
        meaning = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield f'{path}.operator: Invalid value: "{operator}": {meaning}'


def _spread_faults(constraint: Document, path: str) -> Faults:
    skew, when = constraint.get("maxSkew"), constraint.get("whenUnsatisfiable")
    if isinstance(skew, int) and skew <= 0:
        yield f"{path}.maxSkew: Invalid value: {skew}: must be greater than zero"
    if not constraint.get("topologyKey"):
        yield f"{path}.topologyKey: {NO_KEY}"
    if when and when not in WHEN_UNSATISFIABLE:
        yield f"{path}.whenUnsatisfiable: {unsupported(when, WHEN_UNSATISFIABLE)}"
    yield from _label_selector_faults(constraint, f"{path}.labelSelector")


# --- affinity ------------------------------------------------------------------------------------------------------------


def _node_affinity_faults(affinity: Document, path: str) -> Faults:
    required = affinity.get(REQUIRED)
    if required is not None:
        if not required.get("nodeSelectorTerms"):
            yield f"{path}.{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"
        for place, term in _placed(required.get("nodeSelectorTerms"), f"{path}.{REQUIRED}.nodeSelectorTerms"):
            yield from _term_faults(term, place)
    for place, item in _placed(affinity.get(PREFERRED), f"{path}.{PREFERRED}"):
        yield from _term_faults(item.get("preference") or {}, f"{place}.preference")


def _term_faults(term: Document, path: str) -> Faults:
    for place, item in _placed(term.get("matchExpressions"), f"{path}.matchExpressions"):
        yield from _requirement_faults(item, place, OF_NODES)


def _pod_affinity_faults(affinity: Document, path: str) -> Faults:
    for place, term in _placed(affinity.get(REQUIRED), f"{path}.{REQUIRED}"):
        yield from _pod_term_faults(term, place)
    for place, item in _placed(affinity.get(PREFERRED), f"{path}.{PREFERRED}"):
        yield from _pod_term_faults(item.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")


def _pod_term_faults(term: Document, path: str) -> Faults:
    if not term.get("topologyKey"):
        yield f"{path}.topologyKey: {NO_KEY}"
    yield from _label_selector_faults(term, f"{path}.labelSelector")


def _label_selector_faults(owner: Document, path: str) -> Faults:
    selector = owner.get("labelSelector") or {}
    for place, item in _placed(selector.get("matchExpressions"), f"{path}.matchExpressions"):
        yield from _requirement_faults(item, place, OF_LABELS)


def _requirement_faults(requirement: Document, path: str, known: tuple[str, ...]) -> Faults:
    operator, values = requirement.get("operator"), requirement.get("values") or ()
    if operator not in known:
        listed = ", ".join(known)
        yield f'{path}.operator: Invalid value: "{operator or ""}": not a valid selector operator; write one of {listed}'
    elif operator in ("In", "NotIn") and not values:
        yield f"{path}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    elif operator in ("Exists", "DoesNotExist") and values:
        yield f"{path}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield f"{path}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"
