"""A task: one pod, as far as scheduling is concerned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from phalanx.model.shape import Shape
from phalanx.model.status import Status

TaskKey = NewType("TaskKey", str)
GangKey = NewType("GangKey", str)

LONGEST_NAME = 253
"""Of any object; what is longer was never accepted by an API server."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One member of a gang. Compared by identity: a changed pod becomes a new task under the same key."""

    key: TaskKey
    uid: str
    shape: Shape
    gang: GangKey | None = None
    role: str = ""
    priority: int = 1
    status: Status = Status.PENDING
    node: str = ""
    created: float = 0.0
    is_preemptable: bool = True
    is_gated: bool = False
    nominated_node: str = ""
    may_preempt: bool = True
    priority_class: str = ""
    scheduler: str = ""
    started: float = 0.0
    scheduled: float = 0.0
    """When it was given its node; 0 when nobody says."""
    finished: float = 0.0
    """When its last container ended; 0 when nobody says."""
    leaving_since: float = 0.0
    """When its deletion was asked for; 0 when it was not."""
    qos: str = "Burstable"
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.shape.namespace

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.key.partition("/")[2]

    @property
    def is_best_effort(self) -> bool:
        """Tell whether the task asks for nothing but a place."""
        return self.shape.is_best_effort

    @property
    def ordinal(self) -> int | None:
        """The number at the end of a name of three or more dash-separated parts, or None."""
        parts = self.key.partition("/")[2].split("-")
        return int(parts[-1]) if len(parts) >= 3 and parts[-1].isdecimal() and len(parts[-1]) <= LONGEST_NAME else None
