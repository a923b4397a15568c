"""Writes the rank of a pod for Huawei's collective communication on it: masters first, then workers."""

from collections.abc import Iterator

from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, PodContext
from phalanx.model.kinds import Document

RANK = "hccl/rankIndex"


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Add the rank: the one that is there, the one of the variable RANK, or the place among masters and workers."""
    annotations = pod["metadata"].get("annotations") or {}
    rank = annotations.get(RANK) or next(_variables(pod), None) or _place(context)
    return pod if rank is None else {**pod, "metadata": {**pod["metadata"], "annotations": {**annotations, RANK: rank}}}


def _variables(pod: Document) -> Iterator[str]:
    containers = pod["spec"].get("containers") or ()
    return (
        item["value"] for one in containers for item in one.get("env") or () if item.get("name") == "RANK" and item.get("value")
    )


def _place(context: PodContext) -> str | None:
    master, worker = context.options.text("master"), context.options.text("worker")
    if context.task.name == master:
        return str(context.index)
    first = context.job.task(master)
    return str((first.replicas if first else 0) + context.index) if context.task.name == worker else None


PLUGIN = JobPlugin("hcclrank", {"master": "master", "worker": "worker"}, edit_pod)
