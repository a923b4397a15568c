"""Says of jobs and other owners in an embedded cluster that nobody creates their pods: their controllers do not run there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phalanx.controllers.controller import NOTHING, Key, RecordEvent, Result, View
from phalanx.controllers.objects import controller_of, key_of, meta_of
from phalanx.controllers.pod_makers import MADE_ELSEWHERE, nobody_makes_pods, wants_pods
from phalanx.dialects.cluster import describe
from phalanx.model.kinds import POD, Document, Kind
from phalanx.model.moment import moment_of

PATIENCE_SECONDS = 2.0
"""Whoever creates an owner by hand may create its pods by hand too."""


@dataclass(frozen=True, slots=True)
class OwnerKey(Key):
    """An owner of some kind."""

    kind: Kind


class UnmadePods:
    """Records an event about each owner that stays without pods."""

    name = "unmade-pods"
    watches: Sequence[Kind] = MADE_ELSEWHERE
    brings_back: Sequence[Kind] = ()

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return the owner."""
        return [OwnerKey(key_of(document).namespace, key_of(document).name, kind)]

    def reconcile(self, view: View, key: Key) -> Result:
        """Wait a moment for pods, then say that none come."""
        assert isinstance(key, OwnerKey), "only keys of our own come back"
        owner = view.find(key.kind, key.namespace, key.name)
        if owner is None or not is_without_pods(view, key.kind, owner):
            return NOTHING
        due = (moment_of(str(meta_of(owner).get("creationTimestamp") or "")) or 0.0) + PATIENCE_SECONDS
        if view.now < due:
            return Result(again=due)
        text = f"{describe(owner)}: {no_pods_text(key.kind)}"
        return Result([RecordEvent(owner, "NoPodController", text, is_warning=True)])


def is_without_pods(view: View, kind: Kind, owner: Document) -> bool:
    """Tell whether an owner wants pods, has none, nor anything else that could have some, and is itself of nobody."""
    uid = str(meta_of(owner).get("uid", ""))
    has_any = any(view.owned(uid, other) for other in (POD, *MADE_ELSEWHERE))
    return nobody_makes_pods(kind) and wants_pods(owner) and controller_of(owner) is None and not has_any


def no_pods_text(kind: Kind) -> str:
    """Say that nobody creates the pods of a kind, and what to do."""
    return f"no controller in this cluster creates the pods of a {kind.kind}; create them too, or use a Job of batch.volcano.sh"
