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
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
YUNIKORN = "yunikorn"
"""The dialect, and the scheduler that pods of it name."""
YUNIKORN_APP, OLD_YUNIKORN_APP, SPARK_APP = "yunikorn.apache.org/app-id", "applicationId", "spark-app-selector"
ANNOTATION, LABEL, SPEC = "annotation", "label", "spec"


@dataclass(frozen=True, slots=True)
class Mark:
    """A place where pods of a dialect name their group."""

    dialect: str
    place: str
    key: str = ""
    scheduler: str = ""
    """Others use the key too: it counts on pods of this scheduler alone."""


MARKS = (
    Mark("volcano", ANNOTATION, GROUP),
    Mark("kai", ANNOTATION, KAI_GROUP),
    Mark("coscheduling", LABEL, COSCHEDULING_GROUP),
    Mark("koordinator", LABEL, SIGS_GROUP),
    Mark("koordinator", LABEL, SIGS_GROUP_NAME),
    Mark("koordinator", ANNOTATION, KOORDINATOR_GANG),
    Mark("native", SPEC),
    Mark("gates", LABEL, GATES_GANG),
    Mark("kueue", LABEL, KUEUE_GROUP),
    Mark("kueue", ANNOTATION, KUEUE_GROUP),
    Mark(YUNIKORN, LABEL, YUNIKORN_APP),
    Mark(YUNIKORN, ANNOTATION, YUNIKORN_APP),
    Mark(YUNIKORN, LABEL, OLD_YUNIKORN_APP, YUNIKORN),
    Mark(YUNIKORN, LABEL, SPARK_APP, YUNIKORN),
)
"""Of one dialect the first that a pod carries counts."""
_LABELS, _ANNOTATIONS = (frozenset(mark.key for mark in MARKS if mark.place == place) for place in (LABEL, ANNOTATION))


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
    if mark.scheduler and spec.scheduler_name != mark.scheduler:
        return None
    if mark.place == ANNOTATION:
        return meta.annotations.get(mark.key) if meta.annotations else None
    if mark.place == LABEL:
        return meta.labels.get(mark.key) if meta.labels else None
    return spec.scheduling_group.pod_group_name if spec.scheduling_group else None


def named_groups(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the groups that a pod object names, by dialect, whether or not the rest of it can be read."""
    places = {ANNOTATION: _texts(pod, "metadata", "annotations"), LABEL: _texts(pod, "metadata", "labels"), SPEC: {}}
    scheduler, own = _texts(pod, "spec").get("schedulerName"), _texts(pod, "spec", "schedulingGroup").get("podGroupName")
    found: dict[str, str] = {}
    for mark in MARKS:
        name = own if mark.place == SPEC else places[mark.place].get(mark.key)
        if name and isinstance(name, str) and mark.scheduler in ("", scheduler):
            found.setdefault(mark.dialect, name)
    return found


def may_name_several(pod: Mapping[str, Any]) -> bool:
    """Tell quickly whether a pod object carries two marks or more; only then it may name several groups."""
    labels, annotations = _texts(pod, "metadata", "labels"), _texts(pod, "metadata", "annotations")
    carried = len(_LABELS & labels.keys()) + len(_ANNOTATIONS & annotations.keys())
    return carried + bool(_texts(pod, "spec").get("schedulingGroup")) > 1


def may_name(pod: Mapping[str, Any], group: str) -> bool:
    """Tell quickly whether a label or an annotation of a pod object could name a group of this name."""
    return group in _texts(pod, "metadata", "labels").values() or group in _texts(pod, "metadata", "annotations").values()


def _texts(document: Any, *path: str) -> Mapping[str, Any]:  # Any: whatever somebody wrote there
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def first_named(pod: Mapping[str, Any]) -> str:
    """Return the name of the first group that a pod object names; empty without one."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    places = {ANNOTATION: meta.get("annotations") or {}, LABEL: meta.get("labels") or {}}
    own = (spec.get("schedulingGroup") or {}).get("podGroupName")
    counting = (mark for mark in MARKS if mark.scheduler in ("", spec.get("schedulerName")))
    names = (own if mark.place == SPEC else places[mark.place].get(mark.key) for mark in counting)
    return str(next(filter(None, names), ""))


def relinked(pod: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Return a pod that names another group wherever it named one, or none at all."""
    meta, spec = dict(pod["metadata"]), dict(pod.get("spec") or {})
    for mark in MARKS:
        if mark.scheduler and spec.get("schedulerName") != mark.scheduler:
            continue
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
