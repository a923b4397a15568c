"""The PodGroup of a Job: how many pods have to start together, and what they ask for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from phalanx.controllers.objects import annotations_of, labels_of, owner_reference
from phalanx.controllers.volcano_job.job import MEMORY, PARTITION, TASK, VERSION, ParsedJob, ParsedTask
from phalanx.controllers.volcano_job.observed_pods import RUNNING, SUCCEEDED, PodCounts
from phalanx.model.kinds import GROUP_BY_DIALECT, Document
from phalanx.model.resources import Resources, add, quantity_text

GROUP = GROUP_BY_DIALECT["volcano"]
NOT_COPIED = (MEMORY, "phalanx.dev/arrives", "kubectl.kubernetes.io/last-applied-configuration")


def open_tasks(job: ParsedJob, counts: PodCounts) -> list[ParsedTask]:
    """Return the tasks whose pods may be created: those that wait for no other task, or have pods already."""
    return [task for task in job.tasks if task.name in counts.phases or _may_begin(job, task, counts)]


def _may_begin(job: ParsedJob, task: ParsedTask, counts: PodCounts) -> bool:
    others = [other for other in map(job.task, task.depends_on) if other is not None]
    ready = [counts.of_task(other, RUNNING) + counts.of_task(other, SUCCEEDED) >= max(other.minimum, 1) for other in others]
    return not ready or (any(ready) if task.is_one_enough else all(ready))


def group_of(job: ParsedJob, tasks: Sequence[ParsedTask], priority_of: Callable[[str], int]) -> Document:
    """Return the PodGroup for the tasks that are open.

    A task that waits for another one cannot count yet: the gang would wait for pods that are made only when it runs.
    """
    annotations = {name: text for name, text in annotations_of(job.document).items() if name not in NOT_COPIED}
    return {
        "apiVersion": GROUP.api_version, "kind": GROUP.kind,
        "metadata": {
            "name": job.group, "namespace": job.namespace, "labels": labels_of(job.document),
            "annotations": {**annotations, VERSION: str(job.state.version)}, "ownerReferences": [owner_reference(job.document)],
        },
        "spec": _spec(job, tasks, priority_of),
    }  # fmt: skip


def _spec(job: ParsedJob, tasks: Sequence[ParsedTask], priority_of: Callable[[str], int]) -> dict[str, Any]:
    minimum = min(job.min_available, sum(task.replicas for task in tasks))
    request = _total(_first(job, sorted(tasks, key=lambda task: -priority_of(task.pod_spec.get("priorityClassName", ""))), minimum))
    spec: dict[str, Any] = {
        "minMember": minimum, "minTaskMember": {task.name: task.minimum for task in tasks}, "queue": job.queue,
        "minResources": {name: quantity_text(name, amount) for name, amount in sorted(request.items())},
    }  # fmt: skip
    parts = [_subgroup(task) for task in tasks if task.partition is not None]
    if parts:
        spec["subGroupPolicy"] = parts
    if job.priority_class:
        spec["priorityClassName"] = job.priority_class
    if job.topology is not None:
        spec["networkTopology"] = job.topology
    return spec


def _subgroup(task: ParsedTask) -> dict[str, Any]:
    assert task.partition is not None
    topology = {} if task.partition.topology is None else {"networkTopology": task.partition.topology}
    return {
        "name": task.name, "subGroupSize": task.partition.size, "minSubGroups": task.partition.minimum,
        "labelSelector": {"matchLabels": {TASK: task.name}}, "matchLabelKeys": [PARTITION], **topology,
    }  # fmt: skip


def _first(job: ParsedJob, tasks: Sequence[ParsedTask], count: int) -> Iterator[tuple[ParsedTask, int]]:
    """Yield how many pods of each task are among the first so many: the minima first where they hold."""
    taken = {task.name: 0 for task in tasks}
    bounds = ([task.minimum for task in tasks] if job.minima_count else [0] * len(tasks), [task.replicas for task in tasks])
    for bound in bounds:
        for task, most in zip(tasks, bound, strict=True):
            more = min(max(most - taken[task.name], 0), count - sum(taken.values()))
            taken[task.name] += more
            yield task, more


def _total(pods: Iterable[tuple[ParsedTask, int]]) -> Resources:
    total: Resources = {}
    for task, count in pods:
        total = add(total, {name: amount * count for name, amount in task.request.items()})
    return {name: amount for name, amount in total.items() if amount}
