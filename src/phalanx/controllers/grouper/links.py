"""How a pod says to which group it belongs, in anybody's words."""

from phalanx.controllers.parts import annotations_of, labels_of
from phalanx.dialects.kai import SUBGROUP
from phalanx.dialects.pods import GROUP, KAI_GROUP, ROLE
from phalanx.model.kinds import Document

COSCHEDULING_GROUP, KOORDINATOR_GROUP = "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"
KOORDINATOR_NAME = "gang.scheduling.koordinator.sh/name"
LINK_KEYS = frozenset({GROUP, KAI_GROUP, COSCHEDULING_GROUP, KOORDINATOR_GROUP, KOORDINATOR_NAME, SUBGROUP, ROLE})
"""Labels and annotations that make a pod a member of a group or of a part of it."""


def links_of(pod: Document) -> set[str]:
    """Return the groups that a pod says it belongs to."""
    annotations, labels = annotations_of(pod), labels_of(pod)
    named = [annotations.get(key) for key in (GROUP, KAI_GROUP, KOORDINATOR_NAME)]
    named += [labels.get(key) for key in (COSCHEDULING_GROUP, KOORDINATOR_GROUP)]
    return {name for name in (*named, native_group(pod)) if name}


def native_group(pod: Document) -> str:
    """Return the group that a pod names in its spec, where it cannot be changed later."""
    return str(((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName") or "")
