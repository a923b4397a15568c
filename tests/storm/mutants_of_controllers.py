"""Planted bugs of controllers: pods that are not made, groups that are too small, binds that are forgotten."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from phalanx.controllers.binder.controller import Binder
from phalanx.controllers.controller import NOTHING, Write
from phalanx.controllers.grouper.grouping import Grouping, sized
from phalanx.controllers.grouper.owners import OwnerChain
from phalanx.controllers.grouper.pod_membership import membership_of
from phalanx.controllers.objects import key_of
from phalanx.controllers.volcano_job.controller import JobReconciliation
from phalanx.model.gang import Gang
from phalanx.model.storage import AttachRules
from phalanx.model.task import Task, TaskKey
from phalanx.scheduling.refusals import SharedWrites
from phalanx.scheduling.workqueue import Question, WorkQueue
from phalanx.session.policy import Policy
from phalanx.state import cluster
from tests.storm.mutants import planted


@planted("a job lacks its last pod", breaks=("left undone", "half-started", "not at rest", "could start"))
def _last_pod_missing(patch: pytest.MonkeyPatch) -> None:
    """The controller of Volcano Jobs makes all pods of a Job but one."""
    made = JobReconciliation._new_pods

    def new_pods(self: JobReconciliation) -> Iterator[Write]:
        yield from list(made(self))[:-1]

    patch.setattr(JobReconciliation, "_new_pods", new_pods)


@planted("bind requests are forgotten", breaks=("left undone", "could start"))
def _requests_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The binder does nothing about the requests of sessions."""
    patch.setattr(Binder, "reconcile", lambda self, view, key: NOTHING)


@planted("owners' gangs start one by one", breaks=("left undone", "half-started"))
def _owners_ignored(patch: pytest.MonkeyPatch) -> None:
    """The grouper makes groups whose pods may start alone, whatever their owner says."""

    def alone(chain: OwnerChain, grouping: Grouping) -> Grouping:
        return replace(sized(chain, grouping), minimum=1, parts=(), part="")

    patch.setattr("phalanx.controllers.grouper.controller.sized", alone)


@planted("volumes without a driver wait", breaks=("could start",))
def _unknown_drivers_refused(patch: pytest.MonkeyPatch) -> None:
    """No node can attach volumes of a provisioner that is no CSI driver."""
    patch.setattr(Policy, "attach_rules", property(lambda self: AttachRules(counts_unknown=True)))


@planted("a refused group is written for each of its pods", breaks="no back-off", is_rare=True)
def _writes_repeated(patch: pytest.MonkeyPatch) -> None:
    """Whoever is asked about a pod tries to create or change its group, though that was refused to others a moment ago."""
    patch.setattr(SharedWrites, "send", lambda self, write, now, send, done: send(done))


@planted("each change lengthens a wait", breaks=("no reason", "left undone"), needs=("conflict",), is_rare=True)
def _waits_grow_early(patch: pytest.MonkeyPatch) -> None:
    """What is looked at again because it changed, and is refused again, waits twice as long, though it had not waited at all."""
    retry = WorkQueue.retry

    def early(self: WorkQueue, question: Question, *, at_least: float = 0.0) -> float:
        place = question[0].name, question[1]
        wait, _ = self._waits.get(place, (0.0, 0.0))
        if wait:
            self._waits[place] = wait, 0.0
        return retry(self, question, at_least=at_least)

    patch.setattr(WorkQueue, "retry", early)


@planted("owners are heard by their first pod alone", breaks=("left undone",), is_rare=True)
def _ended_pods_speak(patch: pytest.MonkeyPatch) -> None:
    """A change of an owner is looked at by the first pod of its group, though that one may have ended and need no group."""
    patch.setattr(
        "phalanx.controllers.grouper.controller._group_spoken_for",
        lambda pod: min(membership_of(pod).links, default=f"{key_of(pod)}"),
    )


@planted("D3: groups without pods are admitted by nobody", breaks=("untrue status", "left undone", "could start"))
def _groups_without_pods_wait(patch: pytest.MonkeyPatch) -> None:
    """Sessions do not look at groups without pods, whose owners wait for that before they make any."""
    inactive = cluster.is_inactive

    def without_pods(gang: Gang, members: Mapping[TaskKey, Task]) -> bool:
        return not members or inactive(gang, members)

    patch.setattr(cluster, "is_inactive", without_pods)


@planted("groups whose pod went before it was linked stay", breaks="left undone", is_rare=True)
def _empty_groups_stay(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks again at a group that was made for a pod that is gone."""
    patch.setattr("phalanx.controllers.grouper.controller.perhaps_unused", lambda view, group: iter(()))


@planted("requests that have succeeded are not looked at again", breaks="half-started", is_rare=True)
def _succeeded_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The binder is through with a request that has succeeded, whatever becomes of its pod."""
    patch.setattr("phalanx.controllers.binder.controller.unbound", lambda view, request: iter(()))
