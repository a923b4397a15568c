"""One way in which an operator hands its pods to a gang scheduler: how it is started, switched on, and given workloads.

Lanes (tests/operators/test_lanes.py) are written once and run for every mode. A mode names those that do not apply to it, and why.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from phalanx.dev.plane import ControlPlane
from phalanx.dev.processes import Process
from phalanx.dev.programs import PROGRAMS

GPU = "nvidia.com/gpu"
LANES = {
    "idle": "A workload starts on a cluster in which nothing else waits or runs.",
    "fits": "A workload that fits starts while another one waits.",
    "waits": "A workload that does not fit starts no pod. The condition of its pods, an event, `phalanx get gangs` and "
    "`phalanx explain` give the same reason. Volcano's controllers make no pods for it with Volcano's profile, which admits "
    "groups first.",
    "deadlock": "Of two workloads that fit only one at a time, one runs whole and the other waits whole. It starts "
    "when the first is gone.",
    "room": "A workload that waits starts when a node becomes available.",
    "clean": "Workloads that run or wait leave no pods, groups, Services or gangs when they are deleted.",
    "suspend": "A suspended workload makes room for another one. It waits when it is resumed, and starts when there is room.",
    "failure": "A member that fails is replaced, and the other members run on.",
    "priority": "A workload with a higher priority preempts a whole one, which starts again when there is room.",
    "scale": "A workload is scaled beyond the room and back: no running pod is evicted, and those that do not fit wait.",
    "grace": "Workloads that run or wait are watched until every grace period is over, that of stale gangs is shortened to 5 s: "
    "nothing happens to them.",
    "samples": "Samples of the operator's own repository run unchanged. Phalanx has the scheduler name `default-scheduler` too, "
    "since most of them name no scheduler.",
}
"""Every lane, in the order of the page, and what it tests."""
Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A merge patch, or the operations of a JSON patch."""


class Hands(Protocol):
    """What a user types in the namespace of a lane."""

    def kubectl(self, *arguments: str, text: str = "") -> str:
        """Run kubectl and return what it prints."""
        ...

    def phalanx(self, *arguments: str) -> str:
        """Run a command of ours and return what it prints."""
        ...

    def patch(self, address: str, patch: Patch) -> None:
        """Change an object; its address is its resource and its name."""
        ...


class Start(Protocol):
    """Starts an operator beside a control plane, with more flags than it needs to run at all."""

    def __call__(self, plane: ControlPlane, folder: Path, *flags: str) -> AbstractContextManager[Process]:
        """Run the operator while the block runs."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """What a lane wants to be run: so many pods, each with so many GPUs."""

    name: str
    pods: int
    gpus: int
    priority: str = ""
    """A PriorityClass."""
    is_scaled: bool = False
    """The number of its pods will change."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Files of the operator's own module that are created as they are, and how many pods become of them."""

    files: tuple[str, ...]
    pods: int
    first: Sequence[Mapping[str, Any]] = ()
    """Objects that they take for granted."""
    then: Sequence[Mapping[str, Any]] = ()
    """Objects that make use of them, if they make no pods by themselves."""


def suspend_by_phalanx(hands: Hands, address: str, is_suspended: bool) -> None:
    """Suspend a workload or resume it by the commands that write what its kind has for that."""
    hands.phalanx("suspend" if is_suspended else "resume", address)


def scale_by(patch: Callable[[int], Patch]) -> Callable[[Hands, str, int], None]:
    """Return how a workload is scaled whose number of pods stands in itself."""
    return lambda hands, address, pods: hands.patch(address, patch(pods))


def leave_to_namespace(hands: Hands) -> None:
    """Leave it to the end of the namespace to delete what is in it."""


def delete_by_kubectl(hands: Hands, address: str) -> None:
    """Delete a workload."""
    hands.kubectl("delete", address, "--timeout=60s")


@dataclass(frozen=True, slots=True)
class OperatorMode:
    """An operator, one of its modes, and what a lane has to do to its workloads."""

    operator: str
    """As the program is called in `phalanx.dev.programs`."""
    title: str
    name: str
    kind: str
    start: Start
    write: Callable[[Order], dict[str, Any]]
    """Return the object of which the operator makes the pods, or a List of them."""
    switch_on: str
    """For the page: what an administrator and the author of a workload write."""
    module: str
    """The Go module with the samples."""
    flags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Programs beside the operator itself."""
    has_own_definitions: bool = False
    """Its definitions take the place of ours: it gets a control plane, and a scheduler, of its own."""
    profile: str = "phalanx"
    """That of this scheduler."""
    scheduler_flags: tuple[str, ...] = ()
    surroundings: Sequence[Mapping[str, Any]] = ()
    """Objects that have to be in the namespace of workloads."""
    resource: str = ""
    """What kubectl and `phalanx` call the kind, if not by its name."""
    suspend: Callable[[Hands, str, bool], None] = suspend_by_phalanx
    scale: Callable[[Hands, str, int], None] | None = None
    """Lets a workload have another number of pods."""
    delete: Callable[[Hands, str], None] = delete_by_kubectl
    leave: Callable[[Hands], None] = leave_to_namespace
    """Deletes what would keep a namespace from ending."""
    failing: str = ""
    """Part of the name of the pods that the operator replaces when they fail; all if empty."""
    makes_pods_when_admitted: bool = False
    """A workload that asks for more than the cluster has gets no pods at all."""
    is_replaced_late: bool = False
    """Pods are made by a Job: ten seconds after one was lost, and twice as late for each that was lost with it."""
    sizes: tuple[int, int, int, int] = (3, 6, 4, 2)
    """How many pods a workload has that is scaled, one after the other; the second is more than there is room for."""
    samples: tuple[Sample, ...] = ()
    not_applicable: Mapping[str, str] = field(default_factory=dict)
    """By lane the reason, in the words of the operator's documentation or code."""
    known_defects: Mapping[str, str] = field(default_factory=dict)
    """Lanes that fail, each with a sentence for the page on what is wrong; it has to go when the lane passes."""
    in_make_test: frozenset[str] = frozenset()
    """Lanes that run in `make test` too, which has no time for all of them."""

    @property
    def label(self) -> str:
        """What it is called in the names of tests."""
        return f"{self.operator}-{self.name}"

    @property
    def key(self) -> str:
        """What it is called in results: they hold for one version of the operator."""
        return f"{self.operator} {self.version} {self.name}"

    @property
    def version(self) -> str:
        """The version of the operator."""
        return PROGRAMS[self.operator].version

    def address(self, name: str) -> str:
        """Return what a workload is called on a command line."""
        return f"{self.resource or self.kind.lower()}/{name}"


def for_modes(modes: Sequence[OperatorMode]) -> pytest.MarkDecorator:
    """Run tests for modes, one after the other; each has its operator running meanwhile."""
    return pytest.mark.parametrize("mode", modes, ids=lambda mode: mode.label, scope="module")


def template(container: str, order: Order, **spec: Any) -> dict[str, Any]:
    """Return a template of pods with GPUs; fields without a value are left out."""
    limits = {"cpu": "100m", "memory": "100Mi", **({GPU: str(order.gpus)} if order.gpus else {})}
    worker = {"name": container, "image": "registry.example/train:1", "resources": {"limits": limits, "requests": limits}}
    return {"spec": {"containers": [worker], **{key: value for key, value in spec.items() if value}}}


def job_spec(pods: int, pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a Job to which evicted pods are no failures: seven would end it otherwise."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {"parallelism": pods, "completions": pods, "podFailurePolicy": {"rules": [rule]}, "template": pod}
