"""What a rule finds for a pod: which group it is in, and how many pods of which parts that group needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta as Limits

from phalanx.controllers.grouper.owners import LARGEST_COUNT, OwnerChain, whole_number
from phalanx.controllers.objects import annotations_of, labels_of, meta_of
from phalanx.dialects.cluster import describe
from phalanx.dialects.schema import Read, Strings
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document

Count = Annotated[int, Limits(ge=0, le=LARGEST_COUNT)]
TOPOLOGY = "kai.scheduler/topology"
REQUIRED, PREFERRED = "kai.scheduler/topology-required-placement", "kai.scheduler/topology-preferred-placement"
SEGMENT_SIZE = "kai.scheduler/segment-size"
SEGMENT_REQUIRED = "kai.scheduler/segment-topology-required-placement"
SEGMENT_PREFERRED = "kai.scheduler/segment-topology-preferred-placement"
TRAIN, BUILD, INFERENCE = "train", "build", "inference"
LONGEST_NAME, LONGEST_LABEL = 253, 63
MOST_SEGMENTS = 10_000


class PodTemplateMetaRead(Read):
    """What a pod template says about its pods besides their spec."""

    annotations: Strings = None


class PodTemplateRead(Read):
    """A pod template."""

    metadata: PodTemplateMetaRead | None = None

    @property
    def annotations(self) -> dict[str, str]:
        """Return the annotations of its pods."""
        return dict((self.metadata or PodTemplateMetaRead()).annotations or {})


@dataclass(frozen=True, slots=True)
class GroupConstraint:
    """Where a group or a part of it has to be, by the levels of a topology."""

    topology: str
    required: str = ""
    preferred: str = ""


@dataclass(frozen=True, slots=True)
class GroupPart:
    """Pods of a group that play one role; a part that others name as their parent holds no pods itself."""

    name: str
    minimum: int
    parent: str = ""
    constraint: GroupConstraint | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of a pod."""

    name: str
    owner: Document
    """The owner of the group: it is deleted with it."""
    minimum: int = 1
    parts: Sequence[GroupPart] = ()
    part: str = ""
    """The part that the pod is in; empty for none."""
    constraint: GroupConstraint | None = None
    priority_class: str = ""
    """If the workload has a field of its own for it."""
    is_for_one_pod: bool = field(default=False, kw_only=True)
    is_apart: bool = field(default=False, kw_only=True)
    """The pod is no member of the gang of its owner, whatever size that has."""


def one_group(chain: OwnerChain, *, minimum: int = 1, suffix: str = "", owner: Document | None = None) -> Grouping:
    """Return the one group of an owner, or of a part of what belongs to it."""
    whose = chain.head if owner is None else owner
    return Grouping(group_name(chain, whose, suffix), whose, minimum, constraint=constraint_of(annotations_of(chain.head)))


def pod_group(chain: OwnerChain) -> Grouping:
    """Return a group for one pod of an owner."""
    constraint = constraint_of(annotations_of(chain.head))
    return Grouping(group_name(chain, chain.pod), chain.head, constraint=constraint, is_for_one_pod=True)


def apart(chain: OwnerChain) -> Grouping:
    """Return a group for a pod that serves its owner before or after the gang; it goes with the object that made the pod."""
    return Grouping(group_name(chain, chain.pod), chain.owners[0] if chain.owners else chain.head, is_apart=True)


def group_name(chain: OwnerChain, owner: Document, suffix: str = "") -> str:
    """Return the name of a group; one that would be too long is cut, and the uid of the owner keeps it unique."""
    longest = LONGEST_LABEL if chain.settings.dialect in ("coscheduling", "koordinator") else LONGEST_NAME
    name, tail = str(meta_of(owner)["name"]), f"-{meta_of(owner).get('uid', '')}{suffix}"
    return f"pg-{name[: max(longest - len(tail) - 3, 0)].rstrip('-.')}{tail}"


def sized(chain: OwnerChain, grouping: Grouping) -> Grouping:
    """Apply the annotation that says how large a gang is; pods that had a group each become one gang."""
    if grouping.is_apart:
        return grouping
    wanted = chain.min_member()
    if wanted is None or (wanted == grouping.minimum and not grouping.is_for_one_pod):
        return grouping
    if grouping.is_for_one_pod:
        return one_group(chain, minimum=wanted)
    return replace(grouping, minimum=wanted, parts=(), part="")


def constraint_of(annotations: Strings, *, required: str = REQUIRED, preferred: str = PREFERRED) -> GroupConstraint | None:
    """Return the topology constraint in annotations; None without a topology."""
    found = annotations or {}
    topology = found.get(TOPOLOGY, "")
    return GroupConstraint(topology, found.get(required, ""), found.get(preferred, "")) if topology else None


def number_label(pod: Document, label: str, *, why: str) -> int:
    """Return the number that a label of a pod holds."""
    where = f"{describe(pod)}: metadata.labels[{label!r}]"
    text = labels_of(pod).get(label)
    if text is None:
        raise SnapshotError(f"{where}: missing; write {why}")
    return whole_number(text, where=where, least=0)


def total(parts: Iterable[GroupPart]) -> int:
    """Return how many pods the parts need that hold pods."""
    found = list(parts)
    parents = {part.parent for part in found}
    return sum(part.minimum for part in found if part.name not in parents)


# --- segments ------------------------------------------------------------------------------------------------------------


def segment_annotations(head: Document, template: PodTemplateRead) -> dict[str, str]:
    """Return the annotations that may speak of segments: those of the workers' template before those of the owner."""
    return {**annotations_of(head), **template.annotations}


def segment_size(head: Document, annotations: dict[str, str], *, least: int) -> int | None:
    """Return how many workers are in a segment; None if there are no segments."""
    text = annotations.get(SEGMENT_SIZE)
    return None if not text else whole_number(text, where=f"{describe(head)}: annotation {SEGMENT_SIZE}", least=least)


def segment_constraint(annotations: dict[str, str]) -> GroupConstraint | None:
    """Return where the workers of one segment have to be."""
    found = constraint_of(annotations, required=SEGMENT_REQUIRED, preferred=SEGMENT_PREFERRED)
    return found if found is not None and (found.required or found.preferred) else None


def check_segments(head: Document, count: int) -> None:
    """Refuse a number of segments that can only be a mistake."""
    if count > MOST_SEGMENTS:
        raise SnapshotError(f"{describe(head)}: {count} segments are more than {MOST_SEGMENTS}; write a larger {SEGMENT_SIZE}")
