"""How pods name their group, in every dialect: by an annotation, a label, or a field of their spec.

A pod may refer to groups of several dialects; which of them it belongs to is decided in `groups.py`.
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
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
YUNIKORN = "yunikorn"
"""The dialect, and the scheduler that pods of it name."""
YUNIKORN_APP, OLD_YUNIKORN_APP, SPARK_APP = "yunikorn.apache.org/app-id", "applicationId", "spark-app-selector"
ANNOTATION, LABEL, SPEC = "annotation", "label", "spec"


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """A field by which pods of a dialect refer to their group."""

    dialect: str
    place: str
    key: str = ""
    scheduler: str = ""
    """Others use the key too, so that it counts only on pods of this scheduler."""


REFERENCE_FIELDS = (
    ReferenceField("volcano", ANNOTATION, GROUP),
    ReferenceField("kai", ANNOTATION, KAI_GROUP),
    ReferenceField("coscheduling", LABEL, COSCHEDULING_GROUP),
    ReferenceField("koordinator", LABEL, SIGS_GROUP),
    ReferenceField("koordinator", LABEL, SIGS_GROUP_NAME),
    ReferenceField("koordinator", ANNOTATION, KOORDINATOR_GANG),
    ReferenceField("native", SPEC),
    ReferenceField("gates", LABEL, GATES_GANG),
    ReferenceField("kueue", LABEL, KUEUE_GROUP),
    ReferenceField("kueue", ANNOTATION, KUEUE_GROUP),
    ReferenceField(YUNIKORN, LABEL, YUNIKORN_APP),
    ReferenceField(YUNIKORN, ANNOTATION, YUNIKORN_APP),
    ReferenceField(YUNIKORN, LABEL, OLD_YUNIKORN_APP, YUNIKORN),
    ReferenceField(YUNIKORN, LABEL, SPARK_APP, YUNIKORN),
)
"""Of one dialect the first that a pod carries counts."""
_LABELS, _ANNOTATIONS = (
    frozenset(field.key for field in REFERENCE_FIELDS if field.place == place) for place in (LABEL, ANNOTATION)
)
_IN_SPEC = tuple(field for field in REFERENCE_FIELDS if field.place == SPEC)


@dataclass(frozen=True, slots=True)
class GroupReference:
    """The group that a pod names in one dialect, as ``namespace/name``."""

    dialect: str
    group: str


def references_of(meta: schema.Meta, spec: schema.PodSpec) -> tuple[GroupReference, ...]:
    """Return the groups that a pod names, at most one of each dialect."""
    found: dict[str, GroupReference] = {}
    has_mark = not (_LABELS.isdisjoint(meta.labels or ()) and _ANNOTATIONS.isdisjoint(meta.annotations or ()))
    for field in REFERENCE_FIELDS if has_mark else _IN_SPEC:
        name = _name(field, meta, spec)
        if name and field.dialect not in found:
            found[field.dialect] = GroupReference(field.dialect, f"{meta.namespace or 'default'}/{name}")
    return tuple(found.values())


def _name(field: ReferenceField, meta: schema.Meta, spec: schema.PodSpec) -> str | None:
    if field.scheduler and spec.scheduler_name != field.scheduler:
        return None
    if field.place == ANNOTATION:
        return meta.annotations.get(field.key) if meta.annotations else None
    if field.place == LABEL:
        return meta.labels.get(field.key) if meta.labels else None
    return spec.scheduling_group.pod_group_name if spec.scheduling_group else None


def named_groups(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the groups that a pod object names, by dialect, whether or not the rest of it can be read."""
    places = {ANNOTATION: _texts(pod, "metadata", "annotations"), LABEL: _texts(pod, "metadata", "labels"), SPEC: {}}
    scheduler, own = _texts(pod, "spec").get("schedulerName"), _texts(pod, "spec", "schedulingGroup").get("podGroupName")
    found: dict[str, str] = {}
    for field in REFERENCE_FIELDS:
        name = own if field.place == SPEC else places[field.place].get(field.key)
        if name and isinstance(name, str) and field.scheduler in ("", scheduler):
            found.setdefault(field.dialect, name)
    return found


def may_name_several(pod: Mapping[str, Any]) -> bool:
    """Tell quickly whether a pod object has two reference fields or more; only then it may name several groups."""
    labels, annotations = _texts(pod, "metadata", "labels"), _texts(pod, "metadata", "annotations")
    carried = len(_LABELS & labels.keys()) + len(_ANNOTATIONS & annotations.keys())
    return carried + bool(_texts(pod, "spec").get("schedulingGroup")) > 1


def may_name(pod: Mapping[str, Any], group: str) -> bool:
    """Tell quickly whether a label, an annotation or the scheduling group of a pod object could name a group of this name."""
    labels, annotations = _texts(pod, "metadata", "labels"), _texts(pod, "metadata", "annotations")
    native = _texts(pod, "spec", "schedulingGroup").get("podGroupName")
    return group in labels.values() or group in annotations.values() or group == native


def _texts(document: Any, *path: str) -> Mapping[str, Any]:  # Any: whatever somebody wrote there
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def first_named(pod: Mapping[str, Any]) -> str:
    """Return the name of the first group that a pod object names; empty without one."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    places = {ANNOTATION: meta.get("annotations") or {}, LABEL: meta.get("labels") or {}}
    own = (spec.get("schedulingGroup") or {}).get("podGroupName")
    counting = (field for field in REFERENCE_FIELDS if field.scheduler in ("", spec.get("schedulerName")))
    names = (own if field.place == SPEC else places[field.place].get(field.key) for field in counting)
    return str(next(filter(None, names), ""))


def with_group_name(pod: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Return a pod that names another group wherever it named one, or none at all."""
    meta, spec = dict(pod["metadata"]), dict(pod.get("spec") or {})
    for field in REFERENCE_FIELDS:
        if field.scheduler and spec.get("schedulerName") != field.scheduler:
            continue
        if field.place == SPEC:
            if "schedulingGroup" in spec:
                spec["schedulingGroup"] = {"podGroupName": name}
                if name is None:
                    del spec["schedulingGroup"]
            continue
        table = "annotations" if field.place == ANNOTATION else "labels"
        if field.key in (meta.get(table) or {}):
            others = {key: text for key, text in meta[table].items() if key != field.key}
            meta[table] = others if name is None else {**others, field.key: name}
    return {**pod, "metadata": meta, "spec": spec}
