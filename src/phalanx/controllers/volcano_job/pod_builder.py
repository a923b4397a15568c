"""Builds the pods of a Job."""

from collections.abc import Mapping
from typing import Any

from phalanx.controllers.objects import annotations_of, owner_reference
from phalanx.controllers.volcano_job.job import (
    GROUP_NAME,
    JOB_NAME,
    JOB_NAMESPACE,
    PARTITION,
    QUEUE,
    TASK,
    TASK_INDEX,
    TEMPLATE,
    VERSION,
    ParsedJob,
    ParsedTask,
    ParsedVolume,
)
from phalanx.controllers.volcano_job.plugins import with_plugins
from phalanx.controllers.volcano_job.plugins.pod_edits import with_volume
from phalanx.model.kinds import Document

NUMA_POLICY = "volcano.sh/numa-topology-policy"
HANDED_DOWN = (
    "volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone", "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)  # fmt: skip
"""Annotations of a Job that its pods have too."""


def pod_of(job: ParsedJob, task: ParsedTask, index: int) -> Document:
    """Return a pod of a task, from its template, its Job and the plugins of the Job."""
    template: Mapping[str, Any] = task.template.get("metadata") or {}
    pod: Document = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": job.pod_name(task, index), "namespace": job.namespace,
            "labels": {**(template.get("labels") or {}), **_labels(job, task, index)},
            "annotations": {**_handed_down(job), **(template.get("annotations") or {}), **_annotations(job, task, index)},
            "ownerReferences": [owner_reference(job.document)],
        },
        "spec": _spec(job, task),
    }  # fmt: skip
    for volume in job.volumes:
        pod = with_volume(pod, _claimed(volume), {"mountPath": volume.path})
    return with_plugins(job, task, index, pod)


def _labels(job: ParsedJob, task: ParsedTask, index: int) -> dict[str, str]:
    part = {} if task.partition is None else {PARTITION: str(index // task.partition.size)}
    return {JOB_NAME: job.name, JOB_NAMESPACE: job.namespace, QUEUE: job.queue, TASK: task.name, TASK_INDEX: str(index), **part}


def _annotations(job: ParsedJob, task: ParsedTask, index: int) -> dict[str, str]:
    numa = {NUMA_POLICY: task.topology_policy} if task.topology_policy else {}
    return {
        GROUP_NAME: job.group, JOB_NAME: job.name, QUEUE: job.queue, TASK: task.name, TASK_INDEX: str(index),
        TEMPLATE: f"{job.name}-{task.name}", VERSION: str(job.state.version), **numa,
    }  # fmt: skip


def _handed_down(job: ParsedJob) -> dict[str, str]:
    return {name: text for name, text in annotations_of(job.document).items() if name in HANDED_DOWN}


def _spec(job: ParsedJob, task: ParsedTask) -> dict[str, Any]:
    spec = {"schedulerName": job.scheduler, **task.pod_spec}
    if job.priority_class:
        spec.setdefault("priorityClassName", job.priority_class)
    if spec.get("hostNetwork"):
        spec.setdefault("dnsPolicy", "ClusterFirstWithHostNet")
    return spec


def _claimed(volume: ParsedVolume) -> dict[str, Any]:
    return {"name": volume.claim, "persistentVolumeClaim": {"claimName": volume.claim}}
