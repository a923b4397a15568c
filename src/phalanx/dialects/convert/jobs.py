"""Volcano's Jobs, as far as they are gangs: the group and the pods that its controller would make of one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from phalanx.dialects.cluster import describe
from phalanx.dialects.convert.neutral_gangs import Lost
from phalanx.dialects.group_references import GROUP
from phalanx.dialects.kinds.reader import reader_of
from phalanx.dialects.kinds.volcano_jobs import JobTask, VolcanoJob
from phalanx.dialects.pods import ROLE
from phalanx.dialects.reading import read_as
from phalanx.dialects.wrong_field import readable
from phalanx.errors import SnapshotError
from phalanx.model.bounds import MADE_PODS
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
        if is_job(document):
            found += _objects(document)
            lost += _lost(document)
        else:
            found.append(document)
    return found, lost


def is_job(document: Document) -> bool:
    """Tell whether an object is a Job of Volcano's."""
    return (str(document["apiVersion"]).rpartition("/")[0], document["kind"]) == JOB


def _objects(job: Document) -> Iterator[Document]:
    tasks, meta, spec = _tasks(job), job["metadata"], job["spec"]
    if (count := sum(map(_replicas, tasks.values()))) > MADE_PODS.most:
        raise SnapshotError(f"{describe(job)}: {count:,} replicas are too many: {MADE_PODS.text}")
    minima = {name: _replicas(task) if task.min_available is None else task.min_available for name, task in tasks.items()}
    own = {key: spec[key] for key in ("queue", "priorityClassName", "networkTopology") if spec.get(key)}
    yield {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {
            "name": meta["name"], "namespace": meta.get("namespace") or "default",
            "annotations": dict(meta.get("annotations") or {}),
        },
        "spec": {
            "minMember": spec.get("minAvailable") or sum(minima.values()),
            "minTaskMember": {name: minimum for name, minimum in minima.items() if minimum}, **own,
        },
    }  # fmt: skip
    for name, task in tasks.items():
        for number in range(_replicas(task)):
            yield _pod(job, name, task.template or {}, number)


def _replicas(task: JobTask) -> int:
    return 1 if task.replicas is None else task.replicas


def _pod(job: Document, task: str, template: Mapping[str, Any], number: int) -> Document:
    meta, own = job["metadata"], template.get("metadata") or {}
    labels = {"labels": dict(own["labels"])} if own.get("labels") else {}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-{task}-{number}", "namespace": meta.get("namespace") or "default", **labels,
            "annotations": {**(own.get("annotations") or {}), GROUP: meta["name"], ROLE: task},
        },
        "spec": {"schedulerName": job["spec"].get("schedulerName") or "volcano", **(template.get("spec") or {})},
    }  # fmt: skip


def _tasks(job: Document) -> dict[str, JobTask]:
    """Return the tasks by name; one without a name is called default and its number, as in Volcano. Its status is not read."""
    try:
        tasks = read_as({**job, "status": {}}, reader_of(VolcanoJob)).spec.tasks
    except msgspec.ValidationError as problem:
        raise SnapshotError(f"{describe(job)}: {readable(problem)}") from problem
    if not tasks:
        raise SnapshotError(f"{describe(job)}: spec.tasks: empty; write at least one task with a template")
    for number, task in enumerate(tasks):
        _check_template(job, f"spec.tasks[{number}].template", task.template or {})
    return {task.name or f"default{number}": task for number, task in enumerate(tasks)}


def _check_template(job: Document, path: str, template: Mapping[str, Any]) -> None:
    """Refuse a template whose parts are not what pods are made of; what is inside of them, whoever reads the pods refuses."""
    meta = template.get("metadata") or {}
    parts = {"metadata": meta, "spec": template.get("spec") or {}}
    if isinstance(meta, Mapping):
        parts |= {f"metadata.{name}": meta.get(name) or {} for name in ("labels", "annotations")}
    for name, part in parts.items():
        if not isinstance(part, Mapping):
            raise SnapshotError(f"{describe(job)}: {path}.{name}: expected `object`, got {type(part).__name__}")


def _lost(job: Document) -> Iterator[Lost]:
    for key in sorted(job["spec"].keys() - CARRIED):
        yield Lost(describe(job), f"spec.{key}", WHY)
    for name, task in zip(_tasks(job), job["spec"]["tasks"], strict=True):
        for key in sorted(task.keys() - CARRIED_OF_A_TASK):
            yield Lost(describe(job), f"spec.tasks[{name}].{key}", WHY)
