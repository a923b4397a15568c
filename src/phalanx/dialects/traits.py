"""What sets the dialects apart besides how their objects are read: their status, and facts that explanations need.

Code outside of this package asks for a trait by its name and never compares names of dialects, so that a dialect is added here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from phalanx.dialects import (
    coscheduling_status,
    gates,
    kai_status,
    koordinator,
    koordinator_status,
    kueue,
    native,
    native_status,
    volcano_status,
    yunikorn,
)
from phalanx.dialects.pod_gangs_status import GatesStatus, KueueStatus, YuniKornStatus
from phalanx.dialects.status import DialectStatus
from phalanx.model.gang import Gang


@dataclass(frozen=True, slots=True)
class DialectTraits:
    """What is particular to one dialect."""

    status: DialectStatus
    minimum_field: str
    """Where a gang says how many pods start together."""
    minimum_field_of_pods: str = ""
    """The same where pods alone make a gang of a dialect that has group objects as well."""
    queue_field: str = "its group"
    """Where a gang names its queue; dialects without queues name none."""
    counts_pod_sets: bool = False
    """KAI counts members leaf by leaf of the tree of sub-groups; a minimum of the group itself is not looked at beside them.

    It also admits every group and tries all of them, so that other reasons keep a gang waiting than elsewhere.
    """
    has_inqueue_phase: bool = False
    """Volcano's controllers make the pods of a group when its phase becomes Inqueue: until then none can be missing."""
    records_group_events: bool = False
    """Groups without conditions, which learn only by events that they start or that their time is up."""
    has_resources_status: bool = False
    """The status of a group holds what it requests and has; queues hold the sums."""
    how_to_describe: str = ""
    """What to do about pods that name a gang ``{key}`` which nobody describes; empty where another scheduler's pods may do that."""


TRAITS: Mapping[str, DialectTraits] = MappingProxyType({
    "volcano": DialectTraits(volcano_status, "spec.minMember", queue_field="spec.queue", has_inqueue_phase=True),
    "kai": DialectTraits(
        kai_status, "spec.minMember", queue_field="spec.queue", counts_pod_sets=True, has_resources_status=True
    ),
    "coscheduling": DialectTraits(coscheduling_status, "spec.minMember", records_group_events=True),
    "koordinator": DialectTraits(
        koordinator_status, "spec.minMember", f"annotation {koordinator.MIN_AVAILABLE}", records_group_events=True
    ),
    "native": DialectTraits(
        native_status, "spec.schedulingPolicy.gang.minCount", queue_field=f"annotation {native.QUEUE}",
        how_to_describe="for PodGroup {key} of scheduling.k8s.io, which does not exist; create it",
    ),
    "gates": DialectTraits(
        GatesStatus(), f"annotation {gates.MIN_MEMBER}",
        how_to_describe=f"in gang {{key}}, and none says how large it is; write the annotation {gates.MIN_MEMBER!r} on them",
    ),
    "kueue": DialectTraits(KueueStatus(), f"annotation {kueue.TOTAL_COUNT}", queue_field=f"label {kueue.QUEUE}"),
    "yunikorn": DialectTraits(YuniKornStatus(), f"annotation {yunikorn.TASK_GROUPS}", queue_field=f"label {yunikorn.QUEUE}"),
})  # fmt: skip
"""By dialect."""


def traits_of(gang: Gang) -> DialectTraits:
    """Return the traits of a gang's dialect."""
    return TRAITS[gang.dialect]


def dialect_status(gang: Gang) -> DialectStatus:
    """Return the status module of a gang's dialect."""
    return TRAITS[gang.dialect].status
