"""Exclusive placement of JobSets and LeaderWorkerSets: the first pod of a group keeps others like it out of its topology domain."""

from collections.abc import Sequence
from typing import Any

from phalanx.controllers.objects import inside, labels_of
from phalanx.dialects.gates import REQUIRED
from phalanx.model.kinds import Document


def with_exclusive_affinity(pod: Document, *, label: str, topology: str, others: Sequence[Document] = (), **term: Any) -> Document:
    """Return a pod that goes where its group is and where no other group is: a group is told by a label.

    `others` say besides which groups are meant; `term` are other fields of both affinities.
    """
    key = labels_of(pod).get(label, "")
    own = {"key": label, "operator": "In", "values": [key]}
    foreign = [{"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [key]}, *others]
    affinity = dict(inside(pod, "spec", "affinity") or {})
    for name, found in (("podAffinity", [own]), ("podAntiAffinity", foreign)):
        rules = dict(affinity.get(name) or {})
        rule = {"labelSelector": {"matchExpressions": found}, "topologyKey": topology, **term}
        affinity[name] = {**rules, REQUIRED: [*(rules.get(REQUIRED) or ()), rule]}
    return {**pod, "spec": {**pod["spec"], "affinity": affinity}}
