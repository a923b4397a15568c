"""Writes of the API server: what a request changes in the store, and the answer with its code."""

from collections.abc import Callable

from phalanx.controllers.objects import controller_of
from phalanx.controllers.pod_makers import nobody_makes_pods, wants_pods
from phalanx.controllers.unmade_pods import no_pods_text
from phalanx.errors import ClusterError, Invalid, WrongForm
from phalanx.model.kinds import POD, Document
from phalanx.store import patches
from phalanx.store.managed_fields import APPLY, UPDATE, Writer, applied, changed, created
from phalanx.store.memory import MemoryStore
from phalanx.store.metadata_rules import refuse_metadata
from phalanx.store.status_errors import success
from phalanx.store.unknown_fields import unknown_fields
from phalanx.store.workload_rules import refuse_workload
from phalanx.web.request import APPLIED, IGNORE, STRICT, ApiRequest
from phalanx.web.scale import rescaled, scale_of

Answer = tuple[Document, int]
UNOWNED = ("Event", "Lease")
"""Kinds of which nobody asks who wrote what; there are many of them."""


def write(store: MemoryStore, asked: ApiRequest) -> Answer:
    """Carry out the write of a request."""
    _refuse_unknown_fields(asked)
    return _WRITERS[asked.verb](store, asked)


def warnings_about(asked: ApiRequest) -> list[str]:
    """Return what clients show beside the answer to a write."""
    kind, found = asked.target.kind, _unknown_fields(asked)
    if asked.verb == "create" and nobody_makes_pods(kind) and wants_pods(asked.document) and controller_of(asked.document) is None:
        found.append(no_pods_text(kind))
    return found


def _unknown_fields(asked: ApiRequest) -> list[str]:
    """Return what is said of fields that the kind does not have."""
    is_judged = asked.verb in ("create", "replace", "patch") and asked.field_validation != IGNORE
    return unknown_fields(asked.target.kind, asked.body) if is_judged and isinstance(asked.body, dict) else []


def _refuse_unknown_fields(asked: ApiRequest) -> None:
    """Refuse them where a request asks for that, in the words of a real API server, which has no guesses at what was meant."""
    if asked.field_validation != STRICT or not (found := _unknown_fields(asked)):
        return
    error = f"strict decoding error: {', '.join(text.partition('; ')[0] for text in found)}"
    if asked.verb == "patch":
        raise Invalid(f' "" is invalid: patch: Invalid value: {error}')
    kind = asked.target.kind
    version = kind.api_version.rpartition("/")[2]
    raise ClusterError(f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}: {error}')


def _create(store: MemoryStore, asked: ApiRequest) -> Answer:
    document = asked.document
    refuse_workload(asked.target.kind, document)
    if asked.target.kind.kind in UNOWNED:
        return store.create(document), 201
    return store.create(created(asked.target.kind, document, _writer(store, asked, UPDATE))), 201


def _replace(store: MemoryStore, asked: ApiRequest) -> Answer:
    document = asked.document
    return _changed(store, asked, lambda old: document), 200


def _patch(store: MemoryStore, asked: ApiRequest) -> Answer:
    forms = [form for form in (*patches.FORMS, APPLIED) if asked.target.kind.is_built_in or form != patches.STRATEGIC]
    if asked.form not in forms:
        raise WrongForm(f"the body of the request was in an unknown format - accepted media types include: {', '.join(forms)}")
    if asked.form == APPLIED:
        return _apply(store, asked)
    return _changed(store, asked, lambda old: patches.patched(old, asked.body, asked.form)), 200


def _changed(store: MemoryStore, asked: ApiRequest, change: Callable[[Document], Document]) -> Document:
    """Change an object, and note who owns what has changed."""
    target, writer = asked.target, _writer(store, asked, UPDATE)
    tracks = not asked.is_status and target.kind.kind not in UNOWNED

    def checked(old: Document) -> Document:
        new = change(old)
        _refuse_other_object(asked, new)
        refuse_metadata(target.kind, new, old)
        return changed(target.kind, old, new, writer) if tracks else new

    return store.change(target.kind, target.namespace, target.name, checked, is_status=asked.is_status)


def _refuse_other_object(asked: ApiRequest, new: Document) -> None:
    """Refuse a change that would make another object of it."""
    meta, target = new.get("metadata") or {}, asked.target
    if meta.get("name", target.name) != target.name:
        raise ClusterError(f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})")
    if target.kind.is_namespaced and meta.get("namespace", target.namespace) != target.namespace:
        raise ClusterError("the namespace of the provided object does not match the namespace sent on the request")


def _apply(store: MemoryStore, asked: ApiRequest) -> Answer:
    """Carry out a server-side apply."""
    if not asked.query.get("fieldManager"):
        raise Invalid('PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
    target, document, writer = asked.target, asked.document, _writer(store, asked, APPLY)
    refuse_metadata(target.kind, document)
    if store.find(target.kind, target.namespace, target.name) is None and not asked.is_status:
        refuse_workload(target.kind, document)
        return store.create(created(target.kind, document, writer)), 201
    return store.change(
        target.kind, target.namespace, target.name,
        lambda old: applied(target.kind, old, document, writer, is_forced=asked.is_forced), is_status=asked.is_status,
    ), 200  # fmt: skip


def _writer(store: MemoryStore, asked: ApiRequest, operation: str) -> Writer:
    return Writer(asked.manager, operation, store.stamp(), asked.target.kind.api_version, asked.target.subresource)


def _scale(store: MemoryStore, asked: ApiRequest) -> Answer:
    """Change how many pods a workload wants."""
    body = asked.body if isinstance(asked.body, dict) else {}
    is_patch = asked.form in patches.FORMS

    def change(old: Document) -> Document:
        return rescaled(old, patches.patched(scale_of(old), body, asked.form) if is_patch else body)

    return scale_of(_changed(store, asked, change)), 200


def _delete(store: MemoryStore, asked: ApiRequest) -> Answer:
    target = asked.target
    last = store.delete(target.kind, target.namespace, target.name, grace=asked.grace, uid=asked.uid, propagation=asked.propagation)
    if target.kind is POD or store.find(target.kind, target.namespace, target.name) is not None:
        return last, 200
    return success(details={"name": target.name, "kind": target.kind.plural, "uid": last["metadata"]["uid"]}), 200


def _bind(store: MemoryStore, asked: ApiRequest) -> Answer:
    store.bind_as(asked.target.namespace, asked.target.name, asked.body or {})
    return success(201), 201


def _evict(store: MemoryStore, asked: ApiRequest) -> Answer:
    named = ((asked.body or {}).get("metadata") or {}).get("name")
    if named != asked.target.name:
        raise ClusterError("name in URL does not match name in Eviction object")
    store.evict(asked.target.namespace, asked.target.name, uid=asked.uid, grace=asked.grace)
    return success(201), 201


_WRITERS: dict[str, Callable[[MemoryStore, ApiRequest], Answer]] = {
    "create": _create, "replace": _replace, "patch": _patch, "delete": _delete, "binding": _bind, "eviction": _evict,
    "scale": _scale,
}  # fmt: skip
