"""A task: one pod, as far as scheduling is concerned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import NewType

from phalanx.model.selectors import Labels
from phalanx.model.shape import Shape
from phalanx.model.task_status import Status

TaskKey = NewType("TaskKey", str)
GangKey = NewType("GangKey", str)

LONGEST_NAME = 253
"""Of any object; what is longer was never accepted by an API server."""


@dataclass(frozen=True, slots=True)
class FailedBind:
    """How often binding a task to a node failed, and when it last did."""

    node: str
    attempts: int
    latest: float = 0.0
    message: str = ""
    """What the API server, the node or the binder said the last time; empty when unknown."""


DEFAULT_SCHEDULER = "default-scheduler"
"""The scheduler of pods that name none."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One member of a gang. Compared by identity: a changed pod becomes a new task under the same key."""

    key: TaskKey
    uid: str
    shape: Shape
    gang: GangKey | None = None
    dialect: str = ""
    """Of the mark by which it names its gang."""
    group: str = ""
    """The group that it names in this dialect."""
    role: str = ""
    priority: int = 1
    rank: int = 0
    """Its priority as the API server has it; 0 when it has none."""
    status: Status = Status.PENDING
    node: str = ""
    created: float = 0.0
    is_preemptable: bool = True
    is_gated: bool = False
    """It is not placed yet: scheduling gates hold it back, or it waits for another scheduler."""
    gates: tuple[str, ...] = ()
    """The names of its scheduling gates."""
    is_foreign: bool = False
    """It waits for another scheduler than ours."""
    nominated_node: str = ""
    may_preempt: bool = True
    priority_class: str = ""
    scheduler: str = ""
    started: float = 0.0
    scheduled: float = 0.0
    """When it was given its node; 0 when unknown."""
    finished: float = 0.0
    """When its last container ended; 0 when unknown."""
    leaving_since: float = 0.0
    """When its deletion was asked for; 0 when it was not."""
    is_disrupted: bool = False
    """It was preempted by a scheduler, or evicted: a condition says so."""
    qos: str = "Burstable"
    labels: Labels = field(default_factory=dict)
    """All labels of the pod; its shape has those that placement reads."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    gpu_groups: tuple[str, ...] = ()
    """Shared devices that it is on, or that it is being bound to."""
    reserved_gpu: str = ""
    """The shared device that it keeps for those who share it; what it asks for is what they have."""
    failed_binds: tuple[FailedBind, ...] = ()
    is_placeholder: bool = False
    """It only keeps room for a task of its gang and role that is still to come."""
    replaces: str = ""
    """The placeholder that made room for it, on the node that is nominated for it; empty for most."""
    owners: str = ""
    """To whom the pod belongs, as ``namespace/name``; several with commas."""
    has_controller: bool = False
    """A controller owns the pod: it makes another one when this one is lost, and takes it away when it is one too many."""
    deadline: float = inf
    """After so many seconds on its node the kubelet ends it: activeDeadlineSeconds."""
    minima: Mapping[str, int] | None = None
    """What its gang needed, part by part, when it was bound; None when unknown."""

    @property
    def is_leaving(self) -> bool:
        """Tell whether the pod is being deleted; its containers may have ended already, so that it counts as failed."""
        return self.status is Status.RELEASING or bool(self.leaving_since)

    @property
    def namespace(self) -> str:
        """The namespace of the pod."""
        return self.shape.namespace

    @property
    def knows_uid(self) -> bool:
        """Tell whether the pod came with a uid; otherwise its key stands for it."""
        return self.uid != self.key

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.key.partition("/")[2]

    @property
    def scheduler_name(self) -> str:
        """The scheduler that the pod waits for."""
        return self.scheduler or DEFAULT_SCHEDULER

    @property
    def is_best_effort(self) -> bool:
        """Tell whether the task asks for nothing but a place."""
        return self.shape.is_best_effort

    @property
    def makes_room(self) -> bool:
        """Tell whether it leaves because it was preempted; also if that was asked for and the API server has not answered yet."""
        return self.status is Status.RELEASING and (self.is_disrupted or not self.leaving_since)

    @property
    def ordinal(self) -> int | None:
        """The number at the end of a name of three or more dash-separated parts, or None."""
        return _ordinal(self.key)


@lru_cache(maxsize=1 << 17)
def _ordinal(key: TaskKey) -> int | None:
    """Return the number at the end of a key. Every session sorts its tasks by it, so it is remembered for each key."""
    name = key.partition("/")[2]
    last = name.rpartition("-")[2]
    return int(last) if last.isdecimal() and len(last) <= LONGEST_NAME and name.count("-") >= 2 else None
