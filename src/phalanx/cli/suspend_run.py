"""What `phalanx suspend` and `phalanx resume` do: find who makes the pods, and write what suspends that kind.

| kind | what is written |
| --- | --- |
| Job of Volcano's | a Command, AbortJob or ResumeJob, as vcctl does |
| Job, CronJob, JobSet, RayCluster, RayJob, TrainJob | spec.suspend |
| MPIJob and the jobs of the training operator | spec.runPolicy.suspend |
"""

from contextlib import suppress
from typing import Any

import click

from phalanx.cli import output
from phalanx.cli.connection import Reach, ask
from phalanx.cli.gang_choice import gang_called
from phalanx.cli.get_run import group_kind
from phalanx.cli.lookup import Looking, find, is_gang, title, typed_targets
from phalanx.cli.volcano_commands import NOT_TAKEN, command
from phalanx.controllers.objects import controller_of, inside
from phalanx.dialects.kueue import QUEUE as KUEUE_QUEUE
from phalanx.errors import ClusterError, Invalid, Missing, Unreachable
from phalanx.model.kinds import KINDS, POD, VOLCANO_JOB, Document, kind_of
from phalanx.store.kube.client import Client
from phalanx.store.kube.discovery import served_kinds

IN_SPEC = ("suspend",)
IN_RUN_POLICY = ("runPolicy", "suspend")
FIELD_BY_KIND = {
    ("batch", "Job"): IN_SPEC, ("batch", "CronJob"): IN_SPEC, ("batch.volcano.sh", "CronJob"): IN_SPEC,
    ("jobset.x-k8s.io", "JobSet"): IN_SPEC, ("ray.io", "RayCluster"): IN_SPEC, ("ray.io", "RayJob"): IN_SPEC,
    ("trainer.kubeflow.org", "TrainJob"): IN_SPEC,
    **{("kubeflow.org", kind): IN_RUN_POLICY for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob", "MPIJob")},
}  # fmt: skip
"""Where the spec of a kind says that it is suspended."""
SUSPENDABLE = [VOLCANO_JOB, *(kind for kind in KINDS if (kind.group, kind.kind) in FIELD_BY_KIND)]
STARTERS = frozenset({"CronJob", "JobFlow", "ScheduledWorkflow", "CronWorkflow"})
"""They start jobs that live on their own; of other owners the topmost is suspended, since it would undo what is done below it."""
SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "LeaderWorkerSet")
CAN_BE = "Jobs, CronJobs, JobSets, RayClusters, RayJobs, TrainJobs, MPIJobs, PyTorchJobs and other jobs of the training operator"
ABORTED, ENDED = ("Aborting", "Aborted"), ("Completing", "Completed", "Terminating", "Terminated", "Failed")
"""Phases of a Job of Volcano's."""


def carry_out(reach: Reach, kind: str, names: tuple[str, ...], *, suspends: bool) -> bool:
    """Suspend or resume what was typed; return whether all of it could be."""
    targets = typed_targets(kind, names)
    if not targets:
        word = "suspend" if suspends else "resume"
        raise click.UsageError(f"which one? write for example: {click.get_current_context().find_root().info_name} {word} NAME")

    async def asked(client: Client, namespace: str) -> bool:
        looking, switch = Looking(), Switch(client, namespace, suspends=suspends)
        for kind_name, name in targets:
            if (found := await looking.at(switch.target(kind_name, name))) is not None:
                await switch.turn(found)
        return not looking.missing and not switch.refused

    return ask(reach, asked)


class Switch:
    """Suspends or resumes one object after the other, and counts what could not be."""

    def __init__(self, client: Client, namespace: str, *, suspends: bool) -> None:
        """Look in this namespace."""
        self._client, self._namespace, self._suspends = client, namespace, suspends
        self.refused = 0

    async def target(self, kind_name: str, name: str) -> Document:
        """Return the object that is suspended: the one of that name, or the owner of a gang."""
        if not is_gang(kind_name):
            return (await find(self._client, kind_name, self._namespace, name))[1]
        try:
            gang = await gang_called(self._client, self._namespace, name)
        except Missing as problem:
            return await self._without_gang(name, problem)
        return await self._top(await self._member(gang), gang["metadata"]["name"])

    async def _without_gang(self, name: str, problem: Missing) -> Document:
        """Return a job of this name: the gang of one that is suspended may have gone."""
        for kind in sorted(await served_kinds(self._client, SUSPENDABLE), key=lambda kind: kind.resource):
            with suppress(Missing):
                return await self._client.get(kind, self._namespace, name)
        raise problem

    async def _member(self, gang: Document) -> Document:
        """Return the group of a gang if somebody owns it, else one of its pods."""
        kind, name = await group_kind(self._client, gang), str(gang["metadata"]["name"]).partition("@")[0]
        group = None if kind is None else await self._client.get(kind, self._namespace, name)
        if group is not None and (controller_of(group) is not None or not gang["members"]):
            return group
        return await self._client.get(POD, self._namespace, gang["members"][0]["pod"])

    async def _top(self, document: Document, gang: str) -> Document:
        """Climb from a group or a pod to the owner that everything comes from."""
        found, reference = document, controller_of(document)
        while reference is not None and (found is document or reference["kind"] not in STARTERS):
            found = await self._client.get(kind_of(reference), self._namespace, str(reference["name"]))
            reference = controller_of(found)
        if found is document:
            hint = f"delete it with 'phalanx delete gang {gang}', and apply it again later"
            raise Missing(f"gang {gang} cannot be suspended or resumed: no owner makes its pods again; {hint}")
        return found

    async def turn(self, found: Document) -> None:
        """Suspend or resume one object, and say so."""
        name = title(kind_of(found), found["metadata"]["name"])
        try:
            output.say(f"{name} {await self._turned(found)}")
        except Unreachable:
            raise
        except ClusterError as problem:
            self.refused += 1
            output.complain(f"error: {name}: {problem}")

    async def _turned(self, found: Document) -> str:
        kind = kind_of(found)
        if kind == VOLCANO_JOB:
            return await self._commanded(found)
        path = FIELD_BY_KIND.get((kind.group, kind.kind))
        if path is None:
            raise Invalid(_why_not(found))
        if (inside(found, "spec", *path) is True) == self._suspends:
            return f"unchanged: it is {'suspended already' if self._suspends else 'not suspended'}"
        if queue := (found["metadata"].get("labels") or {}).get(KUEUE_QUEUE):
            output.note(
                f"{title(kind, found['metadata']['name'])} is in Kueue's queue {queue}: where Kueue runs, it undoes this; "
                "set spec.active of its Workload instead"
            )
        await self._client.patch(kind, self._namespace, found["metadata"]["name"], _patch(path, self._suspends))
        return self._done

    @property
    def _done(self) -> str:
        return "suspended" if self._suspends else "resumed"

    async def _commanded(self, job: Document) -> str:
        """Abort or resume a Job of Volcano's."""
        phase = str(inside(job, "status", "state", "phase") or "Pending")
        if phase in ENDED:
            raise Invalid(f"it is {phase}: it has ended, so that it can be neither suspended nor resumed; create it anew")
        if (phase in ABORTED) == self._suspends:
            return f"unchanged: it is {phase}"
        is_done = await command(self._client, "AbortJob" if self._suspends else "ResumeJob", job, self._namespace)
        return self._done if is_done else f"will be {self._done}: {NOT_TAKEN}"


def _patch(path: tuple[str, ...], value: bool) -> dict[str, Any]:
    found: Any = value
    for name in reversed(("spec", *path)):
        found = {name: found}
    return dict(found)


def _why_not(found: Document) -> str:
    kind, name = found["kind"], found["metadata"]["name"]
    if kind in SCALED:
        return f"a {kind} cannot be suspended; scale it to none: kubectl scale {title(kind_of(found), name)} --replicas=0"
    if kind == "Queue":
        return f"a queue is not suspended but closed; write: phalanx queue close {name}"
    return f"a {kind} cannot be suspended: its spec has no field for it; what can be: {CAN_BE}"
