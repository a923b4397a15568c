"""Admission: defaults, mutating policies, schema and validating policies, in the order of the API server.

Kinds without rules cost nothing. Writes of a status are not checked: they come from our own controllers and scheduler, ten
thousand times in a simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from phalanx.errors import Forbidden, Invalid
from phalanx.kubernetes.cel_rules import compile_rule
from phalanx.kubernetes.cel_values import CelError
from phalanx.manifests.admission_policies import MUTATING, NAMES, VALIDATING, AdmissionPolicy, Operation
from phalanx.manifests.definitions import DEFINITION_BY_KIND, Definition
from phalanx.manifests.validation import completed, problems
from phalanx.model.kinds import Document, Kind
from phalanx.store import patches

_APART = frozenset({"status", "metadata"})


def _by_kind(policies: tuple[AdmissionPolicy, ...]) -> dict[tuple[Kind, Operation], list[AdmissionPolicy]]:
    found: dict[tuple[Kind, Operation], list[AdmissionPolicy]] = {}
    for policy in policies:
        for operation in policy.operations:
            found.setdefault((policy.kind, operation), []).append(policy)
    return found


_CHANGES, _RULES = _by_kind(MUTATING), _by_kind(VALIDATING)
_MADE = frozenset({*DEFINITION_BY_KIND, *(kind for kind, operation in (*_CHANGES, *_RULES) if operation == "CREATE")})
_CHANGED = frozenset({*DEFINITION_BY_KIND, *(kind for kind, operation in (*_CHANGES, *_RULES) if operation == "UPDATE")})


def has_rules(kind: Kind, *, is_new: bool) -> bool:
    """Tell whether new or changed objects of a kind have to be admitted."""
    return kind in (_MADE if is_new else _CHANGED)


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A creation, update or deletion of an object; `old` is None for the first, `document` for the last."""

    kind: Kind
    operation: Operation
    document: Document | None
    old: Document | None = None
    namespace: Document | None = None

    @property
    def scope(self) -> Mapping[str, Document | None]:
        """The variables of CEL expressions."""
        return dict(zip(NAMES, (self.document, self.old, self.namespace), strict=True))

    @property
    def meta(self) -> Document:
        """The metadata of the object."""
        found: Document = (self.document or self.old or {}).get("metadata") or {}
        return found


def completed_by_rules(kind: Kind, document: Document, namespace: Document | None) -> Document:
    """Return a new object with the defaults of its schema and the changes of policies."""
    definition = DEFINITION_BY_KIND.get(kind)
    whole = _completed(definition, document)
    made = _changed(AdmissionRequest(kind, "CREATE", whole, namespace=namespace))
    return made if made is whole else _completed(definition, made)


def refuse_invalid(kind: Kind, document: Document, namespace: Document | None) -> None:
    """Raise if a new object, which is complete, breaks a rule."""
    definition = DEFINITION_BY_KIND.get(kind)
    if definition is not None:
        _check(definition, document, None)
    _check_policies(AdmissionRequest(kind, "CREATE", document, namespace=namespace))


def admitted_change(kind: Kind, old: Document, new: Document, namespace: Document | None) -> Document:
    """Return a changed object as it is stored; its schema is checked only if more than metadata and status has changed.

    The old object is read with its defaults: one that was stored before there were any does not change by getting them.
    """
    has_changed = any(new.get(key) != old.get(key) for key in {*new, *old} - _APART)
    definition = DEFINITION_BY_KIND.get(kind) if has_changed else None
    old = _completed(definition, old)
    made = _changed(AdmissionRequest(kind, "UPDATE", _completed(definition, new), old, namespace))
    if definition is not None:
        _check(definition, made, old)
    _check_policies(AdmissionRequest(kind, "UPDATE", made, old, namespace))
    return made


def refuse_deletion(kind: Kind, old: Document) -> None:
    """Raise if a policy says that an object stays."""
    if (kind, "DELETE") in _RULES:
        _check_policies(AdmissionRequest(kind, "DELETE", None, old))


def _completed(definition: Definition | None, document: Document) -> Document:
    if definition is None:
        return document
    status = {"status": document["status"]} if "status" in document else {}
    return {**completed(definition.schema, document), **status}


def _check(definition: Definition, document: Document, old: Document | None) -> None:
    shown = {key: value for key, value in document.items() if key != "status"}
    found = problems(definition.schema, shown, old)
    if found:
        kind, name = definition.kind, document["metadata"].get("name", "")
        raise Invalid.because(kind.kind, name, *found, group=kind.group)


# --- policies ------------------------------------------------------------------------------------------------------------


def _changed(request: AdmissionRequest) -> Document:
    """Return the object of a request as policies change it, one after the other."""
    document = request.document or {}
    for policy in _CHANGES.get((request.kind, request.operation), ()):
        if _applies(policy, request):
            for change in policy.changes:
                document = _patched(policy, request, document, _value(policy, change.cel, request))
                request = replace(request, document=document)
    return document


def _patched(
    policy: AdmissionPolicy, request: AdmissionRequest, document: Document, steps: Any
) -> Document:  # Any: as the expression says
    try:
        return patches.patched(document, steps, patches.JSON) if steps else document
    except Invalid as problem:
        _refuse(policy, request, f"JSON Patch: {problem}")


def _check_policies(request: AdmissionRequest) -> None:
    for policy in _RULES.get((request.kind, request.operation), ()):
        if _applies(policy, request):
            broken = next((rule for rule in policy.rules if not _value(policy, rule.cel, request)), None)
            if broken is not None:
                _refuse(policy, request, broken.message)


def _applies(policy: AdmissionPolicy, request: AdmissionRequest) -> bool:
    """Tell whether a policy is about an object; what is cheap to find out comes first."""
    if policy.annotations and not any(key in (request.meta.get("annotations") or ()) for key in policy.annotations):
        return False
    if policy.namespace_labels and not policy.namespace_labels.items() <= _labels(request.namespace).items():
        return False
    return not policy.condition or bool(_value(policy, policy.condition, request))


def _labels(document: Document | None) -> Mapping[str, str]:
    found: Mapping[str, str] = ((document or {}).get("metadata") or {}).get("labels") or {}
    return found


def _value(policy: AdmissionPolicy, cel: str, request: AdmissionRequest) -> Any:  # Any: as the expression says
    try:
        return compile_rule(cel, *NAMES).value(request.scope)
    except CelError as problem:
        _refuse(policy, request, f"expression '{cel}' resulted in error: {problem}")


def _refuse(policy: AdmissionPolicy, request: AdmissionRequest, message: str) -> NoReturn:
    """Refuse with the message of the API server, which has another one for mutating policies."""
    kind, name = request.kind, request.meta.get("name", "")
    text = f"'{policy.name}' with binding '{policy.name}' denied request: {message}"
    if policy.rules:
        text = f"ValidatingAdmissionPolicy {text}"
        problem = Invalid(f'{kind.resource} "{name}" is forbidden: {text}', kind=kind.plural, name=name)
        problem.faults = (f": {text}",)
    else:
        problem = Invalid(f"policy {text}", kind=kind.plural, name=name)
        problem.code = Forbidden.code
    raise problem
