"""How a pod says for whom it is and to which group it belongs, in anybody's words."""

from msgspec import field

from phalanx.controllers.grouper.family import read
from phalanx.dialects.kai import SUBGROUP
from phalanx.dialects.pods import GROUP, KAI_GROUP, ROLE
from phalanx.dialects.schema import Meta, Read
from phalanx.model.kinds import Document

COSCHEDULING_GROUP, KOORDINATOR_GROUP = "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"
KOORDINATOR_NAME = "gang.scheduling.koordinator.sh/name"
LINK_KEYS = frozenset({GROUP, KAI_GROUP, COSCHEDULING_GROUP, KOORDINATOR_GROUP, KOORDINATOR_NAME, SUBGROUP, ROLE})
"""Labels and annotations that make a pod a member of a group or of a part of it."""


class NativeGroup(Read):
    """The group that a pod names in its spec, where it cannot be changed later."""

    pod_group_name: str | None = None


class MemberSpec(Read):
    """For whom a pod is."""

    scheduler_name: str | None = None
    scheduling_group: NativeGroup | None = None


class MemberStatus(Read):
    """How far a pod is."""

    phase: str | None = None


class Member(Read):
    """What a pod says about itself."""

    metadata: Meta
    spec: MemberSpec = field(default_factory=MemberSpec)
    status: MemberStatus = field(default_factory=MemberStatus)

    @property
    def native_group(self) -> str:
        """Return the group that it names in its spec."""
        return (self.spec.scheduling_group or NativeGroup()).pod_group_name or ""

    @property
    def links(self) -> set[str]:
        """Return the groups that it says it belongs to."""
        annotations, labels = self.metadata.annotations or {}, self.metadata.labels or {}
        named = [annotations.get(key) for key in (GROUP, KAI_GROUP, KOORDINATOR_NAME)]
        named += [labels.get(key) for key in (COSCHEDULING_GROUP, KOORDINATOR_GROUP)]
        return {name for name in (*named, self.native_group) if name}

    @property
    def needs_group(self) -> bool:
        """Tell whether it waits or runs, and has an owner or no group; without an owner, a group was chosen by hand."""
        if self.metadata.deletion_timestamp or self.status.phase in ("Succeeded", "Failed"):
            return False
        return bool(self.metadata.owner_references) or not self.links


def member(pod: Document) -> Member:
    """Read what a pod says about itself."""
    return read(pod, Member)
