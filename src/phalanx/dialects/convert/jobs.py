"""Volcano's Jobs, as far as they are gangs: the group and the pods that its controller would make of one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from phalanx.dialects.convert.groups import Lost, title_of
from phalanx.dialects.links import GROUP
from phalanx.dialects.pods import ROLE
from phalanx.errors import SnapshotError
from phalanx.model.kinds import Document

JOB = ("batch.volcano.sh", "Job")
CARRIED = frozenset({"minAvailable", "tasks", "queue", "priorityClassName", "networkTopology", "schedulerName"})
CARRIED_OF_A_TASK = frozenset({"name", "replicas", "minAvailable", "template"})
WHY = "it is work of the Job controller; the pods are written out as they are at the start"


def written_out(documents: Iterable[Document]) -> tuple[list[Document], list[Lost]]:
    """Replace Jobs by their group and pods; return what a Job says beyond that, too."""
    found: list[Document] = []
    lost: list[Lost] = []
    for document in documents:
        if (str(document["apiVersion"]).rpartition("/")[0], document["kind"]) == JOB:
            found += _objects(document)
            lost += _lost(document)
        else:
            found.append(document)
    return found, lost


def _objects(job: Document) -> Iterator[Document]:
    meta, spec, tasks = job["metadata"], job.get("spec") or {}, _tasks(job)
    replicas = {name: int(task.get("replicas", 1)) for name, task in tasks.items()}
    minima = {name: int(task["minAvailable"]) for name, task in tasks.items() if task.get("minAvailable") is not None}
    total = sum(minima.get(name, count) for name, count in replicas.items())
    own = {key: spec[key] for key in ("queue", "priorityClassName", "networkTopology") if spec.get(key)}
    place = {"namespace": meta.get("namespace") or "default"}
    yield {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": meta["name"], **place, "annotations": dict(meta.get("annotations") or {})},
        "spec": {"minMember": int(spec.get("minAvailable") or total), **({"minTaskMember": minima} if minima else {}), **own},
    }  # fmt: skip
    for name, task in tasks.items():
        for number in range(replicas[name]):
            yield _pod(job, name, task.get("template") or {}, number)


def _pod(job: Document, task: str, template: Mapping[str, Any], number: int) -> Document:
    meta, own = job["metadata"], template.get("metadata") or {}
    annotations = {**(own.get("annotations") or {}), GROUP: meta["name"], ROLE: task}
    labels = {"labels": dict(own["labels"])} if own.get("labels") else {}
    scheduler = (job.get("spec") or {}).get("schedulerName") or "volcano"
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-{task}-{number}", "namespace": meta.get("namespace") or "default", **labels,
            "annotations": annotations,
        },
        "spec": {"schedulerName": scheduler, **(template.get("spec") or {})},
    }  # fmt: skip


def _tasks(job: Document) -> dict[str, Mapping[str, Any]]:
    """Return the tasks by name; one without a name is called default and its number, as in Volcano."""
    tasks = (job.get("spec") or {}).get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise SnapshotError(f"{title_of(job)}: spec.tasks: empty; write at least one task with a template")
    return {task.get("name") or f"default{number}": task for number, task in enumerate(tasks)}


def _lost(job: Document) -> Iterator[Lost]:
    for key in (job.get("spec") or {}).keys() - CARRIED:
        yield Lost(title_of(job), f"spec.{key}", WHY)
    for name, task in _tasks(job).items():
        for key in task.keys() - CARRIED_OF_A_TASK:
            yield Lost(title_of(job), f"spec.tasks[{name}].{key}", WHY)
