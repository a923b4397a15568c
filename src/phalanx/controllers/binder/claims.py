"""Devices of resource claims: a claim gets those that a session chose for it, and the pods that use it are written on it.

A controller of Kubernetes takes pods off that are gone, and the devices with the last of them, but only from claims that bear its
finalizer, which keeps them from going while somebody uses them.
"""

from collections.abc import Iterable
from typing import Any

from phalanx.controllers.binder.pending import Ask
from phalanx.controllers.binder.preparation_step import READY, PreparationStep
from phalanx.controllers.controller import Patch, View, Write
from phalanx.controllers.objects import inside, is_leaving, meta_of
from phalanx.model.kinds import RESOURCE_CLAIM, RESOURCE_SLICE, Document

FINALIZER = "resource.kubernetes.io/delete-protection"


def claims_of(pod: Document) -> dict[str, str]:
    """Return the names of the claims of a pod, by the names under which it knows them, as far as they are made."""
    uses = (*(inside(pod, "status", "resourceClaimStatuses") or ()), *(inside(pod, "spec", "resourceClaims") or ()))
    return {str(use.get("name")): str(use["resourceClaimName"]) for use in uses if use.get("resourceClaimName")}


def _chosen(ask: Ask) -> dict[str, Document]:
    """Return what a request gives to claims, by the names of their objects."""
    names, entries = claims_of(ask.pod), inside(ask.document, "spec", "resourceClaimAllocations") or ()
    return {names.get(str(entry.get("name")), str(entry.get("name"))): entry.get("allocation") or {} for entry in entries}


def _names(ask: Ask) -> list[str]:
    return list(dict.fromkeys([*_chosen(ask), *claims_of(ask.pod).values()]))


# --- giving --------------------------------------------------------------------------------------------------------------


def claim_parts(view: View, ask: Ask) -> list[PreparationStep]:
    """Return what is left to do until the claims of a pod have devices, and the pod may use them."""
    chosen = _chosen(ask)
    return [_claim_part(view, ask, name, chosen.get(name)) for name in _names(ask)]


def _claim_part(view: View, ask: Ask, name: str, chosen: Document | None) -> PreparationStep:
    claim = view.find(RESOURCE_CLAIM, ask.pod_key.namespace, name)
    if claim is None:
        return PreparationStep(waits=f"resource claim {name} is not there; create it")
    given = inside(claim, "status", "allocation")
    if given and chosen and _devices(given) != _devices(chosen):
        return PreparationStep(waits=f"resource claim {name} has other devices than the request; delete the request")
    if given and _user(ask) in _users(claim):
        return READY
    if is_leaving(claim):
        return PreparationStep(waits=f"resource claim {name} is being deleted")
    if not given and not chosen:
        return PreparationStep(waits=f"resource claim {name} has no devices yet")
    return PreparationStep([_shared(view, claim, ask, given or chosen or {})])


def _shared(view: View, claim: Document, ask: Ask, allocation: Document) -> Patch:
    """Protect a claim, and at the next look give it to one more pod."""
    finalizers = meta_of(claim).get("finalizers") or []
    if FINALIZER not in finalizers:
        return _patch(claim, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
    reach = {} if inside(claim, "status", "allocation") else _reach(view, allocation, ask.node)
    return _status(claim, {"allocation": {**allocation, **reach}, "reservedFor": [*_users(claim), _user(ask)]})


def _reach(view: View, allocation: Document, node: str) -> Document:
    """Return from which nodes the devices can be used, unless they can be from all: whoever shares the claim has to go there."""
    pools = {place[1:3] for place in _devices(allocation)}
    offers = [item["spec"] for item in view.within(RESOURCE_SLICE) if _pool(item) in pools]
    terms = [term for offer in offers for term in inside(offer, "nodeSelector", "nodeSelectorTerms") or ()]
    if any(offer.get("nodeName") for offer in offers):
        terms.append({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]})
    joined = {
        kind: found for kind in ("matchExpressions", "matchFields")
        if (found := _once(need for term in terms for need in term.get(kind) or ()))
    }  # fmt: skip
    return {"nodeSelector": {"nodeSelectorTerms": [joined]}} if joined else {}


def _once(needs: Iterable[Document]) -> list[Document]:
    found: list[Document] = []
    for need in needs:
        if need not in found:
            found.append(need)
    return found


def _pool(item: Document) -> tuple[Any, Any]:
    return inside(item, "spec", "driver"), inside(item, "spec", "pool", "name")


def _devices(allocation: Document) -> list[tuple[Any, ...]]:
    results = inside(allocation, "devices", "results") or ()
    return [tuple(result.get(name) for name in ("request", "driver", "pool", "device")) for result in results]


# --- taking back ---------------------------------------------------------------------------------------------------------


def claims_let_go(view: View, ask: Ask) -> list[Write]:
    """Return what takes a pod off its claims."""
    claims = (view.find(RESOURCE_CLAIM, ask.pod_key.namespace, name) for name in _names(ask))
    return [_let_go(claim, ask) for claim in claims if claim is not None and _user(ask) in _users(claim)]


def _let_go(claim: Document, ask: Ask) -> Patch:
    """Take a pod out of the users of a claim; without any it has no devices."""
    left = [user for user in _users(claim) if user != _user(ask)]
    return _status(claim, {"reservedFor": left} if left else {"reservedFor": None, "allocation": None})


def _user(ask: Ask) -> dict[str, str]:
    return {"resource": "pods", "name": ask.pod_key.name, "uid": str(meta_of(ask.pod).get("uid", ""))}


def _users(claim: Document) -> list[Document]:
    return list(inside(claim, "status", "reservedFor") or ())


def _status(claim: Document, status: Document) -> Patch:
    return _patch(claim, {"status": status}, is_status=True)


def _patch(claim: Document, patch: dict[str, Any], *, is_status: bool = False) -> Patch:
    """Write on a claim, unless somebody else has been faster: lists are written as a whole."""
    meta = meta_of(claim)
    versioned = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
    return Patch(RESOURCE_CLAIM, meta["namespace"], meta["name"], versioned, is_status=is_status)
