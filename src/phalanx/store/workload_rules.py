"""What the API server refuses in Kubernetes' own workloads when they are submitted: mistakes that manifests often have.

Only what somebody sends is judged: an object that a server shows has been accepted by one. Messages are those of the API server.
Pods that are written by hand need no image to be tried.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from phalanx.errors import ConfigError, Invalid
from phalanx.model.cron import Cron
from phalanx.model.kinds import POD, Document, Kind
from phalanx.store.container_rules import container_faults
from phalanx.store.metadata_rules import metadata_faults
from phalanx.store.value_rules import CONTAINERS, NOT_UNDERSTOOD, pod_faults

ALWAYS = "Always"
TO_THE_END = ("OnFailure", "Never")
"""How the pods of a Job may be started again."""
Faults = Iterator[str]


def refuse_workload(kind: Kind, document: Document) -> None:
    """Raise if the API server would not take a manifest."""
    faults: list[str] = []
    with suppress(*NOT_UNDERSTOOD):  # whoever reads it says what is wrong
        faults.extend(_faults(kind, document))
    if faults:
        raise Invalid.because(kind.kind, str(document["metadata"].get("name") or ""), *faults)


def _faults(kind: Kind, document: Document) -> Faults:
    spec = document.get("spec") or {}
    yield from metadata_faults(kind, document["metadata"])
    if kind is POD:
        yield from container_faults(spec, "spec")
    match (kind.group, kind.kind):
        case ("batch", "Job"):
            yield from _job_faults(spec, "spec")
        case ("batch", "CronJob"):
            yield from _job_faults((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
            yield from _schedule_faults(spec)
        case ("apps", _):
            yield from _set_faults(spec)


def _job_faults(spec: Document, path: str) -> Faults:
    for name in ("parallelism", "completions"):
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            yield f"{path}.{name}: Invalid value: {value}: must be greater than or equal to 0"
    template = (spec.get("template") or {}).get("spec") or {}
    yield from _container_faults(template, f"{path}.template.spec")
    if template.get("restartPolicy") not in TO_THE_END:
        yield f'{path}.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'


def _schedule_faults(spec: Document) -> Faults:
    schedule = str(spec.get("schedule") or "")
    try:
        if schedule:
            Cron(schedule)
    except ConfigError as problem:
        yield f'spec.schedule: Invalid value: "{schedule}": {problem}'


def _set_faults(spec: Document) -> Faults:
    """Judge a Deployment, a ReplicaSet, a StatefulSet or a DaemonSet."""
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not spec.get("selector"):
        yield "spec.selector: Required value"
    elif not _selects((spec["selector"].get("matchLabels") or {}), labels):
        shown = msgspec.json.encode(labels, order="sorted").decode()
        yield f"spec.template.metadata.labels: Invalid value: {shown}: `selector` does not match template `labels`"
    pod = template.get("spec") or {}
    yield from _container_faults(pod, "spec.template.spec")
    policy = pod.get("restartPolicy") or ALWAYS
    if policy != ALWAYS:
        yield f'spec.template.spec.restartPolicy: Unsupported value: "{policy}": supported values: "Always"'


def _selects(wanted: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


def _container_faults(spec: Document, path: str) -> Faults:
    if not spec.get("containers"):
        yield f"{path}.containers: Required value"
    for group in CONTAINERS:
        for place, container in enumerate(spec.get(group) or ()):
            if not container.get("image"):
                yield f"{path}.{group}[{place}].image: Required value"
    yield from container_faults(spec, path)
    yield from pod_faults(spec, path)
