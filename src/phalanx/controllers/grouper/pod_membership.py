"""What a pod itself says about its group: which one it names, and whether it needs one."""

from msgspec import field

from phalanx.controllers.grouper.owners import read
from phalanx.dialects.group_references import REFERENCE_FIELDS, references_of
from phalanx.dialects.kai_subgroups import SUBGROUP
from phalanx.dialects.pods import ROLE
from phalanx.dialects.schema import Meta, PodSpec, Read
from phalanx.model.kinds import Document, split_key
from phalanx.model.task_status import ENDED

LINK_KEYS = frozenset({*(mark.key for mark in REFERENCE_FIELDS), SUBGROUP, ROLE})
"""Labels and annotations that make a pod a member of a group or of a part of it."""


class PodMembershipStatus(Read):
    """The phase of a pod."""

    phase: str | None = None


class PodMembership(Read):
    """A pod that may be in a group."""

    metadata: Meta
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodMembershipStatus = field(default_factory=PodMembershipStatus)

    @property
    def native_group(self) -> str:
        """Return the group that it names in its spec, where it cannot be changed later."""
        return self.spec.scheduling_group.pod_group_name or "" if self.spec.scheduling_group else ""

    @property
    def links(self) -> set[str]:
        """Return the names of the groups that it names, in any dialect."""
        return {split_key(link.group)[1] for link in references_of(self.metadata, self.spec)}

    @property
    def needs_group(self) -> bool:
        """Tell whether it waits or runs, and has an owner or no group; a group of a pod without owner was chosen by hand."""
        if self.metadata.deletion_timestamp or self.status.phase in ENDED:
            return False
        return bool(self.metadata.owner_references) or not self.links


def membership_of(pod: Document) -> PodMembership:
    """Return what a pod itself says about its group."""
    return read(pod, PodMembership)
