"""What happens to an object before it is stored: defaults, changes by policies, and refusals, in the order of the API server.

Most kinds have no rules here, and cost nothing. A status is never looked at: the controllers and schedulers that write statuses
do it ten thousand times in a simulation.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from phalanx.errors import Invalid
from phalanx.kubernetes.cel_rules import compile_rule
from phalanx.kubernetes.cel_values import CelError
from phalanx.manifests.checks import completed, problems
from phalanx.manifests.definitions import DEFINITION_BY_KIND, Definition
from phalanx.manifests.policies import MUTATING, NAMES, VALIDATING, Operation, Policy
from phalanx.model.kinds import Document, Kind
from phalanx.store import patches

_APART = frozenset({"status", "metadata"})


def _by_kind(policies: tuple[Policy, ...]) -> dict[tuple[Kind, Operation], list[Policy]]:
    found: dict[tuple[Kind, Operation], list[Policy]] = {}
    for policy in policies:
        for operation in policy.operations:
            found.setdefault((policy.kind, operation), []).append(policy)
    return found


_CHANGES, _RULES = _by_kind(MUTATING), _by_kind(VALIDATING)
_MADE = frozenset({*DEFINITION_BY_KIND, *(kind for kind, operation in (*_CHANGES, *_RULES) if operation == "CREATE")})
_CHANGED = frozenset({*DEFINITION_BY_KIND, *(kind for kind, operation in (*_CHANGES, *_RULES) if operation == "UPDATE")})


def has_rules(kind: Kind, *, is_new: bool) -> bool:
    """Tell whether new or changed objects of a kind are looked at."""
    return kind in (_MADE if is_new else _CHANGED)


def admitted(kind: Kind, document: Document, namespace: Document | None) -> dict[str, Any]:
    """Return a new object as it is stored; one that breaks a rule is refused."""
    definition = DEFINITION_BY_KIND.get(kind)
    whole = _completed(definition, document)
    made = _changed_by_policies(kind, "CREATE", whole, None, namespace)
    if definition is not None:
        made = made if made is whole else _completed(definition, made)
        _check(definition, made, None)
    _check_policies(kind, "CREATE", made, None, namespace)
    return made


def admitted_change(kind: Kind, old: Document, new: Document, namespace: Document | None) -> dict[str, Any]:
    """Return a changed object as it is stored; its schema is looked at only if more than metadata and status has changed."""
    definition = DEFINITION_BY_KIND.get(kind)
    is_new = any(new.get(key) != old.get(key) for key in {*new, *old} - _APART)
    made = _completed(definition if is_new else None, new)
    made = _changed_by_policies(kind, "UPDATE", made, old, namespace)
    if definition is not None and is_new:
        _check(definition, made, old)
    _check_policies(kind, "UPDATE", made, old, namespace)
    return made


def refuse_deletion(kind: Kind, old: Document) -> None:
    """Raise if a policy says that an object stays."""
    if (kind, "DELETE") in _RULES:
        _check_policies(kind, "DELETE", None, old, None)


def _completed(definition: Definition | None, document: Document) -> dict[str, Any]:
    if definition is None:
        return dict(document)
    status = {"status": document["status"]} if "status" in document else {}
    return {**completed(definition.schema, document), **status}


def _check(definition: Definition, document: Document, old: Document | None) -> None:
    shown = {key: value for key, value in document.items() if key != "status"}
    found = problems(definition.schema, shown, old)
    if found:
        kind, name = definition.kind, document["metadata"].get("name", "")
        text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise Invalid(f'{kind.kind}.{kind.group} "{name}" is invalid: {text}', kind=kind.kind, name=name)


# --- policies ------------------------------------------------------------------------------------------------------------


def _changed_by_policies(
    kind: Kind, operation: Operation, document: dict[str, Any], old: Document | None, namespace: Document | None
) -> dict[str, Any]:
    for policy in _CHANGES.get((kind, operation), ()):
        if _applies(policy, document, old, namespace):
            for change in policy.changes:
                steps = _value(policy, change.cel, _scope(document, old, namespace))
                document = patches.patched(document, steps, patches.JSON) if steps else document
    return document


def _check_policies(
    kind: Kind, operation: Operation, document: Document | None, old: Document | None, namespace: Document | None
) -> None:
    for policy in _RULES.get((kind, operation), ()):
        if _applies(policy, document or old or {}, old, namespace):
            scope = _scope(document, old, namespace)
            broken = next((rule for rule in policy.rules if not _value(policy, rule.cel, scope)), None)
            if broken is not None:
                _refuse(policy, scope, broken.message)


def _applies(policy: Policy, document: Document, old: Document | None, namespace: Document | None) -> bool:
    """Tell whether a policy is about an object; what is cheap to find out comes first."""
    if policy.annotations and not any(key in (document["metadata"].get("annotations") or ()) for key in policy.annotations):
        return False
    if policy.namespace_labels and not policy.namespace_labels.items() <= _labels(namespace).items():
        return False
    return not policy.condition or bool(_value(policy, policy.condition, _scope(document, old, namespace)))


def _labels(document: Document | None) -> Mapping[str, str]:
    found: Mapping[str, str] = ((document or {}).get("metadata") or {}).get("labels") or {}
    return found


def _scope(document: Document | None, old: Document | None, namespace: Document | None) -> Mapping[str, Document | None]:
    return dict(zip(NAMES, (document, old, namespace), strict=True))


def _value(policy: Policy, cel: str, scope: Mapping[str, Document | None]) -> Any:  # Any: as the expression says
    try:
        return compile_rule(cel, *NAMES).value(scope)
    except CelError as problem:
        _refuse(policy, scope, f"expression '{cel}' resulted in error: {problem}")


def _refuse(policy: Policy, scope: Mapping[str, Document | None], message: str) -> NoReturn:
    meta = (scope["object"] or scope["oldObject"] or {}).get("metadata", {})
    kind, name = policy.kind, meta.get("name", "")
    form = "ValidatingAdmissionPolicy" if policy.rules else "MutatingAdmissionPolicy"
    text = f"{form} '{policy.name}' with binding '{policy.name}' denied request: {message}"
    raise Invalid(f'{kind.resource} "{name}" is forbidden: {text}', kind=kind.plural, name=name)
