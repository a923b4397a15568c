"""Deadlines of owners: after how long the controller of a Job, a training job or a RayJob ends it with all its pods.

Sessions do not read owners, which are kinds of other projects. So this is written on the group, whoever has made it
(`OWNER_DEADLINE`), and the one rule for run times reads it there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phalanx.controllers.controller import NOTHING, Key, Patch, Result, View
from phalanx.controllers.gang_pods import members
from phalanx.controllers.grouper.owners import BETWEEN
from phalanx.controllers.objects import annotations_of, controller_of, inside, key_of, meta_of
from phalanx.errors import ClusterError
from phalanx.model.kinds import GROUP_BY_DIALECT, POD, WORKLOADS, Document, Kind, kind_of
from phalanx.model.moment import moment_of
from phalanx.model.work_annotations import FROM, OWNER_DEADLINE

FIELD = "activeDeadlineSeconds"
JOB = kind_of({"apiVersion": "batch/v1", "kind": "Job"})
JOB_SET = kind_of({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"})
RAY_JOB = kind_of({"apiVersion": "ray.io/v1", "kind": "RayJob"})
TRAINING = tuple(kind for kind in WORKLOADS if kind.group == "kubeflow.org" and kind.kind.endswith("Job"))
OWNERS = (JOB, JOB_SET, RAY_JOB, *TRAINING)
COUNTED_FROM_STATUS = frozenset({JOB, RAY_JOB, *(kind for kind in TRAINING if kind.kind != "MPIJob")})
"""Whose deadline counts from the start in their status. In a JobSet each Job has its own, and an MPIJob's is its launcher's."""
DIALECT_BY_KIND = {kind: dialect for dialect, kind in GROUP_BY_DIALECT.items()}
MOST_OWNERS = 8


@dataclass(frozen=True, slots=True)
class DeadlineKey(Key):
    """A group of a dialect."""

    dialect: str


class OwnerDeadlines:
    """Writes on groups after how long their owners are ended."""

    name = "owner-deadline"
    watches: Sequence[Kind] = (*GROUP_BY_DIALECT.values(), *OWNERS)
    brings_back: Sequence[Kind] = ()

    def __init__(self, schedulers: frozenset[str] = frozenset()) -> None:
        """Write on groups with pods of these schedulers; on all if there are none."""
        self._schedulers = schedulers

    def concerns(self, view: View, kind: Kind, document: Document) -> Iterable[Key]:
        """Return a group that has an owner, or the groups below an owner that has a deadline."""
        if kind in DIALECT_BY_KIND:
            key = key_of(document)
            return [DeadlineKey(key.namespace, key.name, DIALECT_BY_KIND[kind])] if _reference(document) is not None else []
        has_deadline = next(deadlines_in(document.get("spec")), None) is not None
        return _groups_below(view, str(meta_of(document).get("uid", ""))) if has_deadline else []

    def reconcile(self, view: View, key: Key) -> Result:
        """Write what the owners say, if that is something else than before."""
        assert isinstance(key, DeadlineKey), "only keys of our own come back"
        kind = GROUP_BY_DIALECT[key.dialect]
        group = view.find(kind, key.namespace, key.name)
        text = None if group is None else owner_deadline(_owners(view, group))
        if group is None or annotations_of(group).get(OWNER_DEADLINE) == text or not self._is_ours(view, key):
            return NOTHING
        return Result([Patch(kind, key.namespace, key.name, {"metadata": {"annotations": {OWNER_DEADLINE: text}}})])

    def _is_ours(self, view: View, key: DeadlineKey) -> bool:
        if not self._schedulers:
            return True
        pods = members(view, Key(key.namespace, key.name), (key.dialect,))
        return any(inside(pod, "spec", "schedulerName") in self._schedulers for pod in pods)


def _groups_below(view: View, uid: str) -> Iterator[DeadlineKey]:
    """Yield the groups of an owner, and those of what it owns, at any depth."""
    waiting, seen = [uid], {uid}
    while waiting:
        owner = waiting.pop()
        for dialect, kind in GROUP_BY_DIALECT.items():
            keys = map(key_of, view.owned(owner, kind))
            yield from (DeadlineKey(key.namespace, key.name, dialect) for key in keys)
        found = {str(meta_of(item)["uid"]) for kind in (POD, *BETWEEN) for item in view.owned(owner, kind)} - seen
        waiting += sorted(found)
        seen |= found


def _owners(view: View, group: Document) -> Iterator[Document]:
    """Yield the owner of a group, its owner and so on, as far as they are known."""
    item: Document | None = group
    for _ in range(MOST_OWNERS):
        reference = None if item is None else _reference(item)
        item = None if reference is None else _found(view, key_of(group).namespace, reference)
        if item is None:
            return
        yield item


def _reference(document: Document) -> Document | None:
    """Return the reference to the owner that manages an object, or to the only one it has: groups often have no manager."""
    references = meta_of(document).get("ownerReferences") or []
    return controller_of(document) or (references[0] if len(references) == 1 else None)


def _found(view: View, namespace: str, reference: Document) -> Document | None:
    try:
        found = view.find(kind_of(reference), namespace, str(reference.get("name", "")))
    except ClusterError:  # a kind that nobody knows
        return None
    if found is None or meta_of(found).get("uid") != reference.get("uid"):
        return None
    return {**found, "apiVersion": reference.get("apiVersion"), "kind": reference.get("kind")}


# --- what owners say -----------------------------------------------------------------------------------------------------


def owner_deadline(owners: Iterable[Document]) -> str | None:
    """Return the shortest deadline of some owners, and since when it counts if that is known; None if they have none."""
    found = [(min(all_of), _start(owner)) for owner in owners if (all_of := [*deadlines_in(owner.get("spec"))])]
    seconds, start = min(found, default=(0.0, ""))
    return f"{seconds:g}s{FROM}{start}" if start else f"{seconds:g}s" if seconds else None


def deadlines_in(spec: Any) -> Iterator[float]:  # Any: kinds of other projects, as they were written
    """Yield the deadlines in the spec of a pod or of an owner: Jobs, the jobs of Kubeflow, RayJobs, Workflows, JobSets."""
    if not isinstance(spec, Mapping):
        return
    parts = spec.get("replicatedJobs")
    inner = [inside(part, "template", "spec") for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    for place in (spec, spec.get("runPolicy"), *inner):
        seconds = place.get(FIELD) if isinstance(place, Mapping) else None
        if isinstance(seconds, int | float) and seconds > 0:
            yield float(seconds)


def _start(owner: Document) -> str:
    text = inside(owner, "status", "startTime") if kind_of(owner) in COUNTED_FROM_STATUS else None
    return text if isinstance(text, str) and moment_of(text) is not None else ""
