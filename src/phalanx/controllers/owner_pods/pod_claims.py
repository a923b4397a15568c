"""Stands in for the controllers of Kubernetes that make the claims of a pod: of its ephemeral volumes, and of its devices."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from phalanx.controllers.binder.claims import claims_of
from phalanx.controllers.controller import NOTHING, Create, Key, Patch, Result, View, Write
from phalanx.controllers.objects import inside, is_leaving, key_of
from phalanx.controllers.owner_pods.children import child_of, note, template_in
from phalanx.errors import SnapshotError
from phalanx.model.kinds import CLAIM_TEMPLATE, POD, VOLUME_CLAIM, Document, Kind

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


class PodClaims:
    """Creates the claims of pods that wait."""

    name = "pod-claims"
    watches: Sequence[Kind] = (POD,)
    brings_back: Sequence[Kind] = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return a pod that has no node yet."""
        return [] if inside(document, "spec", "nodeName") or is_leaving(document) else [key_of(document)]

    def reconcile(self, view: View, key: Key) -> Result:
        """Create the claims that are not there."""
        found = view.find(POD, key.namespace, key.name)
        if found is None:
            return NOTHING
        pod = {**found, "apiVersion": "v1", "kind": "Pod"}
        try:
            return Result([*_volume_claims(view, pod), *_device_claims(view, pod)])
        except SnapshotError as problem:
            return Result([note(pod, str(problem))])


def _volume_claims(view: View, pod: Document) -> Iterator[Write]:
    """Yield the claims of ephemeral volumes; their names follow from the pod and the volume."""
    key = key_of(pod)
    for volume in inside(pod, "spec", "volumes") or ():
        template, name = inside(volume, "ephemeral", "volumeClaimTemplate"), f"{key.name}-{inside(volume, 'name')}"
        if template is not None and view.find(VOLUME_CLAIM, key.namespace, name) is None:
            found = template_in(pod, template)
            yield Create(child_of(pod, VOLUME_CLAIM.api_version, VOLUME_CLAIM.kind, name, spec=found.spec, meta=found.meta({})))


def _device_claims(view: View, pod: Document) -> Iterator[Write]:
    """Yield the claims that are made from templates, and what tells the pod their names."""
    key, known = key_of(pod), claims_of(pod)
    made: list[dict[str, Any]] = []
    for use in inside(pod, "spec", "resourceClaims") or ():
        name, wanted = str(use.get("name")), use.get("resourceClaimTemplateName")
        if not wanted or name in known:
            continue
        template = view.find(CLAIM_TEMPLATE, key.namespace, str(wanted))
        if template is None:
            text = f"resource claim {name}: ResourceClaimTemplate {key.namespace}/{wanted} is not there; create it"
            yield note(pod, text)
            continue
        claim = _device_claim(pod, name, template)
        made.append({"name": name, "resourceClaimName": claim["metadata"]["name"]})
        yield Create(claim)
    if made:
        before = list(inside(pod, "status", "resourceClaimStatuses") or ())
        yield Patch(POD, key.namespace, key.name, {"status": {"resourceClaimStatuses": [*before, *made]}}, is_status=True)


def _device_claim(pod: Document, name: str, template: Document) -> Document:
    """Return a claim from a template; a number stands for the characters that only the API server knows."""
    found = template_in(template, inside(template, "spec"))
    meta = found.meta({}, {POD_CLAIM_NAME: name})
    claim = f"{key_of(pod).name}-{name}-00000"
    return child_of(pod, CLAIM_TEMPLATE.api_version, "ResourceClaim", claim, spec=found.spec, meta=meta)
