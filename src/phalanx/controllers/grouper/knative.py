"""Knative: each revision of a Service is a gang of its smallest scale."""

from phalanx.controllers.grouper.grouping import Grouping, one_group, pod_group
from phalanx.controllers.grouper.owners import OwnerChain, find, whole_number
from phalanx.controllers.objects import annotations_of, labels_of
from phalanx.dialects.cluster import describe
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document, kind_of

REVISION = kind_of({"apiVersion": "serving.knative.dev/v1", "kind": "Revision"})
REVISION_LABEL, MIN_SCALE = "serving.knative.dev/revision", "autoscaling.knative.dev/min-scale"


def knative(chain: OwnerChain) -> Grouping:
    """Group the pods of a revision, or let each be for itself."""
    if not chain.settings.knative_gangs:
        return pod_group(chain)
    revision = _revision(chain)
    text = annotations_of(revision).get(MIN_SCALE, "1")
    minimum = whole_number(text, where=f"{describe(revision)}: annotation {MIN_SCALE}", least=0)
    return one_group(chain, minimum=max(minimum, 1), owner=revision)


def _revision(chain: OwnerChain) -> Document:
    name = labels_of(chain.pod).get(REVISION_LABEL)
    where = f"{describe(chain.pod)}: metadata.labels[{REVISION_LABEL!r}]"
    if not name:
        raise SnapshotError(f"{where}: missing; see that Knative makes the pod, or write the name of its Revision")
    found = find(chain.view, REVISION, chain.pod, name)
    if found is None:
        raise SnapshotError(f"{where}: there is no Revision {name!r}; see that Knative's controller runs and makes it")
    return found
