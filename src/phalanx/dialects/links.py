"""How pods name their group, in every dialect: by an annotation, a label, or a field of their spec.

A pod may carry the marks of several dialects; which of the groups it belongs to is decided in `groups.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phalanx.dialects import schema

GROUP = "scheduling.k8s.io/group-name"
KAI_GROUP = "pod-group-name"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
SIGS_GROUP, SIGS_GROUP_NAME = "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh/name"
GATES_GANG = "phalanx.dev/gang"
ANNOTATION, LABEL, SPEC = "annotation", "label", "spec"


@dataclass(frozen=True, slots=True)
class Mark:
    """A place where pods of a dialect name their group."""

    dialect: str
    place: str
    key: str = ""


MARKS = (
    Mark("volcano", ANNOTATION, GROUP),
    Mark("kai", ANNOTATION, KAI_GROUP),
    Mark("coscheduling", LABEL, COSCHEDULING_GROUP),
    Mark("koordinator", LABEL, SIGS_GROUP),
    Mark("koordinator", LABEL, SIGS_GROUP_NAME),
    Mark("koordinator", ANNOTATION, KOORDINATOR_GANG),
    Mark("native", SPEC),
    Mark("gates", LABEL, GATES_GANG),
)
"""Of one dialect the first that a pod carries counts."""


@dataclass(frozen=True, slots=True)
class Link:
    """The group that a pod names in one dialect, as ``namespace/name``."""

    dialect: str
    group: str


def links_of(meta: schema.Meta, spec: schema.PodSpec) -> tuple[Link, ...]:
    """Return the groups that a pod names, at most one of each dialect."""
    found: dict[str, Link] = {}
    for mark in MARKS:
        name = _name(mark, meta, spec)
        if name and mark.dialect not in found:
            found[mark.dialect] = Link(mark.dialect, f"{meta.namespace or 'default'}/{name}")
    return tuple(found.values())


def _name(mark: Mark, meta: schema.Meta, spec: schema.PodSpec) -> str | None:
    if mark.place == ANNOTATION:
        return meta.annotations.get(mark.key) if meta.annotations else None
    if mark.place == LABEL:
        return meta.labels.get(mark.key) if meta.labels else None
    return spec.scheduling_group.pod_group_name if spec.scheduling_group else None


def first_named(pod: Mapping[str, Any]) -> str:
    """Return the name of the first group that a pod object names; empty without one."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    places = {ANNOTATION: meta.get("annotations") or {}, LABEL: meta.get("labels") or {}}
    own = (spec.get("schedulingGroup") or {}).get("podGroupName")
    names = (own if mark.place == SPEC else places[mark.place].get(mark.key) for mark in MARKS)
    return str(next(filter(None, names), ""))


def relinked(pod: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Return a pod that names another group wherever it named one, or none at all."""
    meta, spec = dict(pod["metadata"]), dict(pod.get("spec") or {})
    for mark in MARKS:
        if mark.place == SPEC:
            if "schedulingGroup" in spec:
                spec["schedulingGroup"] = {"podGroupName": name}
                if name is None:
                    del spec["schedulingGroup"]
            continue
        table = "annotations" if mark.place == ANNOTATION else "labels"
        if mark.key in (meta.get(table) or {}):
            others = {key: text for key, text in meta[table].items() if key != mark.key}
            meta[table] = others if name is None else {**others, mark.key: name}
    return {**pod, "metadata": meta, "spec": spec}
