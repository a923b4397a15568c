"""The PodGroups of Coscheduling, and the older ones that Koordinator reads."""

from typing import Annotated

from msgspec import Meta

from phalanx.dialects.kinds.fields import Amounts, Count, CustomObject, Fields, Int32, Moment, Positive


class CoschedulingPodGroupSpec(Fields):
    """What a gang asks for."""

    min_member: Annotated[Positive, Meta(description="Members that start together or not at all.")] | None = None
    min_resources: Amounts | None = None
    schedule_timeout_seconds: Annotated[Int32, Meta(description="How long members hold their places for the others.")] | None = None


class CoschedulingPodGroupStatus(Fields):
    """How far a gang has come."""

    phase: str | None = None
    occupied_by: str | None = None
    running: Count | None = None
    succeeded: Count | None = None
    failed: Count | None = None
    schedule_start_time: Moment | None = None


class CoschedulingPodGroup(CustomObject):
    """Pods that start together or not at all."""

    spec: CoschedulingPodGroupSpec | None = None
    status: CoschedulingPodGroupStatus | None = None


class OlderPodGroupStatus(CoschedulingPodGroupStatus):
    """How far a gang has come, with the members that have a node."""

    scheduled: Count | None = None


class OlderPodGroup(CustomObject):
    """Pods that start together or not at all."""

    spec: CoschedulingPodGroupSpec | None = None
    status: OlderPodGroupStatus | None = None
